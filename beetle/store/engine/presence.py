"""Whether a store stands at a path."""

from __future__ import annotations

import os
import stat

KEY_FILE = ".identity"
SNAPSHOTS = ".snapshots"
"""What the names of a store's key file and of its folder of snapshots have beyond its own."""


def has_content(path: str) -> bool:
    """Whether something stands there that is no empty file: a crash in a store's first moments leaves one."""
    try:
        found = os.stat(path)
    except OSError:
        return False
    return found.st_size > 0 or not stat.S_ISREG(found.st_mode)


def left_beside_empty(path: str) -> str | None:
    """What shows that an empty file was a store, since it is made when the first transactions are on disk. None where
    nothing does, or no empty file is there."""
    if not os.path.exists(path) or has_content(path):
        return None
    if has_content(path + "-wal"):
        return path + "-wal"
    return next((path + each for each in (KEY_FILE, SNAPSHOTS) if os.path.lexists(path + each)), None)


def store_exists(path: str) -> bool:
    """Whether a store is there, or an empty file that was one: opening that is refused."""
    return has_content(path) or left_beside_empty(path) is not None
