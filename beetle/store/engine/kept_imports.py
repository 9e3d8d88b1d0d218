"""Imports that are done in slices: what is to come in stands beside the store until all of it is in there.

The store says which of them are decided, and how far each is (`beetle.store.chunk_imports`). The file has its name
before: a process that dies in between has imported nothing, and the next opening of the store takes the file away. Of
one that dies later, the next opening imports the rest.
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

    import_id: str
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
    """Whether what an import was given still stands beside the store, of any import."""
    return settings.backend != "in-memory" and any(each.kind == IMPORT for each in beside(settings.path))


def is_kept(settings: StoreSettings, import_id: str) -> bool:
    """Whether what an import was given still stands beside the store."""
    return settings.backend != "in-memory" and os.path.exists(named(settings.path, IMPORT, import_id))


def left(settings: StoreSettings) -> Iterator[KeptImport]:
    """All that stands beside the store."""
    if settings.backend == "in-memory":
        return
    for each in beside(settings.path):
        if each.kind != IMPORT:
            continue
        with open(each.path, "rb") as stream:
            size = int.from_bytes(stream.read(LENGTH_BYTES), "big")
            yield KeptImport(each.id, each.path, stream.read(size), stream.read())


def drop(path: str | None) -> None:
    """All of it is in the store, or it is called off.

    Raises:
        StoreReadOnly: the folder does not let it go.
    """
    if path is None:
        return
    try:
        os.unlink(path)
    except OSError as error:
        raise unwritable(path, error) from error
