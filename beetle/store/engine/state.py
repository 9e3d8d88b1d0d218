"""The age of a space."""

from __future__ import annotations

from beetle.store.engine.transaction import Reading

SINCE_SQL = "SELECT created_at FROM space WHERE space = ?"


def space_since(tx: Reading, space: int | None) -> int | None:
    """When a space was first written to, in microseconds."""
    return tx.value(SINCE_SQL, space)
