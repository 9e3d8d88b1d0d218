"""Thought chains: what appends to them, reads them and walks them, and their agents."""
