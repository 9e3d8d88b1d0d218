"""What the runtime did lately, in equal steps: writes, recalls and the slowest answer, and the process's figures.

Calls are counted as they end, so a step without any was measured too: its counts are zero. The process's figures are
read once in each step in which something is asked. No thread wakes for them: in other steps they are not known.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable

from beetle.contracts.operations import BY_NAME
from beetle.named_tuple import NamedTuple
from beetle.runtime.host.machine import disk_bytes, process_rss_bytes
from beetle.store.engine.store import Store

STEP_S = 5.0
"""What one step covers."""
MOST_STEPS = 240
"""Steps that are kept: 20 minutes."""
RECALLS = frozenset({"memory.recall", "memory.project"})
WATCHING = frozenset({"hello", "console.overview", "console.session", "subscribe", "unsubscribe"})
"""Who looks at the figures would see himself in them: these are not counted."""


class Gauges(NamedTuple):
    """How the process stood, in bytes; None for what could not be read."""

    rss: int | None
    wal: int | None
    disk_free: int | None


def gauges(store: Store) -> Gauges:
    """How this process and the store's files stand."""
    path = store.open_report.path
    free = None if path is None else disk_bytes(os.path.dirname(path))[1]
    try:
        wal = store.wal_bytes()
    except OSError:
        wal = None
    return Gauges(process_rss_bytes(), wal, free)


UNKNOWN = Gauges(None, None, None)


class Interval(NamedTuple):
    """One step. `slowest_ms` is None where nothing was answered."""

    writes: int
    recalls: int
    slowest_ms: float | None
    gauges: Gauges


class _Counted:
    __slots__ = ("gauges", "number", "recalls", "slowest", "writes")

    def __init__(self, number: int) -> None:
        self.number = number
        self.writes = self.recalls = 0
        self.slowest: float | None = None
        self.gauges = UNKNOWN

    @property
    def step(self) -> Interval:
        slowest = None if self.slowest is None else round(self.slowest * 1000, 3)
        return Interval(self.writes, self.recalls, slowest, self.gauges)


NOTHING = Interval(0, 0, None, UNKNOWN)


class History:
    """The last `MOST_STEPS` steps of one runtime; every thread may note."""

    def __init__(self, look: Callable[[], Gauges], clock: Callable[[], float] = time.monotonic) -> None:
        """`look` reads the process's figures; `clock` tells monotonic seconds."""
        self._look = look
        self._clock = clock
        self._guard = threading.Lock()
        self._began = clock()
        self._steps: deque[_Counted] = deque(maxlen=MOST_STEPS)
        """Those in which something was asked, in their order."""

    def note(self, operation: str, seconds: float) -> None:
        """One call has ended."""
        row = BY_NAME.get(operation)
        with self._guard:
            number = self._number()
            first = not self._steps or self._steps[-1].number < number
            if first:
                self._steps.append(_Counted(number))
            step = self._steps[-1]
            if operation not in WATCHING:
                step.writes += row is not None and row.effect in ("write", "admin")
                step.recalls += operation in RECALLS
                step.slowest = seconds if step.slowest is None else max(step.slowest, seconds)
        if first:  # outside the guard: it reads files
            step.gauges = self._look()

    def last(self, most: int) -> tuple[list[Interval], float]:
        """The last steps, at most `most`, oldest first; and for how many seconds the last of them has run. There are
        none from before the runtime began."""
        with self._guard:
            gone = self._clock() - self._began
            now = self._number()
            known = {each.number: each.step for each in self._steps}
        first = max(0, now + 1 - min(most, MOST_STEPS))
        return [known.get(number, NOTHING) for number in range(first, now + 1)], gone - now * STEP_S

    def _number(self) -> int:
        return int((self._clock() - self._began) // STEP_S)
