"""The advisory lock beside the store: one beetle process at a time, and where to find it."""

from __future__ import annotations

import errno
import fcntl
import os
from typing import Any

from beetle.contracts.errors import BeetleError, StorageFull, StoreLocked, StoreReadOnly
from beetle.lean_json import dumps
from beetle.named_tuple import NamedTuple


class Holder(NamedTuple):
    """What the process that holds the store wrote about itself."""

    pid: int | None
    socket: str | None


def lock_path(store: str) -> str:
    """The store's lock file, beside the file itself: a store that has two names through links has one lock."""
    return os.path.realpath(store) + ".lock"


class StoreLock:
    """`flock` on `<store>.lock`: the kernel releases it when the process dies, so a kill -9 leaves nothing to clean.

    The file itself stays: removing it would let two processes lock two different files of that name. `immutable` says
    that it stands on read-only media; the lock still holds against a process that writes through another mount.
    """

    def __init__(self, path: str, descriptor: int | None, immutable: bool = False) -> None:
        self.path = path
        self.immutable = immutable
        self._descriptor: int | None = descriptor

    @classmethod
    def acquire(cls, store: str) -> StoreLock:
        """Take the lock and write who holds it.

        Raises:
            StoreLocked: another process has it; details name its pid and socket.
            StoreReadOnly: the lock file cannot be made.
            StorageFull: no room to write in it who holds the store.
        """
        path = lock_path(store)
        immutable = False
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            immutable = error.errno == errno.EROFS
            if not immutable:
                raise StoreReadOnly(path=store, reason=f"its lock file cannot be made ({error.strerror})") from error
            try:
                descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                return cls(path, None, immutable)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _parse(os.pread(descriptor, 4096, 0))
            os.close(descriptor)
            raise _locked(store, holder) from None
        lock = cls(path, descriptor, immutable)
        try:
            lock.announce(None)
        except OSError as error:
            lock.release()
            raise _unwritten(store, error) from error
        return lock

    def announce(self, socket: str | None) -> None:
        """Write this process's pid and the socket to use."""
        if self._descriptor is None or self.immutable:
            return
        text = dumps({"pid": os.getpid(), "socket": socket}, ensure_ascii=True).encode()
        # Written first, cut afterwards: whoever reads in between finds the whole text.
        os.pwrite(self._descriptor, text, 0)
        os.ftruncate(self._descriptor, len(text))

    def release(self) -> None:
        """Give the store up; a second call does nothing."""
        if self._descriptor is not None:
            try:
                if not self.immutable:
                    os.ftruncate(self._descriptor, 0)
            finally:
                os.close(self._descriptor)
                self._descriptor = None


def holder_of(store: str) -> Holder | None:
    """Who holds the store now, or None when nobody does. Changes nothing."""
    try:
        descriptor = os.open(lock_path(store), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _parse(os.pread(descriptor, 4096, 0))
    else:
        return None
    finally:
        os.close(descriptor)


def _unwritten(store: str, error: OSError) -> BeetleError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StorageFull(path=store)
    return StoreReadOnly(path=store, reason=f"its lock file cannot be written ({error.strerror})")


def _parse(data: bytes) -> Holder:
    import json

    try:
        found: Any = json.loads(data)
    except ValueError:
        return Holder(None, None)
    if not isinstance(found, dict):
        return Holder(None, None)
    pid, socket = found.get("pid"), found.get("socket")
    return Holder(pid if isinstance(pid, int) else None, socket if isinstance(socket, str) else None)


def _locked(store: str, holder: Holder) -> StoreLocked:
    if holder.socket:
        advice = f"use the running daemon: beetle --socket {holder.socket} status"
    else:
        advice = "wait until that process ends; it serves no socket"
    return StoreLocked(store=store, pid=holder.pid or "unknown", socket=holder.socket, advice=advice)
