"""What FTS5 has written of the recall index into its own tables, and whether it can find its terms by that.

SQLite's own checks follow the marks by which FTS5 finds a page, and miss a page that no mark leads to.
"""

from __future__ import annotations

from collections.abc import Iterator

import apsw

from beetle.contracts.errors import IntegrityViolation
from beetle.named_tuple import NamedTuple
from beetle.store.engine.transaction import Reading
from beetle.store.indexed import varint

SEGMENT_BITS = 37
"""A page of FTS5's data table has the number segment << 37 | page."""
PAGES_SQL = f"SELECT id, block FROM recall_index_data WHERE id >= 1 << {SEGMENT_BITS} ORDER BY id"  # noqa: S608 - our own text
MARKS_SQL = """
SELECT segid, pgno >> 1, term FROM recall_index_idx
WHERE typeof(segid) = 'integer' AND typeof(pgno) = 'integer' AND typeof(term) = 'blob' ORDER BY segid, term
"""
VERSION_SQL = "SELECT v FROM recall_index_config WHERE k = 'version'"
VERSIONS = (4, 5)
"""What FTS5 reads: an index, and one of which `secure-delete` has taken something out."""
TOTALS_SQL = "SELECT block FROM recall_index_data WHERE id = 1"
ROWS_SQL = "SELECT count(*) FROM recall_index_docsize"
STRUCTURE_SQL = "SELECT block FROM recall_index_data WHERE id = 10"
SECOND_FORM = b"\xff\x00\x00\x01"
"""Stands behind the cookie when each segment has five more numbers."""
LEAF = 63 << 31
"""Bits that are set in the numbers of all other pages."""
PAGE = (1 << 31) - 1


class Level(NamedTuple):
    """Segments of a level: how many there are, and how many of them go into a merge that has begun."""

    merging: int
    segments: int


def levels_of(tx: Reading) -> list[Level]:
    """The levels of the index, the newest first.

    The structure record of FTS5 (fts5_index.c, "Structure record"): a cookie of four bytes, then the numbers of levels,
    of segments and of writes, then for each level the segments that are being merged and those it has, and of each of
    these the id, the first and the last page.

    Raises:
        IntegrityViolation: the record is damaged.
    """
    record = tx.value(STRUCTURE_SQL)
    try:
        return _levels(record)
    except (IndexError, TypeError):
        reason = "the recall index does not say of what it is made"
        raise IntegrityViolation(reason=reason, hint="`beetle memory recover` makes it anew") from None


def is_readable(tx: Reading) -> bool:
    """Whether FTS5 can read how the index is written: its version, and of what it is made."""
    try:
        return tx.value(VERSION_SQL) in VERSIONS and levels_of(tx) is not None
    except (apsw.CorruptError, IntegrityViolation):
        return False


def are_counted(tx: Reading) -> bool:
    """Whether FTS5 knows how many rows it has: it takes none out of fewer than those."""
    totals = tx.value(TOTALS_SQL)
    try:
        rows = varint(totals, 0)[0] if totals else 0
    except (IndexError, TypeError):
        return False
    return isinstance(totals, bytes) and rows == tx.value(ROWS_SQL)


def _levels(record: bytes) -> list[Level]:
    second = record[4:8] == SECOND_FORM
    levels, at = varint(record, 8 if second else 4)
    for _ in range(2):
        _, at = varint(record, at)
    found: list[Level] = []
    for _ in range(levels):
        merging, at = varint(record, at)
        segments, at = varint(record, at)
        for _ in range(segments * (8 if second else 3)):
            _, at = varint(record, at)
        found.append(Level(merging, segments))
    return found


def first_term(page: bytes | None) -> bytes | None:
    """The first term that begins on a leaf page of FTS5, which stands there whole; None where none does."""
    return next(_terms(page), None) if page is not None else None


def are_marked(tx: Reading) -> bool:
    """Whether each page on which a term begins has its mark, behind the terms before it and not behind its own."""
    marks = tx.rows(MARKS_SQL)
    segment, last = -1, b""
    for number, block in tx.rows(PAGES_SQL):
        if number & LEAF:
            continue
        if number >> SEGMENT_BITS != segment:
            segment, last = number >> SEGMENT_BITS, b""
        if not isinstance(block, bytes):
            return False
        try:
            terms = list(_terms(block))
        except IndexError:
            return False
        if not terms:
            continue
        # A page that lost its terms may keep its mark: FTS5 goes on to the next one.
        place = (segment, number & PAGE)
        mark = next((each for each in marks if (each[0], each[1]) >= place), None)
        if mark is None or (mark[0], mark[1]) != place or not (last < mark[2] or not last) or mark[2] > terms[0]:
            return False
        last = terms[-1]
    return True


def _terms(page: bytes) -> Iterator[bytes]:
    """The terms that begin on a leaf page (fts5_index.c, "Segment leaf nodes"). Behind the first one, each says how
    many bytes of the one before it begins with."""
    at = int.from_bytes(page[2:4], "big")
    offset, term = 0, b""
    while at < len(page):
        step, at = varint(page, at)
        shared, start = (0, offset + step) if not offset else varint(page, offset + step)
        offset += step
        size, start = varint(page, start)
        term = term[:shared] + page[start : start + size]
        yield term
