"""The newest messages, whose rows the recall index takes in many at a time.

FTS5 writes a segment of its own in each commit: five pages, and a third of the time of a commit of one turn. So the
rows of new messages wait until there are enough of them. A row of `index_tail` says up to which message the index has
all; it is written with them. What stands behind it is searched apart, in an index in memory that is made of the
messages themselves: nothing is lost in a crash, and a reader finds at each moment what was committed before.

Nothing behind that mark changes: whatever changes or erases messages has the index take the rows in before.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import apsw

from beetle.contracts.codec import json_text, unpack_json
from beetle.named_tuple import NamedTuple
from beetle.store.engine.transaction import Reading, Writing, transaction
from beetle.store.indexed import ADD_SQL, IS_INDEXED, KEYS_END, PLANE_BITS, Entry, Fields, rowid_of, scope_of

ROWS = 128
"""Messages that wait at most when a commit ends. A commit of one turn writes 13 pages so, where it wrote 20; the first
search behind 127 of them takes 2 ms longer."""
CHARACTERS = 256 * 1024
"""Of text, that wait at most."""
TAILS = 2
"""Tails that are kept: readers whose transactions began before the index took one in go on with it."""
PLANE = "evidence"

SAID = f"""(SELECT indexed_to FROM index_tail
  WHERE typeof(indexed_to) = 'integer' AND indexed_to >= 0 AND indexed_to < {KEYS_END})"""  # noqa: S608 - constants
"""What the store says of how far the index is; nothing where that is damaged."""
INDEXED_TO = f"""coalesce({SAID},
  (SELECT id >> 4 FROM recall_index_docsize WHERE id BETWEEN 16 AND ({KEYS_END} << 4) - 1 AND id & 15 = 0
    ORDER BY id DESC LIMIT 1), 0)"""  # noqa: S608 - constants
"""The message up to which the index has the rows of all that it is to hold; in SQL. Where another program took the row
away that says so, or altered it, it is the newest one that the index has."""
MARKED = f"coalesce({SAID}, 0)"
"""What the store says of that; nothing of the index is looked at."""
IS_MARKED_SQL = f"SELECT {SAID} IS NOT NULL"
MARK_SQL = "INSERT OR REPLACE INTO index_tail VALUES (1, ?)"
NEWEST = f"(SELECT coalesce(max(message), 0) FROM message WHERE message < {KEYS_END})"  # noqa: S608 - constants
MARK_AGAIN_SQL = f"INSERT OR REPLACE INTO index_tail SELECT 1, {INDEXED_TO}"
ALL_INDEXED_SQL = f"INSERT OR REPLACE INTO index_tail SELECT 1, {NEWEST}"
"""Of an index that is filled again with all of them."""
PLACES_SQL = f"SELECT {INDEXED_TO}, {NEWEST}"
BEHIND_SQL = f"""
SELECT m.message, c.space, m.conversation, m.visibility, b.content, m.digest, m.speaker, m.at
FROM message m JOIN conversation c ON c.conversation = m.conversation JOIN body b ON b.message = m.message
WHERE m.message > ? AND m.message <= ? AND {IS_INDEXED}
  AND NOT EXISTS (SELECT 1 FROM recall_index_docsize d WHERE d.id = m.message << 4)
ORDER BY m.message
"""  # noqa: S608 - our own text
INDEX_SQL = "SELECT sql FROM sqlite_schema WHERE name = 'recall_index'"
LISTS_SQL = """
SELECT json_group_array(json(found)) FROM (
  SELECT (
    SELECT json_group_array(rowid) FROM (
      SELECT f.rowid FROM recall_index f WHERE f.recall_index MATCH j.value AND f.rowid < ?2 ORDER BY f.rowid
    )
  ) AS found
  FROM json_each(?1) j
)
"""
EVERY_SQL = "SELECT json_group_array(id) FROM recall_index_docsize WHERE id < ?"

MessageFields = Callable[[str, bytes, "str | None", int], "Fields | None"]
"""Of a content, its digest, its speaker and its time in microseconds what the index is to hold; None where the content
is not what was committed."""


class TailRow(NamedTuple):
    """A message that waits. `values` is its row of the index; None where the index is not to hold it."""

    message: int
    values: tuple[Any, ...] | None

    @property
    def size(self) -> int:
        """Characters of its text."""
        return 0 if self.values is None else len(self.values[1])


class Waiting(NamedTuple):
    """Messages that wait, in the order of their keys, and how many characters of text."""

    rows: tuple[TailRow, ...] = ()
    size: int = 0

    def __bool__(self) -> bool:
        return bool(self.rows)

    def with_one(self, row: TailRow) -> Waiting:
        """These and one more."""
        return Waiting((*self.rows, row), self.size + row.size)

    @property
    def last(self) -> int:
        """The newest message; 0 without one."""
        return self.rows[-1].message if self.rows else 0

    @property
    def is_full(self) -> bool:
        """Whether the index has to take them in."""
        return len(self.rows) >= ROWS or self.size >= CHARACTERS


def behind(tx: Reading, fields: MessageFields, first: int, last: int) -> list[TailRow]:
    """The messages behind `first` up to `last` that the index is to hold."""
    rows: list[TailRow] = []
    for message, space, conversation, visibility, *said in tx.rows(BEHIND_SQL, first, last):
        if (held := fields(*said)) is not None:
            entry = Entry(PLANE, message, space, conversation, visibility)
            rows.append(TailRow(message, (rowid_of(entry), *held, scope_of(entry))))
    return rows


def is_marked(tx: Reading) -> bool:
    """Whether the store says how far the index is."""
    return tx.value(IS_MARKED_SQL) == 1


def mark_again(tx: Writing) -> int:
    """Have the store say how far the index is, where it does not; how many rows that took."""
    if is_marked(tx):
        return 0
    tx.run(MARK_AGAIN_SQL)
    tx.index_changed(None)
    return 1


def waiting(tx: Reading, fields: MessageFields) -> Waiting:
    """All that waits, as the store says."""
    places = tx.row(PLACES_SQL)
    assert places is not None
    first, last = places
    rows = behind(tx, fields, first, last)
    if last > first and (not rows or rows[-1].message < last):
        rows.append(TailRow(last, None))
    return Waiting(tuple(rows), sum(each.size for each in rows))


class _Made:
    """An index in memory of the messages behind `first`, up to `last`."""

    def __init__(self, first: int, definition: str) -> None:
        self.first = self.last = first
        self._connection = apsw.Connection(":memory:")
        self._connection.execute(definition)

    def take_in(self, rows: Iterable[TailRow], last: int) -> None:
        with transaction(self._connection):
            self._connection.executemany(ADD_SQL, [each.values for each in rows if each.values is not None])
        self.last = last

    def lists(self, expressions: Sequence[str], last: int) -> list[list[int]]:
        """The rows of each expression, of all where it is empty, up to a message."""
        end = (last + 1) << PLANE_BITS
        sought = json_text([each for each in expressions if each])
        found = iter(unpack_json(self._connection.execute(LISTS_SQL, (sought, end)).get))
        every = [] if all(expressions) else unpack_json(self._connection.execute(EVERY_SQL, (end,)).get)
        return [next(found) if each else every for each in expressions]

    def close(self) -> None:
        self._connection.close()


class IndexTail:
    """What readers find among the messages that wait. One for all of them: each takes in what the last one had not."""

    def __init__(self, fields: MessageFields) -> None:
        self._fields = fields
        self._lock = threading.Lock()
        self._made: list[_Made] = []
        self._definition = ""

    def lists(self, tx: Reading, expressions: Sequence[str]) -> list[list[int]]:
        """Of each FTS5 expression, of all rows where it is empty, the rows that the transaction sees and the index has
        not; in their order."""
        places = tx.row(PLACES_SQL)
        assert places is not None
        first, last = places
        if last <= first or not expressions:
            return [[] for _ in expressions]
        definition = self._definition = self._definition or tx.value(INDEX_SQL)
        before, rows = first, None
        while True:
            with self._lock:
                made = self._of(first, definition)
                if rows is not None and made.last == before:
                    made.take_in(rows, last)
                if made.last >= last:
                    return made.lists(expressions, last)
                before = made.last
            # Not under the lock: a reader may have to wait for its turn while it reads.
            rows = behind(tx, self._fields, before, last)

    def _of(self, first: int, definition: str) -> _Made:
        for each in self._made:
            if each.first == first:
                return each
        made = _Made(first, definition)
        self._made.insert(0, made)
        for each in self._made[TAILS:]:
            each.close()
        del self._made[TAILS:]
        return made
