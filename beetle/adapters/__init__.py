"""Beetle behind the memory classes of agent frameworks: one module each, which alone imports its framework."""
