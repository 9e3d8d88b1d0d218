"""Pure logic, no clock and no I/O: ranking, projection, digests, chains, governance."""
