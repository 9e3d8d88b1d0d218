"""When the daemon's process looks for cyclic garbage: at quiet moments, over what requests left behind and no more.

A full collection of CPython stops every thread while it walks all containers that are alive. Beside a request of a
megabyte of small values that was a quarter of a second, in which nobody was answered.
"""

from __future__ import annotations

import gc
from collections.abc import Callable

NEVER = 1 << 30
YOUNG, MIDDLE = 700, 10
"""CPython's own thresholds, which `beetle.__main__` has raised for the start."""
EVERY_S = 5.0
"""Seconds from one look to the next."""
MOST_PUT_OFF = 4
"""So many times in a row a collection waits for a quiet moment; cycles hold memory meanwhile."""


class Garbage:
    """Full collections of a process that has begun to serve. The young generations are collected as ever."""

    def __init__(self, is_busy: Callable[[], bool]) -> None:
        """What is alive now stays alive: no collection walks it again, but the first look. That would hold up the first
        answers: it takes a tenth of the time of a start.

        Args:
            is_busy: whether a large request is at work, whose values a collection would walk.
        """
        self._is_busy = is_busy
        self._put_off = 0
        gc.freeze()
        gc.set_threshold(YOUNG, MIDDLE, NEVER)
        self._seen: int | None = None

    def look(self) -> bool:
        """Collect, if the process has worked since the last collection and this is a moment for it; whether it did."""
        if _collections() == self._seen:
            return False
        if self._is_busy() and self._put_off < MOST_PUT_OFF:
            self._put_off += 1
            return False
        self._put_off = 0
        if self._seen is None:
            gc.unfreeze()
            gc.collect()
            gc.freeze()
        else:
            gc.collect()
        self._seen = _collections()
        return True


def _collections() -> int:
    """How often the middle generation was collected, which only work makes happen."""
    return gc.get_stats()[1]["collections"]
