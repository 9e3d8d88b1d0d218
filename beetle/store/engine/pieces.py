"""A file of bytes that came in pieces, or will go in pieces: on disk, without a name, gone when it is closed."""

from __future__ import annotations

import contextlib
import os

from beetle.store.engine.connection import StoreSettings
from beetle.store.engine.exchange import TRANSFER, named, unwritable


class PieceFile:
    """Grows at its end; a crash leaves nothing of it."""

    def __init__(self, settings: StoreSettings, file_id: str) -> None:
        """Make it beside the store; in memory where the store has no folder that may be written to.

        Raises:
            StorageFull, StoreReadOnly: the folder does not take it.
        """
        self._path = named(settings.path, TRANSFER, file_id)
        self.bytes = 0
        if settings.backend == "in-memory" or settings.immutable:
            self._descriptor = os.memfd_create(TRANSFER, os.MFD_CLOEXEC)
            return
        try:
            self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            # From here on nobody can open it; a crash before is swept when the store is opened.
            os.unlink(self._path)
        except OSError as error:
            raise unwritable(self._path, error) from error

    def append(self, data: bytes) -> None:
        """Write at the end: all of it, or nothing that counts.

        Raises:
            StorageFull, StoreReadOnly: the disk does not take it.
        """
        left = memoryview(data)
        try:
            while left:
                written = os.pwrite(self._descriptor, left, self.bytes + len(data) - len(left))
                left = left[written:]
        except OSError as error:
            raise unwritable(self._path, error) from error
        self.bytes += len(data)

    def read(self, offset: int, most: int) -> bytes:
        """At most so many bytes from `offset` on; fewer at its end alone."""
        parts: list[bytes] = []
        end = min(self.bytes, offset + most)
        while offset < end and (part := os.pread(self._descriptor, end - offset, offset)):
            parts.append(part)
            offset += len(part)
        return b"".join(parts)

    def close(self) -> None:
        """Give its bytes back to the disk."""
        with contextlib.suppress(OSError):
            os.close(self._descriptor)
