"""How the store is opened, locked, read, written and migrated: SQLite through APSW, one writer, pooled readers."""
