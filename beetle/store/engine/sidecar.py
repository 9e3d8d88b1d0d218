"""Another process that replicates the store: it holds the write-ahead log, and folds it into the file by itself.

While it does, no checkpoint of ours takes place, and the pages that it writes to the file are not scrubbed. So whatever
needs the log empty or the file exchanged has it step aside first.
"""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Protocol


class Sidecar(Protocol):
    """What the store asks of the process beside it. Every call returns at once, on whatever thread."""

    def step_aside(self) -> bool:
        """Have it send what it has and let go of the store's files; whether it has. Asked again until then."""
        ...

    def step_in(self) -> None:
        """It may open the store's files again."""
        ...

    def kept_until(self, now: int) -> int:
        """Until when its copies hold what is erased now, by what it is told to keep; both in microseconds."""
        ...


class Attached:
    """A sidecar that several ask to step aside: it steps in when none of them needs it away any more."""

    def __init__(self, sidecar: Sidecar) -> None:
        self.sidecar = sidecar
        self._asked: set[str] = set()
        self._lock = threading.Lock()
        self._pause = threading.Event()

    def away(self, who: str) -> bool:
        """Ask it to step aside for `who`; whether it is away."""
        with self._lock:
            self._asked.add(who)
            return self.sidecar.step_aside()

    def back(self, who: str) -> None:
        """`who` does not need it away any more."""
        with self._lock:
            if who in self._asked:
                self._asked.discard(who)
                if not self._asked:
                    self.sidecar.step_in()

    @contextmanager
    def aside(self, who: str, wait: float) -> Generator[bool]:
        """It is away for the length of the block; whether it is, after at most `wait` seconds."""
        try:
            rounds = max(1, int(wait / LOOK_S))
            away = self.away(who)
            while not away and rounds:
                self._pause.wait(LOOK_S)
                away = self.away(who)
                rounds -= 1
            yield away
        finally:
            self.back(who)


LOOK_S = 0.02
