"""Whether FTS5 finds every term of the recall index: the marks by which it finds a page stand where the terms do.

SQLite's own checks follow the marks to their pages, and miss a page that no mark leads to.
"""

from __future__ import annotations

from collections.abc import Iterator

from beetle.store.engine.transaction import Reading
from beetle.store.indexed import varint

SEGMENT_BITS = 37
"""A page of FTS5's data table has the number segment << 37 | page."""
PAGES_SQL = f"SELECT id, block FROM recall_index_data WHERE id >= 1 << {SEGMENT_BITS} ORDER BY id"  # noqa: S608 - our own text
MARKS_SQL = """
SELECT segid, pgno >> 1, term FROM recall_index_idx
WHERE typeof(segid) = 'integer' AND typeof(pgno) = 'integer' AND typeof(term) = 'blob' ORDER BY segid, term
"""
LEAF = 63 << 31
"""Bits that are set in the numbers of all other pages."""
PAGE = (1 << 31) - 1


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
