"""What happens for every operation: authorize, admit, handle, reveal, audit."""
