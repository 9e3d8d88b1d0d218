"""Recall, projection and inspection."""
