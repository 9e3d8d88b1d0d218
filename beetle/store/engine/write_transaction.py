"""What a write runs in."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from operator import itemgetter
from typing import Any, NamedTuple

import apsw

from beetle.store.engine.transaction import Row, Writing
from beetle.store.event_log import ChainHash, Event, Head, Logged, append
from beetle.store.seals import WRITES, Changes, Sealer
from beetle.store.turn_seals import seal_again

INDEX = "recall_index"
"""What every statement names that reads or writes the recall index."""
INDEXED_AT_ONCE = 256
"""Rows of the recall index that are held back at most."""
KNOWN_TABLES = frozenset({"space", "conversation", "message", "event_place", "remembered_conversation"})
"""Of whose rows something is known from commit to commit."""
MOST_KNOWN = 1024
EXPECT_ERASURE_SQL = "INSERT INTO pending_erasure (since) VALUES (?)"


class Known:
    """What the writer knows of the store's rows without reading them, and the statements that leave that as it is."""

    def __init__(self) -> None:
        self.rows: dict[Any, Any] = {}
        self._version = -1
        self._harmless: set[str] = set()

    def begin(self, connection: apsw.Connection) -> None:
        """A transaction has begun: nothing is known where another connection has written since."""
        version = connection.data_version()
        if version != self._version or len(self.rows) > MOST_KNOWN:
            self.rows.clear()
        self._version = version

    def committed(self, connection: apsw.Connection) -> None:
        """What was noted in the transaction holds."""
        self._version = connection.data_version()

    def forget(self) -> None:
        """The transaction, or a part of it, is undone, or somebody else writes on the connection."""
        self.rows.clear()
        self._version = -1

    def look_at(self, sql: str) -> None:
        """A statement is about to run."""
        if sql in self._harmless:
            return
        # A change of a message leaves its key as it is.
        found = [(verb, table) for verb, table in WRITES.findall(sql) if table in KNOWN_TABLES]
        if all(each == ("UPDATE", "message") for each in found):
            self._harmless.add(sql)
        else:
            self.rows.clear()


class WriteTransaction(Writing):
    """What a write runs in: changes, the events that tell of them, and the erasures that they begin."""

    __slots__ = (
        "_chain_hash",
        "_changes",
        "_head",
        "_held_back",
        "_known",
        "_plain",
        "_recorded",
        "erasures",
        "index_changes",
        "logged",
        "now",
    )

    def __init__(
        self,
        connection: apsw.Connection,
        head: Head,
        chain_hash: ChainHash,
        changes: Changes | None = None,
        known: Known | None = None,
    ) -> None:
        """`known`: what the commits before have noted of the store's rows."""
        super().__init__(connection)
        self._changes = changes
        self._plain: Collection[str] = () if changes is None else changes.plain
        self._head = head
        self._chain_hash = chain_hash
        self._held_back: list[tuple[int, str, tuple[Any, ...]]] = []
        self.logged: list[Logged] = []
        self.erasures = 0
        self.index_changes: list[int] | None = []
        self.now = 0
        self._recorded = False
        self._known = Known() if known is None else known

    @property
    def known(self) -> dict[Any, Any]:
        """What is known of rows that only the writer changes."""
        return self._known.rows

    @property
    def sealer(self) -> Sealer | None:
        """What seals the rows that are written."""
        return None if self._changes is None else self._changes.sealer

    def run(self, sql: str, *values: Any) -> None:
        """One statement that answers no rows."""
        self._known.look_at(sql)
        self.run_known(sql, *values)

    def run_known(self, sql: str, *values: Any) -> None:
        """As `run`, of a statement of which the caller brings `known` up to date itself."""
        if self._held_back and INDEX in sql:
            self.write_index()
        if sql in self._plain:
            for _ in self.connection.execute(sql, values):
                pass
        else:
            for _ in self._rows(sql, *values):
                pass

    def rows(self, sql: str, *values: Any) -> Iterator[Row]:
        """The rows, as they are read; what the statement changes is noted."""
        self._known.look_at(sql)
        return self._rows(sql, *values)

    def _rows(self, sql: str, *values: Any) -> Iterator[Row]:
        if self._held_back and INDEX in sql:
            self.write_index()
        if sql in self._plain or self._changes is None or not self._changes.follows(sql):
            return super().rows(sql, *values)
        return iter(self._noted(sql, values, self._changes))

    def row(self, sql: str, *values: Any) -> Row | None:
        """The first row."""
        self._known.look_at(sql)
        if self._held_back and INDEX in sql:
            self.write_index()
        if sql in self._plain or self._changes is None or not self._changes.follows(sql):
            return super().row(sql, *values)
        return next(iter(self._noted(sql, values, self._changes)), None)

    def index(self, sql: str, *values: Any) -> None:
        """One INSERT into the recall index, whose row is the first value. It is held back until the index is looked at,
        or the transaction ends.

        FTS5 writes what it holds, a segment of its own, before each savepoint and before each statement that SQLite
        may have to undo alone: rows that come together cost a fraction of the pages and of the time.
        """
        self._held_back.append((values[0], sql, values))
        if len(self._held_back) >= INDEXED_AT_ONCE:
            self.write_index()

    def write_index(self) -> None:
        """Write the rows of the recall index that are held back."""
        held_back, self._held_back = self._held_back, []
        # In their order: FTS5 writes what it holds whenever a lower row comes behind a higher one.
        for _, sql, values in sorted(held_back, key=itemgetter(0)):
            super().run(sql, *values)

    def _noted(self, sql: str, values: tuple[Any, ...], changes: Changes) -> list[Row]:
        self.connection.preupdate_hook(changes.note)
        try:
            return list(super().rows(sql, *values))
        finally:
            self.connection.preupdate_hook(None)

    def mend(self, sql: str, *values: Any) -> None:
        """As `run`, of rows that are known to be damaged: what the statement makes of them counts from now on."""
        if self._changes is None:
            return self.run(sql, *values)
        self._changes.trusts = True
        try:
            return self.run(sql, *values)
        finally:
            self._changes.trusts = False

    def unnoted(self) -> Writing:
        """Writes in this transaction, of whose changes no seal follows: for what writes the seals itself."""
        self._known.forget()
        return Writing(self.connection)

    def index_changed(self, rows: Iterable[int] | None) -> None:
        """Have what is remembered of the recall index follow this commit."""
        if rows is None:
            self.index_changes = None
        elif self.index_changes is not None:
            self.index_changes.extend(rows)

    def settle(self) -> None:
        """Write the seals of what was changed."""
        changes = self._changes
        if changes:
            seal_again(self, changes.sealer, changes.settle(self))
            changes.forget()

    def log(self, event: Event) -> int:
        """Append an event-log row; returns its number."""
        self._head, logged = append(self, self._head, event, self.now, self._chain_hash)
        self.logged.append(logged)
        return logged.seq

    def expect_erasure(self) -> None:
        """This write takes content out: the write-ahead log must be cut before that is done, also after a crash."""
        if self._recorded:
            return
        self.run(EXPECT_ERASURE_SQL, self.now)
        self.erasures += 1

    @contextmanager
    def recorded(self) -> Iterator[None]:
        """A slice of an erasure whose record says what is left: its log is cut once, behind the last slice."""
        self._recorded = True
        try:
            yield
        finally:
            self._recorded = False

    def mark(self) -> tuple[Head, int, int]:
        """A point to go back to when a savepoint is rolled back."""
        return self._head, len(self.logged), self.erasures

    def reset(self, mark: tuple[Head, int, int]) -> None:
        """Forget what was logged and expected since the mark."""
        self._head, logged, self.erasures = mark
        del self.logged[logged:]
        self._held_back.clear()
        self._known.forget()
        if self._changes is not None:
            self._changes.forget()

    @property
    def head(self) -> Head:
        return self._head


class Sealing(NamedTuple):
    """What seals from now on. `adopt`, where there is something to adopt, runs in the first transaction, before any
    other write: none is committed without it. It may run again, and then finds nothing to do."""

    sealer: Sealer
    adopt: Callable[[WriteTransaction], None] | None = None
