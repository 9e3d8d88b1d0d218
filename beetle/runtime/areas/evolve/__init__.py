"""Proposals: what would change, and carrying it out."""
