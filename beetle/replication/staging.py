"""Litestream's files on this disk: what it has read from the log, until the target has it and a while beyond."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Iterator

from beetle.replication.program import staging_folder

log = logging.getLogger("beetle.replication")


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
    shutil.rmtree(folder, onerror=_told)
    log.info("removed %s", folder)


def _told(_function: object, path: str, _error: object) -> None:
    log.warning("%s could not be removed", path)
