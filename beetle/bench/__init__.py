"""`beetle bench`: what this device does with a temporary store, beside plain SQLite on the same disk."""
