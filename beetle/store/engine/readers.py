"""A bounded pool of read-only connections."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import apsw

from beetle.contracts.errors import DeadlineExceeded, NoDescriptor, StoreClosed
from beetle.store.engine.connection import (
    StoreSettings,
    close_connection,
    closed_on_error,
    lacks_descriptor,
    open_reader,
)
from beetle.store.engine.failures import translate
from beetle.store.engine.store_files import StoreFiles
from beetle.store.engine.transaction import TICK_STEPS, Reading
from beetle.store.engine.turns import DEFAULT_WAIT_S, LOOK_SECONDS, Full, IsAbandoned, Turns
from beetle.store.postings import PostingCache

PAUSE_S = 0.1
"""A heavy read that rests looks so often whether it still has to."""
MOST_REST_S = 2.0
"""Longest rest after one piece, which took long where the process or its disk stood still."""


def rest_after(worked: float, share: int) -> float:
    """Seconds to rest after so many seconds of work, so that work is `share` per cent of both."""
    return min(MOST_REST_S, worked * (100 / share - 1)) if share < 100 else 0.0


class _Reader:
    """One connection; of the read that has it now, the deadline (monotonic seconds) and whether it is in vain.

    What is stopped is what this connection does on its own thread: no write, and no read of another's.
    """

    def __init__(self, settings: StoreSettings, pace: Callable[[float], None] | None = None) -> None:
        """`pace` is told after each piece of work how long that took, and may rest."""
        self.connection = open_reader(settings)
        self.deadline: float | None = None
        self.is_abandoned: IsAbandoned | None = None
        self.breathe: Callable[[], None] | None = None
        self._look_at = 0.0
        self._pace = pace
        self._began = time.monotonic()
        self.connection.set_progress_handler(self._late, TICK_STEPS)

    def _late(self) -> bool:
        if self.breathe is not None:
            self.breathe()
        now = time.monotonic()
        if self._pace is not None:
            self._pace(now - self._began)
            self._began = now = time.monotonic()
        if self.deadline is not None and now > self.deadline:
            return True
        if self.is_abandoned is None or now < self._look_at:
            return False
        self._look_at = now + LOOK_SECONDS
        return self.is_abandoned()


class _Awaited(threading.Event):
    """A connection that another read gives back; set once it is there."""

    reader: _Reader


class Readers:
    """Opens a connection when one is first needed, at most `settings.readers`, and keeps it.

    Principals take turns at them; one more is opened when one principal has them all and another reads. Where no file
    descriptor is left for another one, those that are open have to do. A heavy read has a connection of its own beside
    them, for as long as it runs.
    """

    def __init__(
        self,
        settings: StoreSettings,
        gate: AbstractContextManager[object],
        undo: Callable[[], BaseException | None],
        files: StoreFiles,
        postings: PostingCache,
    ) -> None:
        """Prepare; `undo` has the writer take back a change that failed half-way, which a reader cannot; it returns why
        the writer could not either."""
        self._settings = settings
        self._files = files
        self._postings = postings
        self._gate = gate
        self._undo = undo
        full = Full("every reader is busy", maximum=f"{settings.readers} at once", retry_after_ms=100)
        self.turns = Turns(settings.readers + 1, each=settings.readers, full=full.error)
        self.rested = 0.0
        """Seconds in which heavy reads have rested, of which one runs at a time."""
        self._idle: list[_Reader] = []
        self._awaited: deque[_Awaited] = deque()
        self._guard = threading.Lock()
        self._closed = False

    @contextmanager
    def reading(
        self,
        deadline: float | None = None,
        is_abandoned: IsAbandoned | None = None,
        by: str = "",
        breathe: Callable[[], None] | None = None,
    ) -> Iterator[Reading]:
        """A read transaction: one state of the store until the block ends.

        Args:
            deadline: monotonic seconds; a read that runs past it is stopped.
            is_abandoned: whether nobody waits for it any more; then it is stopped too.
            by: the principal whose turn it takes; empty for the daemon's own.
            breathe: called again and again while SQLite works, and may wait.

        Raises:
            Overloaded: every connection stayed busy until the deadline.
            DeadlineExceeded: the deadline passed while reading, or nobody waits for the answer.
            StoreReadOnly: the store was closed, or its files are not where they were and no connection is idle.
        """
        self._refuse_closed()
        with self.turns.held(by, deadline, is_abandoned):
            yield from self._stoppable(deadline, is_abandoned, breathe)

    @contextmanager
    def heavy(
        self,
        deadline: float | None = None,
        is_abandoned: IsAbandoned | None = None,
        by: str = "",
        breathe: Callable[[], None] | None = None,
    ) -> Iterator[Reading]:
        """As `reading`, on a connection of its own: whoever calls it sees to it that only one runs at a time."""
        del by, breathe
        self._refuse_closed()
        yield from self._stoppable(deadline, is_abandoned, None, heavy=True)

    def _refuse_closed(self) -> None:
        if self._closed:
            raise StoreClosed(path=self._settings.path, reason="was closed")

    def _stoppable(
        self,
        deadline: float | None,
        is_abandoned: IsAbandoned | None,
        breathe: Callable[[], None] | None,
        *,
        heavy: bool = False,
    ) -> Iterator[Reading]:
        try:
            if is_abandoned is not None and is_abandoned():
                raise DeadlineExceeded.before("the read was begun")
            with self._connected(heavy, deadline, is_abandoned) as reader:
                reader.deadline, reader.is_abandoned, reader.breathe = deadline, is_abandoned, breathe
                try:
                    yield from _transaction(reader.connection, breathe, self._postings)
                except (apsw.IOError, apsw.CantOpenError, apsw.SQLError) as error:
                    connection = reader.connection
                    raise translate(error, self._settings.path, connection.system_errno, connection) from error
        except apsw.InterruptError:
            raise DeadlineExceeded.before("the read was done") from None
        except apsw.Error as error:
            raise translate(error, self._settings.path) from error

    @contextmanager
    def _connected(self, heavy: bool, deadline: float | None, is_abandoned: IsAbandoned | None) -> Iterator[_Reader]:
        """A connection for one read."""
        # Opening waits at the gate too: without a WAL, SQLite would meet the writer's lock.
        with self._gate:
            if heavy:
                # Without a WAL it holds everybody up, and the sooner it ends the better.
                reader = self._open(self._give_way if self._settings.walled else None)
            elif self._settings.walled:
                reader = self._take_awaited(deadline, is_abandoned)
            else:
                reader = self._take_undone()
            try:
                yield reader
            finally:
                reader.deadline = reader.is_abandoned = reader.breathe = None
                if heavy:
                    close_connection(reader.connection)
                else:
                    self._put(reader)

    def _give_way(self, worked: float) -> None:
        """Rest from heavy work while others read, so that it has its share and no more. The log cannot begin anew while
        it reads: where that has outgrown its budget, the sooner it ends the better."""
        left = rest_after(worked, self._settings.background_share)
        while left > 0 and self.turns.taken and not self._log_is_long():
            pause = min(PAUSE_S, left)
            time.sleep(pause)
            self.rested += pause
            left -= PAUSE_S

    def _log_is_long(self) -> bool:
        try:
            return os.stat(self._settings.path + "-wal").st_size > self._settings.wal_bytes
        except FileNotFoundError:
            return False

    def _take_undone(self) -> _Reader:
        """A journal that a failed write left must be played back before anyone reads, which takes a writer."""
        try:
            reader = self._take()
        except (apsw.ReadOnlyError, apsw.CantOpenError):
            self._undone()
            reader = self._take()
        try:
            try:
                reader.connection.pragma("schema_version")
            except (apsw.ReadOnlyError, apsw.CantOpenError) as error:
                if lacks_descriptor(error, reader.connection):
                    raise NoDescriptor from error
                self._undone()
        except BaseException:
            self._put(reader)
            raise
        return reader

    def _undone(self) -> None:
        if (failed := self._undo()) is not None:
            # What the writer met is what is wrong; that a reader may not write is not.
            raise failed

    def close(self) -> None:
        """Close what is idle; connections in use are closed when their read ends."""
        with self._guard:
            self._closed = True
            idle, self._idle = self._idle, []
        for reader in idle:
            close_connection(reader.connection)

    def _take_awaited(self, deadline: float | None, is_abandoned: IsAbandoned | None) -> _Reader:
        """A connection; without a descriptor for another one, the next that is given back.

        Raises:
            NoDescriptor: none was until the deadline.
            DeadlineExceeded: nobody waits for the read any more.
        """
        try:
            return self._take()
        except NoDescriptor:
            awaited = _Awaited()
            with self._guard:
                if self._closed:
                    raise
                if self._idle:
                    return self._idle.pop()
                self._awaited.append(awaited)
            end = time.monotonic() + DEFAULT_WAIT_S if deadline is None else deadline
            is_vain = False
            while (left := end - time.monotonic()) > 0 and not is_vain and not awaited.wait(min(left, LOOK_SECONDS)):
                is_vain = is_abandoned is not None and is_abandoned()
            with self._guard:
                if awaited.is_set():
                    return awaited.reader
                self._awaited.remove(awaited)
            if is_vain:
                raise DeadlineExceeded.before("its turn came") from None
            raise

    def _take(self) -> _Reader:
        with self._guard:
            if self._idle:
                return self._idle.pop()
        return self._open()

    def _open(self, pace: Callable[[float], None] | None = None) -> _Reader:
        """One more connection, by the store's name: under it must still stand the store."""
        self._files.check()
        reader = _Reader(self._settings, pace)
        with closed_on_error(reader.connection):
            # The write-ahead log is opened by name too, with the first read.
            reader.connection.pragma("schema_version")
            self._files.check()
        return reader

    def open_one(self) -> None:
        """Have a connection open from the start: reads go on over it when the store's files have lost their names.

        Raises:
            BeetleError: the typed error of what SQLite answered.
        """
        try:
            with self._gate:
                self._put(self._open())
        except apsw.Error as error:
            raise translate(error, self._settings.path) from error

    def _put(self, reader: _Reader) -> None:
        with self._guard:
            if self._awaited:
                awaited = self._awaited.popleft()
                awaited.reader = reader
                awaited.set()
                return
            if not self._closed:
                self._idle.append(reader)
                return
        close_connection(reader.connection)


def _transaction(
    connection: apsw.Connection, breathe: Callable[[], None] | None, postings: PostingCache
) -> Iterator[Reading]:
    connection.execute("BEGIN")
    try:
        yield Reading(connection, breathe, postings)
    finally:
        # After an error SQLite may have ended the transaction by itself; a ROLLBACK would hide that error.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
