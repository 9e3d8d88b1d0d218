"""Making the pages of the recall index anew, a few at a time, so that nothing is left on them of rows taken out.

FTS5 merges all segments into one and drops what was deleted on the way, as its command `merge` with a negative number
does. Segments that are written meanwhile are not part of it, and hold nothing of what was taken out before.

Deletions, with the terms that they name, are dropped only where the merged segment is the only one of the last level
(fts5_index.c, `bOldest`). Where all segments are of one level FTS5 merges them into the next one, though there may be
empty levels behind it. So that it moves them to the last level, they are set apart first.
"""

from __future__ import annotations

from hashlib import sha256

from beetle.store.engine.transaction import Reading, Writing
from beetle.store.index_pages import Level, levels_of
from beetle.store.index_rebuild import EMPTY_SQL
from beetle.store.indexed import ADD_SQL, FLUSH_SQL
from beetle.store.recall_index import REMOVE_SQL

MERGE_SQL = "INSERT INTO recall_index (recall_index, rank) VALUES ('merge', ?)"
ROWS_SQL = "SELECT CAST(total(messages) AS INTEGER) FROM conversation"
ANY_ROW_SQL = "SELECT 1 FROM recall_index_docsize LIMIT 1"
LARGE = (-1, " ".join(sha256(str(each).encode()).hexdigest()[:12] for each in range(600)), "", "", "s0")
SMALL = (-2, "x", "", "", "s0")
"""Rows that are no record's, of three pages of the index and of one. They are there only while a merge begins."""
ALL_PAGES = 1 << 30


def rows(tx: Reading) -> int:
    """About how many rows the index has: what a merge of all of it costs grows with them."""
    return tx.value(ROWS_SQL)


def begin(tx: Writing) -> int:
    """Begin to merge all that the index holds now; the level that is merged, counted from 1."""
    tx.run(FLUSH_SQL)
    if tx.value(ANY_ROW_SQL) is None:
        tx.run(EMPTY_SQL)
    apart = _would_keep(levels_of(tx))
    if apart:
        _set_apart(tx)
    tx.run(MERGE_SQL, -1)
    if apart:
        tx.run(REMOVE_SQL, *SMALL)
        tx.run(REMOVE_SQL, *LARGE)
    # The last level is the one that is written.
    return max(1, len(levels_of(tx)) - 1)


def go_on(tx: Writing, level: int, pages: int) -> bool:
    """Write about this many more pages; whether all is merged that was there when `begin` gave this level."""
    tx.run(MERGE_SQL, pages)
    return not any(each.merging for each in levels_of(tx)[level - 1 :])


def _would_keep(levels: list[Level]) -> bool:
    """Whether a merge of all would end before the last level, and keep the deletions. One alone is not merged."""
    filled = [place for place, level in enumerate(levels) if level.segments]
    if len(filled) != 1:
        return False
    written = filled[0] + (levels[filled[0]].segments > 1)
    return written < len(levels) - 1


def _set_apart(tx: Writing) -> None:
    """Bring all segments into one, and another one before it. All are of the first level as a rule, so they are few and
    small. FTS5 would take a segment into the level before it that is no larger than the newest there.
    """
    tx.run(ADD_SQL, *LARGE)
    tx.run(FLUSH_SQL)
    tx.run(MERGE_SQL, -ALL_PAGES)
    tx.run(ADD_SQL, *SMALL)
    tx.run(FLUSH_SQL)
