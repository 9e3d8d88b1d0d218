"""Long-term facts and policies."""
