"""Gives back memory that was freed between other memory that is still in use.

The C library's allocator returns the end of its heap alone. What one large request or a look through a whole store has
needed for a moment would stay the daemon's for as long as one small object behind it lives.
"""

from __future__ import annotations

import time

EVERY_S = 15.0
"""Seconds between two looks: each goes through the whole heap, a millisecond or two."""


class Heap:
    """The heap of this process. The first look is so long after it was made."""

    def __init__(self) -> None:
        self._next = time.monotonic() + EVERY_S

    def look(self) -> bool:
        """Give back what is free, unless that was done just now; whether it was looked at."""
        if time.monotonic() < self._next:
            return False
        self._next = time.monotonic() + EVERY_S
        give_back()
        return True


def give_back() -> None:
    """Return whole free pages to the system. Nothing where the C library has no malloc_trim(3)."""
    import ctypes

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
