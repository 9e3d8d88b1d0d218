"""One file per recall plane."""
