"""What an export of chunks as a tree asks of their tables beside the chunks themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from beetle.store.columns import texts
from beetle.store.engine.transaction import Reading

COUNT_SQL = "SELECT count(*) - count(archived_at), count(archived_at) FROM chunk WHERE space = ?"
ENTRIES_SQL = """
SELECT chunk_id, type, conversation_id, created_at, confidence FROM chunk INDEXED BY chunk_of_space
WHERE space = ? AND archived_at IS NULL ORDER BY chunk
"""
TAGS_SQL = """
SELECT c.chunk_id, b.tags FROM chunk c INDEXED BY chunk_of_space JOIN chunk_body b ON b.chunk = c.chunk
WHERE c.space = ? AND c.archived_at IS NULL AND b.tags <> '[]' ORDER BY c.chunk
"""
FROM_SQL = """
SELECT c.chunk, c.chunk_id, l.kind, coalesce(t.chunk_id, l.target_id)
FROM chunk c INDEXED BY chunk_of_space LEFT JOIN chunk_link l ON l.chunk = c.chunk
LEFT JOIN chunk t ON t.chunk = l.target AND +t.space = c.space
WHERE c.space = ? AND c.archived_at IS NULL ORDER BY c.chunk, l.place
"""
TO_SQL = """
SELECT t.chunk, t.chunk_id, l.kind, iif(c.archived_at IS NULL AND c.space = t.space, c.chunk_id, NULL)
FROM chunk t INDEXED BY chunk_of_space LEFT JOIN chunk_link l INDEXED BY chunk_link_to ON l.target = t.chunk
LEFT JOIN chunk c ON c.chunk = l.chunk
WHERE t.space = ? AND t.archived_at IS NULL ORDER BY t.chunk
"""
RELATED_SQL = """
SELECT c.chunk_id FROM (
  SELECT chunk FROM chunk_link INDEXED BY chunk_link_to WHERE target = ?1 AND kind = 'related_to'
  UNION
  SELECT chunk FROM chunk_link INDEXED BY chunk_link_named
  WHERE target_id = ?3 AND kind <> 'context_of' AND target_id IS NOT NULL AND kind = 'related_to'
) l CROSS JOIN chunk c ON c.chunk = l.chunk
WHERE c.space = ?2 AND c.chunk <> ?1 ORDER BY c.chunk DESC
"""
OWN_RELATED_SQL = """
SELECT coalesce(t.chunk_id, l.target_id) FROM chunk_link l JOIN chunk c ON c.chunk = l.chunk
LEFT JOIN chunk t ON t.chunk = l.target AND +t.space = c.space
WHERE l.chunk = ? AND l.kind = 'related_to' AND (l.target IS NULL OR t.chunk IS NOT NULL) ORDER BY l.place
"""
LOOSE_SQL = """
SELECT DISTINCT l.chunk FROM chunk c INDEXED BY chunk_of_space CROSS JOIN chunk_link l ON l.chunk = c.chunk
WHERE c.space = ?1 AND l.target_id IS NOT NULL
  AND EXISTS (SELECT 1 FROM chunk t WHERE t.space = ?1 AND t.chunk_id = l.target_id)
ORDER BY l.chunk
"""


def count(tx: Reading, space: int | None) -> tuple[int, int]:
    """How many chunks of a space are live, and how many archived."""
    live, archived = tx.row(COUNT_SQL, space) or (0, 0)
    return live, archived


def entries(tx: Reading, space: int | None) -> Iterator[tuple[Any, ...]]:
    """(id, type, conversation, creation in microseconds, confidence) of live chunks, as they were stored."""
    return iter(tx.rows(ENTRIES_SQL, space))


def tags(tx: Reading, space: int | None) -> Iterator[tuple[str, tuple[str, ...]]]:
    """(id, tags) of live chunks that have any, as they were stored."""
    return ((chunk_id, texts(said)) for chunk_id, said in tx.rows(TAGS_SQL, space))


def links_from(tx: Reading, space: int | None) -> Iterator[tuple[Any, ...]]:
    """(row number, id, kind, target) of all links of live chunks, those of one together; None, None of one without, and
    no target where damage names one that is not of the space."""
    return iter(tx.rows(FROM_SQL, space))


def links_to(tx: Reading, space: int | None) -> Iterator[tuple[Any, ...]]:
    """(row number, id, kind, other id) of links that lead to live chunks, as `links_from`; None from archived ones."""
    return iter(tx.rows(TO_SQL, space))


def related_back(tx: Reading, chunk: int, space: int, chunk_id: str) -> list[str]:
    """The ids of chunks whose `related_to` leads to one, the newest first."""
    return [row[0] for row in tx.rows(RELATED_SQL, chunk, space, chunk_id)]


def related(tx: Reading, chunk: int, space: int, chunk_id: str) -> list[str]:
    """The ids that a chunk relates to, then those of `related_back`."""
    own = [row[0] for row in tx.rows(OWN_RELATED_SQL, chunk)]
    return list(dict.fromkeys([*own, *related_back(tx, chunk, space, chunk_id)]))


def loose(tx: Reading, space: int | None) -> list[int]:
    """The row numbers of chunks with a link to a chunk that was not there when they were linked."""
    return [row[0] for row in tx.rows(LOOSE_SQL, space)]
