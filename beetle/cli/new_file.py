"""A new file of this user alone, for what is shown once or must not be read by others."""

from __future__ import annotations

import errno
import os
from collections.abc import Generator
from contextlib import contextmanager, suppress

from beetle.cli.calling_off import ended_by_signals
from beetle.contracts.errors import InvalidRequest

NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
MODE = 0o600
NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS)
"""What a file system without hard links answers, FAT for one."""
NO_SYNC = (errno.EACCES, errno.EINVAL)
"""What a folder answers that may be written and not read, and a file system that syncs no folders."""


@contextmanager
def new_file(flag: str, place: str) -> Generator[int]:
    """The descriptor of a file that is on disk and called `place` when the block ends; gone again when that fails.

    Until then it is `place.XXXXXXXX.part`: whoever is killed leaves no half file that looks whole. What is called
    `place` already is never replaced.

    Raises:
        InvalidRequest: it is there already, or cannot be made; `flag` is what named it.
    """
    part = f"{place}.{os.urandom(4).hex()}.part"
    with ended_by_signals():
        try:
            descriptor = _begun(flag, place, part)
            try:
                yield descriptor
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            try:
                _give_name(part, place)
            except FileExistsError as error:
                raise _refused(flag, place, error) from None
            _sync_folder(place)
        except BaseException:
            # A signal may come as soon as it is made: it goes by its name, which nothing else has.
            with suppress(OSError):
                os.unlink(part)
            raise


def _begun(flag: str, place: str, part: str) -> int:
    try:
        if not place or os.path.lexists(place):
            number = errno.EEXIST if place else errno.ENOENT
            raise OSError(number, os.strerror(number))
        return os.open(part, NEW, MODE)
    except OSError as error:
        raise _refused(flag, place, error) from None


def _give_name(part: str, place: str) -> None:
    """FileExistsError: meanwhile somebody has made a file of that name."""
    try:
        os.link(part, place, follow_symlinks=False)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
    else:
        os.unlink(part)
        return
    os.close(os.open(place, NEW, MODE))
    try:
        os.rename(part, place)
    except BaseException:
        os.unlink(place)
        raise


def _sync_folder(place: str) -> None:
    try:
        folder = os.open(os.path.dirname(place) or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        if error.errno not in NO_SYNC:
            raise


def _refused(flag: str, place: str, error: OSError) -> InvalidRequest:
    reason = f"{flag}: {place}: {error.strerror or 'it cannot be made'}"
    return InvalidRequest(reason=reason, hint="name a file that is not there yet, in a folder of yours")


def write_all(descriptor: int, content: bytes) -> None:
    """Every byte, however many calls that takes."""
    left = memoryview(content)
    while left:
        left = left[os.write(descriptor, left) :]
