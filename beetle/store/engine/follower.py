"""Another process that follows the write-ahead log, copies it elsewhere, and then folds it into the file itself.

While it is attached it holds a read lock, so that nothing is folded away before it has read it: our own checkpoints
would be in vain. The log grows until it has followed. So once the log is long the writer waits for it between two
commits, ever longer, and reads never do. One that does not follow at all is told of by `overrun`: whoever runs it ends
it then, and the writer folds the log again by itself.

A log that was begun anew in place still holds frames of its past behind the new ones, by which a follower that comes
back would take it for the same. So a store that has one cuts its log whenever it begins anew (`journal_size_limit`).
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

STAGING_SUFFIX = "-litestream"
LONGEST = 64 * 2**20
"""Bytes of the log from which the writer waits, whatever its budget."""
HARD = 4
"""So many times as long the log may become before the follower is given up."""
PAUSE_S, HOLD_S, STEP_S = 0.25, 2.0, 0.005
"""The longest wait behind one commit: near the limit, and beyond it. How often it looks meanwhile."""


def staging_folder(store: str) -> str:
    """Where a follower keeps what it has read and not sent yet: beside the store, with content in it."""
    folder, name = os.path.split(store)
    return os.path.join(folder, f".{name}{STAGING_SUFFIX}")


class Follower:
    """What the writer knows of the process that follows its log. Set by whoever runs that, read by the writer's thread.

    `commits` counts what was written to the log in this process, the daemon's own notes as well; a store whose files
    were exchanged counts as one.
    `attached` is whether it holds the log now. `keeps_log` is whether it has ended in step with the log: a store that
    is closed then leaves its log as it is, and the follower goes on there. `waits` and `waited_s` count what the writer
    waited for it. `on_overrun` is called when the log has reached its limit. `on_end` is called by the writer's thread
    before the connections are closed, and returns when the follower is detached; `on_begin` when they are open again.

    What needs the log empty asks it to step aside until all who did have it back: `on_ask` is called when that begins
    (True) and ends (False), on any thread, and is quick; `is_gone` is whether no process follows any more. `kept_until`
    says until when the replica holds what is erased now, both in microseconds; None where no replica is kept.
    """

    def __init__(self, wal_bytes: int) -> None:
        self.soft = min(wal_bytes, LONGEST)
        self.hard = self.soft * HARD
        self.commits = 0
        self.attached = False
        self.keeps_log = False
        self.waits = 0
        self.waited_s = 0.0
        self.closing = False
        self.on_begin: Callable[[], None] | None = None
        self.on_overrun: Callable[[], None] | None = None
        self.on_end: Callable[[], None] | None = None
        self.on_ask: Callable[[bool], None] | None = None
        self.is_gone: Callable[[], bool] = lambda: not self.attached
        self.kept_until: Callable[[int], int] | None = None
        self._asked: set[str] = set()
        self._asking = threading.Lock()
        self._overrun = False
        self._excused_until = 0.0
        self._ending = threading.Event()

    def away(self, who: str) -> bool:
        """Ask it to step aside for `who`; whether it has. Asked again until then."""
        with self._asking:
            is_first = not self._asked
            self._asked.add(who)
            if is_first and self.on_ask is not None:
                self.on_ask(True)
        return self.is_gone()

    def back(self, who: str) -> None:
        """`who` does not need it away any more."""
        with self._asking:
            if who in self._asked:
                self._asked.discard(who)
                if not self._asked and self.on_ask is not None:
                    self.on_ask(False)

    @contextmanager
    def aside(self, who: str, wait: float) -> Generator[bool]:
        """It is away for the length of the block; whether it is, after at most `wait` seconds."""
        end = time.monotonic() + wait
        try:
            while not (away := self.away(who)) and time.monotonic() < end:
                time.sleep(STEP_S)
            yield away
        finally:
            self.back(who)

    def excuse(self, seconds: float) -> None:
        """Have the writer not wait for so long: the log is not held by the follower."""
        self._excused_until = time.monotonic() + seconds
        self._overrun = False

    def begin(self) -> None:
        """The store is open: it may be followed. After an exchange of its files it is another."""
        self.commits += 1
        self._ending.clear()
        if self.on_begin is not None:
            self.on_begin()

    def end(self) -> bool:
        """The connections are being closed: the follower lets go. Whether the log is to stay where it is."""
        self._ending.set()
        if self.on_end is not None:
            self.on_end()
        return self.closing and self.keeps_log

    def stop_waiting(self) -> None:
        """The store is closed for good: nobody waits for the follower any more."""
        self.closing = True
        self._ending.set()

    def pause(self, used: int) -> float:
        """For how long the writer waits at most behind a commit, with so many bytes in the log."""
        if not self.attached or used <= self.soft or self._ending.is_set() or time.monotonic() < self._excused_until:
            return 0.0
        if used < self.hard:
            return PAUSE_S * (used - self.soft) / (self.hard - self.soft)
        if not self._overrun and self.on_overrun is not None:
            self._overrun = True
            self.on_overrun()
        return HOLD_S

    def wait(self, seconds: float, is_new: Callable[[], bool]) -> bool:
        """Wait until the log has begun anew or is followed no more; whether either has come."""
        begun = time.monotonic()
        self.waits += 1
        try:
            while time.monotonic() < begun + seconds and not self._ending.is_set():
                if not self.attached or is_new():
                    self._overrun = False
                    return True
                time.sleep(STEP_S)
            return False
        finally:
            self.waited_s += time.monotonic() - begun
