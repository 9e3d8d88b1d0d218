"""The recall index behind a narrow interface: add, remove, search.

One FTS5 table over all planes. Rows are named by plane and the plane's own key, so no second table maps them. `scope`
holds tokens for space, conversation, plane and visibility, ANDed into a query: the postings of the scope are read, not
every row that matches the words.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

import apsw

from beetle.store.transaction import Reading, Row, Writing

PLANES: dict[str, int] = {"evidence": 0, "procedural": 1, "long_term": 2, "long_term_past": 3}
"""`long_term` holds the text of each current fact by the fact's key; `long_term_past` the texts that are current no
more, each by its own."""
PAST = "long_term_past"
PLANE_NAMES: dict[int, str] = {code: name for name, code in PLANES.items()}
PLANE_BITS = 4
LONG_WORD = 64
"""Bytes of a word beyond which its beginnings are not named one by one: their bytes grow with the square of it."""
MARK = 4
"""Bytes of a removed term that may stay in a mark: so much of it any other word may share."""
SEGMENT_BITS = 37
"""A page of FTS5's data table has the number segment << 37 | page."""

ADD_SQL = "INSERT INTO recall_index (rowid, text, names, time, scope) VALUES (?, ?, ?, ?, ?)"
REMOVE_SQL = """
INSERT INTO recall_index (recall_index, rowid, text, names, time, scope) VALUES ('delete', ?, ?, ?, ?, ?)
"""
HELD_SQL = "SELECT 1 FROM recall_index_docsize WHERE id = ?"
FLUSH_SQL = "INSERT INTO recall_index (recall_index) VALUES ('flush')"
MARKS_SQL = """
WITH RECURSIVE segment (segid) AS (
  SELECT min(segid) FROM recall_index_idx
  UNION ALL
  SELECT (SELECT min(segid) FROM recall_index_idx WHERE segid > segment.segid) FROM segment WHERE segid IS NOT NULL
)
SELECT i.segid, i.term, i.pgno >> 1 FROM segment s CROSS JOIN json_each(?) j
CROSS JOIN recall_index_idx i ON i.segid = s.segid AND i.term = unhex(j.value)
"""
LONG_MARKS_SQL = """
WITH RECURSIVE segment (segid) AS (
  SELECT min(segid) FROM recall_index_idx
  UNION ALL
  SELECT (SELECT min(segid) FROM recall_index_idx WHERE segid > segment.segid) FROM segment WHERE segid IS NOT NULL
)
SELECT i.segid, i.term, i.pgno >> 1 FROM segment s
CROSS JOIN recall_index_idx i ON i.segid = s.segid AND i.term BETWEEN ? AND ?
"""
PAGE_SQL = "SELECT block FROM recall_index_data WHERE id = ?"
REMARK_SQL = "UPDATE recall_index_idx SET term = ? WHERE segid = ? AND term = ?"
SEARCH_SQL = """
SELECT rowid, -bm25(recall_index, ?, ?, ?, 0.0) AS score FROM recall_index
WHERE recall_index MATCH ? AND rowid & 15 <> ? ORDER BY score DESC, rowid LIMIT ?
"""
SEARCH_BETWEEN_SQL = """
SELECT f.rowid, -bm25(recall_index, ?1, ?2, ?3, 0.0) AS score FROM recall_index f
WHERE recall_index MATCH ?4 AND CASE f.rowid & 15
  WHEN 0 THEN EXISTS (SELECT 1 FROM message WHERE message = f.rowid >> 4 AND at BETWEEN ?5 AND ?6)
  WHEN 1 THEN EXISTS (SELECT 1 FROM skill WHERE skill = f.rowid >> 4 AND updated_at >= ?5 AND created_at <= ?6)
  WHEN 2 THEN EXISTS (
    SELECT 1 FROM fact t JOIN fact_revision n ON n.fact = t.fact AND n.revision = t.revision
    JOIN fact_revision v ON v.body = n.body
    WHERE t.fact = f.rowid >> 4 AND (SELECT min(valid_from) FROM fact_revision WHERE body = n.body) BETWEEN ?5 AND ?6
      AND (?7 IS NULL OR (v.state = 'current' AND v.valid_from <= ?7 AND (v.valid_until IS NULL OR v.valid_until > ?7)))
  )
  ELSE EXISTS (
    SELECT 1 FROM fact_revision v
    WHERE v.body = f.rowid >> 4 AND (SELECT min(valid_from) FROM fact_revision WHERE body = v.body) BETWEEN ?5 AND ?6
      AND v.state = 'current' AND v.valid_from <= ?7 AND (v.valid_until IS NULL OR v.valid_until > ?7)
  )
END
ORDER BY score DESC, f.rowid LIMIT ?8
"""
MATCHING_SQL = "SELECT rowid FROM recall_index WHERE recall_index MATCH ? AND rowid & 15 <> ? ORDER BY rowid"
SPACES_SQL = "SELECT count(*) FROM (SELECT 1 FROM space LIMIT 2)"

Fields = tuple[str, str, str]
"""text, names, time."""


HASH_BYTES = {True: 128 * 1024, False: 1024 * 1024}
"""Memory for terms that a transaction has not flushed yet: little for the lean index, FTS5's own default otherwise."""
HASH_SQL = "SELECT v FROM recall_index_config WHERE k = 'hashsize'"
SET_HASH_SQL = "INSERT INTO recall_index (recall_index, rank) VALUES ('hashsize', ?)"


def tune(tx: Writing, lean: bool) -> None:
    """Fit the index's memory to the backend; the store remembers it, so it is written only when it changes."""
    found = tx.value(HASH_SQL)
    if found != HASH_BYTES[lean] and (lean or found is not None):
        tx.run(SET_HASH_SQL, HASH_BYTES[lean])


class Entry(NamedTuple):
    """What one index row is about. `conversation` None for planes that have none."""

    plane: str
    key: int
    space: int
    conversation: int | None
    visibility: str


class Found(NamedTuple):
    """One match; a higher score is better."""

    plane: str
    key: int
    score: float


class SearchScope(NamedTuple):
    """Where to look. `private` says whether private rows count; times are microseconds, both ends included.

    With `as_of` a fact counts by the text that was current then; without it, by the one that is current now.
    """

    space: int
    conversation: int | None = None
    private: bool = False
    planes: tuple[str, ...] | None = None
    since: int | None = None
    until: int | None = None
    as_of: int | None = None


def add(tx: Writing, entry: Entry, fields: Fields) -> None:
    """Index one record."""
    tx.run(ADD_SQL, _rowid(entry), *fields, _scope(entry))


def holds(tx: Reading, entry: Entry) -> bool:
    """Whether a record has its row."""
    return tx.value(HELD_SQL, _rowid(entry)) is not None


def remove(tx: Writing, entry: Entry, fields: Fields) -> None:
    """Take one record out, if it is in; `fields` must be exactly what was added, or terms of it stay behind."""
    if not holds(tx, entry):
        return  # while the index is made anew; taking out what is not there would break it
    tx.run(REMOVE_SQL, _rowid(entry), *fields, _scope(entry))
    _unmark(tx, fields)


def _unmark(tx: Writing, fields: Fields) -> None:
    """Take removed terms out of the marks by which FTS5 finds a page.

    A page of the index is found by the beginning of the first term that it held when it was written, as much of it as
    tells it from the term before: of a rare word, most or all. `secure-delete` takes the term off the page and leaves
    the mark. The first term that the page holds now serves as well: it comes behind all of the page before.
    """
    tokenizer = tx.connection.fts5_tokenizer("porter", ["unicode61", "remove_diacritics", "2"])
    words: set[str] = set()
    for text in fields:
        for found in tokenizer(text.encode(), apsw.FTS5_TOKENIZE_DOCUMENT, None, include_offsets=False):
            words.update(word for word in found if isinstance(word, str))
    removed = {word.encode() for word in words}
    if not _marks(tx, removed):
        return
    tx.run(FLUSH_SQL)
    # Looked for again: a flush may merge segments, and gives the numbers of those that are gone to the new ones.
    for segment, mark, page in _marks(tx, removed):
        first = _first_term(tx.value(PAGE_SQL, segment << SEGMENT_BITS | page))
        if first is not None and not first.startswith(mark):
            _remark(tx, first, segment, mark)


def _marks(tx: Writing, words: set[bytes]) -> list[Row]:
    """(segment, mark, page) of every mark that is the beginning of a word, or all of it.

    A mark is "0" and the term; what is shorter than a few letters tells nothing.
    """
    starts = {b"0" + word[:length] for word in words for length in range(MARK, min(len(word), LONG_WORD) + 1)}
    found = list(tx.rows(MARKS_SQL, json.dumps([start.hex() for start in starts])))
    for word in words:
        if len(word) > LONG_WORD:
            # What lies between a word's beginning and the word begins so too.
            between = tx.rows(LONG_MARKS_SQL, b"0" + word[: LONG_WORD + 1], b"0" + word)
            found += [row for row in between if (b"0" + word).startswith(row[1])]
    return found


def _remark(tx: Writing, first: bytes, segment: int, mark: bytes) -> None:
    # The tables behind an index are closed to SQL, and should be: this one update is the exception.
    tx.connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
    try:
        tx.run(REMARK_SQL, first, segment, mark)
    finally:
        tx.connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)


def _first_term(page: bytes | None) -> bytes | None:
    """The first term that begins on a leaf page of FTS5, which stands there whole; None where none does."""
    if page is None:
        return None
    end = int.from_bytes(page[2:4], "big")
    if end >= len(page):
        return None
    offset, _ = _varint(page, end)
    size, start = _varint(page, offset)
    return page[start : start + size]


def _varint(page: bytes, at: int) -> tuple[int, int]:
    """One of SQLite's variable-length integers of up to four bytes, and where it ends."""
    value = 0
    while True:
        value, at = value << 7 | page[at] & 0x7F, at + 1
        if page[at - 1] < 0x80:
            return value, at


def search(
    tx: Reading, expression: str, scope: SearchScope, weights: tuple[float, float, float], limit: int
) -> list[Found]:
    """The best `limit` matches of an FTS5 expression within the scope."""
    match = _match(tx, expression, scope)
    if scope.since is None and scope.until is None and scope.as_of is None:
        rows = tx.rows(SEARCH_SQL, *weights, match, _left_out(scope), limit)
    else:
        since = -(2**63) if scope.since is None else scope.since
        until = 2**63 - 1 if scope.until is None else scope.until
        rows = tx.rows(SEARCH_BETWEEN_SQL, *weights, match, since, until, scope.as_of, limit)
    return [Found(PLANE_NAMES[rowid & 15], rowid >> PLANE_BITS, score) for rowid, score in rows]


def matching(tx: Reading, expression: str, scope: SearchScope) -> Iterator[tuple[str, int]]:
    """(plane, key) of every match of an FTS5 expression within the planes that the scope names, unranked."""
    for (rowid,) in tx.rows(MATCHING_SQL, _match(tx, expression, scope), _left_out(scope)):
        yield PLANE_NAMES[rowid & 15], rowid >> PLANE_BITS


def _rowid(entry: Entry) -> int:
    return entry.key << PLANE_BITS | PLANES[entry.plane]


def _scope(entry: Entry) -> str:
    conversation = "" if entry.conversation is None else f" c{entry.conversation}"
    return f"s{entry.space}{conversation} p{PLANES[entry.plane]} v{entry.visibility}"


def _match(tx: Reading, expression: str, scope: SearchScope) -> str:
    """The expression within its scope.

    A token that every row carries is left out, since its postings cost time. What was current once is left out by its
    row number: NOT would cost FTS5 the scores of the words behind it (measured: a third of the right hits lost).
    """
    wanted: list[str] = []
    if tx.value(SPACES_SQL) > 1:
        wanted.append(f'"s{scope.space}"')
    if scope.conversation is not None:
        # Only evidence belongs to a conversation; the other planes stay in view.
        apart = " OR ".join(f'"p{code}"' for plane, code in PLANES.items() if plane != "evidence")
        wanted.append(f'("c{scope.conversation}" OR {apart})')
    if not scope.private:
        wanted.append('"vshared"')
    planes = _planes(scope)
    unwanted = set(PLANES) - planes
    if unwanted - {PAST}:
        wanted.append("(" + " OR ".join(f'"p{PLANES[p]}"' for p in sorted(planes, key=PLANES.__getitem__)) + ")")
    return f"({expression}) AND {{scope}} : (" + " AND ".join(wanted) + ")" if wanted else expression


def _left_out(scope: SearchScope) -> int:
    """The plane code whose rows do not count, or one that no row has."""
    return -1 if PAST in _planes(scope) else PLANES[PAST]


def _planes(scope: SearchScope) -> set[str]:
    """The planes to look through: what was current once comes with what is, but only for a time that is named."""
    asked = set(PLANES) - {PAST} if scope.planes is None else set(scope.planes) & set(PLANES)
    return asked | {PAST} if scope.as_of is not None and "long_term" in asked else asked
