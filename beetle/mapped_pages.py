"""Gives back memory that shows programs and libraries whose pages were used once.

A start touches most of the interpreter and of its libraries once: OpenSSL's tables, the parser, the loader's work. One
signature touches three megabytes of what signs. The pages stay mapped, and count as the daemon's, though they are
copies of a file. What is needed again is mapped again from the page cache, sixteen pages at a time.
"""

from __future__ import annotations

import logging
import os
import time

log = logging.getLogger("beetle.daemon")

SMAPS, STATM = "/proc/self/smaps", "/proc/self/statm"
READ_ONLY = (b"r-xp", b"r--p")
UNTOUCHED = b"\nAnonymous:             0 kB"
"""Of a mapping that has no page of its own: giving up one that was written would lose what was written."""
MADV_DONTNEED = 4
"""madvise(2): a private mapping of a file shows the file again when it is next touched."""
GROWN_BYTES = 2**20
"""By so much more is mapped when it is given back."""
NEEDED_S = 5.0
"""So long what came back at once counts as needed; then it is found out anew. Each time costs a millisecond."""


class MappedPages:
    """The mappings of this process, looked at again and again."""

    def __init__(self) -> None:
        # What the last giving back has left, and what was mapped at the look behind it; None until that look.
        self._left = 0
        self._needed: int | None = 0
        self._until = 0.0

    def look(self) -> bool:
        """Give back what is mapped where that has grown; whether it was."""
        mapped, now = mapped_bytes(), time.monotonic()
        if self._needed is None:
            self._needed, self._until = mapped, now + NEEDED_S
        if mapped <= (self._needed if now < self._until else self._left) + GROWN_BYTES:
            return False
        give_back()
        self._left, self._needed = mapped_bytes(), None
        return True


def mapped_bytes() -> int:
    """Bytes of files that are mapped now (`shared` of proc(5) statm); 0 where the kernel does not tell."""
    try:
        with open(STATM, "rb") as file:
            return int(file.read().split()[2]) * os.sysconf("SC_PAGE_SIZE")
    except OSError as error:
        log.debug("mapped memory is not told: %s", error.strerror)
        return 0


def give_back() -> int:
    """Give back the read-only pages of files; of how many mappings. None where the kernel does not tell of them."""
    import ctypes

    try:
        with open(SMAPS, "rb") as file:
            told = file.read()
    except OSError as error:
        log.debug("mappings are not told: %s", error.strerror)
        return 0
    madvise = ctypes.CDLL(None).madvise
    madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    given = 0
    for start, end in mappings(told):
        given += madvise(start, end - start, MADV_DONTNEED) == 0
    return given


def mappings(smaps: bytes) -> list[tuple[int, int]]:
    """The read-only mappings of files of which no page was written, as (start, end), of the text of proc(5) smaps."""
    found: list[tuple[int, int]] = []
    for block in smaps.split(b"\nVmFlags:"):
        # Behind the flags of the mapping before.
        header = next((line for line in block.split(b"\n") if b"-" in line.split(b" ", 1)[0]), b"")
        fields = header.split()
        if len(fields) >= 6 and fields[1] in READ_ONLY and fields[4] != b"0" and UNTOUCHED in block:
            start, _, end = fields[0].partition(b"-")
            found.append((int(start, 16), int(end, 16)))
    return found
