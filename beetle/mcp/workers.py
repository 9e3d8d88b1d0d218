"""Threads that work side by side, and what waits for them; both bounded."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

THREADS = 8
WAITING = 64
WAITING_BYTES = 16 * 1024 * 1024


class TooBusy(Exception):
    """So much waits already that nothing more is taken."""


class Workers:
    """A pool. A thread is started only when there is work for it."""

    def __init__(self) -> None:
        self._guard = threading.Condition()
        self._waiting: deque[tuple[Callable[[], None], int]] = deque()
        self._bytes = 0
        self._busy = 0
        self._idle = 0
        self._threads = 0

    def do(self, job: Callable[[], None], size: int) -> None:
        """Have a job done; `size` is what it holds while it waits or runs, in bytes. The job raises nothing.

        Raises:
            TooBusy: it is not taken.
        """
        with self._guard:
            full = len(self._waiting) >= WAITING or (self._bytes and self._bytes + size > WAITING_BYTES)
            if full:
                raise TooBusy
            self._waiting.append((job, size))
            self._bytes += size
            if self._idle >= len(self._waiting):
                self._guard.notify()
            elif self._threads < THREADS:
                self._threads += 1
                threading.Thread(target=self._work, name="beetle-mcp", daemon=True).start()

    def finish(self, seconds: float) -> bool:
        """Wait until everything is done, at most so long; whether it is."""
        end = time.monotonic() + seconds
        with self._guard:
            return self._guard.wait_for(lambda: not self._waiting and not self._busy, max(0.0, end - time.monotonic()))

    def _work(self) -> None:
        while True:
            with self._guard:
                self._idle += 1
                while not self._waiting:
                    self._guard.wait()
                self._idle -= 1
                job, size = self._waiting.popleft()
                self._busy += 1
            job()
            del job
            with self._guard:
                self._busy -= 1
                self._bytes -= size
                self._guard.notify_all()
