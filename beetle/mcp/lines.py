"""Lines of a descriptor, each bounded: a longer one is told and passed over, with at most the bound in memory."""

from __future__ import annotations

import os
from collections.abc import Iterator

CHUNK = 65_536


def bounded_lines(descriptor: int, most: int) -> Iterator[bytes | None]:
    """Each line without its end; None for one over `most` bytes. The last line may lack its end.

    Blank lines are left out.
    """
    buffer = bytearray()
    passing = False
    searched = 0
    while data := os.read(descriptor, CHUNK):
        buffer += data
        while (end := buffer.find(b"\n", searched)) >= 0:
            line = bytes(buffer[:end])
            del buffer[: end + 1]
            searched = 0
            if passing:
                passing = False
            elif len(line) > most:
                yield None
            elif line.strip():
                yield line
        searched = len(buffer)
        if passing:
            buffer.clear()
        elif len(buffer) > most:
            passing = True
            buffer.clear()
            yield None
        searched = len(buffer)
    if buffer.strip() and not passing:
        yield bytes(buffer)
