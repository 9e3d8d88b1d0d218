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


class WordLists:
    """The lists of one search: `size` is how many rows its scope has.

    Where nearly all rows are within, those beside are left out of a list that is read: FTS5 would go through the rows
    that are within for each word, which takes several times as long as the word's own.
    """

    def __init__(self, tx: Reading, now: postings.Snapshot, parts: Parts, left_out: int) -> None:
        self._tx, self._now, self._left_out = tx, now, left_out
        self._within = parts.within
        self._in_planes: str | None = None
        if tx.postings is not None and parts.beside:
            beside = self._remembered(parts.beside)
            size, self._around = self._rows_around(parts.around, parts.token)
            if len(beside) * BESIDE <= size:
                self.size, self._around = size - len(beside), self._around._replace(beside=beside)
                return
        is_around = parts.within == parts.around
        self.size, self._around = self._rows_around(parts.within, parts.token if is_around else "")

    def of(self, term: Term) -> Dense | Numbers:
        """The rows of a term within the scope."""

        def read() -> Dense | Numbers:
            words = tokens_of(self._tx, term.word) if term.word else ()
            return self._read(term.expression, words[0] if len(words) == 1 else "", self._around)

        return self._remembered(both(term.expression, self._within), read)

    def _rows_around(self, expression: str, token: str) -> tuple[int, _Around]:
        """How many rows an expression has, of all rows where it is empty; and these, to read words within them.

        Args:
            token: of `scope`, where the expression looks for nothing else; or empty.
        """
        if not expression:
            return rows_of_index(self._tx, self._now, self._left_out), _Around()
        name = word_bitmaps.SCOPE + token if token else ""
        rows = self._remembered(expression, lambda: self._read(expression, name, _Around()))
        return len(rows), _Around(expression, rows)

    def _read(self, expression: str, name: str, around: _Around) -> Dense | Numbers:
        """The rows of an expression within others, read from bitmaps as far as there are some by its name."""
        within = both(expression, around.expression)
        is_few = around.rows is not None and len(around.rows) <= FEW
        listed = word_bitmaps.listed(self._tx, name) if name and not is_few else None
        if listed is None:
            return _without(self._in_index(within), around.beside)
        rows = listed.rows if around.rows is None else among(listed.rows, around.rows)
        fresh = {row for bounds in listed.ranges for row in self._in_index(within, *bounds)}
        fresh.update(self._in_index(within, listed.last))
        if self._in_planes is None:
            self._in_planes = in_planes(self._tx)
        if self._in_planes:
            fresh.update(self._in_index(both(within, self._in_planes), -1, listed.last))
        found = with_rows(rows, sorted(fresh)) if fresh else rows
        return without_rows(found, around.beside) if len(around.beside) else found

    def _in_index(self, expression: str, behind: int = -1, last: int | None = None) -> Numbers:
        return postings.read_rows(self._tx, expression, self._left_out, behind, last)

    def _remembered(self, expression: str, read: Callable[[], Dense | Numbers] | None = None) -> Dense | Numbers:
        return _remembered(self._tx, self._now, expression, self._left_out, read)


def _without(rows: Numbers, beside: Rows) -> Numbers:
    dropped = common(rows, beside) if len(beside) else None
    return array(rows.typecode, [row for row in rows if row not in dropped]) if dropped else rows


def rows_of_index(tx: Reading, now: postings.Snapshot, left_out: int) -> int:
    """How many rows the index has, without those of a code."""
    if isinstance(tx, Writing):
        tx.run(FLUSH_SQL)  # it counts what it has written
    averages: bytes | None = tx.value(AVERAGES_SQL)
    every = varint(averages, 0)[0] if averages else 0
    return every if left_out < 0 else every - len(_remembered(tx, now, f'{{scope}} : "p{left_out}"', -1))


def _remembered(
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
