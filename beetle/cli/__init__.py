"""The command line: flags to requests, reports to text. Its parser comes out of the table of operations."""
