"""Writing the bitmaps of common words, and comparing them with the recall index."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from beetle.contracts.codec import unpack_json
from beetle.named_tuple import NamedTuple
from beetle.store.engine.transaction import Reading, Writing
from beetle.store.index_tail import MARKED
from beetle.store.index_terms import VOCABULARY, vocabulary
from beetle.store.row_sets import PLANES, bitmap
from beetle.store.verify import INDEX, Finding
from beetle.store.word_bitmaps import (
    PLACE_BITS,
    SCOPE,
    block_bytes,
    block_of,
    drop,
    first_of,
    packed,
    unpacked,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

COMMON = 128
"""A word is common that at least such a part of all rows holds. A list of fewer rows is kept as an array."""
MOST_WORDS = 1_024
LONGEST = 64
"""Characters of a word that is kept."""

LAST_SQL = f"SELECT min({MARKED}, (SELECT coalesce(max(message), 0) FROM message))"  # noqa: S608 - our own text
"""The last message that the index has taken in. New ones come behind what the store says of that: where it does not say
it, no block is full."""
MARKED_SQL = f"SELECT place >> {PLACE_BITS}, rows FROM word_bitmap WHERE word = ''"  # noqa: S608 - our own text
MARK_SQL = "INSERT INTO word_bitmap VALUES (?, '', ?)"
ADD_SQL = "INSERT INTO word_bitmap VALUES (?, ?, ?)"
DONE_SQL = "UPDATE word_bitmap SET rows = ? WHERE place = ? AND word = '' AND rows = ?"
TERMS_SQL = f"""
SELECT term, col = 'scope' FROM {VOCABULARY} WHERE doc >= ? AND length(term) <= ? ORDER BY doc DESC LIMIT ?
"""  # noqa: S608 - our own text
ALL_ROWS_SQL = "SELECT count(*) FROM recall_index_docsize"
ROWS_SQL = "SELECT json_group_array(rowid) FROM recall_index WHERE recall_index MATCH ? AND rowid >= ? AND rowid < ?"
EVERY_SQL = "SELECT place, word, rows FROM word_bitmap ORDER BY place"

COUNT_BYTES = 4
"""What the mark of a block holds when its bitmaps are there: how many, in so many bytes. Before, it holds a token."""


class Unlisted(NamedTuple):
    """Full blocks that have no bitmaps, and the words that are common now."""

    blocks: list[int]
    words: list[str]


def unlisted(tx: Reading) -> Unlisted:
    """What is to be written."""
    whole = {block for block, rows in tx.rows(MARKED_SQL) if _is_count(rows)}
    blocks = [block for block in range(block_of(tx.value(LAST_SQL) + 1)) if block not in whole]
    return Unlisted(blocks, _common(tx) if blocks else [])


def _common(tx: Reading) -> list[str]:
    # Words that no query looks for are among them: other forms of theirs are looked for, as "doing" is for "do".
    least = tx.value(ALL_ROWS_SQL) // COMMON + 1
    with vocabulary(tx, "col"):
        terms = list(tx.rows(TERMS_SQL, least, LONGEST, MOST_WORDS))
    return list(dict.fromkeys(f"{SCOPE}{term}" if of_scope else term for term, of_scope in terms))


def expression_of(word: str) -> str:
    """What finds the rows of a word as bitmaps name it."""
    column, term = ("scope", word.removeprefix(SCOPE)) if word.startswith(SCOPE) else ("text names time", word)
    return "{" + column + '} : "' + term.replace('"', '""') + '"'


def begin(tx: Writing, block: int, token: bytes) -> None:
    """Mark a block of which bitmaps are made: whatever changes it drops the mark.

    Args:
        token: another one each time, of more than `COUNT_BYTES`.
    """
    drop(tx, (block,))
    tx.run(MARK_SQL, block << PLACE_BITS, token)


def made(tx: Reading, block: int, words: Sequence[str], look: Callable[[], None]) -> list[tuple[int, str, bytes]]:
    """The bitmaps of a block, as rows of their table; `look` is called between two."""
    rows: list[tuple[int, str, bytes]] = []
    for word in words:
        look()
        if bits := bits_of(tx, block, word):
            place = block << PLACE_BITS | len(rows) + 1
            rows.append((place, word, packed(place, word, bits)))
    return rows


def bits_of(tx: Reading, block: int, word: str) -> bytes | None:
    """The messages of a block that hold a word, as the index has them; None for none."""
    found = unpack_json(tx.value(ROWS_SQL, expression_of(word), first_of(block), first_of(block + 1)))
    messages = [row for row in found if not row & PLANES]
    return bitmap(messages, first_of(block)).to_bytes(block_bytes(), "little") if messages else None


def end(tx: Writing, block: int, token: bytes, rows: Sequence[tuple[int, str, bytes]]) -> bool:
    """Write the bitmaps of a block, unless it was changed since `begin`; whether they are written."""
    before = tx.connection.total_changes()
    tx.run(DONE_SQL, _count(len(rows)), block << PLACE_BITS, token)
    if tx.connection.total_changes() == before:
        return False
    for row in rows:
        tx.run(ADD_SQL, *row)
    return True


def wrong(tx: Reading, look: Callable[[], None]) -> Iterator[tuple[int, Finding]]:
    """Blocks with bitmaps that are not what the index has, and what is found; `look` is called between two."""
    marks: dict[int, object] = {}
    counts: Counter[int] = Counter()
    for place, word, rows in tx.rows(EVERY_SQL):
        look()
        block = place >> PLACE_BITS
        if word == "" and place == block << PLACE_BITS:
            marks[block] = rows
            continue
        counts[block] += 1
        if (bits := unpacked(place, word, rows)) is None:
            yield block, _found(place, "is damaged")
        elif bits != (bits_of(tx, block, word) or bytes(block_bytes())):
            yield block, _found(place, "does not hold the rows that the index has of its word")
    for block in sorted({*marks, *counts}):
        mark = marks.get(block)
        if mark != _count(counts[block]) and (counts[block] or _is_count(mark) or not isinstance(mark, bytes)):
            yield block, _found(block << PLACE_BITS, f"does not say that there are {counts[block]} bitmaps behind it")


def _found(place: int, problem: str) -> Finding:
    return Finding(INDEX, f"word_bitmap {place}", problem)


def _count(bitmaps: int) -> bytes:
    return bitmaps.to_bytes(COUNT_BYTES, "little")


def _is_count(mark: object) -> bool:
    return isinstance(mark, bytes) and len(mark) == COUNT_BYTES
