"""The lists of rows of what a search looks for, within its scope: from what is remembered, from bitmaps, from FTS5."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from beetle.named_tuple import NamedTuple
from beetle.store import postings, word_bitmaps
from beetle.store.engine.transaction import Reading, Writing
from beetle.store.indexed import FLUSH_SQL, tokens_of, varint
from beetle.store.row_sets import Dense, among, common, with_rows, without_rows
from beetle.store.search_scope import Parts, both, in_planes

if TYPE_CHECKING:
    from beetle.store.row_sets import Numbers, Rows

FEW = 16_384
"""Rows of a scope whose lists are read anew at each search; those of a larger one are remembered."""
BESIDE = 16
"""A list is read with the rows beside its scope where these are at most such a part of all."""
AVERAGES_SQL = "SELECT block FROM recall_index_data WHERE id = 1"
"""FTS5's own record of what it holds, which begins with the number of its rows (fts5_index.c, "Averages record")."""


class Term(Protocol):
    """What to look for: an FTS5 expression, and what a match counts beside its rarity. A `phrase` has expressions `of`
    its words. `word` is what is looked for in all columns but `scope`, and alone."""

    @property
    def expression(self) -> str: ...
    @property
    def weight(self) -> float: ...
    @property
    def phrase(self) -> str: ...
    @property
    def of(self) -> tuple[str, ...]: ...
    @property
    def word(self) -> str: ...


class _Around(NamedTuple):
    """Of what the list of a word is read: of the rows of an expression, of all where `rows` is None, without those
    `beside`."""

    expression: str = ""
    rows: Rows | None = None
    beside: Rows = ()


def lists(tx: Reading, now: postings.Snapshot, parts: Parts, left_out: int) -> tuple[int, Callable[[Term], Rows]]:
    """How many rows a scope has, and what gives those of a term in it.

    Where nearly all rows are within, those beside are left out of a list that is read: FTS5 would go through the rows
    that are within for each word, which takes several times as long as the word's own.
    """
    if tx.postings is not None and parts.beside:
        beside = _rows(tx, now, parts.beside, left_out)
        size, around = _around(tx, now, parts.around, parts.token, left_out)
        if len(beside) * BESIDE <= size:
            around = around._replace(beside=beside)
            return size - len(beside), lambda term: _of_term(tx, now, term, parts.within, around, left_out)
    size, within = _around(tx, now, parts.within, parts.token if parts.within == parts.around else "", left_out)
    return size, lambda term: _of_term(tx, now, term, parts.within, within, left_out)


def _of_term(
    tx: Reading, now: postings.Snapshot, term: Term, within: str, around: _Around, left_out: int
) -> Dense | Numbers:
    def read() -> Dense | Numbers:
        words = tokens_of(tx, term.word) if term.word else ()
        return _read(tx, term.expression, words[0] if len(words) == 1 else "", around, left_out)

    return _rows(tx, now, both(term.expression, within), left_out, read)


def _around(tx: Reading, now: postings.Snapshot, expression: str, token: str, left_out: int) -> tuple[int, _Around]:
    """How many rows an expression has, of all rows where it is empty; and these, to read words within them.

    Args:
        token: of `scope`, where the expression looks for nothing else; or empty.
    """
    if not expression:
        return rows_of_index(tx, now, left_out), _Around()
    name = word_bitmaps.SCOPE + token if token else ""
    rows = _rows(tx, now, expression, left_out, lambda: _read(tx, expression, name, _Around(), left_out))
    return len(rows), _Around(expression, rows)


def _read(tx: Reading, expression: str, name: str, around: _Around, left_out: int) -> Dense | Numbers:
    """The rows of an expression within others, read from bitmaps as far as there are some by its name."""
    within = both(expression, around.expression)
    is_few = around.rows is not None and len(around.rows) <= FEW
    listed = word_bitmaps.listed(tx, name) if name and not is_few else None
    if listed is None:
        return _without(postings.read_rows(tx, within, left_out), around.beside)
    rows = listed.rows if around.rows is None else among(listed.rows, around.rows)
    fresh = {row for bounds in listed.ranges for row in postings.read_rows(tx, within, left_out, *bounds)}
    fresh.update(postings.read_rows(tx, within, left_out, listed.last))
    if others := in_planes(tx):
        fresh.update(postings.read_rows(tx, both(within, others), left_out, -1, listed.last))
    found = with_rows(rows, sorted(fresh)) if fresh else rows
    return without_rows(found, around.beside) if len(around.beside) else found


def _without(rows: Numbers, beside: Rows) -> Numbers:
    dropped = common(rows, beside) if len(beside) else None
    return array(rows.typecode, [row for row in rows if row not in dropped]) if dropped else rows


def rows_of_index(tx: Reading, now: postings.Snapshot, left_out: int) -> int:
    """How many rows the index has, without those of a code."""
    if isinstance(tx, Writing):
        tx.run(FLUSH_SQL)  # it counts what it has written
    averages: bytes | None = tx.value(AVERAGES_SQL)
    every = varint(averages, 0)[0] if averages else 0
    return every if left_out < 0 else every - len(_rows(tx, now, f'{{scope}} : "p{left_out}"', -1))


def _rows(
    tx: Reading,
    now: postings.Snapshot,
    expression: str,
    left_out: int,
    read: Callable[[], Dense | Numbers] | None = None,
) -> Dense | Numbers:
    """The rows of an expression, remembered from search to search; `read` reads them where they are not."""
    if tx.postings is None:
        return postings.read_rows(tx, expression, left_out)
    return tx.postings.rows(tx, now, expression, left_out, read)
