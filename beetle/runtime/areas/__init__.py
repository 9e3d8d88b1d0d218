"""What happens for one operation: an area's handlers and logic together."""
