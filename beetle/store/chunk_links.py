"""Links between chunks: each stands once, with the chunk that it leads from."""

from __future__ import annotations

from collections.abc import Sequence

from beetle.named_tuple import NamedTuple
from beetle.store.chunks import LinkRow
from beetle.store.engine.transaction import Reading, Writing


class Backlink(NamedTuple):
    """A link that leads to a chunk, by the chunk that it comes from."""

    chunk: int
    chunk_id: str
    kind: str
    strength: float


DROP_SQL = "DELETE FROM chunk_link WHERE chunk = ?"
NEW_SQL = "INSERT INTO chunk_link VALUES (?, ?, ?, ?, ?, ?)"
TO_SQL = """
SELECT l.chunk, c.chunk_id, l.kind, l.strength FROM chunk_link l JOIN chunk c ON c.chunk = l.chunk
WHERE l.target = ? AND l.kind = ? AND c.space = ? ORDER BY l.chunk DESC LIMIT ?
"""
NAMED_SQL = """
SELECT l.chunk, c.chunk_id, l.kind, l.strength
FROM chunk_link l INDEXED BY chunk_link_named JOIN chunk c ON c.chunk = l.chunk
WHERE l.target_id = ? AND l.kind <> 'context_of' AND l.target_id IS NOT NULL AND l.kind = ? AND c.space = ?
ORDER BY l.chunk DESC LIMIT ?
"""
SOURCES_SQL = "SELECT DISTINCT chunk FROM chunk_link WHERE target = ?"


def replace(tx: Writing, chunk: int, links: Sequence[LinkRow]) -> None:
    """Write all links of a chunk anew, in this order."""
    tx.run(DROP_SQL, chunk)
    names = (each.name if each.target is None else None for each in links)
    rows = [
        (chunk, place, each.kind, each.target, name, each.strength)
        for place, (each, name) in enumerate(zip(links, names, strict=True))
    ]
    tx.insert_rows(NEW_SQL, rows)


def leading_to(tx: Reading, space: int, chunk: int, chunk_id: str, kind: str, limit: int) -> list[Backlink]:
    """The links of a kind that lead to a chunk, the newest chunk's first."""
    found = [Backlink(*row) for row in tx.rows(TO_SQL, chunk, kind, space, limit)]
    if kind != "context_of":
        found += [Backlink(*row) for row in tx.rows(NAMED_SQL, chunk_id, kind, space, limit)]
    return sorted(found, reverse=True)[:limit]


def sources(tx: Reading, chunk: int) -> list[int]:
    """The chunks of which a link leads to one."""
    return [row[0] for row in tx.rows(SOURCES_SQL, chunk)]
