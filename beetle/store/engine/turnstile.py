"""Lets reads and writes through, and can be held shut while the files of the store are exchanged."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator
from contextlib import contextmanager

from beetle.contracts.errors import Overloaded

DEFAULT_WAIT_S = 30.0
RETRY_MS = 500


class Turnstile:
    """Counts who is inside. Whoever comes while it is shut waits until it opens, or their deadline has passed."""

    def __init__(self) -> None:
        # The condition's lock is taken by itself: the condition's own methods for that are no C.
        self._lock = threading.RLock()
        self._condition = threading.Condition(self._lock)
        self._inside: dict[str, int] = {"read": 0, "write": 0}
        self._shut: set[str] = set()

    @contextmanager
    def passing(self, kind: str, deadline: float | None) -> Generator[None]:
        """Inside for the length of the block.

        Args:
            kind: `read` or `write`.
            deadline: monotonic seconds.

        Raises:
            Overloaded: it stayed shut until the deadline.
        """
        self.enter(kind, deadline)
        try:
            yield
        finally:
            self.leave(kind)

    def enter(self, kind: str, deadline: float | None) -> None:
        """As `passing`; `leave` must follow."""
        with self._lock:
            end = deadline
            while kind in self._shut:
                end = time.monotonic() + DEFAULT_WAIT_S if end is None else end
                if not self._condition.wait(max(0.0, end - time.monotonic())) and kind in self._shut:
                    raise Overloaded(
                        what="the files of the store are being exchanged", maximum="none meanwhile",
                        retry_after_ms=RETRY_MS,
                    )  # fmt: skip
            self._inside[kind] += 1

    def try_enter(self, kind: str) -> bool:
        """As `enter`, but false where it is shut."""
        with self._lock:
            if kind in self._shut:
                return False
            self._inside[kind] += 1
            return True

    def leave(self, kind: str) -> None:
        """Outside again."""
        with self._lock:
            self._inside[kind] -= 1
            if self._shut:
                self._condition.notify_all()

    @contextmanager
    def shut(self, kind: str, wait: float) -> Generator[None]:
        """Nobody of a kind is inside for the length of the block.

        Raises:
            Overloaded: after `wait` seconds somebody still was.
        """
        end = time.monotonic() + wait
        with self._lock:
            self._shut.add(kind)
        try:
            with self._lock:
                while self._inside[kind]:
                    if not self._condition.wait(max(0.0, end - time.monotonic())) and self._inside[kind]:
                        raise Overloaded(
                            what=f"a {kind} of the store has not ended",
                            maximum="none for this",
                            retry_after_ms=RETRY_MS,
                        )
            yield
        finally:
            with self._lock:
                self._shut.discard(kind)
                self._condition.notify_all()
