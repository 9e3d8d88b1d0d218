"""The one writer: a thread that commits queued writes in groups.

A write is acknowledged only after the commit that holds it is on disk. Waiting writes are taken together, so that one
sync serves them all. Where several came together before, a commit waits a moment for as many again: clients that were
answered together ask again together. A write whose writer is alone waits for nobody.

A group begins without savepoints: each would have the recall index write what it holds, a segment of its own. When one
of several writes fails, all are rolled back and run again, each in a savepoint.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from itertools import chain
from typing import Any

import apsw

from beetle.contracts.errors import (
    BeetleError,
    DeadlineExceeded,
    Overloaded,
    StorageFull,
    StoreBudgetExceeded,
    StoreClosed,
)
from beetle.store import recall_index
from beetle.store.engine.checkpoints import Checkpoints
from beetle.store.engine.connection import StoreSettings, close_connection
from beetle.store.engine.domain_functions import StoreFunctions
from beetle.store.engine.erasing import PENDING_SQL, Erasing, steady
from beetle.store.engine.failures import failed, log_defect, translate
from beetle.store.engine.pulse import Pulse
from beetle.store.engine.room import Room
from beetle.store.engine.store_files import StoreFiles, StoreMoved
from beetle.store.engine.transaction import Reading, Writing
from beetle.store.engine.write_queue import PendingWrite, QueuedWrite, WriteQueue, recorded, settle
from beetle.store.engine.write_transaction import Known, Sealing, WriteTransaction
from beetle.store.event_log import Head, Logged, read_head
from beetle.store.postings import PostingCache
from beetle.store.seals import Changes, shapes

ERASURE_RETRY_S = 0.5
LOOK_S = 0.5
"""So often an idle writer looks whether the store's files are where they were."""
GATHER_S = 0.005
"""So long a commit waits at most for the company of the last one, and no longer than that one took."""
CAREFUL_GROUPS = 64
"""So many groups have savepoints from the start behind one whose writes had to run again."""


class OneFailed(Exception):
    """One write of a group failed, and has its error; nothing of the group is written."""


class Writer:
    """Owns the writing connection; every other thread hands its writes over. `erased` counts the erasures since."""

    def __init__(
        self,
        settings: StoreSettings,
        connection: apsw.Connection,
        *,
        clock: Callable[[], int],
        functions: StoreFunctions,
        gate: AbstractContextManager[object],
        files: StoreFiles,
        pending_erasures: int,
        sealing: Sealing | None = None,
    ) -> None:
        self._settings = settings
        self.postings: PostingCache | None = None
        """What is remembered of the recall index, which is told of each commit that changes it."""
        self.sealing = sealing
        # What `sealing` has begun with, and what it notes.
        self._sealed: Sealing | None = None
        self._changes: Changes | None = None
        self._known = Known(functions.message_fields)
        self._files = files
        self._look_s = None if settings.backend == "in-memory" else LOOK_S
        self._connection = connection
        self._clock = clock
        self.erasure_clock = steady(clock)
        """Tells since when an erasure is pending, in microseconds."""
        self._gate = gate
        self._chain_hash = functions.chain_hash
        self._head = read_head(Writing(connection))
        self._queue = WriteQueue(settings.write_queue, settings.write_group)
        self._wake = threading.Condition()
        self._last: Callable[[WriteTransaction], Any] | None = None
        self._closing = self._stopped = False
        # Set when a commit failed: whether it is on disk is known only from the store itself.
        self._doubtful = False
        self._careful = 0
        # So many waiting writes wake the thread; and how long the last commit took.
        self._gathering = 1
        self._group_s = 0.0
        self.erased = 0
        self.pulse = Pulse(connection)
        self._pause = threading.Event()
        self.on_commit: Callable[[list[Logged]], None] | None = None
        self._checkpoints = Checkpoints(settings, connection, files)
        self._room = Room(settings, connection, lambda: self._checkpoints.written)
        self._erasing = Erasing(connection, self._checkpoints, pending_erasures, self._commit_alone, clock)
        self._thread = threading.Thread(target=self._work, name="beetle-writer", daemon=True)
        self._thread.start()

    def write(
        self, run: Callable[[WriteTransaction], Any], *, deadline: float | None = None, grows: bool = True, by: str = ""
    ) -> Any:
        """Run `run` in a transaction of its own or of a group; return what it returned once that is on disk.

        `run` may be run a second time when the group it was in could not be committed, so it must change nothing but
        the transaction. What it raises is raised here, with nothing of it written.

        Args:
            deadline: monotonic seconds; a write that has not begun by then is dropped.
            grows: false lets a write pass the store's ceiling, since it makes room.
            by: the principal whose turn it takes; empty for the daemon's own.

        Raises:
            Overloaded: the queue is full.
            DeadlineExceeded: the deadline passed before the write began; nothing was written.
            StoreMoved: the store's files are not where they were.
        """
        return self._hand_over(QueuedWrite(run, deadline, grows, by=by))

    def apart(self, run: Callable[[apsw.Connection], Any]) -> Any:
        """Run something on the writing connection outside of any transaction, behind what waits; errors as `write`."""
        return self._hand_over(QueuedWrite(run, None, grows=False, apart=True))

    def post(
        self,
        run: Callable[[WriteTransaction], Any],
        *,
        grows: bool = False,
        then: Callable[[BaseException | None], None] | None = None,
    ) -> bool:
        """Have a small write done that nobody waits for; false when the queue is full or the store closes.

        Args:
            grows: as of `write`.
            then: is called with its error, or None, when it has ended: on the writer's thread, so it must be quick.
        """
        job = QueuedWrite(run, None, grows)
        job.then = then
        with self._wake:
            if self._closing or self._stopped or not self._queue.admits(""):
                return False
            self._queue.add(job)
            if len(self._queue) >= self._gathering:
                self._wake.notify()
            return True

    def begin(self, write: PendingWrite, then: Callable[[BaseException | None], None]) -> QueuedWrite:
        """As `write`, but nobody waits: `then` is told of its end, as of `post`, and the answer stands in what this
        returns. A write that has not begun by its deadline may be withdrawn; else it is refused when its turn comes."""
        job = QueuedWrite(write.run, write.deadline, write.grows, by=write.by)
        job.then = then
        self._add(job)
        return job

    def _hand_over(self, job: QueuedWrite) -> Any:
        self._add(job)
        deadline = job.deadline
        if deadline is not None and not job.done.wait(max(0.0, deadline - time.monotonic())) and self.withdraw(job):
            raise DeadlineExceeded.before("the write began")
        job.done.wait()
        return job.answer()

    def _add(self, job: QueuedWrite) -> None:
        with self._wake:
            if self._closing:
                raise StoreClosed(path=self._settings.path, reason="is being closed")
            if self._stopped:
                raise RuntimeError("the writer thread has ended")
            if not self._queue.admits(job.by):
                raise Overloaded(
                    what="too many writes are waiting", maximum=self._settings.write_queue, retry_after_ms=50
                )
            self._queue.add(job)
            if len(self._queue) >= self._gathering:
                self._wake.notify()

    def withdraw(self, job: QueuedWrite) -> bool:
        """Take a write back; false where it has begun, or ended: then its outcome stands."""
        with self._wake:
            return self._queue.remove(job)

    def share(self, others_ask: Callable[[str], bool]) -> None:
        """Have who writes much rest between two writes, while anybody but it asks."""
        self._queue.others_ask = others_ask

    @property
    def queued(self) -> int:
        """Writes that wait now."""
        return len(self._queue)

    @property
    def has_company(self) -> bool:
        """Whether several writes shared one of the last two commits."""
        return self._queue.company > 1

    @property
    def head(self) -> Head:
        """The event log's head after the last commit."""
        return self._head

    @property
    def erasures(self) -> int:
        """Erasures whose bytes may still stand in the write-ahead log."""
        return self._erasing.count

    @property
    def erasures_put_off_s(self) -> float:
        """For so long an erasure may be put off, for the sake of a replica that is sent anew for each."""
        return self._erasing.put_off_s

    def finish_erasures(self, wait: float) -> bool:
        """Wait until no erased byte is left in the write-ahead log; whether that was reached.

        A log that is large, or a writer that is busy, is waited for as long as it takes; a reader that holds the log,
        or a disk that refuses, for at most `wait` seconds.
        """
        with self._wake:
            self._wake.notify()
        return self._erasing.finish(wait, lambda: self._stopped)

    def cut_log(self, wait: float) -> bool:
        """Fold the write-ahead log into the file and empty it, waiting at most `wait` seconds for readers that hold
        it; whether it is empty now. A disk that refuses is not waited for: its error is raised."""
        end = time.monotonic() + wait
        while not self.apart(lambda _: self._checkpoints.cut()):
            if time.monotonic() > end:
                return False
            self._pause.wait(ERASURE_RETRY_S)
        return True

    @property
    def closed(self) -> bool:
        return self._closing

    @property
    def ended(self) -> bool:
        """Whether its thread has ended, after which every write is a defect."""
        return self._stopped

    def undo(self) -> BaseException | None:
        """Play a journal back that a failed write left; the caller holds the gate. Returns why it could not be."""
        try:
            self._connection.pragma("schema_version")
        except apsw.Error as error:
            failed("write_not_undone", "a failed write cannot be undone yet", error)
            return self._own_error(error)
        return None

    def close(self, last: Callable[[WriteTransaction], Any] | None = None) -> None:
        """Commit what is queued, then `last`, fold the write-ahead log into the database, and end the thread."""
        with self._wake:
            self._last = last
            self._closing = True
            self._wake.notify()
        self._pause.set()
        self._thread.join()

    def _work(self) -> None:
        """The thread: whatever ends it, no caller is left waiting and the connection is closed."""
        try:
            self._loop()
            self._write_last()
        except Exception as defect:  # noqa: BLE001 - the last stop of this thread
            log_defect("writer_ended", "the writer ends", defect)
        with self._wake:
            self._stopped = True
            left = self._queue.drain()
        settle(left, RuntimeError("the writer thread has ended"))
        self._checkpoints.finish(erased=self._erasing.count > 0)
        close_connection(self._connection)
        self._checkpoints.close()
        self._erasing.end()

    def _loop(self) -> None:
        while True:
            with self._wake:
                while not self._queue and not self._closing and not self._erasing.count:
                    self.pulse.rest()
                    if not self._wake.wait(self._look_s):
                        break
                self._gather()
                while not self._closing and (left := self._queue.rest_s()):
                    self._wake.wait(left)
                first = self._queue.first()
                self.pulse.beat()
            if first is None:
                self._checkpoints.watch()
            if first is not None and first.apart:
                self._run_apart(first)
            elif first is not None:
                self._run_group([first])
            goes_on = False
            if self._files.lost is not None:
                self._checkpoints.watch()
            elif self._erasing.count:
                goes_on = self._erasing.go_on()
                if self._checkpoints.follower.attached:
                    self._checkpoints.keep_small()
            else:
                self._checkpoints.keep_small()
            if self._closing and not self._queue:
                break
            if self._erasing.count and first is None and not goes_on:
                with self._wake:
                    if not self._queue and not self._closing:
                        self.pulse.rest()
                        self._wake.wait(ERASURE_RETRY_S)

    def _gather(self) -> None:
        """Wait for the company of the last commits, where a write waits already; the lock is held."""
        self._gathering = self._queue.company
        end = time.monotonic() + min(GATHER_S, self._group_s)
        while 0 < len(self._queue) < self._gathering and not self._closing:
            if (left := end - time.monotonic()) <= 0:
                break
            self._wake.wait(left)
        self._gathering = 1

    def _write_last(self) -> None:
        if self._last is not None:
            job = QueuedWrite(self._last, None, grows=False)
            self._run_group([job])
            if job.error is not None:
                failed("last_write_failed", "the last write before the end failed", job.error)

    def _run_apart(self, job: QueuedWrite) -> None:
        self._known.forget()
        with self._gate, self.pulse.apart():
            try:
                job.result = job.run(self._connection)
            except apsw.Error as error:
                job.error = self._own_error(error)
            except Exception as defect:  # noqa: BLE001 - handed to the thread that waits for it, which judges it
                job.error = defect
        job.finish()

    def _run_group(self, group: list[QueuedWrite]) -> None:
        """Answer every job of a group, whatever happens; others join its first one as it runs."""
        began = time.monotonic()
        try:
            self._commit(self._live(group, self._room.look()))
        except Exception as defect:  # noqa: BLE001 - whoever waits must hear of it
            log_defect("write_group_failed", "a group of writes failed", defect)
            self._doubtful = True
            for job in group:
                if not job.done.is_set():
                    job.result, job.error = None, defect
        self._group_s = time.monotonic() - began
        self._queue.committed(len(group))
        settle(group, None)

    def _live(self, group: list[QueuedWrite], used: int) -> Iterator[QueuedWrite]:
        """The group's jobs that are not refused, each as its turn comes."""
        began = time.monotonic()
        job: QueuedWrite | None = group[0]
        while job is not None:
            if not self._refused(job, used):
                began_one = time.monotonic()
                self.pulse.beat()
                yield job
                self._queue.took(job, time.monotonic() - began_one)
            with self._wake:
                job = self._queue.another(group, began)
            if job is not None:
                group.append(job)

    def _commit(self, joining: Iterator[QueuedWrite]) -> None:
        first = next(joining, None)
        if first is None:
            return
        live, head = [first], self._head
        together = not (self._room.tight or self._careful)
        self._careful = max(0, self._careful - 1)
        lost = self._attempt(chain([first], recorded(joining, live)), together=together)
        if isinstance(lost, OneFailed):
            if len(live) == 1:
                return
            self._careful = CAREFUL_GROUPS
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

    def _refused(self, job: QueuedWrite, used: int) -> bool:
        if job.deadline is not None and time.monotonic() > job.deadline:
            job.error = DeadlineExceeded.before("the write began")
        elif job.grows and used >= self._settings.store_bytes:
            job.error = StoreBudgetExceeded(maximum=self._settings.store_bytes)
        else:
            return False
        job.finish()
        return True

    def _attempt(self, jobs: Iterable[QueuedWrite], *, together: bool = False) -> BaseException | None:
        """Run and commit the jobs. Returns the error that undid them all, None when each has its outcome.

        Args:
            together: without savepoints; the first that fails undoes all, which `OneFailed` says.
        """
        with self._gate:
            try:
                self._files.check()
                self._connection.execute("BEGIN IMMEDIATE")
                if self._doubtful:
                    self._catch_up()
                tx, sealing = self._begin_sealed()
                for job in jobs:
                    job.error = None
                    if (lost := self._run_one(job, tx, apart=not together)) is not None:
                        self._doubtful = True
                        self._roll_back()
                        return lost
                tx.settle()
                tx.end_index()
                if self.postings is not None and tx.index_changes != []:
                    self.postings.note_changes(tx.index_changes, self._head.seq)
                if self.postings is not None and tx.speakers_change:
                    self.postings.speakers.note_change(self._head.seq)
                self._connection.execute("COMMIT")
                self._known.committed(self._connection, tx.tail)
                # Nothing is acknowledged that went into a file of another name, or of none.
                self._files.check()
            except apsw.Error as error:
                self._doubtful = True
                typed = self._own_error(error)
                self._roll_back()
                return typed
            except StoreMoved as moved:
                self._doubtful = True
                self._roll_back()
                return moved
            except BaseException:
                self._doubtful = True
                self._roll_back()
                raise
        self._sealed = sealing
        self._head = tx.head
        self._erasing.count += tx.erasures
        self.erased += tx.erasures
        self._publish(tx.logged)
        return None

    def _begin_sealed(self) -> tuple[WriteTransaction, Sealing | None]:
        """The transaction that has begun, with what was never sealed sealed in it; and what seals."""
        sealing = self.sealing
        if sealing is None:
            self._changes = None
        elif sealing is not self._sealed or self._changes is None:
            self._changes = Changes(sealing.sealer, shapes(Reading(self._connection)))
        else:
            # An attempt that was undone as a whole has left what it noted.
            self._changes.forget()
        self._known.begin(self._connection)
        tx = WriteTransaction(self._connection, self._head, self._chain_hash, self._changes, self._known)
        tx.now, tx.erasure_clock = self._clock(), self.erasure_clock
        if sealing is not None and sealing.adopt is not None and sealing is not self._sealed:
            sealing.adopt(tx)
            tx.settle()
        return tx, sealing

    def _catch_up(self) -> None:
        """Read the head and the erasures from the store: what failed before may be there all the same."""
        tx = Writing(self._connection)
        self._head = read_head(tx)
        self._erasing.count = tx.value(PENDING_SQL)
        self._doubtful = False

    def _roll_back(self) -> None:
        self._known.forget()
        gone = not self._connection.in_transaction
        try:
            if not gone:
                self._connection.execute("ROLLBACK")
        except apsw.Error as error:
            failed("rollback_failed", "a failed write was rolled back with an error", error)
        if self.undo() is None and gone:
            recall_index.forget_unwritten(self._connection)

    def _publish(self, logged: list[Logged]) -> None:
        if self.on_commit is None or not logged:
            return
        try:
            self.on_commit(logged)
        except Exception as defect:  # noqa: BLE001 - the write is on disk; who follows it must not undo that
            log_defect("follower_failed", "a follower of events failed", defect)

    def _run_one(self, job: QueuedWrite, tx: WriteTransaction, *, apart: bool) -> BaseException | None:
        """Run one job, `apart` in a savepoint. Returns an error when the whole transaction is gone, or has to go."""
        mark = tx.mark()
        try:
            if apart:
                tx.connection.execute("SAVEPOINT job")
            job.result = job.run(tx)
            if apart:
                tx.settle()
                tx.end_index()
                if job.grows and self._room.tight and self._room.is_over:
                    raise StoreBudgetExceeded(maximum=self._settings.store_bytes)
                tx.connection.execute("RELEASE job")
        except Exception as error:  # noqa: BLE001 - handed to the thread that waits for it, which judges it
            job.error = self._own_error(error) if isinstance(error, apsw.Error) else error
            job.result = None
            if not tx.connection.in_transaction:
                return job.error
            if not apart:
                return OneFailed()
            tx.connection.execute("ROLLBACK TO job")
            tx.connection.execute("RELEASE job")
            tx.reset(mark)
        return None

    def _own_error(self, error: apsw.Error) -> BaseException:
        """The typed error; a full database that still has room on its disk is at its ceiling."""
        try:
            typed: BeetleError = translate(error, self._settings.path, self._connection.system_errno)
        except apsw.Error as defect:
            return defect
        if isinstance(typed, StorageFull) and self._room.is_over:
            return StoreBudgetExceeded(maximum=self._settings.store_bytes)
        return typed

    def _commit_alone(self, run: Callable[[Writing], None]) -> BaseException | None:
        """A write of the thread's own, in a commit of its own; its error, or None."""
        job = QueuedWrite(run, None, grows=False)
        lost = self._attempt([job])
        return lost or job.error
