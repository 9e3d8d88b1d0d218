"""Continuity: what a scope holds, taken out, taken in, and compared."""
