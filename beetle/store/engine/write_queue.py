"""The writes that wait for the writer, by principal."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from beetle.named_tuple import NamedTuple
from beetle.store.engine.turns import FairQueue

SLICE_S = 0.02
"""For so long writes of several principals join one commit; then the commit ends, and the next begins."""
MOST_REST_S = 0.1
"""How long a principal's next write waits at most behind a slow one, while others ask."""


class Done:
    """Whether something was done, for the one thread that waits for it: a fraction of what an Event costs."""

    __slots__ = ("_is_set", "_lock")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()
        self._is_set = False

    def set(self) -> None:
        """It is done; one thread tells so, once or more."""
        if not self._is_set:
            self._is_set = True
            self._lock.release()

    def is_set(self) -> bool:
        """Whether it is."""
        return self._is_set

    def wait(self, seconds: float = -1) -> bool:
        """Wait until it is done, at most so many seconds; whether it is."""
        if not self._lock.acquire(timeout=seconds):
            return False
        self._lock.release()
        return True


class PendingWrite(NamedTuple):
    """A write that a call waits for; the fields are the arguments of `Writer.write`."""

    run: Callable[[Any], Any]
    deadline: float | None = None
    grows: bool = True
    by: str = ""


class QueuedWrite:
    """One queued write and, when it is done, its answer. `by` is the principal, empty for the daemon's own.

    `then` is told of its end, on the thread that ends it, and must be quick. What is `brief` may run on a thread that
    has more to do.
    """

    __slots__ = ("apart", "brief", "by", "deadline", "done", "error", "grows", "number", "result", "run", "then")

    def __init__(
        self,
        run: Callable[[Any], Any],
        deadline: float | None,
        grows: bool,
        *,
        apart: bool = False,
        by: str = "",
        brief: bool = False,
    ) -> None:
        self.run = run
        self.apart = apart
        self.brief = brief
        self.by = by
        self.deadline = deadline
        self.grows = grows
        self.number = 0
        self.done = Done()
        self.result: Any = None
        self.error: BaseException | None = None
        self.then: Callable[[BaseException | None], None] | None = None

    def answer(self) -> Any:
        """What it returned, once it is done; raises its error."""
        if self.error is not None:
            raise self.error
        return self.result

    def finish(self) -> None:
        """It has its answer: whoever waits for it goes on."""
        self.done.set()
        if self.then is not None:
            self.then(self.error)


class WriteQueue:
    """Whose write is next, and which share a commit. Its owner holds the lock.

    One principal alone may fill a commit. Where several wait, each has its turn, for a moment: a principal whose last
    write took longer than that joins nobody's commit. While others ask for anything, its next write waits as long as
    that one took: the interpreter runs one thread at a time, and theirs would have a part of it as long as it writes.
    """

    def __init__(self, most: int, group: int) -> None:
        self._most = most
        self._group = group
        self._queue: FairQueue[QueuedWrite] = FairQueue()
        # Until when whose last write was slow is to rest (monotonic seconds).
        self._slow: dict[str, float] = {}
        self.others_ask: Callable[[str], bool] = lambda by: False
        """Whether anybody but this principal asks now."""
        self.others = 0
        """Of those that wait, how many are not brief."""
        self._added = 0
        # Of the last write that waited when the commit began: no write waits for others that came later.
        self._last = 0
        self._sizes = (1, 1)

    def __len__(self) -> int:
        return len(self._queue)

    @property
    def company(self) -> int:
        """How many writes are likely to come together: as many as the larger one of the last two commits had."""
        return min(self._group, max(self._sizes))

    def committed(self, size: int) -> None:
        """Remember how many writes a commit had."""
        self._sizes = (self._sizes[1], size)

    def admits(self, by: str) -> bool:
        """Whether one more may wait: who has none that waits is never kept out by others."""
        return len(self._queue) < self._most or by not in self._queue

    def add(self, job: QueuedWrite) -> None:
        """Behind what waits of the same principal."""
        self._added += 1
        job.number = self._added
        self._queue.add(job.by, job)
        self.others += not job.brief

    def remove(self, job: QueuedWrite) -> bool:
        """Take one back; whether it still waited."""
        found = self._queue.remove(job.by, job)
        self.others -= found and not job.brief
        return found

    def drain(self) -> list[QueuedWrite]:
        """Take out all."""
        self.others = 0
        return self._queue.drain()

    def rest_s(self) -> float:
        """How long no write may begin, though some wait; 0 where one may."""
        resting = self._resting()
        if not resting or self._queue.next_by(resting) is not None:
            return 0.0
        return max(0.0, min(resting.values()) - time.monotonic())

    def first(self) -> QueuedWrite | None:
        """The one that begins a commit, or runs apart."""
        self._last = self._added
        by = self._queue.next_by(self._resting())
        if by is None:
            by = self._queue.next_by()
        return None if by is None else self._take(by)

    def _take(self, by: str) -> QueuedWrite:
        job = self._queue.take(by)
        self.others -= not job.brief
        return job

    def _resting(self) -> dict[str, float]:
        """Of whom a write waits that is to rest, and until when."""
        if not self._slow:
            return {}
        now = time.monotonic()
        waiting = {by: self._slow[by] for by in self._queue.principals if self._slow.get(by, 0.0) > now}
        return {by: until for by, until in waiting.items() if self.others_ask(by)}

    def another(self, group: list[QueuedWrite], began: float) -> QueuedWrite | None:
        """One more for a commit that began at `began` (monotonic seconds); None when it ends here."""
        by = self._queue.next_by()
        if by is None or len(group) >= self._group:
            return None
        first = self._queue.peek(by)
        if first.apart or first.number > self._last:
            return None
        is_slow = by in self._slow or time.monotonic() - began > SLICE_S
        if is_slow and len(self._queue.principals | {job.by for job in group}) > 1:
            return None
        return self._take(by)

    def took(self, job: QueuedWrite, seconds: float) -> None:
        """Remember whether a principal's writes are slow."""
        if seconds > SLICE_S:
            self._slow[job.by] = time.monotonic() + min(seconds, MOST_REST_S)
        else:
            self._slow.pop(job.by, None)


def recorded(jobs: Iterable[QueuedWrite], seen: list[QueuedWrite]) -> Iterator[QueuedWrite]:
    """The jobs, each noted as it comes."""
    for job in jobs:
        seen.append(job)
        yield job


def settle(jobs: Iterable[QueuedWrite], error: BaseException | None) -> None:
    """Wake whoever waits for these jobs; `error` is for those that have none of their own."""
    for job in jobs:
        if not job.done.is_set():
            job.error = job.error or error
            job.finish()
