"""Litestream's files on this disk: what it has read from the log, until the target has it and a while beyond; and a
target that is a folder here."""

from __future__ import annotations

import logging
import os
import shutil
import time
from collections.abc import Iterator

from beetle.replication.program import staging_folder

log = logging.getLogger("beetle.replication")

AHEAD_S = 5.0
"""By so much two clocks may differ that are right."""


def _files(store: str) -> Iterator[tuple[int, int]]:
    """The last transaction and the bytes of each file."""
    try:
        with os.scandir(os.path.join(staging_folder(store), "ltx", "0")) as entries:
            for entry in entries:
                stem = entry.name.partition(".")[0].rpartition("-")[2]
                try:
                    yield int(stem, 16), entry.stat(follow_symlinks=False).st_size
                except (OSError, ValueError):
                    continue  # sent and removed meanwhile, or still being written
    except OSError:
        return


def staged_bytes(store: str, replicated: int) -> int:
    """Bytes of those that were not sent: of the transactions behind `replicated`."""
    return sum(size for txid, size in _files(store) if txid > replicated)


def drop_staged(store: str) -> None:
    """Remove them, while no sidecar runs: what it will send next is the whole store."""
    folder = staging_folder(store)
    shutil.rmtree(folder, onerror=_log_failure)
    log.info("removed %s", folder)


def target_files(folder: str) -> Iterator[tuple[int, int]]:
    """The first and the last transaction of each file of a target that is a folder; none where nothing is there.

    Raises:
        OSError: it cannot be read.
    """
    try:
        # What is merged goes from a lower level to a higher one: so none is missed that moves meanwhile.
        levels = sorted(os.listdir(os.path.join(folder, "ltx")))
    except FileNotFoundError:
        return
    for level in filter(str.isdecimal, levels):
        for name in os.listdir(os.path.join(folder, "ltx", level)):
            first, _, last = name.removesuffix(".ltx").partition("-")
            try:
                found = int(first, 16), int(last, 16)
            except ValueError:
                continue  # still being written, or none of litestream's
            yield found


def settle_times(folder: str) -> int:
    """Date every file of a target that is a folder, and of the future, to now; how many were.

    A clock that was ahead and was put right leaves them. Litestream makes no merged file and no snapshot before the
    time of the last one has come, and removes none: for years, then.
    """
    now, settled = time.time(), 0
    for place, _, names in os.walk(folder):
        for path in (os.path.join(place, name) for name in names if name.endswith(".ltx")):
            try:
                if os.stat(path, follow_symlinks=False).st_mtime > now + AHEAD_S:
                    os.utime(path, (now, now), follow_symlinks=False)
                    settled += 1
            except OSError as error:
                log.warning("the time of %s could not be set: %s", path, error.strerror)
    if settled:
        log.warning("%d files of the replica were of a time that has not come: they are of now", settled)
    return settled


def _log_failure(_function: object, path: str, _error: object) -> None:
    log.warning("%s could not be removed", path)
