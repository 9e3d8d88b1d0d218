"""Reading with a look at each value: where a read met what no one foresaw, this finds the damaged row behind it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import apsw

from beetle.contracts.errors import IntegrityViolation
from beetle.named_tuple import NamedTuple
from beetle.store.damaged_rows import is_time
from beetle.store.engine.transaction import Reading, Row

TIME = re.compile(r"(?:^|_)at$|^valid_(?:from|until)$")
"""Names of the columns that hold microseconds since the epoch."""
KINDS: dict[str, type | tuple[type, ...]] = {"INTEGER": int, "REAL": (float, int), "TEXT": str, "BLOB": bytes}


class Column(NamedTuple):
    """Where a value of a row comes from: a column of a table, its declared type, and whether that may be NULL."""

    place: int
    table: str
    name: str
    kind: str
    required: bool


class CheckedReading(Reading):
    """As `Reading`, of the same transaction; a value that its column cannot have is an `IntegrityViolation`.

    Whatever the schema says, the file may hold anything: SQLite looks at types when it writes, never when it reads.
    What a statement computes is not looked at, and no number but a time: any other one could be meant.
    """

    __slots__ = ("_required",)

    def __init__(self, like: Reading) -> None:
        super().__init__(like.connection, like.breathe, like.postings)
        self._required: dict[str, frozenset[str]] = {}

    def rows(self, sql: str, *values: Any) -> Iterator[Row]:
        columns = self._columns(sql, values)
        try:
            for row in self.connection.execute(sql, values):
                _check(row, columns)
                yield row
        except UnicodeDecodeError as error:
            raise IntegrityViolation(reason="a row is damaged: a text of it is not UTF-8") from error

    def at_once(self, sql: str, one_by_one: str, *values: Any) -> list[Row]:
        return list(self.rows(one_by_one, *values))

    def row(self, sql: str, *values: Any) -> Row | None:
        return next(self.rows(sql, *values), None)

    def _columns(self, sql: str, values: tuple[Any, ...]) -> list[Column]:
        try:
            described = self.connection.execute(sql, values).description_full
        except apsw.ExecutionCompleteError:
            return []
        return [
            Column(place, table, name, kind, name in self._required_of(table))
            for place, (_, kind, _, table, name) in enumerate(described)
            if table is not None and name is not None and kind in KINDS
        ]

    def _required_of(self, table: str) -> frozenset[str]:
        """The columns of a table that are never NULL."""
        if table not in self._required:
            found = super().rows('SELECT name FROM pragma_table_info(?) WHERE "notnull"', table)
            self._required[table] = frozenset(name for (name,) in found)
        return self._required[table]


@contextmanager
def checked(reading: AbstractContextManager[Reading]) -> Iterator[Reading]:
    """A read transaction as a `CheckedReading`."""
    with reading as tx:
        yield CheckedReading(tx)


def _check(row: Row, columns: Sequence[Column]) -> None:
    for column in columns:
        value = row[column.place]
        if value is None:
            # An outer join that found no row has nothing at all of its table.
            wrong = column.required and any(
                row[each.place] is not None for each in columns if each.table == column.table
            )
        elif not isinstance(value, KINDS[column.kind]):
            wrong = True
        else:
            wrong = TIME.search(column.name) is not None and not is_time(value)
        if wrong:
            raise IntegrityViolation(reason=f"a row of {column.table} is damaged: its {column.name} cannot be read")
