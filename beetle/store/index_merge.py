"""Making the pages of the recall index anew, a few at a time, so that nothing is left on them of rows taken out.

FTS5 merges all segments into one and drops what was deleted on the way, as its command `merge` with a negative number
does. Segments that are written meanwhile are not part of it, and hold nothing of what was taken out before.
"""

from __future__ import annotations

from beetle.store.engine.transaction import Reading, Writing
from beetle.store.recall_index import varint

MERGE_SQL = "INSERT INTO recall_index (recall_index, rank) VALUES ('merge', ?)"
STRUCTURE_SQL = "SELECT block FROM recall_index_data WHERE id = 10"
SECOND_FORM = b"\xff\x00\x00\x01"
"""Stands behind the cookie when each segment has five more numbers."""
ROWS_SQL = "SELECT coalesce(sum(messages), 0) FROM conversation"


def rows(tx: Reading) -> int:
    """About how many rows the index has: what a merge of all of it costs grows with them."""
    return tx.value(ROWS_SQL)


def begin(tx: Writing) -> int:
    """Begin to merge all that the index holds now; the level that is merged, counted from 1."""
    tx.run(MERGE_SQL, -1)
    # The last level is the one that is written.
    return max(1, len(_merging(tx)) - 1)


def go_on(tx: Writing, level: int, pages: int) -> bool:
    """Write about this many more pages; whether all is merged that was there when `begin` gave this level."""
    tx.run(MERGE_SQL, pages)
    return not any(_merging(tx)[level - 1 :])


def _merging(tx: Reading) -> list[int]:
    """How many segments of each level a merge takes in that has begun and not ended, the newest level first.

    The structure record of FTS5 (fts5_index.c, "Structure record"): a cookie of four bytes, then the numbers of levels,
    of segments and of writes, then for each level the segments that are being merged and those it has, and of each of
    these the id, the first and the last page.
    """
    record: bytes = tx.value(STRUCTURE_SQL)
    second = record[4:8] == SECOND_FORM
    levels, at = varint(record, 8 if second else 4)
    for _ in range(2):
        _, at = varint(record, at)
    found: list[int] = []
    for _ in range(levels):
        merging, at = varint(record, at)
        segments, at = varint(record, at)
        for _ in range(segments * (8 if second else 3)):
            _, at = varint(record, at)
        found.append(merging)
    return found
