"""The one writer: a queue, and a thread that has what waits there committed in groups.

A write is acknowledged only after the commit that holds it is on disk. Waiting writes are taken together, so that one
sync serves them all. Where several came together before, a commit waits a moment for as many again: clients that were
answered together ask again together. A write whose writer is alone waits for nobody: its caller's thread commits it,
which costs no change of threads. So does a thread that has begun the writes of many clients, while commits are brief.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import apsw

from beetle.contracts.errors import DeadlineExceeded, Overloaded, StoreBudgetExceeded, StoreClosed
from beetle.store.engine.commits import Commits
from beetle.store.engine.connection import StoreSettings, close_connection
from beetle.store.engine.failures import failed, log_defect
from beetle.store.engine.pulse import Pulse
from beetle.store.engine.store_files import StoreFiles
from beetle.store.engine.write_queue import PendingWrite, QueuedWrite, WriteQueue, settle
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.event_log import Head, Logged

ERASURE_RETRY_S = 0.5
LOOK_S = 0.5
"""So often an idle writer looks whether the store's files are where they were."""
GATHER_S = 0.005
"""So long a commit waits at most for the company of the last one, and no longer than that one took."""
BRIEF_S = 0.02
"""A commit behind one that took no longer may be made by a thread that has more to do than to wait for it."""


class Writer:
    """Owns the writing connection, which one thread uses at a time: its own, or that of a caller that is alone.

    `commits` holds what each commit follows, and what it tells.
    """

    def __init__(
        self,
        settings: StoreSettings,
        connection: apsw.Connection,
        commits: Commits,
        *,
        gate: AbstractContextManager[object],
        files: StoreFiles,
    ) -> None:
        self._settings = settings
        self._files = files
        self._look_s = None if settings.backend == "in-memory" else LOOK_S
        self._connection = connection
        self._gate = gate
        self._queue = WriteQueue(settings.write_queue, settings.write_group)
        # The condition's lock is taken by itself: the condition's own methods for that are no C.
        self._lock = threading.RLock()
        self._wake = threading.Condition(self._lock)
        self._last: Callable[[WriteTransaction], Any] | None = None
        self._closing = self._stopped = False
        # Whether the thread waits for work; whether a caller writes meanwhile; whether the log is left to be folded.
        self._idle = self._lent = self._folds = False
        # So many waiting writes wake the thread; and how long the last commit took.
        self._gathering = 1
        self._group_s = 0.0
        self.pulse = Pulse(connection)
        self._pause = threading.Event()
        self.commits = commits
        self._checkpoints, self._erasing = commits.checkpoints, commits.erasing
        self._thread = threading.Thread(target=self._work, name="beetle-writer", daemon=True)
        self._thread.start()

    def write(
        self, run: Callable[[WriteTransaction], Any], *, deadline: float | None = None, grows: bool = True, by: str = ""
    ) -> Any:
        """Run `run` in a transaction of its own or of a group; return what it returned once that is on disk.

        `run` may be run a second time when the group it was in could not be committed, so it must change nothing but
        the transaction; what is to follow elsewhere is one of the transaction's `hooks`. What it raises is raised here,
        with nothing of it written.

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
        with self._lock:
            if self._closing or self._stopped or not self._queue.admits(""):
                return False
            self._queue.add(job)
            self._wake_for_queued()
            return True

    def begin(self, write: PendingWrite, then: Callable[[BaseException | None], None]) -> QueuedWrite:
        """As `write`, of what is brief, but nobody waits: `then` is told of its end, as of `post`, and the answer is in
        what this returns. A write that has not begun by its deadline may be withdrawn; else it is refused when its turn
        comes. `go_on` must follow, of one or of several."""
        job = QueuedWrite(write.run, write.deadline, write.grows, by=write.by, brief=True)
        job.then = then
        with self._lock:
            self._check_room(job)
            self._queue.add(job)
        return job

    def go_on(self) -> None:
        """Have what was begun committed: here, where nothing else waits, the last commit was brief, and neither another
        program nor a reader can hold this one up; else by the thread."""
        with self._lock:
            if not self._queue:
                return
            if (
                self._queue.others or self._group_s > BRIEF_S or not self._settings.walled
                or not self._may_lend() or not self.commits.is_free()
            ):  # fmt: skip
                self._wake_for_queued()
                return
            job = self._lend()
        if job is not None:
            self._write_here(job)

    def expected(self) -> tuple[int, float]:
        """How many writes are likely to come together, and for how many seconds a commit may wait for them."""
        return self._queue.company, min(GATHER_S, self._group_s)

    def _hand_over(self, job: QueuedWrite) -> Any:
        if self._add(job, may_stay=True):
            self._write_here(job)
            return job.answer()
        deadline = job.deadline
        if deadline is not None and not job.done.wait(max(0.0, deadline - time.monotonic())) and self.withdraw(job):
            raise DeadlineExceeded.before("the write began")
        job.done.wait()
        return job.answer()

    def _write_here(self, job: QueuedWrite) -> None:
        """Run a write on the thread that asks for it, which has the writer's place."""
        try:
            self._run_group([job])
        finally:
            with self._lock:
                self._lent = False
                self._folds = self._checkpoints.is_due
                if self._queue or self._closing or self._erasing.count or self._folds or self._gathering > 1:
                    self._wake.notify()
                else:
                    self.pulse.rest()

    def _takes(self, job: QueuedWrite) -> bool:
        """Whether the caller of this write, the only one that waits, is to run it; the lock is held.

        Not the main thread: a signal's handler may raise there at any point of a commit.
        """
        if (
            len(self._queue) > 1 or self._queue.company > 1 or job.apart or not self._may_lend()
            or threading.current_thread() is threading.main_thread()
        ):  # fmt: skip
            return False
        return self._lend() is not None

    def _wake_for_queued(self) -> None:
        """Wake the thread, where as many writes wait as it waits for; the lock is held."""
        if len(self._queue) >= self._gathering:
            self._wake.notify()

    def _lend(self) -> QueuedWrite | None:
        """The next write, for whose caller the writer's place is from now on; the lock is held."""
        job = self._queue.first()
        if job is not None:
            self.pulse.beat()
            self._lent = True
        return job

    def _may_lend(self) -> bool:
        """Whether the thread has nothing to do that a caller's commit would keep it from; the lock is held."""
        return (
            self._idle and not self._lent and not self._closing and not self._erasing.count
            and not self._checkpoints.follower.attached and not self._queue.rest_s()
        )  # fmt: skip

    def _check_room(self, job: QueuedWrite) -> None:
        """Raises what keeps a write from being queued; the lock is held."""
        if self._closing:
            raise StoreClosed(path=self._settings.path, reason="is being closed")
        if self._stopped:
            raise RuntimeError("the writer thread has ended")
        if not self._queue.admits(job.by):
            raise Overloaded(what="too many writes are waiting", maximum=self._settings.write_queue, retry_after_ms=50)

    def _add(self, job: QueuedWrite, *, may_stay: bool = False) -> bool:
        """Queue a write; true where its caller is to run it, and has the writer's place for that."""
        with self._lock:
            self._check_room(job)
            self._queue.add(job)
            if may_stay and self._takes(job):
                return True
            self._wake_for_queued()
            return False

    def withdraw(self, job: QueuedWrite) -> bool:
        """Take a write back; false where it has begun, or ended: then its outcome stands."""
        with self._lock:
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
        return self.commits.head

    @property
    def on_commit(self) -> Callable[[list[Logged]], None] | None:
        """Is called with the logged events of every commit, on the thread that made it."""
        return self.commits.on_commit

    @on_commit.setter
    def on_commit(self, hook: Callable[[list[Logged]], None] | None) -> None:
        self.commits.on_commit = hook

    @property
    def erasure_clock(self) -> Callable[[], int]:
        """Tells since when an erasure is pending, in microseconds."""
        return self.commits.erasure_clock

    @property
    def erased(self) -> int:
        """Erasures since the opening."""
        return self.commits.erased

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
        with self._lock:
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
        """Play a journal back that a failed write left; see `Commits.undo`."""
        return self.commits.undo()

    def close(self, last: Callable[[WriteTransaction], Any] | None = None) -> None:
        """Commit what is queued, then `last`, fold the write-ahead log into the database, and end the thread."""
        with self._lock:
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
        with self._lock:
            self._stopped = True
            left = self._queue.drain()
        settle(left, RuntimeError("the writer thread has ended"))
        self._checkpoints.finish(erased=self._erasing.count > 0)
        close_connection(self._connection)
        self._checkpoints.close()
        self._erasing.end()

    def _loop(self) -> None:
        while True:
            with self._lock:
                self._gather()
                if not self._queue:
                    self._wait_for_work()
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
                with self._lock:
                    if not self._queue and not self._closing:
                        self.pulse.rest()
                        self._wake.wait(ERASURE_RETRY_S)

    def _wait_for_work(self) -> None:
        """Until there is any, or it is time to look at the files; callers may write meanwhile. The lock is held."""
        self._idle = True
        while self._lent or not (self._queue or self._closing or self._erasing.count or self._folds):
            if not self._lent:
                self.pulse.rest()
            if not self._wake.wait(self._look_s) and not self._lent:
                break
        self._idle = self._folds = False

    def _gather(self) -> None:
        """Wait for the company of the last commits: one wake-up, and one commit, for all of it. A caller that has all
        of it may write meanwhile. The lock is held."""
        if self._queue.company == 1 or self._closing or self._erasing.count:
            return
        self._gathering, wait = self.expected()
        end = time.monotonic() + wait
        self._idle = True
        while self._lent or (len(self._queue) < self._gathering and not self._closing):
            left = end - time.monotonic()
            if left <= 0 and not self._lent:
                break
            self._wake.wait(None if self._lent else left)
        self._idle = False
        self._gathering = 1

    def _write_last(self) -> None:
        if self._last is not None:
            job = QueuedWrite(self._last, None, grows=False)
            self._run_group([job])
            if job.error is not None:
                failed("last_write_failed", "the last write before the end failed", job.error)

    def _run_apart(self, job: QueuedWrite) -> None:
        self.commits.known.forget()
        with self._gate, self.pulse.apart():
            try:
                job.result = job.run(self._connection)
            except apsw.Error as error:
                job.error = self.commits.own_error(error)
            except Exception as defect:  # noqa: BLE001 - handed to the thread that waits for it, which judges it
                job.error = defect
        job.finish()

    def _run_group(self, group: list[QueuedWrite]) -> None:
        """Answer every job of a group, whatever happens; others join its first one as it runs."""
        began = time.monotonic()
        try:
            self.commits.commit(self._live(group, self.commits.room.look()))
        except Exception as defect:  # noqa: BLE001 - whoever waits must hear of it
            log_defect("write_group_failed", "a group of writes failed", defect)
            self.commits.doubt()
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
            with self._lock:
                job = self._queue.another(group, began)
            if job is not None:
                group.append(job)

    def _refused(self, job: QueuedWrite, used: int) -> bool:
        if job.deadline is not None and time.monotonic() > job.deadline:
            job.error = DeadlineExceeded.before("the write began")
        elif job.grows and used >= self._settings.store_bytes:
            job.error = StoreBudgetExceeded(maximum=self._settings.store_bytes)
        else:
            return False
        job.finish()
        return True
