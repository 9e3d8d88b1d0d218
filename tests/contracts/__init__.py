"""What the contracts promise: the table of operations, the errors, encoding, refs and times."""
