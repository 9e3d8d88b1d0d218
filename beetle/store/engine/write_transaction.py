"""What a write runs in."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from operator import itemgetter
from typing import Any

import apsw

from beetle.named_tuple import NamedTuple
from beetle.store import index_tail, word_bitmaps
from beetle.store.engine.transaction import Reading, Row, Writing
from beetle.store.event_log import ChainHash, Event, Head, Logged, append
from beetle.store.index_tail import MessageFields, TailRow, Waiting
from beetle.store.indexed import ADD_SQL, PLANE_BITS
from beetle.store.row_sets import PLANES
from beetle.store.seals import WRITES, Changes, Sealer
from beetle.store.turn_seals import seal_again
from beetle.store.word_bitmaps import block_of

INDEX = "recall_index"
"""What every statement names that reads or writes the recall index."""
INDEXED_AT_ONCE = 256
"""Rows of the recall index that are held back at most."""
SPEAKERS = "conversation_speaker"
"""What every statement names that reads or writes who spoke in a conversation."""
REMEMBERED = "remembered_conversation"
"""What every statement names that reads or writes what somebody last committed to."""
KNOWN_TABLES = frozenset({
    "space", "conversation", SPEAKERS, "message", "event_place", REMEMBERED, "toc_outbox",
    "tool_observation", "table_seal",
})  # fmt: skip
"""Of whose rows something is known from commit to commit."""
MOST_KNOWN = 1024
READS = re.compile(r"\s*(?:SELECT|WITH)\b(?!.*\b(?:INSERT|UPDATE|DELETE|REPLACE)\b)", re.DOTALL)
OF_SEAL = re.compile(r"\bseal\b")
EXPECT_ERASURE_SQL = "INSERT INTO pending_erasure (since) VALUES (?)"


def reads_seals(sql: str) -> bool:
    """Whether a statement looks at the seals of rows."""
    return "row_seal" in sql or "table_seal" in sql or ("SELECT" in sql and OF_SEAL.search(sql) is not None)


@lru_cache(maxsize=MOST_KNOWN)
def asks_first(sql: str) -> bool:
    """Whether something may have to be written before a statement runs, or noted of it."""
    return INDEX in sql or SPEAKERS in sql or REMEMBERED in sql or reads_seals(sql)


class Known:
    """What the writer knows of the store's rows without reading them, and the statements that leave that as it is.

    `tail` is the messages that wait for the recall index, None where they have to be read first.
    """

    def __init__(self, fields: MessageFields) -> None:
        self.rows: dict[Any, Any] = {}
        self.fields = fields
        self.tail: Waiting | None = None
        self._version = -1
        self.harmless: set[str] = set()
        """Statements that leave what is known as it is, as far as they were met."""

    def begin(self, connection: apsw.Connection) -> None:
        """A transaction has begun: nothing is known where another connection has written since."""
        version = connection.data_version()
        if version != self._version:
            self.tail = None
        if version != self._version or len(self.rows) > MOST_KNOWN:
            self.rows.clear()
        self._version = version

    def committed(self, connection: apsw.Connection, tail: Waiting | None) -> None:
        """What was noted in the transaction holds, and these messages wait now."""
        self._version = connection.data_version()
        self.tail = tail

    def forget(self) -> None:
        """The transaction, or a part of it, is undone, or somebody else writes on the connection."""
        self.rows.clear()
        self.tail = None
        self._version = -1

    def look_at(self, sql: str) -> None:
        """A statement is about to run that is not known to be harmless."""
        # A change of a message leaves its key as it is.
        found = [(verb, table) for verb, table in WRITES.findall(sql) if table in KNOWN_TABLES]
        if all(each == ("UPDATE", "message") for each in found):
            self.harmless.add(sql)
        else:
            self.rows.clear()


class Mark(NamedTuple):
    """What a transaction holds beside its rows: the log's head, events, erasures, the messages that wait for the index,
    with the newest one that it knows of, and what is to be called once it is committed.
    """

    head: Head
    logged: int
    erasures: int
    tail: Waiting | None
    taken: int
    hooks: int


class WriteTransaction(Writing):
    """What a write runs in: changes, the events that tell of them, and the erasures that they begin."""

    __slots__ = (
        "_chain_hash",
        "_changed_blocks",
        "_changes",
        "_checked",
        "_cursor",
        "_harmless",
        "_head",
        "_held_back",
        "_known",
        "_plain",
        "_put_off",
        "_recorded",
        "_tail",
        "_taken",
        "erasure_clock",
        "erasures",
        "hooks",
        "index_changes",
        "logged",
        "now",
        "speakers_change",
    )

    def __init__(
        self,
        connection: apsw.Connection,
        head: Head,
        chain_hash: ChainHash,
        changes: Changes | None,
        known: Known,
    ) -> None:
        """`known`: what the commits before have noted of the store's rows."""
        super().__init__(connection)
        # Of statements that answer no rows: to make a cursor for each takes two fifths of the time of a small one.
        self._cursor = connection.cursor()
        self._changes = changes
        self._plain: Collection[str] = () if changes is None else changes.plain
        self._head = head
        self._chain_hash = chain_hash
        self._held_back: list[tuple[int, str, tuple[Any, ...]]] = []
        self._put_off: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        self._tail = known.tail
        self._taken = 0
        self.logged: list[Logged] = []
        self.hooks: list[Callable[[], None]] = []
        """Called once the transaction is committed, each once, on the thread that commits; what is undone takes its
        own with it. They must be quick, and raise nothing."""
        self.erasures = 0
        self.index_changes: list[int] | None = []
        self._changed_blocks: set[int] = set()
        self.now = 0
        self.erasure_clock: Callable[[], int] | None = None
        self.speakers_change = False
        self._recorded = False
        self._known = known
        self._harmless: Collection[str] = known.harmless
        self._checked: Reading | None = None

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
        if sql not in self._harmless:
            self._known.look_at(sql)
        self.run_known(sql, *values)

    def run_known(self, sql: str, *values: Any) -> None:
        """As `run`, of a statement of which the caller brings `known` up to date itself."""
        if asks_first(sql):
            self._prepare(sql)
        if sql in self._plain:
            for _ in self._cursor.execute(sql, values):
                pass
        else:
            for _ in self._rows(sql, *values):
                pass

    def rows(self, sql: str, *values: Any) -> Iterator[Row]:
        """The rows, as they are read; what the statement changes is noted."""
        if sql not in self._harmless:
            self._known.look_at(sql)
        return self._rows(sql, *values)

    def _rows(self, sql: str, *values: Any) -> Iterator[Row]:
        if asks_first(sql):
            self._prepare(sql)
        if self._checked is not None and READS.match(sql):
            return self._checked.rows(sql, *values)
        if sql in self._plain or self._changes is None or not self._changes.follows(sql):
            return super().rows(sql, *values)
        return iter(self._noted(sql, values, self._changes))

    def row(self, sql: str, *values: Any) -> Row | None:
        """The first row."""
        if sql not in self._harmless:
            self._known.look_at(sql)
        if asks_first(sql):
            self._prepare(sql)
        if self._checked is not None and READS.match(sql):
            return self._checked.row(sql, *values)
        if sql in self._plain or self._changes is None or not self._changes.follows(sql):
            return super().row(sql, *values)
        return next(iter(self._noted(sql, values, self._changes)), None)

    def _prepare(self, sql: str) -> None:
        """A statement is about to run: what it looks at is written before."""
        if INDEX in sql:
            self.write_index()
        if SPEAKERS in sql:
            self.speakers_change = True
        if self._put_off and REMEMBERED in sql:
            self._write_put_off()
        if reads_seals(sql) and self._changes:
            self.settle()

    def put_off(self, sql: str, *values: Any) -> None:
        """A statement on what is remembered of conversations, whose caller brings `known` up to date. It runs when the
        transaction ends or such a row is looked at, and not at all where another one follows that differs in its last
        value alone: writes that share a commit are mostly of one caller, in many conversations.
        """
        self._put_off[sql, *values[:-1]] = (sql, *values)

    def _write_put_off(self) -> None:
        statements, self._put_off = self._put_off.values(), {}
        for sql, *values in statements:
            self.run_known(sql, *values)

    def index(self, sql: str, *values: Any) -> None:
        """One INSERT into the recall index, whose row is the first value. It is held back until the index is looked at,
        or the transaction ends.

        FTS5 writes what it holds, a segment of its own, before each savepoint and before each statement that SQLite
        may have to undo alone: rows that come together cost a fraction of the pages and of the time.
        """
        self._held_back.append((values[0], sql, values))
        if len(self._held_back) >= INDEXED_AT_ONCE:
            self.write_index()

    def index_later(self, row: TailRow) -> None:
        """The row of a new message. It may wait for others of later transactions, until the index is looked at."""
        tail = self._waiting()
        if row.message <= self._taken:
            return  # it was there when what waits was read from the store
        self._tail, self._taken = tail.with_one(row), row.message
        if len(tail.rows) >= INDEXED_AT_ONCE:
            self.write_index()

    def write_index(self) -> None:
        """Write the rows of the recall index that are held back, and those of messages that wait."""
        tail = self._waiting()
        if not tail and not self._held_back:
            return
        rows = self._held_back + [(each.values[0], ADD_SQL, each.values) for each in tail.rows if each.values]
        self._held_back, self._tail = [], Waiting()
        # In their order: FTS5 writes what it holds whenever a lower row comes behind a higher one.
        for _, sql, values in sorted(rows, key=itemgetter(0)):
            super().run(sql, *values)
        if tail:
            super().run(index_tail.MARK_SQL, tail.last)

    def end_index(self) -> None:
        """The transaction ends: write what does not wait for others."""
        if self._held_back or (self._tail and self._tail.is_full):
            self.write_index()
        if self._changed_blocks:
            word_bitmaps.drop(Writing(self.connection), self._changed_blocks)

    @property
    def tail(self) -> Waiting | None:
        """The messages that wait for the index at the end of the transaction; None where nobody looked."""
        return self._tail

    def _waiting(self) -> Waiting:
        if self._tail is None:
            self._tail = index_tail.waiting(Reading(self.connection), self._known.fields)
            self._taken = max(self._taken, self._tail.last)
        return self._tail

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
        self.settle()
        self._known.forget()
        return Writing(self.connection)

    def index_changed(self, rows: Iterable[int] | None) -> None:
        """Have what is remembered of the recall index follow this commit."""
        if rows is None:
            self.index_changes = None
            return
        changed = tuple(rows)
        self._changed_blocks.update(block_of(row >> PLANE_BITS) for row in changed if not row & PLANES)
        if self.index_changes is not None:
            self.index_changes.extend(changed)

    def settle(self) -> None:
        """Write what was put off, and the seals of what was changed: once for all writes of a transaction, unless one
        of them reads seals."""
        if self._put_off:
            self._write_put_off()
        changes = self._changes
        if changes:
            seal_again(self, changes.sealer, changes.settle(Writing(self.connection), self._known.rows))
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
        self.run(EXPECT_ERASURE_SQL, self.now if self.erasure_clock is None else self.erasure_clock())
        self.erasures += 1

    @contextmanager
    def recorded(self) -> Iterator[None]:
        """A slice of an erasure whose record says what is left: its log is cut once, behind the last slice."""
        self._recorded = True
        try:
            yield
        finally:
            self._recorded = False

    @contextmanager
    def rehearsal(self) -> Iterator[None]:
        """What is changed and logged within is undone at the end. The caller alone writes in its transaction, but for
        those of its group before it.
        """
        # What the writes before have held back would be forgotten.
        self.settle()
        self.end_index()
        mark = self.mark()
        self.connection.execute("SAVEPOINT rehearsal")
        try:
            yield
        finally:
            # SQLite may have ended the transaction by itself; the error that says so goes on.
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK TO rehearsal")
                self.connection.execute("RELEASE rehearsal")
                self.reset(mark)

    @contextmanager
    def checking(self) -> Iterator[None]:
        """A rehearsal that looks at each value that it reads: IntegrityViolation where its column cannot have it."""
        # Of a store that is damaged: its code is loaded for that alone.
        from beetle.store.checked_reading import CheckedReading

        with self.rehearsal():
            self._checked = CheckedReading(self)
            try:
                yield
            finally:
                self._checked = None

    def mark(self) -> Mark:
        """A point to go back to when a savepoint is rolled back."""
        return Mark(self._head, len(self.logged), self.erasures, self._tail, self._taken, len(self.hooks))

    def reset(self, mark: Mark) -> None:
        """Forget what was logged and expected since the mark."""
        self._head, logged, self.erasures, self._tail, self._taken, hooks = mark
        del self.logged[logged:], self.hooks[hooks:]
        self._held_back.clear()
        self._put_off.clear()
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
