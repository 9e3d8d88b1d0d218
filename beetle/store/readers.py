"""A bounded pool of read-only connections."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import apsw

from beetle.contracts.errors import DeadlineExceeded, Overloaded, StoreReadOnly
from beetle.store.connection import StoreSettings, close_connection, open_reader
from beetle.store.failures import translate
from beetle.store.transaction import Reading

TICK_STEPS = 20_000
"""Virtual-machine steps between two looks at the deadline: about a millisecond of work on a small board."""
LOOK_SECONDS = 0.05
"""How often a read looks whether somebody still waits for it."""

Gone = Callable[[], bool]
"""Whether nobody waits for a read any more; called on the read's own thread, and quick."""


class _Reader:
    """One connection; of the read that has it now, the deadline (monotonic seconds) and whether it is in vain.

    What is stopped is what this connection does on its own thread: no write, and no read of another's.
    """

    def __init__(self, settings: StoreSettings) -> None:
        self.connection = open_reader(settings)
        self.deadline: float | None = None
        self.gone: Gone | None = None
        self._look_at = 0.0
        self.connection.set_progress_handler(self._late, TICK_STEPS)

    def _late(self) -> bool:
        now = time.monotonic()
        if self.deadline is not None and now > self.deadline:
            return True
        if self.gone is None or now < self._look_at:
            return False
        self._look_at = now + LOOK_SECONDS
        return self.gone()


class Readers:
    """Opens a connection when one is first needed, at most `settings.readers`, and keeps it."""

    def __init__(self, settings: StoreSettings, gate: AbstractContextManager[object], undo: Callable[[], None]) -> None:
        """Prepare; `undo` has the writer take back a change that failed half-way, which a reader cannot."""
        self._settings = settings
        self._gate = gate
        self._undo = undo
        self._slots = threading.BoundedSemaphore(settings.readers)
        self._idle: list[_Reader] = []
        self._guard = threading.Lock()
        self._closed = False

    @contextmanager
    def reading(self, deadline: float | None = None, gone: Gone | None = None) -> Iterator[Reading]:
        """A read transaction: one state of the store until the block ends.

        Args:
            deadline: monotonic seconds; a read that runs past it is stopped.
            gone: whether nobody waits for it any more; then it is stopped too.

        Raises:
            Overloaded: every connection stayed busy until the deadline.
            DeadlineExceeded: the deadline passed while reading, or nobody waits for the answer.
            StoreReadOnly: the store was closed.
        """
        if self._closed:
            raise StoreReadOnly(path=self._settings.path, reason="the store was closed")
        wait = 30.0 if deadline is None else max(0.0, deadline - time.monotonic())
        if not self._slots.acquire(timeout=wait):
            raise Overloaded(
                what="every reader is busy", maximum=f"{self._settings.readers} at once", retry_after_ms=100
            )
        try:
            if gone is not None and gone():
                raise DeadlineExceeded(what="the read was begun", deadline_ms="given")
            yield from self._read(deadline, gone)
        except apsw.InterruptError:
            raise DeadlineExceeded(what="the read was done", deadline_ms="given") from None
        except apsw.Error as error:
            raise translate(error, self._settings.path) from error
        finally:
            self._slots.release()

    def _read(self, deadline: float | None, gone: Gone | None) -> Iterator[Reading]:
        # Opening waits at the gate too: without a WAL, SQLite would meet the writer's lock.
        with self._gate:
            reader = self._take() if self._settings.walled else self._take_undone()
            reader.deadline, reader.gone = deadline, gone
            try:
                yield from _transaction(reader.connection)
            finally:
                reader.deadline = reader.gone = None
                self._put(reader)

    def _take_undone(self) -> _Reader:
        """A journal that a failed write left must be played back before anyone reads, which takes a writer."""
        try:
            reader = self._take()
        except (apsw.ReadOnlyError, apsw.CantOpenError):
            self._undo()
            reader = self._take()
        try:
            reader.connection.pragma("schema_version")
        except (apsw.ReadOnlyError, apsw.CantOpenError):
            self._undo()
        return reader

    def close(self) -> None:
        """Close what is idle; connections in use are closed when their read ends."""
        with self._guard:
            self._closed = True
            idle, self._idle = self._idle, []
        for reader in idle:
            close_connection(reader.connection)

    def _take(self) -> _Reader:
        with self._guard:
            if self._idle:
                return self._idle.pop()
        return _Reader(self._settings)

    def _put(self, reader: _Reader) -> None:
        with self._guard:
            if not self._closed:
                self._idle.append(reader)
                return
        close_connection(reader.connection)


def _transaction(connection: apsw.Connection) -> Iterator[Reading]:
    connection.execute("BEGIN")
    try:
        yield Reading(connection)
    finally:
        # After an error SQLite may have ended the transaction by itself; a ROLLBACK would hide that error.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
