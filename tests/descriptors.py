"""A process that has no file descriptor left, or only a few."""

from __future__ import annotations

import os
import resource
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def descriptors_left(count: int) -> Generator[None]:
    """This process can open so many files more, until the block ends."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(each) for each in os.listdir("/proc/self/fd"))
    held: list[int] = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 1 + count, hard))
    try:
        try:
            while True:
                held.append(os.eventfd(0))
        except OSError:
            pass
        for _ in range(count):
            os.close(held.pop())
        yield
    finally:
        for each in held:
            os.close(each)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
