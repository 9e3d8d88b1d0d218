"""Whether the writer's work moves: a watchdog and a health check must tell a long write from one that is stuck."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import apsw

MOVE_STEPS = 1_000_000
"""After so many of SQLite's steps, some tens of milliseconds, a write is seen to move."""
APART_S = 1800.0
"""What may copy the whole file has so long before it counts as still: SQLite tells nothing of a copy."""


class Pulse:
    """When the writer's work moved last. The writer's thread tells it, any thread may ask."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._moved: float | None = None
        self._allowed = 0.0
        connection.set_progress_handler(self._tick, MOVE_STEPS, id=self)

    def beat(self) -> None:
        """A piece of work begins, or goes on."""
        self._moved = time.monotonic()

    def rest(self) -> None:
        """There is no work."""
        self._moved = None

    @contextmanager
    def apart(self) -> Iterator[None]:
        """What runs inside may copy the whole file."""
        self._allowed = APART_S
        try:
            yield
        finally:
            self.beat()
            self._allowed = 0.0

    def still_s(self) -> float:
        """For how many seconds the work in hand has not moved; 0 where there is none."""
        moved = self._moved
        return 0.0 if moved is None else max(0.0, time.monotonic() - moved - self._allowed)

    def _tick(self) -> bool:
        self.beat()
        return False
