"""The only package that imports apsw: one SQLite store, one writer, pooled readers."""
