"""Removing from a replica all that was sent before: the store is sent anew, and litestream removes what is older.

No target is asked by anybody but litestream, so this works with all that it knows. It runs for a while with levels that
are merged every few seconds, and snapshots that are kept for no time. Each level keeps its newest file, so that
something must be written meanwhile: it is done when every file there is of a later transaction.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from beetle.contracts.errors import BeetleError, DeadlineExceeded
from beetle.named_tuple import NamedTuple
from beetle.replication.program import Litestream, LtxFile, ReplicaFailed
from beetle.replication.staging import drop_staged

LOOK_S = 2.0
STALLED_S = 180.0
"""A target that has let go of nothing for so long does not let it be removed."""
WAIT_S = 0.2
HURRY: dict[str, Any] = {
    "snapshot": {"interval": "2s", "retention": "1ms"},
    "levels": [{"interval": "1s"}, {"interval": "2s"}, {"interval": "4s"}],
    "l0-retention": "1s",
    "l0-retention-check-interval": "500ms",
}
"""Of litestream's configuration. As many levels as it has by itself: what it has merged before is in those."""
WHAT = "remove what was sent before"


class Result(NamedTuple):
    """What was removed from a replica, and what it holds now."""

    removed_files: int
    removed_bytes: int
    files: int
    txid: int


class Forgetting:
    """One removal, from the supervisor's thread; `wait` is of who asked for it."""

    def __init__(self, touch: Callable[[], None], on_done: Callable[[Result], None] | None) -> None:
        """Prepare.

        Args:
            touch: has something small written, soon.
            on_done: is told the result when nobody waits for it; it must be quick.
        """
        self._touch = touch
        self._on_done = on_done
        self._old: dict[tuple[int, int, int], int] = {}
        self._gone: dict[tuple[int, int, int], int] = {}
        self._last = 0
        self._begun = False
        self._changed_at = self._looked_at = 0.0
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._waiting = 0
        self.result: Result | None = None
        self.error: BeetleError | None = None

    def begin(self, stream: Litestream) -> None:
        """Note what is there, while no sidecar runs, and drop what is staged on this disk.

        Raises:
            ReplicaFailed: the target does not answer.
        """
        if not self._begun:
            files = stream.files()
            self._last = max((each.max_txid for each in files), default=0)
            self._old = {_key(each): each.size for each in files}
        drop_staged(stream.store)
        self._begun = True
        self._changed_at = self._looked_at = time.monotonic()

    def look(self, stream: Litestream) -> bool:
        """Whether all of it is gone; looks once in a while.

        Raises:
            ReplicaFailed: the target does not answer, or lets nothing be removed.
        """
        now = time.monotonic()
        if now - self._looked_at < LOOK_S:
            return False
        self._touch()
        files = stream.files()
        self._looked_at = time.monotonic()
        here = {_key(each) for each in files}
        gone = {key: size for key, size in self._old.items() if key not in here}
        if len(gone) > len(self._gone):
            self._changed_at = self._looked_at
        self._gone = gone
        left = sum(each.max_txid <= self._last for each in files)
        if files and not left:
            self._end(Result(len(gone), sum(gone.values()), len(files), min(each.max_txid for each in files)))
            return True
        if now - self._changed_at > STALLED_S:
            raise ReplicaFailed(what=WHAT, said=f"{left} of {len(files)} files there are of before")
        return False

    def fail(self, error: BeetleError) -> None:
        """It could not be done now."""
        self.error = error
        self._ended.set()

    def wait(self, must_end: Callable[[], bool], at: Callable[[int, int], None]) -> Result:
        """Wait until it is done.

        Raises:
            BeetleError: why it could not be.
            DeadlineExceeded: `must_end` became true; it goes on.
        """
        with self._lock:
            self._waiting += 1
        try:
            while not self._ended.wait(WAIT_S):
                at(len(self._gone), len(self._old))
                if must_end():
                    raise DeadlineExceeded.before("the replica has forgotten; it is finished behind this call")
            if self.error is not None:
                raise self.error
            assert self.result is not None
            return self.result
        finally:
            with self._lock:
                self._waiting -= 1

    def _end(self, result: Result) -> None:
        with self._lock:
            self.result = result
            self._ended.set()
            alone = not self._waiting
        if alone and self._on_done is not None:
            self._on_done(result)


def _key(file: LtxFile) -> tuple[int, int, int]:
    return file.level, file.min_txid, file.max_txid
