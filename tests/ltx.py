"""What litestream's files hold: the pages of an LTX file, decompressed."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Iterator
from pathlib import Path

HEADER_BYTES = 100
MAGIC = b"LTX1"
SIZED = 1


def pages(path: Path, *, whole: bool = True) -> Iterator[tuple[int, bytes]]:
    """Number and content of each page in a file; with `whole` false also of one that has not come to its end yet."""
    data = path.read_bytes()
    assert data[:4] == MAGIC, path
    at = HEADER_BYTES
    while True:
        if not whole and at + 10 > len(data):
            return
        number, flags = struct.unpack_from(">IH", data, at)
        at += 6
        if not number:
            return
        assert flags == SIZED, f"{path}: a page of another form"
        (size,) = struct.unpack_from(">I", data, at)
        at += 4
        if not whole and at + size > len(data):
            return
        yield number, unpacked(data[at : at + size])
        at += size


def content(folder: Path, *, whole: bool = True) -> bytes:
    """All pages of all files in a folder and below, but for those that a sidecar takes away meanwhile."""
    found = bytearray()
    for file in sorted(folder.rglob("*.ltx")):
        with contextlib.suppress(FileNotFoundError):
            found += b"".join(page for _, page in pages(file, whole=whole))
    return bytes(found)


def unpacked(block: bytes) -> bytes:
    """One LZ4 block."""
    out, at = bytearray(), 0
    while at < len(block):
        token = block[at]
        at += 1
        size, at = _length(block, at, token >> 4)
        out += block[at : at + size]
        at += size
        if at >= len(block):
            break
        back = block[at] | block[at + 1] << 8
        size, at = _length(block, at + 2, token & 15)
        for _ in range(size + 4):
            out.append(out[-back])
    return bytes(out)


def _length(block: bytes, at: int, first: int) -> tuple[int, int]:
    size = first
    if first == 15:
        while True:
            size += block[at]
            at += 1
            if block[at - 1] != 255:
                break
    return size, at
