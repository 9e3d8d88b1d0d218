"""The mode that a runtime is in, what it admits in it, and which of its long tasks runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from beetle.contracts.common import ModeInput
from beetle.contracts.errors import Forbidden, Overloaded, ServicesUnavailable
from beetle.contracts.lifecycle import MemoryCloseReport, Mode
from beetle.contracts.operations import Operation

STRICTNESS: tuple[Mode, ...] = ("normal", "maintenance", "read_only", "safe", "closing")
READS_ALONE: tuple[Mode, ...] = ("read_only", "safe")
RESTING_MODES: tuple[Mode, ...] = ("read_only", "safe", "closing")
"""In which no job runs."""
STATUS_OPERATIONS = frozenset(
    {"hello", "memory.capabilities", "memory.inspect", "memory.close", "console.overview", "console.session"}
)
"""What is answered while a runtime closes."""
WRITING = ("write", "admin")
RESTORED = "snapshot_restored"
"""The event after which everything that was known of the store is to be looked at anew."""
BUSY_RETRY_MS = 1000


def stricter(one: Mode, other: Mode) -> Mode:
    """The mode of two that refuses more."""
    return one if STRICTNESS.index(one) >= STRICTNESS.index(other) else other


class Closing(ServicesUnavailable):
    """The runtime takes nothing on any more."""

    template = "this runtime is closing"
    hint_template = "wait until it has ended, then start it again"


class RuntimeLifecycle:
    """One runtime's mode. `immutable`: its store is on media that cannot be written, which refuses by itself."""

    def __init__(self, *, immutable: bool = False) -> None:
        self._base: Mode = "normal"
        self._immutable = immutable
        self._guard = threading.Lock()
        self._task: str | None = None
        self._end: Callable[[], None] | None = None
        self._stop = threading.Event()
        self._released = False
        self.closed_with: MemoryCloseReport | None = None

    @property
    def mode(self) -> Mode:
        """What holds now; `maintenance` while a long task runs, which refuses nothing by itself."""
        if self._base != "normal":
            return self._base
        if self._immutable:
            return "read_only"
        return "normal" if self._task is None else "maintenance"

    @property
    def task(self) -> str | None:
        """The operation of the long task that runs now."""
        return self._task

    @property
    def stopping(self) -> bool:
        """Whether long tasks must come to an end."""
        return self._stop.is_set()

    def enter(self, mode: Mode) -> None:
        """Hold a mode from now on. `closing` is never left again."""
        with self._guard:
            if self._base != "closing":
                self._base = mode

    def mode_for(self, request: Any) -> Mode:
        """The stricter of the runtime's mode and the one that a request asks to run under."""
        asked: ModeInput | None = getattr(request, "mode_input", None)
        return self.mode if asked is None else stricter(self.mode, asked.mode)

    def admit(self, row: Operation, request: Any) -> None:
        """Whether an operation may run now.

        Raises:
            ServicesUnavailable: the runtime is closing.
            Forbidden: it writes, and the runtime's mode or the one that was asked for only reads.
        """
        if self._released:
            return
        asked: ModeInput | None = getattr(request, "mode_input", None)
        mode = self._base if asked is None else stricter(self._base, asked.mode)
        if mode == "closing" and row.name not in STATUS_OPERATIONS:
            raise Closing()
        # The operations of a batch are looked at one by one.
        writes = row.effect in WRITING and not row.takes_out
        if mode in READS_ALONE and writes and row.name not in ("batch", "memory.close"):
            whose = "the runtime is" if mode == self._base else "the request asks to be"
            raise Forbidden(
                reason=f"{row.name} writes, and {whose} in the mode {mode}",
                hint="`beetle memory inspect` shows the runtime's mode; leave mode_input out to run in it",
                mode=mode,
            )

    @contextmanager
    def alone(self, task: str) -> Generator[None]:
        """Run one long task: recovery, a snapshot, a restore. Two at once would undo each other's work.

        Raises:
            Overloaded: another one runs.
            ServicesUnavailable: the runtime is closing.
        """
        with self._guard:
            if self.stopping:
                raise Closing()
            if self._task is not None:
                raise Overloaded(what=f"{self._task} is running", maximum="one at a time", retry_after_ms=BUSY_RETRY_MS)
            self._task = task
        try:
            yield
        finally:
            with self._guard:
                self._task = None

    def stop_tasks(self) -> None:
        """Have long tasks end at their next step."""
        self._stop.set()

    def check(self) -> None:
        """A long task's look between two steps.

        Raises:
            ServicesUnavailable: it must end.
        """
        if self.stopping:
            raise Closing()

    def begin_close(self) -> bool:
        """Take nothing on from now on, and have long tasks end; False when that was said before."""
        with self._guard:
            if self._base == "closing":
                return False
            self._base = "closing"
        self._stop.set()
        return True

    def release(self) -> None:
        """The store is closed, and answers for itself."""
        self._released = True

    def ends_by(self, end: Callable[[], None]) -> None:
        """What `memory.close` does last: the daemon's way to end itself."""
        self._end = end

    def end(self) -> None:
        """Have the process behind this runtime end, if it said how."""
        if self._end is not None:
            self._end()
