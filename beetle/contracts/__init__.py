"""What can be asked and answered: requests, reports, errors and the table of operations. No I/O."""
