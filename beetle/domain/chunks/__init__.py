"""The rules of chunks: counting tokens, naming types, splitting, linking and reasoning. No clock, no I/O."""
