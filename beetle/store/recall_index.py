"""The recall index behind a narrow interface: add, remove, search.

One FTS5 table over all planes. Rows are named by plane and the plane's own key, so no second table maps them. `scope`
holds tokens for space, conversation, plane and visibility, ANDed into a query: the postings of the scope are read, not
every row that matches the words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from itertools import chain, islice
from math import fsum, log
from typing import TYPE_CHECKING

import apsw

from beetle.contracts.codec import json_text, unpack_json
from beetle.contracts.errors import IntegrityViolation
from beetle.contracts.names import INDEX_CODES
from beetle.named_tuple import NamedTuple
from beetle.store import index_rebuild, postings, word_lists
from beetle.store.best_rows import rank, ranked
from beetle.store.engine.transaction import Reading, Row, Writing
from beetle.store.index_pages import SEGMENT_BITS, first_term
from beetle.store.index_rebuild import HASH_SQL, SET_HASH_SQL
from beetle.store.index_tail import PLANE, TailRow
from beetle.store.indexed import (
    ADD_SQL,
    FLUSH_SQL,
    PLANE_BITS,
    Entry,
    Fields,
    is_key,
    rowid_of,
    rows_between,
    scope_of,
    search_between,
    tokens_of,
    words_of,
)
from beetle.store.search_scope import SearchScope, both, left_out_of, parts_of
from beetle.store.word_lists import Term

NAMED: dict[int, str] = {code: name for name, code in INDEX_CODES.items()}
LONG_WORD = 64
"""Bytes of a word beyond which its beginnings are not named one by one: their bytes grow with the square of it."""
MARK = 4
"""Bytes of a removed term that may stay in a mark: so much of it any other word may share."""
PHRASE_ROWS = 2_048
"""Rows of both words of a phrase up to which the index is asked for the phrase. It goes through all of them: with more,
whoever reads the texts of the best rows looks for the phrase there."""
LOOKED_AT_FIRST = 256
LOOKED_AT = 7_424
"""Of so many of the best rows at most it is looked up whether they are of a time; where that promises too few, SQLite
looks at every row."""
LEAST_IDF = 1e-6
"""Of a word that half of the rows hold: it still counts, since it says that a row matches at all."""

REMOVE_SQL = """
INSERT INTO recall_index (recall_index, rowid, text, names, time, scope) VALUES ('delete', ?, ?, ?, ?, ?)
"""
TOUCH_INDEX_SQL = "SELECT rowid FROM recall_index WHERE recall_index MATCH 'x' LIMIT 1"
HELD_SQL = "SELECT 1 FROM recall_index_docsize WHERE id = ?"
HOLDING_SQL = """
SELECT count(*) FROM json_each(?1) j CROSS JOIN recall_index f WHERE f.recall_index MATCH j.value AND f.rowid = ?2
"""
SECURE_SQL = "INSERT INTO recall_index (recall_index, rank) VALUES ('secure-delete', ?)"
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
FIRST_SQL = """
SELECT json_group_array(rowid) FROM (
  SELECT rowid FROM recall_index WHERE recall_index MATCH ? AND rowid & 15 <> ? LIMIT ?
)
"""
LISTS_SQL = """
SELECT json_group_array(json(found)) FROM (
  SELECT (
    SELECT json_group_array(f.rowid) FROM recall_index f WHERE f.recall_index MATCH j.value AND f.rowid & 15 <> ?2
  ) AS found
  FROM json_each(?1) j
)
"""
MATCHING_SQL = "SELECT rowid FROM recall_index WHERE recall_index MATCH ? AND rowid & 15 <> ? ORDER BY rowid"

HASH_BYTES = {True: 128 * 1024, False: 1024 * 1024}
"""Memory for terms that a transaction has not flushed yet: little for the lean index, FTS5's own default otherwise."""


def tune(tx: Writing, lean: bool) -> None:
    """Fit the index's memory to the backend; the store remembers it, so it is written only when it changes."""
    found = tx.value(HASH_SQL)
    if found != HASH_BYTES[lean] and (lean or found is not None):
        tx.run(SET_HASH_SQL, HASH_BYTES[lean])


class IndexMatch(NamedTuple):
    """One match; a higher score is better."""

    plane: str
    key: int
    score: float


class Within(NamedTuple):
    """A time, from its first to its last moment in microseconds, and how many matches of it are wanted."""

    since: int
    until: int
    limit: int


class Found(NamedTuple):
    """The best matches, and what each phrase counts that was not looked for: as much as its words together.

    `within` is the best matches of a part of the time.
    """

    matches: list[IndexMatch]
    phrases: dict[str, float]
    within: Sequence[IndexMatch] = ()


def append(tx: Writing, entry: Entry, fields: Fields | None) -> None:
    """Index one new message, whose key is higher than that of every other; without fields the index is not to hold it.

    The index may take it in later, with others. Until then a search finds it apart.
    """
    values = None if fields is None else (rowid_of(entry), *fields, scope_of(entry))
    tx.index_later(TailRow(entry.key, values))


def add(tx: Writing, entry: Entry, fields: Fields) -> None:
    """Index one record."""
    row = rowid_of(entry)
    tx.index(ADD_SQL, row, *fields, scope_of(entry))
    tx.index_changed((row,))


def put_back(tx: Writing, entry: Entry, fields: Fields) -> None:
    """Index a record that lacks its row; what the index still has of it is taken out first.

    Raises:
        IntegrityViolation: that is not all of it, so that it cannot be taken out.
    """
    found = _terms_found(tx, entry, fields)
    if found:
        if found < len(_words(tx, fields)):
            raise _damaged(entry)
        _remove(tx, [(entry, fields)])
    add(tx, entry, fields)


def forget_unwritten(connection: apsw.Connection) -> None:
    """Have FTS5 forget what it counted in a transaction that SQLite undid in the middle of a statement of the index.

    Where the disk refuses while it reads how many rows and words there are, it goes on with zeros: a rollback of its
    own, which it hears of between two statements, has it read them again.
    """
    try:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(FLUSH_SQL)
    except apsw.Error:
        pass  # it has rolled back
    if connection.in_transaction:
        connection.execute("ROLLBACK")


def holds(tx: Reading, entry: Entry) -> bool:
    """Whether a record has its row."""
    return is_key(entry.key) and tx.value(HELD_SQL, rowid_of(entry)) is not None


def remove(tx: Writing, entry: Entry, fields: Fields, *, proven: bool = True) -> None:
    """Take one record out, with exactly the `fields` that were added, or terms of it would stay behind.

    Args:
        proven: that the record is as it was written, so that it must have its row; of another one nobody may know what
            its row was, and the index may have been made anew without it.

    Raises:
        IntegrityViolation: the index does not hold the record as it should, so that its terms cannot be taken out.
    """
    if proven or holds(tx, entry):
        remove_all(tx, [(entry, fields)])
    elif is_key(entry.key) and _terms_found(tx, entry, fields) and not index_rebuild.is_rebuilding(tx):
        raise _damaged(entry)


def remove_all(tx: Writing, rows: Iterable[tuple[Entry, Fields]]) -> None:
    """Take records out as `remove` does. Many at once cost a fraction of as many alone: the index is flushed once.

    Raises:
        IntegrityViolation: as `remove`; nothing was taken out.
    """
    held = _held(tx, rows)
    for entry, fields in held:
        # FTS5 finds what it deletes as it finds what is searched for, and tells nothing of what it does not find.
        if _terms_found(tx, entry, fields) < len(_words(tx, fields)):
            raise _damaged(entry)
    if held:
        _remove(tx, held)
        _unmark(tx, [text for _, fields in held for text in fields])


def hide_all(tx: Writing, rows: Iterable[tuple[Entry, Fields]]) -> None:
    """Take records out of every answer; their terms stay on the index's pages until `index_merge` has made them anew.
    That reads every page, whether FTS5 finds a term there or not.

    A tenth of what `remove_all` costs a record, which edits each page that a term stands on.

    Raises:
        IntegrityViolation: the index lacks a record's row; nothing was taken out.
    """
    held = _held(tx, rows)
    tx.run(SECURE_SQL, 0)
    _remove(tx, held)
    # What is not flushed is written as the setting says when it is.
    tx.run(FLUSH_SQL)
    tx.run(SECURE_SQL, 1)


def _held(tx: Reading, rows: Iterable[tuple[Entry, Fields]]) -> list[tuple[Entry, Fields]]:
    """The rows that are in the index, in their order; all of them, unless it is made anew."""
    held: list[tuple[Entry, Fields]] = []
    # FTS5 flushes whenever a lower row comes behind a higher one.
    for entry, fields in sorted(rows, key=lambda row: rowid_of(row[0])):
        if holds(tx, entry):
            held.append((entry, fields))
        elif not index_rebuild.is_rebuilding(tx):
            raise _damaged(entry)
    return held


def _words(tx: Reading, fields: Fields) -> list[str]:
    """The words of what a record says and who says it, each once, as FTS5 is asked for them. Those of its time tell
    nothing of it, and most records have the same."""
    text, names, _ = fields
    return list(words_of(tx, f"{text}\n{names}").values())


def _terms_found(tx: Reading, entry: Entry, fields: Fields) -> int:
    """How many of a record's words the index finds in its row."""
    words = json_text([f'"{word}"' for word in _words(tx, fields)])
    return tx.value(HOLDING_SQL, words, rowid_of(entry))


def _damaged(entry: Entry) -> IntegrityViolation:
    return IntegrityViolation(
        reason=f"the recall index does not hold {entry.plane} {entry.key} as it was put in: what it holds of it cannot "
        "be erased; nothing was changed",
        hint="`beetle memory recover` makes the index anew; then try again",
    )


def _remove(tx: Writing, rows: Iterable[tuple[Entry, Fields]]) -> None:
    for entry, fields in rows:
        tx.run(REMOVE_SQL, rowid_of(entry), *fields, scope_of(entry))
        tx.index_changed((rowid_of(entry),))


def _unmark(tx: Writing, fields: Iterable[str]) -> None:
    """Take removed terms out of the marks by which FTS5 finds a page.

    A page of the index is found by the beginning of the first term that it held when it was written, as much of it as
    tells it from the term before: of a rare word, most or all. `secure-delete` takes the term off the page and leaves
    the mark. The first term that the page holds now serves as well: it comes behind all of the page before.
    """
    removed = {word.encode() for text in fields for word in tokens_of(tx, text)}
    if not _marks(tx, removed):
        return
    tx.run(FLUSH_SQL)
    # Looked for again: a flush may merge segments, and gives the numbers of those that are gone to the new ones.
    for segment, mark, page in _marks(tx, removed):
        first = first_term(tx.value(PAGE_SQL, segment << SEGMENT_BITS | page))
        if first is not None and not first.startswith(mark):
            _remark(tx, first, segment, mark)


def _marks(tx: Writing, words: set[bytes]) -> list[Row]:
    """(segment, mark, page) of every mark that is the beginning of a word, or all of it.

    A mark is "0" and the term; what is shorter than a few letters tells nothing.
    """
    starts = {b"0" + word[:length] for word in words for length in range(MARK, min(len(word), LONG_WORD) + 1)}
    found = list(tx.rows(MARKS_SQL, json_text([start.hex() for start in starts])))
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


def search(tx: Reading, terms: Sequence[Term], scope: SearchScope, limit: int, within: Within | None = None) -> Found:
    """The best `limit` matches of any of the terms within the scope.

    A row's score is the sum of its terms' weights, each times the term's inverse document frequency, log((N - n + ½) /
    (n + ½)) with N rows in the scope and n of them with the term (Robertson and Zaragoza, 2009, eq. 3.3). FTS5's own
    bm25() counts the whole table: a caller would learn from a score what rows hold that it may not see.

    Args:
        within: a time of which matches are told apart; for a scope that names no time.
    """
    size, looked = _looked_up(tx, terms, scope)
    held: list[tuple[Rows, float]] = []
    weighted: list[tuple[str, float]] = []
    rarity: dict[str, float] = {}
    behind: dict[int, list[float]] = {}
    for term, (expression, rows, waiting) in looked.items():
        weight = rarity[term.expression] = _weight(term.weight, size, len(rows) + len(waiting))
        if len(rows):
            held.append((rows, weight))
            weighted.append((expression, weight))
        for row in waiting:
            behind.setdefault(row, []).append(weight)
    apart = sorted(((row, fsum(weights)) for row, weights in behind.items()), key=rank)
    phrases = {each.phrase: sum(rarity[word] for word in each.of) for each in terms if each not in looked}
    wanted = _Wanted(weighted, apart, limit)
    best = _merged(ranked(held, tx.breathe), apart)
    if scope.since is not None or scope.until is not None or scope.as_of is not None:
        return Found(_of_time(tx, best, wanted, scope), phrases)
    first = list(islice(best, limit))
    matches = _matches(first)
    if within is None:
        return Found(matches, phrases)
    scope = scope._replace(since=within.since, until=within.until)
    return Found(matches, phrases, _of_time(tx, chain(first, best), wanted._replace(limit=within.limit), scope))


class _Wanted(NamedTuple):
    """What a search looks for: expressions with their weights, the rows that the index has not taken in, and how many
    matches."""

    weighted: list[tuple[str, float]]
    apart: list[tuple[int, float]]
    limit: int


def _of_time(tx: Reading, best: Iterator[tuple[int, float]], wanted: _Wanted, scope: SearchScope) -> list[IndexMatch]:
    """The best matches of the time that a scope names; `best` are those of all times."""
    since = -(2**63) if scope.since is None else scope.since
    until = 2**63 - 1 if scope.until is None else scope.until
    of_time = (rows_between(scope.tables), since, until, scope.as_of)
    found = _best_between(tx, best, of_time, wanted.limit)
    if found is None:
        between, weighted = search_between(scope.tables), json_text(wanted.weighted)
        every = tx.value(between, weighted, since, until, scope.as_of, wanted.limit)
        inside = _between(tx, [row for row, _ in wanted.apart], of_time)
        rows = iter([(row, float(score)) for row, score in unpack_json(every)])
        apart = [each for each in wanted.apart if each[0] in inside]
        found = list(islice(_merged(rows, apart), wanted.limit))
    return _matches(found)


def _merged(rows: Iterator[tuple[int, float]], apart: list[tuple[int, float]]) -> Iterator[tuple[int, float]]:
    return merge(rows, apart, key=rank) if apart else rows


if TYPE_CHECKING:
    from beetle.store.row_sets import Rows

    _Looked = dict[Term, tuple[str, Rows, Sequence[int]]]


def _looked_up(tx: Reading, terms: Sequence[Term], scope: SearchScope) -> tuple[int, _Looked]:
    """How many rows the scope has whatever the time; of each term that is looked for, its expression there, its rows,
    and those that the index has not taken in."""
    parts, left_out = parts_of(tx, scope), left_out_of(scope)
    expressions = [both(each.expression, parts.within) for each in terms]
    waits, *waiting = _waiting(tx, scope, [parts.within, *expressions])
    if scope.is_part and len(inside := _first(tx, parts.within, left_out)) <= word_lists.FEW:
        # FTS5 would look for each token of the scope with each word again: the rows that are known leave others out.
        around = json_text([both(each.expression, parts.around) for each in terms])
        every = unpack_json(tx.value(LISTS_SQL, around, left_out))
        found = zip(expressions, ([row for row in rows if row in inside] for rows in every), waiting, strict=True)
        return len(inside) + len(waits), dict(zip(terms, found, strict=True))
    lists = word_lists.WordLists(tx, postings.snapshot(tx), parts, left_out)
    looked: _Looked = {}
    counts: dict[str, int] = {}
    # Words stand before the phrases that are made of them.
    for term, expression, behind in zip(terms, expressions, waiting, strict=True):
        of = [counts.get(word) for word in term.of]
        if term.phrase and None not in of and sum(count or 0 for count in of) > PHRASE_ROWS:
            continue
        rows = lists.of(term)
        looked[term], counts[term.expression] = (expression, rows, behind), len(rows) + len(behind)
    return lists.size + len(waits), looked


def _first(tx: Reading, expression: str, left_out: int) -> set[int]:
    """The rows of an expression, of more than a few the first."""
    return set(unpack_json(tx.value(FIRST_SQL, expression, left_out, word_lists.FEW + 1)))


def _waiting(tx: Reading, scope: SearchScope, expressions: Sequence[str]) -> list[list[int]]:
    """Of each expression, the rows that the index has not taken in. In a write it has taken in all that it is asked."""
    if tx.postings is None or all(each.name != PLANE for each in scope.tables):
        return [[] for _ in expressions]
    return tx.postings.tail.lists(tx, expressions)


def _best_between(
    tx: Reading, rows: Iterator[tuple[int, float]], time: tuple[str, int, int, int | None], limit: int
) -> list[tuple[int, float]] | None:
    """The first `limit` of the rows that are of a time; None where too many others come before them."""
    found: list[tuple[int, float]] = []
    seen, most = 0, min(LOOKED_AT_FIRST, LOOKED_AT)
    while most:
        looked = list(islice(rows, most))
        inside = _between(tx, [row for row, _ in looked], time)
        found += [each for each in looked if each[0] in inside]
        seen += most
        if len(found) >= limit or len(looked) < most:
            return found[:limit]
        # So many more promise the rest. A quarter more than those, and half of what was looked at: few steps so.
        promising = (limit - len(found)) * seen // max(1, len(found)) + 1
        if promising > LOOKED_AT - seen:
            break
        most = min(LOOKED_AT - seen, max(seen // 2, promising * 5 // 4))
    return None


def _between(tx: Reading, rows: list[int], time: tuple[str, int, int, int | None]) -> set[int]:
    """Those of the rows that are of a time."""
    sql, *between = time
    # In the order of their keys, so that records of one page are read together.
    return set(unpack_json(tx.value(sql, json_text(sorted(rows)), *between)))


def _weight(weight: float, size: int, count: int) -> float:
    return weight * max(LEAST_IDF, log((max(0, size - count) + 0.5) / (count + 0.5)))


def _matches(rows: Iterable[tuple[int, float]]) -> list[IndexMatch]:
    """Of rows that another program put in, whose code is nobody's, nothing."""
    return [IndexMatch(NAMED[row & 15], row >> PLANE_BITS, score) for row, score in rows if row & 15 in NAMED]


def matching(tx: Reading, expression: str, scope: SearchScope) -> Iterator[tuple[str, int]]:
    """(plane, key) of every match of an FTS5 expression within the scope, unranked; times do not count."""
    within = both(expression, parts_of(tx, scope).within)
    for (rowid,) in tx.rows(MATCHING_SQL, within, left_out_of(scope)):
        if rowid & 15 in NAMED:
            yield NAMED[rowid & 15], rowid >> PLANE_BITS
    for rowid in _waiting(tx, scope, [within])[0]:
        yield NAMED[rowid & 15], rowid >> PLANE_BITS
