"""The mark in the store that its recall index was emptied and is being filled again: what lacks a row then is no
damage."""

from __future__ import annotations

from beetle.store.engine.transaction import Reading, Writing

REBUILDING = "index_rebuild"
"""Key of `meta` that stands meanwhile."""
MARK_SQL = "INSERT OR REPLACE INTO meta VALUES (?, ?)"
MARKED_SQL = "SELECT 1 FROM meta WHERE key = ?"
UNMARK_SQL = "DELETE FROM meta WHERE key = ?"


def begin(tx: Writing, now: int) -> None:
    """The index was emptied."""
    tx.run(MARK_SQL, REBUILDING, now)


def is_rebuilding(tx: Reading) -> bool:
    """Whether the index was emptied and not filled since."""
    return tx.value(MARKED_SQL, REBUILDING) is not None


def end(tx: Writing) -> None:
    """The index is whole again."""
    tx.run(UNMARK_SQL, REBUILDING)
