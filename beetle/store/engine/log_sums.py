"""The checksums of a write-ahead log, as SQLite's file format defines them."""

from __future__ import annotations

import struct

HEADER_BYTES = 32
_MAGIC = (0x377F0682, 0x377F0683)


def byte_order(header: bytes) -> str:
    """In which order the log's words are summed, as `struct` names it."""
    return ">" if header[3] & 1 else "<"


def is_sound(header: bytes, page_size: int) -> bool:
    """Whether SQLite wrote this header, for pages of that size. Any other log it takes for an empty one, silently."""
    magic, _, size = struct.unpack(">3I", header[:12])
    if magic not in _MAGIC or size != page_size:
        return False
    return summed(header[:24], (0, 0), byte_order(header)) == struct.unpack(">2I", header[24:HEADER_BYTES])


def summed(data: bytes, sums: tuple[int, int], order: str) -> tuple[int, int]:
    """The checksum, gone on with over more data."""
    one, two = sums
    words = struct.unpack(f"{order}{len(data) // 4}I", data)
    for at in range(0, len(words), 2):
        one = (one + words[at] + two) & 0xFFFFFFFF
        two = (two + words[at + 1] + one) & 0xFFFFFFFF
    return one, two
