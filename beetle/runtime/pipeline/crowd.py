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
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from math import exp

GRACE_S = 0.1
"""How long after its last request a principal counts as asking: between two requests it only draws breath."""
SLICE_S = 0.003
"""How long a thread works before another one's turn."""
BESIDE_S = 0.02
"""How long another principal's thread may have its turn before the next one goes on beside it: that one may have no
place to stop at."""
FORGET_S = 0.5
"""Time constant in which it is forgotten how long a principal has worked."""
MOST_KEPT = 256
"""Principals of whom that is known, beyond those that worked just now."""
LOOK_S = 0.1
"""How often a thread that waits for another of its own principal looks whether it still has to."""
MOST_REST_S = 5.0
"""How long background work rests at a time."""
STUCK_S = 2.0
"""Who has worked for so long without a pause is waited for no longer, whatever it may be waiting for itself."""


NEVER = threading.Event()
"""Set by nobody: of work that nobody else's was beside. Two events for each request are a fiftieth of a small one."""


class Work:
    """The computing of one request, on one thread."""

    __slots__ = ("_depth", "by", "crowd", "rested", "since", "slot", "turn")

    def __init__(self, crowd: Crowd, by: str) -> None:
        self.crowd = crowd
        self._depth = 0
        self.by = by
        self.slot = NEVER
        """Whether it is the one thread of its principal."""
        self.turn = NEVER
        """Whether it is the one thread of all."""
        self.since = 0.0
        """When it began to work last."""
        self.rested = 0.0
        """Seconds in which it has rested."""

    def rest(self) -> None:
        """Between two writes of long work: background work rests, so that it has its share and no more."""

    def going_on(self) -> Work:
        """A piece of work, for a `with` block, which waits here for its turn. Within it nothing waits for another
        request of the same principal; a piece within a piece is part of that."""
        return self

    def __enter__(self) -> None:
        self._depth += 1
        if self._depth == 1 and self.crowd.alone != self.by:
            try:
                self.crowd.enter(self)
            except BaseException:
                self.__exit__()
                raise

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if not self._depth and self.slot is not NEVER:
            self.crowd.leave(self)

    @contextmanager
    def aside(self) -> Generator[None]:
        """Within a piece of work, what waits for the system at every step, such as many files of /proc: at each it
        gives the interpreter away and gets it back late, and would have its turn for long. Others work meanwhile."""
        if self._depth:
            self.crowd.leave(self)
        try:
            yield
        finally:
            if self._depth:
                self.crowd.enter(self)

    def breathe(self) -> None:
        """Between two steps of a piece of work: the turn passes on once it was long enough. Nothing elsewhere."""
        if self._depth and (not self.slot.is_set() or time.monotonic() - self.since > SLICE_S):
            self.crowd.pass_on(self)


class BriefWork(Work):
    """The computing of a request that is soon done: it waits for no turn, so that its thread may serve others too."""

    __slots__ = ()

    def __enter__(self) -> None:
        """Nothing is waited for."""

    def __exit__(self, *_: object) -> None:
        """Nothing is given back."""


class BackgroundWork(Work):
    """The computing of a job that nobody waits for.

    Args:
        share_percent: of the time, which it may work.
        pause: does nothing for so many seconds, or for less when the runtime ends.
    """

    __slots__ = ("_pause", "_rested_at", "_share")

    def __init__(self, crowd: Crowd, by: str, share_percent: int, pause: Callable[[float], None]) -> None:
        super().__init__(crowd, by)
        self._share = share_percent
        self._pause = pause
        self._rested_at = time.monotonic()

    def rest(self) -> None:
        """Rest for as long as the share asks, of the time since the last rest."""
        begun = time.monotonic()
        if 0 < self._share < 100:
            self._pause(min((begun - self._rested_at) * (100 / self._share - 1), MOST_REST_S))
        self._rested_at = time.monotonic()
        self.rested += self._rested_at - begun


class _Asking(AbstractContextManager[Work]):
    """A class, since a generator takes four times as long, for each request."""

    __slots__ = ("_by", "_crowd", "_work")

    def __init__(self, crowd: Crowd, by: str, work: Work) -> None:
        self._crowd = crowd
        self._by = by
        self._work = work

    def __enter__(self) -> Work:
        self._crowd.begin(self._by)
        return self._work

    def __exit__(self, *_: object) -> None:
        self._crowd.end(self._by)


class Crowd:
    """Who asks now, who of each principal is at work, and whose turn it is."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self.alone: str | None = None
        """A principal beside whom nobody else asks, or did just now. One who comes at this moment is seen at the next
        look. None says nothing."""
        self._asking: dict[str, int] = {}
        self._asked: dict[str, float] = {}
        self._slots: dict[str, Work] = {}
        self._waiting: dict[str, deque[Work]] = {}
        self._turn: Work | None = None
        # One of each principal at most.
        self._line: list[Work] = []
        self._worked: dict[str, tuple[float, float]] = {}
        """Seconds that each had the turn, of late, and when that was written down."""

    @property
    def waiting(self) -> int:
        """Threads that wait for another one of their own principal now."""
        with self._guard:
            return sum(len(each) for each in self._waiting.values())

    @property
    def in_line(self) -> int:
        """Principals that wait for the turn of another one now."""
        with self._guard:
            return len(self._line)

    def asking(self, by: str, work: Work | None = None) -> AbstractContextManager[Work]:
        """One request of a principal, until it is answered."""
        return _Asking(self, by, work or Work(self, by))

    def begin(self, by: str) -> None:
        """A request begins; `end` must follow."""
        with self._guard:
            self._asking[by] = self._asking.get(by, 0) + 1
            is_alone = len(self._asking) == 1 and len(self._asked) == (by in self._asked)
            self.alone = by if is_alone else None

    def end(self, by: str) -> None:
        """It is answered."""
        with self._guard:
            self._asking[by] -= 1
            if not self._asking[by]:
                del self._asking[by]
                self._note(by, time.monotonic())

    def enter(self, work: Work) -> None:
        """Wait for the turn of a piece of work; at once, and without one, where nobody else asks."""
        if self.is_crowded(work.by):
            if work.slot is NEVER:
                work.slot, work.turn = threading.Event(), threading.Event()
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
        """Let others work that wait: of the same principal, or of one that has worked less lately."""
        with self._guard:
            self._charge(work)
            if work.slot.is_set() and (work.by in self._waiting or self._is_behind(work)):
                self._give_turn_back(work)
                if work.by in self._waiting:
                    self._hand_slot_on(work)
        if work.turn.is_set():
            return
        if work.slot.is_set():
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
            if self._is_stuck(work.by) or not self.is_crowded(work.by):
                self._give_up(work)
                return

    def _take_turn(self, work: Work) -> None:
        with self._guard:
            if self._turn is None:
                self._give_turn(work)
                return
            self._line.append(work)
        wait = BESIDE_S
        while not work.turn.wait(wait):
            with self._guard:
                wait = max(0.0, self._turn.since + BESIDE_S - time.monotonic())
                if not wait and not work.turn.is_set():
                    self._line.remove(work)
                    work.since = time.monotonic()
                    return

    def is_crowded(self, by: str) -> bool:
        """Whether another principal asks, or did just now."""
        if self.alone == by:
            return False
        with self._guard:
            if len(self._asking) > 1 or (self._asking and by not in self._asking):
                return True
            if not self._asked or (len(self._asked) == 1 and by in self._asked):
                return False
            since = time.monotonic() - GRACE_S
            return any(at > since for each, at in self._asked.items() if each != by)

    def is_asked(self, *but: str) -> bool:
        """Whether anybody asks now, but these principals."""
        with self._guard:
            return any(each not in but for each in self._asking)

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

    def _give_turn(self, work: Work) -> None:
        self._turn = work
        work.since = time.monotonic()
        work.turn.set()

    def _give_turn_back(self, work: Work) -> None:
        """Next is who has worked least of late: who asks for little waits for one turn of another, and no more."""
        if not work.turn.is_set():
            return
        self._charge(work)
        work.turn.clear()
        self._turn = None
        if self._line:
            following = min(self._line, key=lambda each: self._worked_of_late(each.by))
            self._line.remove(following)
            self._give_turn(following)

    def _charge(self, work: Work) -> None:
        """Write down how long it has had the turn since this was done last."""
        if not work.turn.is_set():
            return
        now = time.monotonic()
        self._worked[work.by] = (self._worked_of_late(work.by) + now - work.since, now)
        work.since = now
        if len(self._worked) > MOST_KEPT:
            self._worked = {by: kept for by, kept in self._worked.items() if kept[1] > now - FORGET_S}

    def _is_behind(self, work: Work) -> bool:
        own = self._worked_of_late(work.by)
        return any(self._worked_of_late(each.by) < own for each in self._line)

    def _worked_of_late(self, by: str) -> float:
        worked, at = self._worked.get(by, (0.0, 0.0))
        return worked * exp((at - time.monotonic()) / FORGET_S)
