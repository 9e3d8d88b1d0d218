"""Sets of rows of the recall index, as arrays where they are few and as bitmaps where they are many.

A bitmap is a Python integer: the interpreter joins two of them at the speed of memory, a thousand times faster than it
goes over rows. Each is of the rows of one plane and of keys that lie together, a tile, so that what is made in between
stays small and a list that grows shares all but its newest tile with the one before.
"""

from __future__ import annotations

import re
import sys
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from beetle.store.indexed import PLANE_BITS

SHORT = 2**32
"""Rows below it take four bytes."""
KEY_BITS = 19
"""Of the keys of one tile: 70 KB, below what the C library gives and takes back as pages of its own each time."""
TILE_BITS = PLANE_BITS + KEY_BITS
PLANES = (1 << PLANE_BITS) - 1
DENSE = 128
"""A list is a bitmap where it holds at least such a part of the keys up to its last one. It takes four times as many
bytes as an array there, and a tenth of the time to make use of."""
TILE_BYTES = 128
"""What a tile takes beside its bits."""
SINGLY = 8
"""Rows of a bitmap that are taken out one by one before all that are left are looked for."""

LOOKED_THROUGH = 512
"""Bytes of a bitmap that are looked through for rows, where any stand in them."""

_BIT = bytes(1 << (byte >> PLANE_BITS & 7) for byte in range(256))
_PLANE = bytes(byte & PLANES for byte in range(256))
_NONE = bytes(LOOKED_THROUGH)
_SET = re.compile(rb"[^\0]")
_PLACES = tuple(tuple(place for place in range(7, -1, -1) if byte >> place & 1) for byte in range(256))

if TYPE_CHECKING:
    Numbers = array[int]

Tiles = Mapping[int, int]
"""Bitmaps by the number of their tile: its first key, without its lowest bits, and its plane."""


class Dense:
    """Many rows. Nothing of it changes."""

    __slots__ = ("_count", "tiles")

    def __init__(self, tiles: Tiles, count: int) -> None:
        self.tiles = tiles
        self._count = count

    def __len__(self) -> int:
        return self._count

    @property
    def bytes(self) -> int:
        """What it takes."""
        return sum(sys.getsizeof(bits) + TILE_BYTES for bits in self.tiles.values())


if TYPE_CHECKING:
    Rows = Dense | Sequence[int]
    """In ascending order, where they are no bitmap."""


def numbers(rows: Iterable[int], most: int) -> Numbers:
    """An array of rows, of which `most` is the highest."""
    return array("Q" if most >= SHORT else "I", rows)


def without_plane(rows: Numbers, plane: int) -> Numbers:
    """The rows but for those of a plane; of a negative one, which none has, all."""
    if plane < 0 or plane not in _planes(rows):
        return rows
    return array(rows.typecode, [row for row in rows if row & PLANES != plane])


def _planes(rows: Numbers) -> bytes:
    """The plane of each row."""
    return _lowest(rows).translate(_PLANE)


def _lowest(rows: Numbers) -> bytes:
    """The lowest byte of each row: its plane and the place of its key among eight. No row is an object so."""
    at = 0 if sys.byteorder == "little" else rows.itemsize - 1
    return rows.tobytes()[at :: rows.itemsize]


def kept(rows: Dense | Numbers, breathe: Callable[[], None] | None = None) -> Dense | Numbers:
    """The rows in the form in which they are kept."""
    if isinstance(rows, Dense):
        ends = [((tile >> PLANE_BITS) << KEY_BITS) + bits.bit_length() for tile, bits in rows.tiles.items()]
        if len(rows) * DENSE >= max(ends, default=0):
            return rows
        every = sorted(row for tile, bits in rows.tiles.items() for row in rows_in(tile, bits))
        return numbers(every, every[-1] if every else 0)
    if not rows or len(rows) * DENSE < rows[-1] >> PLANE_BITS:
        return rows
    return Dense(tiles_of(rows, breathe), len(rows))


def tiles_of(rows: Rows, breathe: Callable[[], None] | None = None) -> Tiles:
    """The rows as bitmaps.

    Args:
        breathe: called between two tiles, and may wait.
    """
    if isinstance(rows, Dense):
        return rows.tiles
    tiles: dict[int, int] = {}
    first = 0
    while first < len(rows):
        place = rows[first] >> TILE_BITS
        end = bisect_left(rows, (place + 1) << TILE_BITS, first)
        part = numbers(rows[first:end], rows[end - 1])
        planes = _planes(part)
        for plane in set(planes):
            whole = planes.count(plane) == len(part)
            same = part if whole else array(part.typecode, [row for row in part if row & PLANES == plane])
            tiles[place << PLANE_BITS | plane] = bitmap(same, place << TILE_BITS)
        first = end
        if breathe is not None:
            breathe()
    return tiles


def bitmap(rows: Numbers, start: int = 0) -> int:
    """Rows of one plane, in ascending order, as bits by their keys; `start` is the first row that has a bit."""
    to_byte = PLANE_BITS + 3
    bits = bytearray((rows[-1] - start >> to_byte) + 1)
    for row, bit in zip(rows, _lowest(rows).translate(_BIT), strict=True):
        bits[row - start >> to_byte] |= bit
    return int.from_bytes(bits, "little")


def with_rows(rows: Dense, fresh: Sequence[int]) -> Dense:
    """The rows and fresh ones, in ascending order."""
    tiles, count = dict(rows.tiles), len(rows)
    for tile, bits in tiles_of(fresh).items():
        before = tiles.get(tile, 0)
        count += (bits ^ (bits & before)).bit_count()
        tiles[tile] = before | bits
    return Dense(tiles, count)


def without_rows(rows: Dense, gone: Rows) -> Dense:
    """The rows but for some, which need not be among them."""
    tiles, count = dict(rows.tiles), len(rows)
    for tile, bits in tiles_of(gone).items():
        if held := bits & tiles.get(tile, 0):
            count -= held.bit_count()
            tiles[tile] ^= held
    return Dense(tiles, count)


def among(rows: Dense, others: Rows) -> Dense:
    """Those of the rows that are among the others."""
    held = tiles_of(others)
    return dense_of({tile: bits & held.get(tile, 0) for tile, bits in rows.tiles.items()})


def dense_of(tiles: Tiles) -> Dense:
    """The rows of some tiles."""
    return Dense(tiles, sum(bits.bit_count() for bits in tiles.values()))


def common(rows: Numbers, others: Rows) -> set[int]:
    """Some of the others, and all that are among the rows."""
    if not isinstance(others, Dense):
        return set(others)
    both = ((tile, bits & others.tiles.get(tile, 0)) for tile, bits in tiles_of(rows).items())
    return {row for tile, bits in both for row in rows_in(tile, bits)}


def after(rows: Dense | Numbers, plane: int, key: int) -> list[int]:
    """The rows of a plane behind a key, in any order."""
    if not isinstance(rows, Dense):
        return [row for row in rows if row & PLANES == plane and row >> PLANE_BITS > key]
    return [
        row
        for tile, bits in rows.tiles.items()
        if tile & PLANES == plane and tile >> PLANE_BITS >= key >> KEY_BITS
        for row in rows_in(tile, bits)
        if row >> PLANE_BITS > key
    ]


def rows_in(tile: int, bits: int) -> Iterator[int]:
    """The rows of a tile, the highest first."""
    start = (tile >> PLANE_BITS) << TILE_BITS | tile & PLANES
    return (start + (place << PLANE_BITS) for place in descending(bits))


def descending(bits: int) -> Iterator[int]:
    """The places of the bits that are set, the highest first."""
    for _ in range(SINGLY):
        if not bits:
            return
        highest = bits.bit_length() - 1
        yield highest
        bits ^= 1 << highest
    size = bits.bit_length() + 7 >> 3
    data = bits.to_bytes(size, "big")
    for start in range(0, size, LOOKED_THROUGH):
        part = data[start : start + LOOKED_THROUGH]
        if part == _NONE:
            continue  # the expression would take a hundred times as long to see that
        for found in _SET.finditer(part):
            at = found.start()
            low = size - 1 - start - at << 3
            for place in _PLACES[part[at]]:
                yield low + place
