"""Which messages hold a common word, as bitmaps that are kept beside the recall index.

FTS5 reads the rows of a word one by one, and each becomes a bit: 170 ns a row, for every word that was not asked for
since the daemon began. Of what is common among many messages the bits are on disk: a block of 32,768 messages has a
row with each such word, which `common_words` writes at night. What a block has no row of is read from FTS5, as are
messages of blocks that are not full, and other planes.

A block's rows hold as long as none of its messages comes into the index or leaves it. The transaction that changes one
drops them all, so that nothing here tells of a message that is masked or erased, and none is missing. New messages come
behind all that the index has taken in, and so behind every block that is full.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import TYPE_CHECKING

import apsw

from beetle.named_tuple import NamedTuple
from beetle.store.engine.transaction import Reading, Writing
from beetle.store.indexed import PLANE_BITS
from beetle.store.row_sets import KEY_BITS, Dense, dense_of

if TYPE_CHECKING:
    from collections.abc import Sequence

BLOCK_KEY_BITS = 15
"""Of the number of a message, those that tell messages of one block apart."""
MOST_BLOCKS = 4_096
"""Of the blocks behind there are no bitmaps: what a damaged number of one asks for stays small."""
PLACE_BITS = 32
"""Of a place, those that are a sum of its word."""
LONGEST = 64
"""Characters of a word that has bitmaps."""
SUM_BYTES = 4
SCOPE = " "
"""Begins the name of a token of `scope`. No word of a text has it."""
RAW_DEFLATE = -15

ROWS_SQL = f"""
WITH RECURSIVE block (block) AS (SELECT 0 UNION ALL SELECT block + 1 FROM block WHERE block + 1 < ?)
SELECT b.place, b.word, b.rows FROM block CROSS JOIN word_bitmap b ON b.place = block.block << {PLACE_BITS} | ?
"""  # noqa: S608 - our own text
LAST_SQL = "SELECT coalesce(max(place), 0) FROM word_bitmap WHERE place < ?"
DROP_SQL = "DELETE FROM word_bitmap WHERE place BETWEEN ? AND ?"
OUTSIDE_SQL = "DELETE FROM word_bitmap WHERE place < 0 OR place >= ?"
CLEAR_SQL = "DELETE FROM word_bitmap"


class Listed(NamedTuple):
    """Messages that hold a word, as far as bitmaps say; of the rows of `ranges`, each behind one row and up to another,
    they say nothing, and nothing of those behind the row `last`."""

    rows: Dense
    ranges: Sequence[tuple[int, int]]
    last: int


def block_of(message: int) -> int:
    """The block of a message."""
    return message >> BLOCK_KEY_BITS


def first_of(block: int) -> int:
    """The row of the first message of a block."""
    return block << BLOCK_KEY_BITS + PLANE_BITS


def block_bytes() -> int:
    """Bytes of a bitmap."""
    return 1 << BLOCK_KEY_BITS - 3


def mark_of(block: int) -> int:
    """Where the mark of a block stands, before all of its bitmaps."""
    return block << PLACE_BITS


def place_of(block: int, word: str) -> int:
    """Where the bitmap of a word stands; of two words that have one place, the first that comes has it."""
    return mark_of(block) | max(1, zlib.crc32(word.encode()))


def listed(tx: Reading, word: str) -> Listed | None:
    """What the bitmaps of a word say, None where it has none.

    A damaged one says nothing: its rows are read from the index.
    """
    try:
        last: int = tx.value(LAST_SQL, mark_of(MOST_BLOCKS))
        found = list(tx.rows(ROWS_SQL, (last >> PLACE_BITS) + 1, place_of(0, word)))
    except apsw.CorruptError:
        return None
    blocks: dict[int, bytes] = {}
    for place, named, packed in found:
        if named == word and (bits := unpacked(place, word, packed)) is not None:
            blocks[place >> PLACE_BITS] = bits
    if not blocks:
        return None
    ranges: list[tuple[int, int]] = []
    after = 0
    for block in blocks:
        if block > after:
            ranges.append((first_of(after) - 1, first_of(block) - 1))
        after = block + 1
    return Listed(_joined(blocks), ranges, first_of(after) - 1)


def _joined(blocks: dict[int, bytes]) -> Dense:
    tiles: dict[int, bytearray] = {}
    for block, bits in blocks.items():
        tile, inside = divmod(block << BLOCK_KEY_BITS, 1 << KEY_BITS)
        whole = tiles.setdefault(tile << PLANE_BITS, bytearray(1 << KEY_BITS - 3))
        whole[inside >> 3 : (inside >> 3) + len(bits)] = bits
    return dense_of({tile: int.from_bytes(whole, "little") for tile, whole in tiles.items()})


def packed(place: int, word: str, bits: bytes) -> bytes:
    """A bitmap as it is stored: its sum, with what it is of, and raw deflate (RFC 1951)."""
    deflate = zlib.compressobj(wbits=RAW_DEFLATE)
    return _sum(place, word, bits) + deflate.compress(bits) + deflate.flush()


def unpacked(place: int, word: object, packed: object) -> bytes | None:
    """A bitmap of what is stored, None where that is damaged."""
    if not isinstance(packed, bytes) or not isinstance(word, str) or len(word) > LONGEST + len(SCOPE) or "\0" in word:
        return None
    size = block_bytes()
    try:
        bits = zlib.decompressobj(wbits=RAW_DEFLATE).decompress(packed[SUM_BYTES:], size + 1)
    except zlib.error:
        return None
    return bits if len(bits) == size and _sum(place, word, bits) == packed[:SUM_BYTES] else None


def _sum(place: int, word: str, bits: bytes) -> bytes:
    return zlib.crc32(bits, zlib.crc32(f"{place} {word}".encode())).to_bytes(SUM_BYTES, "little")


def drop(tx: Writing, blocks: Iterable[int]) -> None:
    """Drop what is kept of blocks: a message of theirs has come into the index or has left it. Others have nothing."""
    for block in sorted(blocks):
        if 0 <= block < MOST_BLOCKS:
            tx.run(DROP_SQL, mark_of(block), mark_of(block + 1) - 1)


def drop_outside(tx: Writing) -> None:
    """Drop what stands where no bitmap may."""
    tx.run(OUTSIDE_SQL, mark_of(MOST_BLOCKS))


def clear(tx: Writing) -> None:
    """Drop all: the index is emptied."""
    tx.run(CLEAR_SQL)
