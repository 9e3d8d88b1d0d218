"""Thought chains: what a thought may be, its normal form, its canonical bytes and hash. Pure: no clock, no I/O."""
