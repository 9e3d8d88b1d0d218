"""Erasing in slices: raw deletion of turns, forgetting, and erasing again what a snapshot brings back."""
