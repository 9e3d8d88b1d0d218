"""Whose thread computes now: while several principals ask, each has one thread at work, and they take short turns.

The interpreter runs one thread at a time and knows no principals: sixteen requests of one would leave another's a
seventeenth of the processor. It is also given away at every row that SQLite reads, and given back late where another
thread computes: so those that work beside each other are much slower than those that work by turns.
Nothing here waits while only one principal asks.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Generator
from contextlib import contextmanager

GRACE_S = 0.1
"""How long after its last request a principal counts as asking: between two requests it only draws breath."""
SLICE_S = 0.005
"""How long a thread works before another one's turn."""
BESIDE_S = 0.01
"""How long it waits for another principal's, which may have no place to stop at. Then it goes on beside it."""
LOOK_S = 0.1
"""How often a thread that waits for another of its own principal looks whether it still has to."""
STUCK_S = 2.0
"""Who has worked for so long without a pause is waited for no longer, whatever it may be waiting for itself."""


class Work:
    """The computing of one request, on one thread."""

    __slots__ = ("_depth", "by", "crowd", "since", "slot", "turn")

    def __init__(self, crowd: Crowd, by: str) -> None:
        self.crowd = crowd
        self._depth = 0
        self.by = by
        self.slot = threading.Event()
        """Whether it is the one thread of its principal."""
        self.turn = threading.Event()
        """Whether it is the one thread of all."""
        self.since = 0.0
        """When it began to work last."""

    @contextmanager
    def going_on(self) -> Generator[None]:
        """A piece of work, which waits here for its turn. Within it nothing waits for another request of the same
        principal; a piece within a piece is part of that."""
        self._depth += 1
        try:
            if self._depth == 1:
                self.crowd.enter(self)
            yield
        finally:
            self._depth -= 1
            if not self._depth:
                self.crowd.leave(self)

    def breathe(self) -> None:
        """Between two steps of a piece of work: the turn passes on once it was long enough. Nothing elsewhere."""
        if self._depth and (not self.slot.is_set() or time.monotonic() - self.since > SLICE_S):
            self.crowd.pass_on(self)


class Crowd:
    """Who asks now, who of each principal is at work, and whose turn it is."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._asking: dict[str, int] = {}
        self._asked: dict[str, float] = {}
        self._slots: dict[str, Work] = {}
        self._waiting: dict[str, deque[Work]] = {}
        self._turn: Work | None = None
        # One of each principal at most, so that the first is whoever had its turn longest ago.
        self._line: deque[Work] = deque()

    @property
    def waiting(self) -> int:
        """Threads that wait for another one of their own principal now."""
        with self._guard:
            return sum(len(each) for each in self._waiting.values())

    @contextmanager
    def asking(self, by: str) -> Generator[Work]:
        """One request of a principal, until it is answered."""
        with self._guard:
            self._asking[by] = self._asking.get(by, 0) + 1
        try:
            yield Work(self, by)
        finally:
            with self._guard:
                self._asking[by] -= 1
                if not self._asking[by]:
                    del self._asking[by]
                    self._note(by, time.monotonic())

    def enter(self, work: Work) -> None:
        """Wait for the turn of a piece of work; at once, and without one, where nobody else asks."""
        if self._is_crowded(work.by):
            self._take_slot(work)
            if work.slot.is_set():
                self._take_turn(work)

    def leave(self, work: Work) -> None:
        """The next one's turn."""
        if work.slot.is_set():
            with self._guard:
                self._give_turn_back(work)
                self._hand_slot_on(work)

    def pass_on(self, work: Work) -> None:
        """Let others work that wait, of the same principal or of another, and wait for the turn."""
        with self._guard:
            if work.slot.is_set() and (self._line or work.by in self._waiting):
                self._give_turn_back(work)
                if work.by in self._waiting:
                    self._hand_slot_on(work)
        if work.turn.is_set():
            # Nobody waited.
            work.since = time.monotonic()
        elif work.slot.is_set():
            self._take_turn(work)
        else:
            self.enter(work)

    def _take_slot(self, work: Work) -> None:
        with self._guard:
            if work.by not in self._slots:
                self._give_slot(work)
                return
            self._waiting.setdefault(work.by, deque()).append(work)
        while not work.slot.wait(LOOK_S):
            if self._is_stuck(work.by) or not self._is_crowded(work.by):
                self._give_up(work)
                return

    def _take_turn(self, work: Work) -> None:
        with self._guard:
            if self._turn is None:
                self._turn = work
                work.turn.set()
            else:
                self._line.append(work)
        if not work.turn.wait(BESIDE_S):
            with self._guard:
                if not work.turn.is_set():
                    self._line.remove(work)
        work.since = time.monotonic()

    def _is_crowded(self, by: str) -> bool:
        """Whether another principal asks, or did just now."""
        with self._guard:
            if any(each != by for each in self._asking):
                return True
            since = time.monotonic() - GRACE_S
            return any(at > since for each, at in self._asked.items() if each != by)

    def _is_stuck(self, by: str) -> bool:
        with self._guard:
            at_work = self._slots.get(by)
            return at_work is None or time.monotonic() - at_work.since > STUCK_S

    def _note(self, by: str, now: float) -> None:
        self._asked.pop(by, None)
        self._asked[by] = now
        for each in list(self._asked):
            if self._asked[each] > now - GRACE_S:
                break
            del self._asked[each]

    def _give_slot(self, work: Work) -> None:
        self._slots[work.by] = work
        work.since = time.monotonic()
        work.slot.set()

    def _hand_slot_on(self, work: Work) -> None:
        work.slot.clear()
        waiting = self._waiting.get(work.by)
        if waiting is None:
            del self._slots[work.by]
            return
        self._give_slot(waiting.popleft())
        if not waiting:
            del self._waiting[work.by]

    def _give_up(self, work: Work) -> None:
        """It goes on without its principal's slot, unless that came just now."""
        with self._guard:
            waiting = self._waiting.get(work.by)
            if waiting is not None and work in waiting:
                waiting.remove(work)
                if not waiting:
                    del self._waiting[work.by]

    def _give_turn_back(self, work: Work) -> None:
        if not work.turn.is_set():
            return
        work.turn.clear()
        self._turn = self._line.popleft() if self._line else None
        if self._turn is not None:
            self._turn.turn.set()
