"""Imports that are done in slices: what is to come in stands beside the store until all of it is in there.

The store says which of them are decided, and how far each is (`beetle.store.chunk_imports`). The file has its name
before: a process that dies in between has imported nothing, and the next opening of the store takes the file away. Of
one that dies later, the next opening imports the rest.
"""

from __future__ import annotations

import contextlib
import errno
import os

from beetle.contracts.errors import IntegrityViolation
from beetle.named_tuple import NamedTuple
from beetle.store.engine.connection import StoreSettings
from beetle.store.engine.exchange import IMPORT, TRANSFER, Beside, beside, make_ready, named, unwritable

LENGTH_BYTES = 4
MAY_PASS = (errno.EACCES, errno.EPERM, errno.EMFILE, errno.ENFILE, errno.ENOMEM)
"""What keeps a file from being read that is there, and may be read another time."""


class KeptImport(NamedTuple):
    """An import that is not finished: `said` tells whose it is, `data` is what it was given."""

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
    return bool(left(settings))


def is_kept(settings: StoreSettings, import_id: str) -> bool:
    """Whether what an import was given still stands beside the store; a folder or a link of its name is none."""
    path = named(settings.path, IMPORT, import_id)
    return settings.backend != "in-memory" and os.path.isfile(path) and not os.path.islink(path)


def left(settings: StoreSettings) -> list[Beside]:
    """All that stands beside the store."""
    if settings.backend == "in-memory":
        return []
    return [each for each in beside(settings.path) if each.kind == IMPORT]


def read(path: str) -> KeptImport:
    """What stands in a file.

    Raises:
        IntegrityViolation: it is damaged, or gone, or the disk does not give it back: no later time would be better.
        StoreReadOnly, NoDescriptor: the system does not let it be read now.
    """
    try:
        with open(path, "rb") as stream:
            prefix = stream.read(LENGTH_BYTES)
            size = int.from_bytes(prefix, "big")
            said = stream.read(size)
            data = stream.read()
    except OSError as error:
        if error.errno in MAY_PASS:
            raise unwritable(path, error) from error
        raise IntegrityViolation(reason="what an import of chunks was given cannot be read") from error
    if len(prefix) < LENGTH_BYTES or len(said) < size:
        raise IntegrityViolation(reason="what an import of chunks was given ends before its end")
    return KeptImport(said, data)


def drop(path: str | None) -> None:
    """All of it is in the store, or is not to be. A file that is gone already is no error.

    Raises:
        StoreReadOnly: the folder does not let it go.
    """
    if path is None:
        return
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise unwritable(path, error) from error
