"""Emptying the recall index, whatever state it is in, and the mark in the store that it is being filled again: what
lacks a row meanwhile is no damage."""

from __future__ import annotations

import apsw

from beetle.store.engine.transaction import Reading, Writing
from beetle.store.index_tail import INDEX_SQL

REBUILDING = "index_rebuild"
"""Key of `meta` that stands meanwhile."""
MARK_SQL = "INSERT OR REPLACE INTO meta VALUES (?, ?)"
MARKED_SQL = "SELECT value FROM meta WHERE key = ?"
UNMARK_SQL = "DELETE FROM meta WHERE key = ?"


OWN_TABLES = ("data", "idx", "docsize", "config")
"""Tables of FTS5 behind the index."""
SECURE_SQL = "INSERT INTO recall_index (recall_index, rank) VALUES ('secure-delete', 1)"
HASH_SQL = "SELECT v FROM recall_index_config WHERE k = 'hashsize'"
SET_HASH_SQL = "INSERT INTO recall_index (recall_index, rank) VALUES ('hashsize', ?)"
EMPTY_SQL = "INSERT INTO recall_index (recall_index) VALUES ('delete-all')"


def empty(tx: Writing) -> None:
    """Take every row out of the index. FTS5's own tables are as those of a new index then: where they are damaged it
    may refuse to empty itself."""
    hash_bytes = tx.value(HASH_SQL)
    made = apsw.Connection(":memory:")
    tx.connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
    try:
        made.execute(tx.value(INDEX_SQL))
        made.execute(SECURE_SQL)
        for name in OWN_TABLES:
            tx.run(f"DELETE FROM recall_index_{name}")  # noqa: S608 - our own names
            for row in made.execute(f"SELECT * FROM recall_index_{name}"):  # noqa: S608 - likewise
                tx.run(f"INSERT INTO recall_index_{name} VALUES ({', '.join('?' * len(row))})", *row)  # noqa: S608 - likewise
    finally:
        tx.connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
        made.close()
    # What FTS5 remembers of the index on this connection goes too.
    tx.run(EMPTY_SQL)
    if isinstance(hash_bytes, int):
        tx.run(SET_HASH_SQL, hash_bytes)


def begin(tx: Writing, now: int) -> None:
    """The index was emptied."""
    tx.run(MARK_SQL, REBUILDING, now)


def is_rebuilding(tx: Reading) -> bool:
    """Whether the index was emptied and not filled since."""
    return since(tx) is not None


def since(tx: Reading) -> int | None:
    """When it was emptied, in microseconds since the epoch; 0 where that cannot be read, None where it is filled."""
    row = tx.row(MARKED_SQL, REBUILDING)
    return None if row is None else row[0] if isinstance(row[0], int) else 0


def end(tx: Writing) -> None:
    """The index is whole again."""
    tx.run(UNMARK_SQL, REBUILDING)
