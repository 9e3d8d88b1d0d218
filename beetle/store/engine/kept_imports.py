"""Imports that are done in slices: what is to come in stands beside the store until all of it is in there.

The file has its name from the moment on when it is whole and on disk. A process that dies before has imported nothing;
of one that dies behind it, the next opening of the store imports the rest.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from beetle.named_tuple import NamedTuple
from beetle.store.engine.connection import StoreSettings
from beetle.store.engine.exchange import IMPORT, TRANSFER, beside, make_ready, named, unwritable

LENGTH_BYTES = 4


class KeptImport(NamedTuple):
    """An import that is not finished: `said` tells whose it is, `data` is what it was given."""

    path: str
    said: bytes
    data: bytes


def keep(settings: StoreSettings, import_id: str, said: bytes, data: bytes) -> str | None:
    """Put an import on disk; where it stands, None where the store itself is in memory.

    Raises:
        StorageFull, StoreReadOnly: the folder does not take it; nothing is kept.
    """
    if settings.backend == "in-memory":
        return None
    making, made = (named(settings.path, kind, import_id) for kind in (TRANSFER, IMPORT))
    try:
        descriptor = os.open(making, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            for part in (len(said).to_bytes(LENGTH_BYTES, "big"), said, data):
                left = memoryview(part)
                while left:
                    left = left[os.write(descriptor, left) :]
        finally:
            os.close(descriptor)
        make_ready(making, made)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(making)
        raise unwritable(settings.path, error) from error
    return made


def are_left(settings: StoreSettings) -> bool:
    """Whether an import was begun and is not finished."""
    return settings.backend != "in-memory" and any(each.kind == IMPORT for each in beside(settings.path))


def left(settings: StoreSettings) -> Iterator[KeptImport]:
    """The imports that were begun and are not finished."""
    if settings.backend == "in-memory":
        return
    for each in beside(settings.path):
        if each.kind != IMPORT:
            continue
        with open(each.path, "rb") as stream:
            size = int.from_bytes(stream.read(LENGTH_BYTES), "big")
            yield KeptImport(each.path, stream.read(size), stream.read())


def drop(path: str | None) -> None:
    """All of it is in the store, or it is called off.

    Raises:
        StoreReadOnly: the folder does not let it go; it is imported once more, which changes nothing.
    """
    if path is None:
        return
    try:
        os.unlink(path)
    except OSError as error:
        raise unwritable(path, error) from error
