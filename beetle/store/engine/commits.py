"""Groups of writes in transactions of the writing connection, which one thread uses at a time.

A group begins without savepoints: each would have the recall index write what it holds, a segment of its own. When one
of several writes fails, all are rolled back and run again, each in a savepoint.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from itertools import chain

import apsw

from beetle.contracts.errors import (
    BeetleError,
    DeadlineExceeded,
    IntegrityViolation,
    StorageFull,
    StoreBudgetExceeded,
)
from beetle.store import recall_index
from beetle.store.clock_steps import ClockSteps
from beetle.store.damaged_rows import DAMAGE, UNFORESEEN
from beetle.store.engine.checkpoints import Checkpoints
from beetle.store.engine.connection import BUSY_MS, StoreSettings
from beetle.store.engine.domain_functions import StoreFunctions
from beetle.store.engine.erasing import PENDING_SQL, Erasing, steady
from beetle.store.engine.failures import failed, log_defect, translate
from beetle.store.engine.room import Room
from beetle.store.engine.store_files import StoreFiles, StoreMoved
from beetle.store.engine.transaction import Reading, Writing
from beetle.store.engine.write_queue import QueuedWrite, recorded
from beetle.store.engine.write_transaction import Known, Sealing, WriteTransaction
from beetle.store.event_log import Head, Logged, read_head
from beetle.store.postings import PostingCache
from beetle.store.seals import Changes, shapes

CAREFUL_GROUPS = 64
"""So many groups have savepoints from the start behind one whose writes had to run again."""


class OneFailed(Exception):
    """One write of a group failed, and has its error; nothing of the group is written."""


class Commits:
    """Commits groups. `head` is the event log's after the last one, `erased` counts the erasures since the opening."""

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
        sealing: Sealing | None,
    ) -> None:
        self._settings = settings
        self._connection = connection
        self._clock = clock
        self.erasure_clock = steady(clock)
        """Tells since when an erasure is pending, in microseconds."""
        self._chain_hash = functions.chain_hash
        self._gate = gate
        self._files = files
        self.postings: PostingCache | None = None
        """What is remembered of the recall index, which is told of each commit that changes it."""
        self.clock_steps: ClockSteps | None = None
        self.sealing = sealing
        # What `sealing` has begun with, and what it notes.
        self._sealed: Sealing | None = None
        self._changes: Changes | None = None
        self.known = Known(functions.message_fields)
        self.head = read_head(Writing(connection))
        # Set when a commit failed: whether it is on disk is known only from the store itself.
        self._doubtful = False
        # A transaction whose commit failed, until that is known.
        self._in_doubt: WriteTransaction | None = None
        # Whether the last attempt came to hold the store, so that there was something to undo.
        self._begun = False
        self._careful = 0
        self.erased = 0
        self.on_commit: Callable[[list[Logged]], None] | None = None
        self.checkpoints = Checkpoints(settings, connection, files)
        self.room = Room(settings, connection, lambda: self.checkpoints.written)
        self.erasing = Erasing(connection, self.checkpoints, pending_erasures, self._commit_alone, clock)

    def commit(self, joining: Iterator[QueuedWrite]) -> None:
        """Commit the jobs as they come; each has its outcome then."""
        first = next(joining, None)
        if first is None:
            return
        live, head = [first], self.head
        together = not (self.room.tight or self._careful)
        self._careful = max(0, self._careful - 1)
        lost = self._attempt(chain([first], recorded(joining, live)), together=together, until=first.deadline)
        if isinstance(lost, OneFailed):
            if len(live) > 1:
                self._careful = CAREFUL_GROUPS
            elif first.error is not None and not isinstance(first.error, UNFORESEEN):
                return
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

    def is_free(self) -> bool:
        """Whether a transaction may begin at once: no other program holds the store."""
        try:
            self._begin_within(0)
            self._connection.execute("ROLLBACK")
        except apsw.Error:
            return False  # whoever commits next meets it, and waits
        return True

    def doubt(self) -> None:
        """Something unforeseen broke a group: how the store stands is to be read from it."""
        self._doubtful = True

    def undo(self) -> BaseException | None:
        """Play a journal back that a failed write left; the caller holds the gate. Returns why it could not be."""
        try:
            self._connection.pragma("schema_version")
        except apsw.Error as error:
            failed("write_not_undone", "a failed write cannot be undone yet", error)
            return self.own_error(error)
        return None

    def _attempt(
        self, jobs: Iterable[QueuedWrite], *, together: bool = False, until: float | None = None
    ) -> BaseException | None:
        """Run and commit the jobs. Returns the error that undid them all, None when each has its outcome.

        Args:
            together: without savepoints; the first that fails undoes all, which `OneFailed` says.
            until: when they have to begin (monotonic seconds).
        """
        with self._gate:
            try:
                self._begun = False
                self._files.check()
                self._take_store(until)
                self._begun = True
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
                    self.postings.note_changes(tx.index_changes, self.head.seq)
                if self.postings is not None and tx.speakers_change:
                    self.postings.speakers.note_change(self.head.seq)
                self._in_doubt = tx
                self._connection.execute("COMMIT")
                self._call_hooks(tx)
                self.known.committed(self._connection, tx.tail)
                # Nothing is acknowledged that went into a file of another name, or of none.
                self._files.check()
            except apsw.Error as error:
                self._doubtful = True
                typed = self.own_error(error)
                self._roll_back()
                return typed
            except (StoreMoved, DeadlineExceeded) as typed:
                self._doubtful = True
                self._roll_back()
                return typed
            except (*DAMAGE, IntegrityViolation):
                # What writes of a group have left for its end: which of them met it is known when each is by itself.
                self._doubtful = True
                self._roll_back()
                if not together:
                    raise
                return OneFailed()
            except BaseException:
                self._doubtful = True
                self._roll_back()
                raise
        self._sealed = sealing
        self.head = tx.head
        self.erasing.count += tx.erasures
        self.erased += tx.erasures
        self._publish(tx.logged)
        return None

    def _take_store(self, until: float | None) -> None:
        """Begin a transaction, and wait while another program holds the store, but not beyond `until`.

        Raises:
            DeadlineExceeded: it was held until then.
        """
        left_ms = BUSY_MS if until is None else int(1000 * max(0.0, until - time.monotonic()))
        if left_ms >= BUSY_MS:
            self._connection.execute("BEGIN IMMEDIATE")
            return
        try:
            self._begin_within(left_ms)
        except apsw.BusyError:
            raise DeadlineExceeded.before("another program let go of the store") from None

    def _begin_within(self, ms: int) -> None:
        """Begin a transaction; apsw.BusyError where another program holds the store for so long."""
        self._connection.set_busy_timeout(ms)
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        finally:
            self._connection.set_busy_timeout(BUSY_MS)

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
        self.known.begin(self._connection)
        tx = WriteTransaction(self._connection, self.head, self._chain_hash, self._changes, self.known)
        tx.now, tx.erasure_clock = self._clock(), self.erasure_clock
        if sealing is not None and sealing.adopt is not None and sealing is not self._sealed:
            sealing.adopt(tx)
            tx.settle()
        if self.clock_steps is not None:
            self.clock_steps.follow(tx)
        return tx, sealing

    def _catch_up(self) -> None:
        """Read the head and the erasures from the store: what failed before may be there all the same."""
        tx = Writing(self._connection)
        self.head = read_head(tx)
        self.erasing.count = tx.value(PENDING_SQL)
        self._doubtful = False
        if self._in_doubt is not None and self._in_doubt.logged and self._in_doubt.head == self.head:
            self._call_hooks(self._in_doubt)
        self._in_doubt = None

    def _call_hooks(self, tx: WriteTransaction) -> None:
        """Tell who waits for it that a transaction is committed."""
        self._in_doubt = None
        for hook in tx.hooks:
            hook()

    def _roll_back(self) -> None:
        self.known.forget()
        stands = self._connection.in_transaction
        try:
            if stands:
                self._connection.execute("ROLLBACK")
        except apsw.Error as error:
            failed("rollback_failed", "a failed write was rolled back with an error", error)
        if self.undo() is None and self._begun and not stands:
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
                if job.grows and self.room.tight and self.room.is_over:
                    raise StoreBudgetExceeded(maximum=self._settings.store_bytes)
                tx.connection.execute("RELEASE job")
        except Exception as error:  # noqa: BLE001 - handed to the thread that waits for it, which judges it
            job.error = self.own_error(error) if isinstance(error, apsw.Error) else error
            job.result = None
            if not tx.connection.in_transaction:
                return job.error
            if not apart:
                return OneFailed()
            tx.connection.execute("ROLLBACK TO job")
            tx.connection.execute("RELEASE job")
            tx.reset(mark)
            if isinstance(job.error, UNFORESEEN):
                job.error = self._damage_behind(job, tx) or job.error
                if not tx.connection.in_transaction:
                    return job.error
        return None

    def _damage_behind(self, job: QueuedWrite, tx: WriteTransaction) -> BaseException | None:
        """The damaged row that a job met, where it is one that broke it: it runs once more, to be undone, with a look
        at each value that it reads.
        """
        try:
            with tx.checking():
                job.run(tx)
                tx.settle()
                tx.end_index()
        except IntegrityViolation as found:
            return found
        except Exception:  # noqa: BLE001 - what broke it the first time is told
            return None
        return None

    def own_error(self, error: apsw.Error) -> BaseException:
        """The typed error; a full database that still has room on its disk is at its ceiling."""
        try:
            connection = self._connection
            typed: BeetleError = translate(error, self._settings.path, connection.system_errno, connection)
        except apsw.Error as defect:
            return defect
        if isinstance(typed, StorageFull) and self.room.is_over:
            return StoreBudgetExceeded(maximum=self._settings.store_bytes)
        return typed

    def _commit_alone(self, run: Callable[[Writing], None]) -> BaseException | None:
        """A write of the thread's own, in a commit of its own; its error, or None."""
        job = QueuedWrite(run, None, grows=False)
        lost = self._attempt([job])
        return lost or job.error
