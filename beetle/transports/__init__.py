"""Decode, dispatch, encode. No transport has logic of its own."""
