"""The age of a store and of a space."""

from __future__ import annotations

from beetle.store.engine.transaction import Reading

SINCE_SQL = "SELECT created_at FROM space WHERE space = ?"
CREATED_SQL = "SELECT applied_at FROM schema_migration WHERE number = 1"


def store_since(tx: Reading) -> int:
    """When the store was created, in microseconds."""
    return tx.value(CREATED_SQL)


def space_since(tx: Reading, space: int | None) -> int | None:
    """When a space was first written to, in microseconds."""
    return tx.value(SINCE_SQL, space)
