"""What the upkeep of chunks asks of their tables: the rows of the recall index, signals, checks, counts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from beetle.store.chunks import REMOVED_ID_SQL
from beetle.store.engine.transaction import Reading, Writing
from beetle.store.indexed import IndexTable

CHUNKS = IndexTable(
    "chunks",
    every="SELECT c.chunk << 4 | 5 AS row FROM chunk c WHERE c.archived_at IS NULL",
    belongs="EXISTS (SELECT 1 FROM chunk WHERE chunk = d.id >> 4 AND archived_at IS NULL)",
    within="EXISTS (SELECT 1 FROM chunk WHERE chunk = hit.rowid >> 4 AND created_at BETWEEN ?2 AND ?3)",
)
MISSING_SQL = """
SELECT c.chunk FROM chunk c
WHERE c.chunk > ? AND NOT EXISTS (SELECT 1 FROM recall_index_docsize WHERE id = c.chunk << 4 | 5)
  AND c.archived_at IS NULL
ORDER BY c.chunk LIMIT ?
"""
COUNTS_SQL = """
SELECT json_object('chunks', total(archived_at IS NULL), 'archived_chunks', total(archived_at IS NOT NULL))
FROM chunk WHERE space = ?
"""
SUPPORTED_SQL = """
SELECT l.target, count(*) FROM chunk_link l JOIN chunk c ON c.chunk = l.chunk
WHERE l.target IN (SELECT value FROM json_each(?)) AND l.kind = 'supports' AND c.archived_at IS NULL
GROUP BY l.target
"""
STRAY_LINKS_SQL = """
SELECT c.chunk_id FROM chunk c JOIN chunk_link l ON l.chunk = c.chunk LEFT JOIN chunk o ON o.chunk = l.target
WHERE (?1 IS NULL OR c.space = ?1) AND (
  (l.target IS NOT NULL AND o.space IS NOT c.space) OR l.target = l.chunk
  OR (l.place <> 0 AND NOT EXISTS (SELECT 1 FROM chunk_link p WHERE p.chunk = l.chunk AND p.place = l.place - 1))
) LIMIT 100
"""
STRAY_TAGS_SQL = """
SELECT t.chunk FROM chunk_tag t LEFT JOIN chunk c ON c.chunk = t.chunk WHERE c.chunk IS NULL LIMIT 100
"""
STRAY_BODIES_SQL = """
SELECT b.chunk FROM chunk_body b LEFT JOIN chunk c ON c.chunk = b.chunk WHERE c.chunk IS NULL LIMIT 100
"""
TAGS_OF_SQL = (
    "SELECT tag FROM chunk_tag WHERE tag IN (SELECT value FROM json_each(?)) AND chunk = ? AND conversation = ?"
)
COUNT_TAGS_SQL = "SELECT count(*) FROM chunk_tag"
REMOVE_SQLS = (
    "DELETE FROM chunk_link WHERE chunk IN (SELECT chunk FROM chunk WHERE space = ?)",
    "DELETE FROM chunk_tag WHERE chunk IN (SELECT chunk FROM chunk WHERE space = ?)",
    "DELETE FROM chunk_access WHERE chunk IN (SELECT chunk FROM chunk WHERE space = ?)",
    "DELETE FROM chunk_body WHERE chunk IN (SELECT chunk FROM chunk WHERE space = ?)",
    "DELETE FROM chunk WHERE space = ?",
)


def counts(tx: Reading, space: int | None) -> dict[str, int]:
    """What a space holds, as an inspection counts it."""
    return {name: int(number) for name, number in json.loads(tx.value(COUNTS_SQL, space)).items()}


def missing(tx: Reading, after: int, limit: int) -> list[int]:
    """Keys behind `after` of chunks that the index should hold and does not."""
    return [row[0] for row in tx.rows(MISSING_SQL, after, limit)]


def remove_all(tx: Writing, space: int, chunk_ids: Iterable[str], revision: int) -> None:
    """Take away all chunks of a space, whose rows of the recall index are gone before; their ids stay, each with a
    revision behind `revision`.
    """
    for sql in REMOVE_SQLS:
        tx.run(sql, space)
    for place, chunk_id in enumerate(chunk_ids, revision + 1):
        tx.run(REMOVED_ID_SQL, space, chunk_id, place)


def supported(tx: Reading, keys: Iterable[int]) -> dict[int, int]:
    """How many live chunks support each of some."""
    return {row[0]: row[1] for row in tx.rows(SUPPORTED_SQL, json.dumps(list(keys)))}


def stray_links(tx: Reading, space: int | None = None) -> Iterator[str]:
    """Ids of chunks of which a link leads out of the space or to itself, or is not in its place."""
    return (row[0] for row in tx.rows(STRAY_LINKS_SQL, space))


def stray(tx: Reading) -> Iterator[tuple[str, int]]:
    """(table, chunk) of tags and bodies whose chunk is not there."""
    yield from (("chunk_tag", row[0]) for row in tx.rows(STRAY_TAGS_SQL))
    yield from (("chunk_body", row[0]) for row in tx.rows(STRAY_BODIES_SQL))


def has_tags(tx: Reading, chunk: int, tagged: frozenset[int], conversation: int) -> bool:
    """Whether a chunk is found by all of these tags."""
    found = {row[0] for row in tx.rows(TAGS_OF_SQL, json.dumps(sorted(tagged)), chunk, conversation)}
    return found == tagged


def count_tags(tx: Reading) -> int:
    """How many rows say that a chunk has a tag."""
    return tx.value(COUNT_TAGS_SQL)
