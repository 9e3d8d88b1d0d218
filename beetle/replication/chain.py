"""Whether a store can be restored from what is at the target.

A sidecar tells what it has sent. It does not look at it again: a folder that was cleared, or a disk that was taken
away, gets only what is written from then on, which no store can be made of.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

from beetle.contracts.errors import BeetleError
from beetle.named_tuple import NamedTuple
from beetle.replication.program import Litestream
from beetle.replication.staging import target_files

FOLDER_S = 2.0
TARGET_S = 3600.0
"""How often a target is listed that is a folder here, and any other, where each request may be paid for."""
AGAIN_S = 1.0
"""So soon what seems to be missing is looked for again: a list is not of one moment."""
MEND_S, MOST_MEND_S = 2.0, 60.0
"""How often, while the whole store is being sent."""


class Found(NamedTuple):
    """The last transaction that can be restored, and whether that is all that was sent."""

    reach: int
    is_whole: bool


def reach(files: Iterable[tuple[int, int]]) -> int:
    """The last transaction up to which files follow each other from the first one on, 0 where none is. Each is given
    as its first and its last transaction; a snapshot begins at 1."""
    last = 0
    for first, end in sorted(files):
        if first > last + 1:
            break
        last = max(last, end)
    return last


def sent_anew(retention_h: int) -> dict[str, Any]:
    """Of a sidecar's configuration: a snapshot of the whole store soon, and all that is there stays as long as ever."""
    return {"snapshot": {"interval": f"{MEND_S:.0f}s", "retention": f"{retention_h}h"}}


class Chain:
    """Lists one target from time to time, on a thread of its own: one that hangs must not keep its caller."""

    def __init__(self, stream: Litestream, *, is_broken: bool) -> None:
        """Prepare.

        Args:
            is_broken: whether it is known to be, and is being sent anew.
        """
        self._stream = stream
        self._mending = self._doubted = is_broken
        if is_broken:
            self._pause = MEND_S
        else:
            self._pause = FOLDER_S if stream.settings.target.kind == "file" else TARGET_S
        self._at = 0.0
        self._arrived = 0
        self._asking: threading.Thread | None = None
        self._reach: int | None = None

    def look(self, now: float, arrived: int) -> Found | None:
        """What a list has told that has come since the last call; None where none has, or where it is doubtful.

        Args:
            now: in monotonic seconds.
            arrived: the last transaction that the sidecar has sent.
        """
        if self._asking is None:
            if now >= self._at:
                self._arrived, self._reach = arrived, None
                self._asking = threading.Thread(target=self._ask, name="beetle-replica-list", daemon=True)
                self._asking.start()
            return None
        if self._asking.is_alive():
            return None
        self._asking = None
        self._at = now + self._pause
        if self._mending:
            self._pause = min(self._pause * 2, MOST_MEND_S)
        if self._reach is None:
            return None
        found = Found(self._reach, self._reach >= self._arrived)
        if not found.is_whole and not self._doubted:
            self._doubted, self._at = True, now + AGAIN_S
            return None
        self._doubted = self._mending
        return found

    def _ask(self) -> None:
        target = self._stream.settings.target
        try:
            if target.kind == "file":
                self._reach = reach(target_files(target.path))
            else:
                self._reach = reach((each.min_txid, each.max_txid) for each in self._stream.files())
        except (BeetleError, OSError):
            # The sidecar finds a target that does not answer as well, and tells of it.
            return
