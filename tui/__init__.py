"""The terminal console."""
