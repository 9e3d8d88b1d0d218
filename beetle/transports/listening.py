"""A Unix socket at a path: made private, put in place of a stale one only, and taken away by who made it."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import logging
import os
import socket
import stat
import time
from collections.abc import Generator

from beetle.contracts.errors import StoreLocked, StoreReadOnly
from beetle.named_tuple import NamedTuple

log = logging.getLogger("beetle.socket")

BACKLOG = 1024
STARTING_SECONDS = 5.0
RETRY_SECONDS = 0.05


class Listening(NamedTuple):
    """A listening socket and the file that stands for it (device and inode)."""

    socket: socket.socket
    path: str
    made: tuple[int, int] | None

    def is_there(self) -> bool:
        """Whether the file is still this socket's."""
        return _inode(self.path) == self.made

    def remove(self) -> None:
        """Take the file away, unless it is another daemon's by now."""
        if not self.is_there():
            return
        try:
            os.unlink(self.path)
        except OSError as error:
            log.warning(
                "the socket %s could not be removed: %s",
                self.path,
                error.strerror,
                extra={"event": "socket_not_removed"},
            )


def listen(path: str, group: int | None) -> Listening:
    """Listen at `path`; the members of `group` may connect too.

    Raises:
        StoreLocked: another daemon answers at the path.
        StoreReadOnly: the path cannot be bound, or is something that is not a socket.
    """
    with _alone(path, group):
        _clear(path)
        return Listening(_bind(path, group), path, _inode(path))


@contextlib.contextmanager
def cleared(path: str) -> Generator[None]:
    """For who binds a socket at `path` by itself: its folder is there and a stale socket is not; no other daemon does
    the same meanwhile.

    Raises:
        StoreLocked, StoreReadOnly: as `listen`.
    """
    with _alone(path, None):
        _clear(path)
        yield


def remove_own(path: str, made: tuple[int, int] | None) -> None:
    """Take a socket's file away if it is still the one that was made (device and inode)."""
    if made is not None and _inode(path) == made:
        with contextlib.suppress(OSError):  # it is gone already
            os.unlink(path)


@contextlib.contextmanager
def _alone(path: str, group: int | None) -> Generator[None]:
    """Make the socket's folder, and hold it: of two daemons that start, one must not clear what the other just made."""
    try:
        above = os.path.dirname(path) or "."
        _make_folder(above, group)
        folder = os.open(above, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise _unmakeable(path, error) from error
    try:
        end = time.monotonic() + STARTING_SECONDS
        while not _locked(folder):
            if time.monotonic() > end:
                raise StoreLocked(
                    store=f"the folder of {path}", pid="unknown", socket=path, advice="another daemon is starting there"
                )
            time.sleep(RETRY_SECONDS)
        yield
    finally:
        os.close(folder)


def _locked(folder: int) -> bool:
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        # Where the filesystem has no locks, two daemons that start at once are not kept apart.
        return error.errno not in (errno.EAGAIN, errno.EACCES)
    return True


def _make_folder(folder: str, group: int | None) -> None:
    """Folders that beetle makes are its own; one that was there is left as it is."""
    if os.path.exists(folder):
        return
    _make_folder(os.path.dirname(folder) or ".", group)
    with contextlib.suppress(FileExistsError):  # another daemon made it just now
        os.mkdir(folder, 0o700)
        if group is not None:
            os.chown(folder, -1, group)
            os.chmod(folder, 0o750)


def _clear(path: str) -> None:
    """Remove a stale socket, and nothing else."""
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    except OSError as error:
        raise _unmakeable(path, error) from error
    if not stat.S_ISSOCK(mode):
        raise StoreReadOnly(path=path, reason="the path exists and is not a socket")
    probe = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    try:
        probe.setblocking(False)
        probe.connect(path)
    except ConnectionRefusedError:
        # Only this says that nobody listens. Any other error, a full backlog among them, comes from somebody's socket.
        try:
            os.unlink(path)
        except OSError as error:
            raise _unmakeable(path, error) from error
        return
    except FileNotFoundError:
        return  # it ended just now
    except OSError:
        pass
    finally:
        probe.close()
    advice = f"use it: beetle --socket {path} status; or give another --socket"
    raise StoreLocked(store=f"the socket {path}", pid="unknown", socket=path, advice=advice)


def _bind(path: str, group: int | None) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    # The mode must be right from the moment the socket is there. The mask is the whole process's: other threads can
    # only make what they make more private by it.
    mask = os.umask(0o177)
    try:
        listener.bind(path)
    except OSError as error:
        listener.close()
        raise _unmakeable(path, error) from error
    finally:
        os.umask(mask)
    try:
        if group is not None:
            os.chown(path, -1, group)
            os.chmod(path, 0o660)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        os.unlink(path)
        raise _unmakeable(path, error) from error
    return listener


def _unmakeable(path: str, error: OSError) -> StoreReadOnly:
    return StoreReadOnly(path=path, reason=f"the socket cannot be made there ({error.strerror or error})")


def _inode(path: str) -> tuple[int, int] | None:
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
