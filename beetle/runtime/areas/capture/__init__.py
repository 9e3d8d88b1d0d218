"""Turns and events that come one by one: what hosts capture, and what happened in sessions."""
