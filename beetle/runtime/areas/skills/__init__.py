"""Runtime skills and mounted Agent Skills."""
