"""Reading and writing inside one transaction."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import apsw

Row = tuple[Any, ...]


class Reading:
    """Queries inside one transaction, which sees one state of the store from its first to its last row."""

    __slots__ = ("connection",)

    def __init__(self, connection: apsw.Connection) -> None:
        self.connection = connection

    def rows(self, sql: str, *values: Any) -> Iterator[Row]:
        """The rows, as they are read."""
        return self.connection.execute(sql, values)

    def row(self, sql: str, *values: Any) -> Row | None:
        """The first row."""
        cursor = self.connection.execute(sql, values)
        for row in cursor:
            cursor.close()
            return row
        return None

    def value(self, sql: str, *values: Any) -> Any:
        """The first column of the first row, or None."""
        found = self.row(sql, *values)
        return None if found is None else found[0]


class Writing(Reading):
    """Queries and changes inside one transaction of the writer."""

    __slots__ = ()

    def run(self, sql: str, *values: Any) -> None:
        """One statement that answers no rows."""
        for _ in self.connection.execute(sql, values):
            pass

    def insert(self, sql: str, *values: Any) -> int:
        """One INSERT; its rowid."""
        self.run(sql, *values)
        return self.connection.last_insert_rowid()


@contextmanager
def transaction(connection: apsw.Connection, kind: str = "IMMEDIATE") -> Iterator[None]:
    """A transaction that never hides the first error.

    SQLite rolls back by itself after some errors (a full disk, a failed read); a ROLLBACK then raises an error of its
    own, which would stand in for the one that matters. `with connection:` of the binding does that.
    """
    connection.execute(f"BEGIN {kind}")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
