"""Whether the recall index holds exactly the terms of the rows that it should."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import apsw

from beetle.store.engine.progress import EVERY, Progress
from beetle.store.engine.transaction import Reading
from beetle.store.indexed import Entry, Fields, rowid_of, scope_of, tokenizer
from beetle.store.verify import INDEX, Finding

NAMES = ("text", "names", "time", "scope")
MAKE_SQL = "CREATE VIRTUAL TABLE temp.index_term USING fts5vocab(main, recall_index, {kind})"
VOCABULARY = "temp.index_term"
TERMS_SQL = f"SELECT doc, CAST(term AS BLOB), col, offset FROM {VOCABULARY}"  # noqa: S608 - our own text
DROP_SQL = f"DROP TABLE {VOCABULARY}"
KEYS_SQL = "SELECT id >> 4 FROM recall_index_docsize WHERE id & 15 = ? AND id > ? << 4 | 15 ORDER BY id LIMIT ?"
TERM_BYTES = 32_768
"""Of a longer term FTS5 keeps the beginning (FTS5_MAX_TOKEN_SIZE)."""
BUCKETS = 4096
MOST = 100

Rows = Iterable[tuple[Entry, Fields]]
Sums = dict[int, int]


def keys(tx: Reading, code: int, after: int, most: int) -> list[int]:
    """The keys behind one, at most so many, of the rows that the index has of a code."""
    return [key for (key,) in tx.rows(KEYS_SQL, code, after, most)]


def wrong(tx: Reading, rows: Callable[[], Rows], progress: Progress) -> Iterator[Finding]:
    """Compare the terms of the index with those of the rows that it should hold, which are read again if they differ.

    Each row's terms are summed up by a hash that this process alone knows (SipHash with a random key), first in
    few sums over many rows, then row by row where these differ. A store is read in a small and constant memory.
    """
    sums = _difference(tx, rows(), progress, lambda row: row % BUCKETS)
    suspect = {bucket for bucket, total in sums.items() if total}
    if not suspect:
        return
    single = _difference(tx, rows(), Progress(), lambda row: row if row % BUCKETS in suspect else None)
    for row in sorted(row for row, total in single.items() if total)[:MOST]:
        yield Finding(INDEX, f"row {row}", "its terms are not those of its record")


def _difference(tx: Reading, rows: Rows, progress: Progress, group: Callable[[int], int | None]) -> Sums:
    """By group of rows, the terms that they should have less those that the index has."""
    sums: Sums = {}
    tokens = tokenizer(tx)
    for number, (entry, fields) in enumerate(rows):
        if not number % EVERY:
            progress.at(number)
        row = rowid_of(entry)
        if (into := group(row)) is None:
            continue
        for name, text in zip(NAMES, (*fields, scope_of(entry)), strict=True):
            found = tokens(text.encode(), apsw.FTS5_TOKENIZE_DOCUMENT, None, include_offsets=False)
            for offset, words in enumerate(found):
                for word in (each for each in words if isinstance(each, str)):
                    sums[into] = sums.get(into, 0) + hash((row, word.encode()[:TERM_BYTES], name, offset))
    with vocabulary(tx, "instance"):
        for row, *term in tx.connection.execute(TERMS_SQL):
            if (into := group(row)) is not None:
                sums[into] = sums.get(into, 0) - hash((row, *term))
    return sums


@contextmanager
def vocabulary(tx: Reading, kind: str) -> Iterator[None]:
    """The terms that the index has, as the table `VOCABULARY`: an fts5vocab of that kind. The reader's own temporary
    table is no change."""
    tx.connection.pragma("query_only", 0)
    try:
        tx.connection.execute(MAKE_SQL.format(kind=kind))
        try:
            yield
        finally:
            tx.connection.execute(DROP_SQL)
    finally:
        tx.connection.pragma("query_only", 1)
