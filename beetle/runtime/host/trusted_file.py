"""Files whose words are obeyed: nobody but root and the user who reads them may be able to change or replace them."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator

from beetle.named_tuple import NamedTuple

MOST_LINKS = 40
"""As many symbolic links as the kernel follows in one path."""
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


class Distrust(NamedTuple):
    """Why a file is not to be obeyed, and what to do about it."""

    reason: str
    hint: str


def distrust(descriptor: int, path: str | os.PathLike[str], uid: int) -> Distrust | None:
    """Why `path`, which was opened as `descriptor`, could be what another user than root and `uid` made of it; or None.

    Folders and links count: who may rename in one of them chooses what the name means at the next reading.

    Raises:
        OSError: one of them cannot be looked at.
    """
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        return Distrust("it is not a regular file", "name a regular file")
    if found.st_uid not in (0, uid):
        return Distrust(f"it belongs to the user {found.st_uid}", f"chown it to root or to the user {uid}")
    if found.st_mode & OTHERS_WRITE:
        mode = stat.S_IMODE(found.st_mode)
        return Distrust(f"others may write it (mode {mode:04o})", f"chmod go-w {os.fspath(path)}")
    return _distrust_way(path, uid)


def distrust_folder(path: str, uid: int, *, strictly: bool) -> Distrust | None:
    """Why another user than root and `uid` may change what is in a folder, or None.

    Args:
        strictly: nobody else may read it either, and those count too through which its path is resolved.

    Raises:
        OSError: one of them cannot be looked at.
    """
    found = os.lstat(path)
    if not stat.S_ISDIR(found.st_mode):
        return Distrust("it is a link, or no folder", "name the folder itself")
    if found.st_uid != uid:
        return Distrust(f"it belongs to the user {found.st_uid}", f"chown it to the user {uid}")
    if (mode := stat.S_IMODE(found.st_mode)) & (0o077 if strictly else OTHERS_WRITE):
        return Distrust(f"others may use it (mode {mode:04o})", f"chmod 700 {path}, or mount its disk with umask=077")
    return _distrust_way(path, uid) if strictly else None


def _distrust_way(path: str | os.PathLike[str], uid: int) -> Distrust | None:
    for place, what in _way(os.path.abspath(path)):
        if what.st_uid not in (0, uid):
            return Distrust(f"{place} on its way belongs to the user {what.st_uid}", "keep it in a folder of your own")
        if stat.S_ISDIR(what.st_mode) and what.st_mode & OTHERS_WRITE and not what.st_mode & stat.S_ISVTX:
            return Distrust(f"others may write its folder {place}", f"chmod go-w {place}")
    return None


def _way(path: str) -> Iterator[tuple[str, os.stat_result]]:
    """Each folder and link through which a path is resolved, from the root on."""
    left = path.split("/")
    here, links = "/", 0
    yield here, os.lstat(here)
    while left:
        name = left.pop(0)
        if name in ("", "."):
            continue
        if name == "..":
            here = os.path.dirname(here)
            continue
        there = os.path.join(here, name)
        found = os.lstat(there)
        if stat.S_ISLNK(found.st_mode):
            yield there, found
            links += 1
            if links > MOST_LINKS:
                raise OSError("too many links")
            target = os.readlink(there)
            here = "/" if target.startswith("/") else here
            left = target.split("/") + left
            continue
        here = there
        if stat.S_ISDIR(found.st_mode):
            yield here, found
