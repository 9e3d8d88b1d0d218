"""Checks over a whole store. Each yields findings; none changes anything."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from typing import Final

import apsw

from beetle.contracts.errors import IntegrityViolation
from beetle.contracts.names import CheckName
from beetle.named_tuple import NamedTuple
from beetle.store import index_pages
from beetle.store.damaged_rows import DAMAGE
from beetle.store.engine import migrate
from beetle.store.engine.progress import EVERY, Progress
from beetle.store.engine.transaction import Reading
from beetle.store.event_log import ChainHash, first_break, read_head
from beetle.store.index_tail import is_marked
from beetle.store.indexed import KEYS_END, Tables, every_row
from beetle.store.recall_index import TOUCH_INDEX_SQL

log = logging.getLogger("beetle.verify")

SCHEMA: Final = "schema"
CHAIN: Final = "event_log"
HEAD: Final = "event_log_head"
INDEX: Final = "recall_index"
PAGES: Final = "pages"
"""Checks of what belongs to no plane: their names as steps, and in what was checked."""


class Finding(NamedTuple):
    check: CheckName
    subject: str
    problem: str


class Looked:
    """The findings of one check after another. One that meets a malformed page, or a value that it cannot read, is a
    finding too, and the rest go on."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []

    def at(self, what: str, check: Callable[[], Iterable[Finding]]) -> bool:
        """Make a check; whether it found anything."""
        before = len(self.findings)
        try:
            self.findings.extend(check())
        except apsw.CorruptError:
            self.findings.append(Finding(PAGES, what, "cannot be checked further: a page of it is malformed"))
        except (*DAMAGE, apsw.SQLError, IntegrityViolation) as error:
            log.warning("the check of %s met a value that it cannot read: %s", what, type(error).__name__)
            problem = "cannot be checked further: a value of it is of another type than its column, or beyond bounds"
            self.findings.append(Finding(PAGES, what, problem))
        return len(self.findings) > before


PAGES_SQL = "PRAGMA integrity_check(100)"
FOREIGN_KEYS_SQL = "PRAGMA foreign_key_check"
NUMBERED_SQL = """
SELECT name FROM pragma_table_list
WHERE schema = 'main' AND type = 'table' AND NOT wr AND name NOT GLOB 'sqlite_*' AND name <> 'word_bitmap'
ORDER BY name
"""
"""Tables whose rows have numbers, but for one with a check of its own."""
INDEX_ROWS_SQL = "SELECT count(*) FROM recall_index_docsize"
INDEXED_SQL = "SELECT id FROM recall_index_docsize ORDER BY id"


def schema(tx: Reading) -> list[Finding]:
    """What in the schema no migration made, or another program altered."""
    return [Finding(SCHEMA, each.what, each.how) for each in migrate.differences(tx.connection)]


def numbers(tx: Reading) -> Iterator[Finding]:
    """Rows with numbers that no row has: what counts on from them, or makes rows of the index of them, cannot."""
    for (table,) in list(tx.rows(NUMBERED_SQL)):
        sql = f'SELECT rowid FROM "{table}" WHERE rowid < 1 OR rowid >= {KEYS_END} LIMIT 100'  # noqa: S608 - names of the schema
        for (row,) in tx.rows(sql):
            yield Finding("seals", f"{table} row {row}", "has a number that no row has")


def revisions(tx: Reading) -> Iterator[Finding]:
    """Chunks, and ones that are gone, with revisions that nothing can count on from."""
    for table in ("chunk", "removed_chunk"):
        sql = f"SELECT chunk_id FROM {table} WHERE revision NOT BETWEEN 1 AND 1 << 62 LIMIT 100"  # noqa: S608 - our names
        for (chunk_id,) in tx.rows(sql):
            yield Finding("chunks", f"{table} {chunk_id}", "has a revision that no chunk has")


def chain(tx: Reading, chain_hash: ChainHash, progress: Progress) -> tuple[int, list[Finding]]:
    """Walk the event log's hash chain: its rows, and where it is broken."""
    progress.step(CHAIN, of=read_head(tx).seq)
    rows, broken = first_break(tx, chain_hash, progress.at)
    return rows, [] if broken is None else [Finding("event_log", f"row {broken}", "the hash chain is broken here")]


def index(tx: Reading, tables: Tables, progress: Progress) -> tuple[int, list[Finding]]:
    """Compare the rows that the index holds with those that it should, both in order of their number."""
    progress.step(INDEX, of=tx.value(INDEX_ROWS_SQL))
    indexed, expected = tx.rows(INDEXED_SQL), tx.rows(every_row(tables))
    findings: list[Finding] = []
    if not is_marked(tx):
        findings.append(Finding("recall_index", "index_tail", "does not say how far the index is"))
    entries = 0
    left, right = next(indexed, None), next(expected, None)
    while (left is not None or right is not None) and len(findings) < 100:
        if not entries % EVERY:
            progress.at(entries)
        if right is None or (left is not None and left[0] < right[0]):
            assert left is not None
            findings.append(Finding("recall_index", f"row {left[0]}", "is indexed and should not be"))
            entries, left = entries + 1, next(indexed, None)
        elif left is None or right[0] < left[0]:
            findings.append(Finding("recall_index", f"row {right[0]}", "is missing from the index"))
            right = next(expected, None)
        else:
            entries, left, right = entries + 1, next(indexed, None), next(expected, None)
    return entries, findings


def index_tables(tx: Reading) -> Iterator[Finding]:
    """What FTS5's own tables say of the index."""
    if not index_pages.are_marked(tx):
        yield Finding("recall_index", "index", "does not find every term that it has")
    if not index_pages.are_counted(tx):
        yield Finding("recall_index", "index", "does not know how many rows it has")


def foreign_keys(tx: Reading) -> Iterator[Finding]:
    """Rows that name one of another table that is not there."""
    try:
        for table, rowid, parent, _ in tx.rows(FOREIGN_KEYS_SQL):
            yield Finding("foreign_keys", f"{table} row {rowid}", f"names a row of {parent} that is not there")
    except apsw.CorruptError:
        yield Finding("pages", "database", "SQLite found a malformed page")


def pages(tx: Reading) -> Iterator[Finding]:
    """What SQLite finds in the file's pages, the index's own among them."""
    try:
        # FTS5 checks the index by the structure that this connection read last, and only a query makes it read a newer
        # one: without it a sound index that has grown since is reported as corrupt.
        tx.row(TOUCH_INDEX_SQL)
        for (text,) in tx.rows(PAGES_SQL):
            if text != "ok":
                yield Finding("pages", "database", str(text))
    except apsw.CorruptError:
        yield Finding("pages", "database", "SQLite found a malformed page")
