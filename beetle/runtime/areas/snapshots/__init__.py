"""Snapshots of the whole store."""
