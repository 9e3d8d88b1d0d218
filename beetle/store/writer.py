"""The one writer: a thread that commits queued writes in groups, each write in its own savepoint.

A write is acknowledged only after the commit that holds it is on disk. Waiting writes are taken together, so that one
sync serves them all; a write never waits for company.
"""

from __future__ import annotations

import logging
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any

import apsw

from beetle.contracts.errors import (
    BeetleError,
    DeadlineExceeded,
    Overloaded,
    StorageFull,
    StoreBudgetExceeded,
    StoreReadOnly,
)
from beetle.store.connection import PAGE_SIZE, StoreSettings, close_connection, open_checkpointer
from beetle.store.event_log import ChainHash, Event, Head, Logged, append, read_head
from beetle.store.failures import translate
from beetle.store.transaction import Writing

log = logging.getLogger("beetle.store")

ERASURE_RETRY_S = 0.5
CHECKPOINT_BUSY_MS = 20
TIGHT_BYTES = 64 * 2**20
"""So near to its ceiling a store looks after each write whether it went over; no single write is as large."""
EXPECT_ERASURE_SQL = "INSERT INTO pending_erasure (since) VALUES (?)"
PENDING_ERASURES_SQL = "SELECT count(*) FROM pending_erasure"
CLEAR_ERASURES_SQL = "DELETE FROM pending_erasure"


class WriteTransaction(Writing):
    """What a write runs in: changes, the events that tell of them, and the erasures that they begin."""

    __slots__ = ("_chain_hash", "_head", "erasures", "logged", "now")

    def __init__(self, connection: apsw.Connection, head: Head, chain_hash: ChainHash) -> None:
        super().__init__(connection)
        self._head = head
        self._chain_hash = chain_hash
        self.logged: list[Logged] = []
        self.erasures = 0
        self.now = 0

    def log(self, event: Event) -> int:
        """Append an event-log row; returns its number."""
        self._head, logged = append(self, self._head, event, self.now, self._chain_hash)
        self.logged.append(logged)
        return logged.seq

    def expect_erasure(self) -> None:
        """This write takes content out: the write-ahead log must be cut before that is done, also after a crash."""
        self.run(EXPECT_ERASURE_SQL, self.now)
        self.erasures += 1

    def mark(self) -> tuple[Head, int, int]:
        """A point to go back to when a savepoint is rolled back."""
        return self._head, len(self.logged), self.erasures

    def reset(self, mark: tuple[Head, int, int]) -> None:
        """Forget what was logged and expected since the mark."""
        self._head, logged, self.erasures = mark
        del self.logged[logged:]

    @property
    def head(self) -> Head:
        return self._head


class _Write:
    """One queued write and, when it is done, its answer."""

    __slots__ = ("apart", "deadline", "done", "error", "grows", "result", "run")

    def __init__(self, run: Callable[[Any], Any], deadline: float | None, grows: bool, apart: bool = False) -> None:
        self.run = run
        self.apart = apart
        self.deadline = deadline
        self.grows = grows
        self.done = threading.Event()
        self.result: Any = None
        self.error: BaseException | None = None


class Writer:
    """Owns the writing connection; every other thread hands its writes over."""

    def __init__(
        self,
        settings: StoreSettings,
        connection: apsw.Connection,
        *,
        clock: Callable[[], int],
        chain_hash: ChainHash,
        gate: AbstractContextManager[object],
        pending_erasures: int,
    ) -> None:
        self._settings = settings
        self._connection = connection
        self._clock = clock
        self._gate = gate
        self._chain_hash = chain_hash
        self._head = read_head(Writing(connection))
        self._queue: deque[_Write] = deque()
        self._wake = threading.Condition()
        self._closing = False
        self._stopped = False
        # Set when a commit failed: whether it is on disk is known only from the store itself.
        self._doubtful = False
        self._tight = True
        self._wal_pages = 0
        self._erasures = pending_erasures
        self._erased = threading.Condition()
        self._pause = threading.Event()
        self._log_is_held = False
        self.on_commit: Callable[[list[Logged]], None] | None = None
        self._checkpointer = open_checkpointer(settings) if settings.walled else None
        if settings.walled:
            connection.set_wal_hook(self._count_wal)
        self._thread = threading.Thread(target=self._work, name="beetle-writer", daemon=True)
        self._thread.start()

    def write(
        self, run: Callable[[WriteTransaction], Any], *, deadline: float | None = None, grows: bool = True
    ) -> Any:
        """Run `run` in a transaction of its own or of a group; return what it returned once that is on disk.

        `run` may be run a second time when the group it was in could not be committed, so it must change nothing but
        the transaction. What it raises is raised here, with nothing of it written.

        Args:
            deadline: monotonic seconds; a write that has not begun by then is dropped.
            grows: false lets a write pass the store's ceiling, since it makes room.

        Raises:
            Overloaded: the queue is full.
            DeadlineExceeded: the deadline passed before the write began; nothing was written.
        """
        return self._hand_over(_Write(run, deadline, grows))

    def apart(self, run: Callable[[apsw.Connection], Any]) -> Any:
        """Run something on the writing connection outside of any transaction, behind what waits; errors as `write`."""
        return self._hand_over(_Write(run, None, grows=False, apart=True))

    def post(self, run: Callable[[WriteTransaction], Any]) -> None:
        """Have a small write done that nobody waits for; it is left out when the queue is full or the store closes."""
        with self._wake:
            if not self._closing and not self._stopped and len(self._queue) < self._settings.write_queue:
                self._queue.append(_Write(run, None, grows=False))
                self._wake.notify()

    def _hand_over(self, job: _Write) -> Any:
        deadline = job.deadline
        with self._wake:
            if self._closing:
                raise StoreReadOnly(path=self._settings.path, reason="the store is being closed")
            if self._stopped:
                raise RuntimeError("the writer thread has ended")
            if len(self._queue) >= self._settings.write_queue:
                raise Overloaded(
                    what="too many writes are waiting", maximum=self._settings.write_queue, retry_after_ms=50
                )
            self._queue.append(job)
            self._wake.notify()
        if deadline is not None and not job.done.wait(max(0.0, deadline - time.monotonic())):
            self._withdraw(job)
        job.done.wait()
        if job.error is not None:
            raise job.error
        return job.result

    def _withdraw(self, job: _Write) -> None:
        """Take back a write whose deadline has passed, unless it has begun: then its outcome is waited for."""
        with self._wake:
            if job in self._queue:
                self._queue.remove(job)
                raise DeadlineExceeded(what="the write began", deadline_ms="given")

    @property
    def queued(self) -> int:
        """Writes that wait now."""
        return len(self._queue)

    @property
    def head(self) -> Head:
        """The event log's head after the last commit."""
        return self._head

    @property
    def erasures(self) -> int:
        """Erasures whose bytes may still stand in the write-ahead log."""
        return self._erasures

    def finish_erasures(self, wait: float) -> bool:
        """Wait until no erased byte is left in the write-ahead log, at most `wait` seconds; whether it was reached."""
        end = time.monotonic() + wait
        with self._wake:
            self._wake.notify()
        with self._erased:
            while self._erasures and not self._stopped and (left := end - time.monotonic()) > 0:
                self._erased.wait(left)
        return not self._erasures

    def cut_log(self, wait: float) -> bool:
        """Fold the write-ahead log into the file and empty it, waiting at most `wait` seconds for readers that hold
        it; whether it is empty now. A disk that fails is not waited for."""
        end = time.monotonic() + wait
        while not self.apart(lambda _: self._truncate_wal()):
            if not self._log_is_held or time.monotonic() > end:
                return False
            self._pause.wait(ERASURE_RETRY_S)
        return True

    @property
    def closed(self) -> bool:
        """Whether it takes no more writes."""
        return self._closing

    def undo(self) -> None:
        """Play a journal back that a failed write left; the caller holds the gate."""
        try:
            self._connection.pragma("schema_version")
        except apsw.Error as error:
            log.warning("a failed write cannot be undone yet: %s", type(error).__name__)

    def close(self) -> None:
        """Commit what is queued, fold the write-ahead log into the database, and end the thread."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        self._pause.set()
        self._thread.join()

    def _count_wal(self, _connection: apsw.Connection, _database: str, pages: int) -> int:
        self._wal_pages = pages
        return apsw.SQLITE_OK

    def _work(self) -> None:
        """The thread: whatever ends it, no caller is left waiting and the connection is closed."""
        try:
            self._loop()
        except Exception as defect:  # noqa: BLE001 - the last stop of this thread
            log.critical("the writer ends: %s\n%s", type(defect).__name__, _frames(defect))
        with self._wake:
            self._stopped = True
            left, self._queue = self._queue, deque()
        _settle(left, RuntimeError("the writer thread has ended"))
        with self._erased:
            self._erased.notify_all()
        self._truncate_wal()
        close_connection(self._connection)
        if self._checkpointer is not None:
            close_connection(self._checkpointer)

    def _loop(self) -> None:
        while True:
            with self._wake:
                while not self._queue and not self._closing and not self._erasures:
                    self._wake.wait()
                group = self._take()
            if group and group[0].apart:
                self._run_apart(group[0])
            elif group:
                self._run_group(group)
            if self._erasures:
                self._try_erasures()
            elif self._wal_pages * PAGE_SIZE > self._settings.wal_bytes // 2:
                self._checkpoint()
            if self._closing and not self._queue:
                break
            if self._erasures and not group:
                with self._wake:
                    if not self._queue and not self._closing:
                        self._wake.wait(ERASURE_RETRY_S)

    def _take(self) -> list[_Write]:
        """The next writes of one commit, or the one that runs apart."""
        if self._queue and self._queue[0].apart:
            return [self._queue.popleft()]
        group: list[_Write] = []
        while self._queue and not self._queue[0].apart and len(group) < self._settings.write_group:
            group.append(self._queue.popleft())
        return group

    def _run_apart(self, job: _Write) -> None:
        with self._gate:
            try:
                job.result = job.run(self._connection)
            except apsw.Error as error:
                job.error = self._own_error(error)
            except Exception as defect:  # noqa: BLE001 - handed to the thread that waits for it, which judges it
                job.error = defect
        job.done.set()

    def _run_group(self, group: list[_Write]) -> None:
        """Answer every job of a group, whatever happens."""
        try:
            used = self._used_bytes()
            self._tight = used + TIGHT_BYTES > self._settings.store_bytes
            live = [job for job in group if not self._refused(job, used)]
            if live:
                self._commit(live)
        except Exception as defect:  # noqa: BLE001 - whoever waits must hear of it
            log.error("a group of writes failed: %s\n%s", type(defect).__name__, _frames(defect))
            self._doubtful = True
            for job in group:
                if not job.done.is_set():
                    job.result, job.error = None, defect
        _settle(group, None)

    def _commit(self, live: list[_Write]) -> None:
        head = self._head
        lost = self._attempt(live)
        if lost is None:
            return
        # SQLite rolled the whole group back for the sake of one: give each its own commit, so that only those fail that
        # cannot be written. Not so when the commit reached the file before it failed: no write is made twice.
        again = len(live) > 1 and self._undone(head)
        for job in live:
            error = self._attempt([job]) if again else lost
            if error is not None:
                job.result, job.error = None, error

    def _undone(self, head: Head) -> bool:
        """Whether the store stands where it stood before a commit that failed."""
        with self._gate:
            try:
                return read_head(Writing(self._connection)) == head
            except apsw.Error:
                return False

    def _refused(self, job: _Write, used: int) -> bool:
        if job.deadline is not None and time.monotonic() > job.deadline:
            job.error = DeadlineExceeded(what="the write began", deadline_ms="given")
        elif job.grows and used >= self._settings.store_bytes:
            job.error = StoreBudgetExceeded(maximum=self._settings.store_bytes)
        else:
            return False
        job.done.set()
        return True

    def _over_ceiling(self) -> bool:
        return self._used_bytes() > self._settings.store_bytes

    def _used_bytes(self) -> int:
        """Bytes of the pages in use, as the transaction that runs sees them."""
        try:
            return (self._connection.pragma("page_count") - self._connection.pragma("freelist_count")) * PAGE_SIZE
        except apsw.Error:
            return 0  # a store that cannot be read will say so itself when it is written

    def _attempt(self, jobs: list[_Write]) -> BaseException | None:
        """Run and commit the jobs together. Returns the error that undid them all, None when each has its outcome."""
        with self._gate:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                if self._doubtful:
                    self._catch_up()
                tx = WriteTransaction(self._connection, self._head, self._chain_hash)
                tx.now = self._clock()
                for job in jobs:
                    job.error = None
                    if (lost := self._run_one(job, tx)) is not None:
                        self._doubtful = True
                        self._roll_back()
                        return lost
                self._connection.execute("COMMIT")
            except apsw.Error as error:
                self._doubtful = True
                typed = self._own_error(error)
                self._roll_back()
                return typed
            except BaseException:
                self._doubtful = True
                self._roll_back()
                raise
        self._head = tx.head
        self._erasures += tx.erasures
        self._tell(tx.logged)
        return None

    def _catch_up(self) -> None:
        """Read the head and the erasures from the store: what failed before may be there all the same."""
        tx = Writing(self._connection)
        self._head = read_head(tx)
        self._erasures = tx.value(PENDING_ERASURES_SQL)
        self._doubtful = False

    def _roll_back(self) -> None:
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except apsw.Error as error:
            log.warning("a failed write was rolled back with an error: %s", type(error).__name__)
        self.undo()

    def _tell(self, logged: list[Logged]) -> None:
        if self.on_commit is None or not logged:
            return
        try:
            self.on_commit(logged)
        except Exception as defect:  # noqa: BLE001 - the write is on disk; who follows it must not undo that
            log.error("a follower of events failed: %s\n%s", type(defect).__name__, _frames(defect))

    def _run_one(self, job: _Write, tx: WriteTransaction) -> BaseException | None:
        """Run one job in its savepoint. Returns an error only when the whole transaction is gone."""
        mark = tx.mark()
        tx.connection.execute("SAVEPOINT job")
        try:
            job.result = job.run(tx)
            if job.grows and self._tight and self._over_ceiling():
                raise StoreBudgetExceeded(maximum=self._settings.store_bytes)
            tx.connection.execute("RELEASE job")
        except Exception as error:  # noqa: BLE001 - handed to the thread that waits for it, which judges it
            failure = self._own_error(error) if isinstance(error, apsw.Error) else error
            if not tx.connection.in_transaction:
                return failure
            tx.connection.execute("ROLLBACK TO job")
            tx.connection.execute("RELEASE job")
            tx.reset(mark)
            job.error = failure
            job.result = None
        return None

    def _own_error(self, error: apsw.Error) -> BaseException:
        """The typed error; a full database that still has room on its disk is at its ceiling."""
        try:
            typed: BeetleError = translate(error, self._settings.path, self._connection.system_errno)
        except apsw.Error as defect:
            return defect
        if isinstance(typed, StorageFull) and self._over_ceiling():
            return StoreBudgetExceeded(maximum=self._settings.store_bytes)
        return typed

    def _checkpoint(self) -> None:
        """Copy the write-ahead log into the database, and start it anew once it has outgrown its budget."""
        over = self._wal_pages * PAGE_SIZE > self._settings.wal_bytes
        self._fold(apsw.SQLITE_CHECKPOINT_TRUNCATE if over else apsw.SQLITE_CHECKPOINT_PASSIVE)

    def _truncate_wal(self) -> bool:
        return self._fold(apsw.SQLITE_CHECKPOINT_TRUNCATE)

    def _fold(self, mode: int) -> bool:
        """Run a checkpoint; whether it did all that its mode asks. The log stays as it is when it fails."""
        if self._checkpointer is None:
            return True
        self._log_is_held = False
        try:
            self._checkpointer.set_busy_timeout(CHECKPOINT_BUSY_MS)
            pages, moved = self._checkpointer.wal_checkpoint(mode=mode)
        except apsw.BusyError:
            self._log_is_held = True
            return False  # a reader holds an old state: the next round tries again
        except apsw.Error as error:
            log.warning("checkpoint failed, the write-ahead log stays: %s", type(error).__name__)
            return False
        if pages == moved:
            self._wal_pages = 0
        return True

    def _try_erasures(self) -> None:
        """Cut the write-ahead log; then, and only then, no erasure is pending any more."""
        if not self._truncate_wal():
            return
        # The pages that are cached still have in their gaps what the file has no longer, and would bring it back.
        self._connection.pragma("shrink_memory")
        clear = _Write(lambda tx: tx.run(CLEAR_ERASURES_SQL), None, grows=False)
        lost = self._attempt([clear])
        if lost is not None or clear.error is not None:
            log.warning("an erasure is done but could not be recorded: %s", type(lost or clear.error).__name__)
            return
        with self._erased:
            self._erasures = 0
            self._erased.notify_all()


def _settle(jobs: Iterable[_Write], error: BaseException | None) -> None:
    """Wake whoever waits for these jobs; `error` is for those that have none of their own."""
    for job in jobs:
        if not job.done.is_set():
            job.error = job.error or error
            job.done.set()


def _frames(defect: BaseException) -> str:
    """Where it happened; never the error's own text, which may hold content."""
    return "".join(traceback.format_tb(defect.__traceback__))
