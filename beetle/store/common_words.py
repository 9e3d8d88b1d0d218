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
from beetle.store.indexed import PLANE_BITS, tokens_of
from beetle.store.row_sets import PLANES, bitmap, numbers
from beetle.store.verify import INDEX, Finding
from beetle.store.word_bitmaps import (
    LONGEST,
    MOST_BLOCKS,
    PLACE_BITS,
    SCOPE,
    block_bytes,
    block_of,
    drop,
    first_of,
    mark_of,
    packed,
    place_of,
    unpacked,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

COMMON = 128
"""A word is common that at least such a part of all rows holds. A list of fewer rows is kept as an array."""
MOST_WORDS = 1_024
WORDS_AT_ONCE = 16
"""Words that are read in one transaction: without a write-ahead log a writer waits for it."""

LAST_SQL = f"SELECT min({MARKED}, (SELECT coalesce(max(message), 0) FROM message))"  # noqa: S608 - our own text
"""The last message that the index has taken in. New ones come behind what the store says of that: where it does not say
it, no block is full."""
HAS_MESSAGES_SQL = "SELECT EXISTS (SELECT 1 FROM message WHERE message BETWEEN ? AND ?)"
MARK_OF_SQL = "SELECT rows FROM word_bitmap WHERE place = ?"
MARK_SQL = "INSERT INTO word_bitmap VALUES (?, '', ?)"
ADD_SQL = "INSERT OR IGNORE INTO word_bitmap VALUES (?, ?, ?)"
DONE_SQL = "UPDATE word_bitmap SET rows = ? WHERE place = ? AND word = '' AND rows = ?"
TERMS_SQL = f"""
SELECT term, col = 'scope' FROM {VOCABULARY}
WHERE doc >= ? AND length(term) <= {LONGEST} AND instr(term, char(0)) = 0 AND (col <> 'scope' OR term GLOB 's[0-9]*')
ORDER BY doc DESC LIMIT ?
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
    blocks = [block for block in range(min(MOST_BLOCKS, block_of(tx.value(LAST_SQL) + 1))) if _lacks_bitmaps(tx, block)]
    return Unlisted(blocks, _common(tx) if blocks else [])


def _lacks_bitmaps(tx: Reading, block: int) -> bool:
    first, last = first_of(block) >> PLANE_BITS, (first_of(block + 1) >> PLANE_BITS) - 1
    return not _is_count(tx.value(MARK_OF_SQL, mark_of(block))) and tx.value(HAS_MESSAGES_SQL, first, last) == 1


def _common(tx: Reading) -> list[str]:
    # Words that no query looks for are among them: other forms of theirs are looked for, as "doing" is for "do".
    least = tx.value(ALL_ROWS_SQL) // COMMON + 1
    with vocabulary(tx, "col"):
        terms = list(tx.rows(TERMS_SQL, least, MOST_WORDS))
    words = dict.fromkeys(f"{SCOPE}{term}" if of_scope else term for term, of_scope in terms)
    return [word for word in words if _can_be_sought(tx, word)]


def _can_be_sought(tx: Reading, word: str) -> bool:
    """Whether the term itself is looked for by its name. FTS5 makes a term of what it looks for, and of some terms
    another one: "focused" is the term "focus", which it would take for "focu", the term of "focus"."""
    term = word.removeprefix(SCOPE)
    return tokens_of(tx, term) == [term]


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
    tx.run(MARK_SQL, mark_of(block), token)


def made(tx: Reading, block: int, words: Sequence[str]) -> list[tuple[int, str, bytes]]:
    """The bitmaps of words in a block, as rows of their table."""
    found = ((place_of(block, word), word, bits_of(tx, block, word)) for word in words)
    return [(place, word, packed(place, word, bits)) for place, word, bits in found if bits]


def bits_of(tx: Reading, block: int, word: str) -> bytes | None:
    """The messages of a block that hold a word, as the index has them; None for none."""
    found = unpack_json(tx.value(ROWS_SQL, expression_of(word), first_of(block), first_of(block + 1)))
    messages = numbers((row for row in found if not row & PLANES), first_of(block + 1))
    return bitmap(messages, first_of(block)).to_bytes(block_bytes(), "little") if messages else None


def end(tx: Writing, block: int, token: bytes, rows: Sequence[tuple[int, str, bytes]]) -> bool:
    """Write the bitmaps of a block, unless it was changed since `begin`; whether they are written."""
    first_come = {place: (place, word, bits) for place, word, bits in reversed(rows)}
    before = tx.connection.total_changes()
    tx.run(DONE_SQL, _count(len(first_come)), mark_of(block), token)
    if tx.connection.total_changes() == before:
        return False
    for row in first_come.values():
        tx.run(ADD_SQL, *row)
    return True


def wrong(tx: Reading, look: Callable[[], None]) -> Iterator[tuple[int, Finding]]:
    """Blocks with bitmaps that are not what the index has, and what is found; `look` is called between two. Of what
    stands where no bitmap may the block is none of them."""
    marks: dict[int, object] = {}
    counts: Counter[int] = Counter()
    for place, word, rows in tx.rows(EVERY_SQL):
        look()
        block = place >> PLACE_BITS
        if not 0 <= block < MOST_BLOCKS:
            yield block, _found(place, "stands where no bitmap may")
        elif place == mark_of(block):
            marks[block] = rows if word == "" else None
        elif (bits := unpacked(place, word, rows)) is None or not _may_stand_at(tx, place, word):
            counts[block] += 1
            yield block, _found(place, "is damaged")
        else:
            counts[block] += 1
            if bits != (bits_of(tx, block, word) or bytes(block_bytes())):
                yield block, _found(place, "does not hold the rows that the index has of its word")
    for block in sorted({*marks, *counts}):
        mark = marks.get(block)
        if mark != _count(counts[block]) and (counts[block] or _is_count(mark) or not isinstance(mark, bytes)):
            yield block, _found(mark_of(block), f"does not say that there are {counts[block]} bitmaps behind it")


def _may_stand_at(tx: Reading, place: int, word: str) -> bool:
    return place == place_of(place >> PLACE_BITS, word) and _can_be_sought(tx, word)


def _found(place: int, problem: str) -> Finding:
    return Finding(INDEX, f"word_bitmap {place}", problem)


def _count(bitmaps: int) -> bytes:
    return bitmaps.to_bytes(COUNT_BYTES, "little")


def _is_count(mark: object) -> bool:
    return isinstance(mark, bytes) and len(mark) == COUNT_BYTES
