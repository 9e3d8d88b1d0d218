"""A new file of this user alone, for what is shown once or must not be read by others."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from beetle.contracts.errors import InvalidRequest


@contextmanager
def new_file(flag: str, place: str) -> Iterator[int]:
    """The descriptor of a file that was not there before, on disk when the block ends; gone again when it fails.

    Raises:
        InvalidRequest: it is there already, or cannot be made; `flag` is what named it.
    """
    try:
        descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        reason = f"{flag}: {place}: {error.strerror or 'it cannot be made'}"
        raise InvalidRequest(reason=reason, hint="name a file that is not there yet, in a folder of yours") from None
    try:
        yield descriptor
        os.fsync(descriptor)
    except BaseException:
        with suppress(OSError):
            os.unlink(place)
        raise
    finally:
        os.close(descriptor)


def write_all(descriptor: int, content: bytes) -> None:
    """Every byte, however many calls that takes."""
    left = memoryview(content)
    while left:
        left = left[os.write(descriptor, left) :]
