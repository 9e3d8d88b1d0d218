"""Cuts a byte stream into MessagePack maps with string keys, and refuses what is too large before it has arrived.

The scan looks at every token once, wherever the chunks were cut, and makes no Python object of a value: what it keeps
is a position, a count for each open container and the keys of the open maps.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator
from heapq import merge
from itertools import pairwise
from typing import Final, Literal, NamedTuple

from beetle.contracts.errors import InvalidFrame, PayloadTooLarge

_ONE, _WIDE, _NUMBER, _STR, _BIN, _ARRAY, _MAP, _EXT, _NEVER = range(9)
_READ_LENGTH: Final = -1

_KEYS_IN_A_SET: Final = 4096
_TEXT_PIECE: Final = 65_536
_NAME_SHOWN: Final = 64


class FrameLimits(NamedTuple):
    """`frame_bytes`: longest frame, in bytes. `nesting`: deepest container; the frame's own map is at depth 1."""

    frame_bytes: int
    nesting: int


class Fault(NamedTuple):
    """Why one request is invalid although its frame is well formed: `path` like `$.args.turns[3].at`, and `reason`."""

    path: str
    reason: str


class Frame(NamedTuple):
    """One complete map as it was sent, and its first fault in the order of the bytes (a duplicate key in a map of
    more than 4,096 keys is found where that map ends, and its path is the map's).

    Faults: duplicate key, lone surrogate, a number that is not finite, an integer beyond signed 64 bits.
    """

    data: bytes
    fault: Fault | None


def _token_tables() -> tuple[bytes, bytes, tuple[int, ...]]:
    """For each first byte: its kind, its header's bytes (a scalar is all header), its length or `_READ_LENGTH`."""
    kinds, headers, lengths = bytearray(256), bytearray(b"\x01" * 256), [0] * 256
    for first, last, kind in ((0x80, 0x8F, _MAP), (0x90, 0x9F, _ARRAY), (0xA0, 0xBF, _STR)):
        for byte in range(first, last + 1):
            kinds[byte], lengths[byte] = kind, byte - first
    for first, kind, widths in ((0xC4, _BIN, (1, 2, 4)), (0xD9, _STR, (1, 2, 4)), (0xDC, _ARRAY, (2, 4)),
                                (0xDE, _MAP, (2, 4))):  # fmt: skip
        for byte, width in enumerate(widths, first):
            kinds[byte], headers[byte], lengths[byte] = kind, 1 + width, _READ_LENGTH
    for first, widths in ((0xCA, (4, 8)), (0xCC, (1, 2, 4, 8)), (0xD0, (1, 2, 4, 8))):
        for byte, width in enumerate(widths, first):
            kinds[byte], headers[byte] = _WIDE, 1 + width
    for byte in (0xCA, 0xCB, 0xCF):
        kinds[byte] = _NUMBER
    for byte in (0xC7, 0xC8, 0xC9, 0xD4, 0xD5, 0xD6, 0xD7, 0xD8):
        kinds[byte] = _EXT
    kinds[0xC1] = _NEVER
    return bytes(kinds), bytes(headers), tuple(lengths)


_KIND, _HEADER, _LENGTH = _token_tables()


class _KeyRuns:
    """The keys of one huge map, as sorted runs of 64-bit hashes: 8 bytes a key, where a set takes about 100.

    Two different keys of one map are taken for the same with a chance of about n² / 2⁶⁵.
    """

    def __init__(self) -> None:
        self._open: set[int] = set()
        self._runs: list[array[int]] = []

    def __contains__(self, key: bytes) -> bool:
        return hash(key) in self._open

    def add(self, key: bytes) -> None:
        self._open.add(hash(key))
        if len(self._open) == _KEYS_IN_A_SET:
            self._runs.append(array("q", sorted(self._open)))
            self._open.clear()

    def repeated(self) -> bool:
        """Whether two runs share a key; within one run `in` has already told."""
        return any(left == right for left, right in pairwise(merge(*self._runs, sorted(self._open))))


type_of_keys = set[bytes] | _KeyRuns
