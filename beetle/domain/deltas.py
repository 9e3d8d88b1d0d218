"""Versions of a text held as what differs from the version before, compressed. Pure.

Unpacking is bounded: nothing grows beyond the size that is asked for, whatever the packed bytes say.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Literal

from beetle.named_tuple import NamedTuple

Encoding = Literal["whole", "delta"]
COPY, INSERT = 1, 0
LEAST_COPY = 16
"""Bytes from which a copy is shorter than what is copied."""
CANDIDATES = 4
"""Places of an equal line that are tried."""
LEVEL = 9
MOST_STEP_BYTES = 1 << 16
"""How much longer than its text the list of steps may be."""


class Damaged(ValueError):
    """The packed bytes do not make a text of the size that they should."""


class Packed(NamedTuple):
    encoding: Encoding
    data: bytes


def pack_whole(text: bytes) -> Packed:
    """A text by itself."""
    return Packed("whole", zlib.compress(text, LEVEL))


def pack_next(before: bytes, text: bytes) -> Packed:
    """A text after the version before it: as what differs, where that is shorter."""
    whole = pack_whole(text)
    delta = zlib.compress(b"".join(_encoded(step) for step in _steps(before, text)), LEVEL)
    return Packed("delta", delta) if len(delta) < len(whole.data) else whole


def unpack(packed: Packed, size: int, before: bytes | None) -> bytes:
    """The text again.

    Args:
        size: its bytes.
        before: the text of the version before, for a delta.

    Raises:
        Damaged: the bytes are no text of that size.
    """
    if packed.encoding == "whole":
        return _inflated(packed.data, size, exact=True)
    if before is None:
        raise Damaged("what it differs from is missing")
    return _applied(before, _inflated(packed.data, size + MOST_STEP_BYTES, exact=False), size)


def _inflated(data: bytes, most: int, *, exact: bool) -> bytes:
    stream = zlib.decompressobj()
    try:
        # One byte more than there may be tells that there are more; zlib takes 0 for no limit.
        found = stream.decompress(data, most + 1)
    except zlib.error as error:
        raise Damaged(f"it cannot be unpacked: {error}") from None
    if len(found) > most or not stream.eof or stream.unused_data or (exact and len(found) != most):
        raise Damaged("it is not of the size that it should be")
    return found


# What differs: steps that copy from the text before, or insert.

DeltaStep = tuple[int, int] | bytes
"""A copy by its place and length, or bytes to insert."""


def _steps(before: bytes, text: bytes) -> Iterator[DeltaStep]:
    """What is equal at both ends is copied; between them lines that stood before, in linear time."""
    head = _equal(before, text, 0, 0, min(len(before), len(text)))
    most = min(len(before), len(text)) - head
    tail = _equal(before[::-1], text[::-1], 0, 0, most)
    if head:
        yield (0, head)
    yield from _middle(before, text[head : len(text) - tail])
    if tail:
        yield (len(before) - tail, tail)


def _equal(left: bytes, right: bytes, at_left: int, at_right: int, most: int) -> int:
    """How many bytes are equal from two places on, at most so many."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if left[at_left + low : at_left + middle] == right[at_right + low : at_right + middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _middle(before: bytes, text: bytes) -> Iterator[DeltaStep]:
    places: dict[bytes, list[int]] = {}
    at = 0
    for line in before.splitlines(keepends=True):
        known = places.setdefault(line, [])
        if len(known) < CANDIDATES:
            known.append(at)
        at += len(line)
    pending = bytearray()
    start = length = 0
    for line in text.splitlines(keepends=True):
        if length and before.startswith(line, start + length):
            length += len(line)
            continue
        yield from _copied(before, start, length, pending)
        found = places.get(line)
        start, length = (found[0], len(line)) if found else (0, 0)
        if not found:
            pending += line
    yield from _copied(before, start, length, pending)
    if pending:
        yield bytes(pending)


def _copied(before: bytes, start: int, length: int, pending: bytearray) -> Iterator[DeltaStep]:
    """A copy that has ended, behind what was to be inserted before it; a short one is inserted too."""
    if length < LEAST_COPY:
        pending += before[start : start + length]
        return
    if pending:
        yield bytes(pending)
        pending.clear()
    yield (start, length)


def _encoded(step: DeltaStep) -> bytes:
    if isinstance(step, bytes):
        return _number(len(step) << 1 | INSERT) + step
    start, length = step
    return _number(length << 1 | COPY) + _number(start)


def _number(value: int) -> bytes:
    """Seven bits a byte, the lowest first; the highest bit says that more follow."""
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def _applied(before: bytes, steps: bytes, size: int) -> bytes:
    made = bytearray()
    at = 0
    while at < len(steps):
        head, at = _read(steps, at)
        length = head >> 1
        if head & 1 == INSERT:
            piece, at = steps[at : at + length], at + length
        else:
            start, at = _read(steps, at)
            piece = before[start : start + length]
        if len(piece) != length or len(made) + length > size:
            raise Damaged("a step leads out of the text")
        made += piece
    if len(made) != size:
        raise Damaged("it is not of the size that it should be")
    return bytes(made)


def _read(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data) and shift < 63:
        value |= (data[at] & 0x7F) << shift
        at += 1
        if not data[at - 1] & 0x80:
            return value, at
        shift += 7
    raise Damaged("a number has no end")
