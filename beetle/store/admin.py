"""What the store's file holds, by kind."""

from __future__ import annotations

from collections import Counter

from beetle.named_tuple import NamedTuple
from beetle.store.engine.transaction import Reading

TABLE_BYTES_SQL = """
SELECT s.tbl_name, sum(d.pgsize) FROM dbstat AS d JOIN sqlite_schema AS s ON s.name = d.name
WHERE d.aggregate = 1 GROUP BY s.tbl_name
"""
COUNT_EVENTS_SQL = "SELECT count(*) FROM event"
COUNT_NODES_SQL = "SELECT count(*) FROM toc_node"
COUNT_GRIPS_SQL = "SELECT count(*) FROM grip"
COUNT_WAITING_SQL = "SELECT count(*) FROM toc_outbox"
COUNTS = {
    "events": COUNT_EVENTS_SQL,
    "toc": COUNT_NODES_SQL,
    "grips": COUNT_GRIPS_SQL,
    "outbox": COUNT_WAITING_SQL,
}
TABLES = {
    "event": "events", "message": "events", "body": "events", "turn": "events", "conversation": "events",
    "captured_turn": "events", "toc_node": "toc", "toc_title": "toc", "grip": "grips", "toc_outbox": "outbox",
}  # fmt: skip
INDEX = "recall_index"
OTHERS = ("recall index", "everything else")


class FamilySize(NamedTuple):
    """Rows, None where nobody counts them, and bytes of one kind."""

    name: str
    entries: int | None
    bytes: int


class FileSize(NamedTuple):
    """Bytes of the file, and of its free pages."""

    bytes: int
    free: int


def families(tx: Reading) -> list[FamilySize]:
    """Each kind with its rows and bytes; the file is read from its first page to its last."""
    sizes: Counter[str] = Counter()
    for table, found in tx.rows(TABLE_BYTES_SQL):
        sizes[TABLES.get(table) or OTHERS[not table.startswith(INDEX)]] += found
    counted = [FamilySize(name, tx.value(sql), sizes[name]) for name, sql in COUNTS.items()]
    return [*counted, *(FamilySize(name, None, sizes[name]) for name in OTHERS)]


def file_size(tx: Reading) -> FileSize:
    """The file as the transaction sees it."""
    pages, free, size = (tx.value(f"PRAGMA {name}") for name in ("page_count", "freelist_count", "page_size"))
    return FileSize(pages * size, free * size)
