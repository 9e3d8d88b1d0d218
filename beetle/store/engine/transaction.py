"""Reading and writing inside one transaction."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, TypeVar

import apsw

from beetle.contracts.codec import unpack_json

if TYPE_CHECKING:
    from beetle.store.index_tail import TailRow
    from beetle.store.postings import PostingCache
    from beetle.store.seals import Sealer

Row = tuple[Any, ...]
T = TypeVar("T")

TICK_STEPS = 4_000
"""Virtual-machine steps between two looks at the time: about a millisecond of work on a small board."""

BREATH_ROWS = 64
"""Rows between two breaths: what is made of them takes longer than what SQLite does for them."""


AT_ONCE = (32, 8, 1)
"""Rows of one INSERT: few sizes, since each is a statement that is kept."""


class Stopped(Exception):
    """A read took longer than it may."""


class Reading:
    """Queries inside one transaction, which sees one state of the store from its first to its last row."""

    __slots__ = ("breathe", "connection", "postings")

    def __init__(
        self,
        connection: apsw.Connection,
        breathe: Callable[[], None] | None = None,
        postings: PostingCache | None = None,
    ) -> None:
        """`breathe` is called at every so many rows, and may wait. `postings` is what is remembered of the index."""
        self.connection = connection
        self.breathe = breathe
        self.postings = postings

    def rows(self, sql: str, *values: Any) -> Iterator[Row]:
        """The rows, as they are read. What a damaged text has that is no UTF-8 is U+FFFD: no digest holds of it."""
        read = 0
        try:
            for row in self.connection.execute(sql, values):
                read += 1
                if not read % BREATH_ROWS and self.breathe is not None:
                    self.breathe()
                yield row
        except UnicodeDecodeError:
            yield from islice(self._mended(sql, values), read, None)

    def at_once(self, sql: str, one_by_one: str, *values: Any) -> list[Row]:
        """The rows of a statement that selects them as one JSON array of arrays.

        The binding gives the interpreter away at each row that it steps to, and gets it back late where other threads
        compute: a hundred rows took a recall a tenth of a second beside a busy principal, and take one step here.

        Args:
            one_by_one: selects the same rows, for text that does not decode.
        """
        try:
            (found,) = self.connection.execute(sql, values)
        except UnicodeDecodeError:
            return list(self.rows(one_by_one, *values))
        return unpack_json(found[0])

    def row(self, sql: str, *values: Any) -> Row | None:
        """The first row."""
        cursor = self.connection.execute(sql, values)
        try:
            for row in cursor:
                cursor.close()
                return row
        except UnicodeDecodeError:
            return next(self._mended(sql, values), None)
        return None

    def _mended(self, sql: str, values: tuple[Any, ...]) -> Iterator[Row]:
        """The rows of a query that met text which does not decode: the binding has no other way to read such text."""
        columns = range(len(self.connection.execute(sql, values).get_description()))
        names = ", ".join(f"c{n}" for n in columns)
        parts = ", ".join(f"typeof(c{n}), iif(typeof(c{n}) = 'text', CAST(c{n} AS BLOB), c{n})" for n in columns)
        for row in self.connection.execute(f"WITH q({names}) AS ({sql}) SELECT {parts} FROM q", values):  # noqa: S608 - ours
            pairs = zip(row[::2], row[1::2], strict=True)
            yield tuple(value.decode(errors="replace") if kind == "text" else value for kind, value in pairs)

    def one(self, make: Callable[..., T], sql: str, *values: Any) -> T | None:
        """What `make` makes of the first row's columns, None where there is no row."""
        found = self.row(sql, *values)
        return None if found is None else make(*found)

    def value(self, sql: str, *values: Any) -> Any:
        """The first column of the first row, or None."""
        found = self.row(sql, *values)
        return None if found is None else found[0]


class Writing(Reading):
    """Queries and changes inside one transaction of the writer."""

    __slots__ = ()

    @property
    def sealer(self) -> Sealer | None:
        """What seals the rows that are written; None where nothing does."""
        return None

    def run(self, sql: str, *values: Any) -> None:
        """One statement that answers no rows."""
        for _ in self.connection.execute(sql, values):
            pass

    @property
    def known(self) -> dict[Any, Any]:
        """What is known of rows that only the writer changes, from transaction to transaction; empty where nobody keeps
        it. Whoever notes something here changes those rows by `run_known`."""
        return {}

    def run_known(self, sql: str, *values: Any) -> None:
        """As `run`, of a statement of which the caller brings `known` up to date itself."""
        self.run(sql, *values)

    def put_off(self, sql: str, *values: Any) -> None:
        """As `run_known`; it may be run later in the transaction, and need not where a later one takes its place."""
        self.run_known(sql, *values)

    def mend(self, sql: str, *values: Any) -> None:
        """As `run`, of rows that are known to be damaged: what the statement makes of them counts from now on."""
        self.run(sql, *values)

    def index(self, sql: str, *values: Any) -> None:
        """One INSERT into the recall index; it may be run later in the transaction, with others of its kind."""
        self.run(sql, *values)

    def index_later(self, row: TailRow) -> None:
        """The row of a new message, which the recall index may take in behind the transaction.

        Raises:
            RuntimeError: nobody here keeps what waits.
        """
        raise RuntimeError("messages are written in a transaction of the writer")

    def index_changed(self, rows: Iterable[int] | None) -> None:
        """Rows of the recall index came or went, but for those of new messages; None for any number of them."""

    def insert(self, sql: str, *values: Any) -> int:
        """One INSERT; its rowid."""
        self.run(sql, *values)
        return self.connection.last_insert_rowid()

    def insert_rows(self, sql: str, rows: Sequence[tuple[Any, ...]]) -> int:
        """One INSERT with its VALUES, of many rows; the last one's rowid. As `run_known`.

        Few statements hold all of them: at each the binding gives the interpreter away, and gets it back late where
        other threads compute.
        """
        if len(rows) == 1:
            self.run_known(sql, *rows[0])
            return self.connection.last_insert_rowid()
        start = 0
        while start < len(rows):
            count = next(each for each in AT_ONCE if each <= len(rows) - start)
            self.run_known(_of_rows(sql, count), *chain.from_iterable(rows[start : start + count]))
            start += count
        return self.connection.last_insert_rowid()


@cache
def _of_rows(sql: str, count: int) -> str:
    head, values = sql.rsplit("VALUES", 1)
    return sql if count == 1 else f"{head}VALUES {', '.join([values.strip()] * count)}"


@contextmanager
def stopping_at(tx: Writing, at: float) -> Iterator[None]:
    """Reads of the writer's connection that must have ended at a time (monotonic seconds).

    Raises:
        Stopped: they had not; what was changed before must be rolled back.
    """
    if time.monotonic() > at:
        raise Stopped
    tx.connection.set_progress_handler(lambda: time.monotonic() > at, TICK_STEPS)
    try:
        yield
    except apsw.InterruptError:
        raise Stopped from None
    finally:
        tx.connection.set_progress_handler(None)


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
