"""Whose turn it is: a principal's queue never holds up another's first request by more than one of its own."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from beetle.contracts.errors import DeadlineExceeded, Overloaded
from beetle.named_tuple import NamedTuple

T = TypeVar("T")

LOOK_SECONDS = 0.05
"""How often work looks whether somebody still waits for it."""
MOST_LOOK_SECONDS = 0.4
DEFAULT_WAIT_S = 30.0
REMEMBERED = 1024
"""Principals of whom it is known when they were served last."""

IsAbandoned = Callable[[], bool]
"""Whether nobody waits for something any more; called on the thread that works or waits for it, and quick."""


class FairQueue(Generic[T]):
    """What waits, by principal. The next is the first of whoever was served longest ago; no locks of its own."""

    def __init__(self) -> None:
        self._waiting: dict[str, deque[T]] = {}
        # Whoever was served last stands last.
        self._served: dict[str, None] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __contains__(self, by: object) -> bool:
        """Whether something of a principal waits."""
        return by in self._waiting

    @property
    def principals(self) -> set[str]:
        """Of whom something waits."""
        return set(self._waiting)

    def add(self, by: str, thing: T) -> None:
        """Behind what waits of the same principal."""
        self._waiting.setdefault(by, deque()).append(thing)
        self._count += 1

    def next_by(self, but: Container[str] = ()) -> str | None:
        """Whose turn it is, of whom something waits, without those in `but`."""
        if len(self._waiting) <= 1:
            return next((by for by in self._waiting if by not in but), None)
        waiting = [by for by in self._waiting if by not in but]
        new = next((by for by in waiting if by not in self._served), None)
        return new if new is not None else next((by for by in self._served if by in waiting), None)

    def peek(self, by: str) -> T:
        """The first thing that waits of a principal."""
        return self._waiting[by][0]

    def take(self, by: str) -> T:
        """Serve a principal of whom something waits."""
        waiting = self._waiting[by]
        thing = waiting.popleft()
        self._has_left(by, waiting)
        self.serve(by)
        return thing

    def serve(self, by: str) -> None:
        """Note that a principal has its turn now."""
        self._served.pop(by, None)
        self._served[by] = None
        if len(self._served) > REMEMBERED:
            del self._served[next(iter(self._served))]

    def remove(self, by: str, thing: T) -> bool:
        """Take something back; whether it still waited."""
        waiting = self._waiting.get(by)
        if waiting is None or thing not in waiting:
            return False
        waiting.remove(thing)
        self._has_left(by, waiting)
        return True

    def _has_left(self, by: str, waiting: deque[T]) -> None:
        self._count -= 1
        if not waiting:
            del self._waiting[by]

    def drain(self) -> list[T]:
        """Take out all that waits."""
        left: list[T] = []
        while (by := self.next_by()) is not None:
            left.append(self.take(by))
        return left


class Full(NamedTuple):
    """What to tell whoever found no place: the words and the figure of an Overloaded."""

    what: str
    maximum: str
    retry_after_ms: int

    def error(self) -> Overloaded:
        """It as that error."""
        return Overloaded(**self._asdict())


class Turns:
    """A few places, and who waits for one. None may have more than `each` of them, so that others find one free."""

    def __init__(self, places: int, each: int, full: Callable[[], Overloaded]) -> None:
        """`full` makes what whoever found no place is told."""
        self._places = places
        self._each = each
        self._full = full
        self._held: dict[str, int] = {}
        self._free = places
        self._guard = threading.Lock()
        self._queue: FairQueue[threading.Event] = FairQueue()
        self.is_crowded: Callable[[str], bool] = lambda by: False
        """Whether others ask beside this principal now: then it has one place at most."""

    @property
    def taken(self) -> int:
        """Places that are taken now."""
        return self._places - self._free

    @property
    def waiting(self) -> int:
        """Who waits for a place now."""
        return len(self._queue)

    @contextmanager
    def held(self, by: str, deadline: float | None, is_abandoned: IsAbandoned | None = None) -> Iterator[None]:
        """A place until the block ends.

        Raises:
            Overloaded: there was none until the deadline (monotonic seconds).
            DeadlineExceeded: nobody waits for the work any more.
        """
        if not self._acquire(by, deadline, is_abandoned):
            if is_abandoned is not None and is_abandoned():
                raise DeadlineExceeded.before("its turn came")
            raise self._full()
        try:
            yield
        finally:
            self._release(by)

    def _acquire(self, by: str, deadline: float | None, is_abandoned: IsAbandoned | None) -> bool:
        """Take a place. False when there was none until the deadline, or nobody waits for the work any more."""
        with self._guard:
            ticket = threading.Event()
            self._queue.add(by, ticket)
            self._hand_out()
        if ticket.is_set():
            return True
        end = time.monotonic() + DEFAULT_WAIT_S if deadline is None else deadline
        look = LOOK_SECONDS
        while (left := end - time.monotonic()) > 0 and not (is_abandoned is not None and is_abandoned()):
            if ticket.wait(min(left, look)):
                return True
            # Hundreds may wait: each look takes the interpreter from who works.
            look = min(2 * look, MOST_LOOK_SECONDS)
        with self._guard:
            # Not there any more: the place was handed over just now.
            return not self._queue.remove(by, ticket)

    def _release(self, by: str) -> None:
        """Hand the place over to whose turn it is."""
        with self._guard:
            self._free += 1
            self._held[by] -= 1
            if not self._held[by]:
                del self._held[by]
            self._hand_out()

    def _hand_out(self) -> None:
        """Give the free places to whose turn it is."""
        while self._free:
            by = self._queue.next_by([by for by, count in self._held.items() if count >= self._most(by)])
            if by is None:
                return
            self._free -= 1
            self._held[by] = self._held.get(by, 0) + 1
            self._queue.take(by).set()

    def _most(self, by: str) -> int:
        return 1 if by and self.is_crowded(by) else self._each
