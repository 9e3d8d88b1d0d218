"""What the upkeep of long-term facts asks of their tables: the rows of the recall index, checks, counts."""

from __future__ import annotations

import json
from collections.abc import Iterator

from beetle.store.engine.transaction import Reading
from beetle.store.indexed import IndexedText, IndexTable
from beetle.store.sight import Sight
from beetle.store.verify import Finding

FACTS = IndexTable(
    "long_term",
    every="SELECT fact << 4 | 2 AS row FROM fact WHERE state = 'current'",
    belongs="EXISTS (SELECT 1 FROM fact WHERE fact = d.id >> 4 AND state = 'current')",
    within="""EXISTS (
    SELECT 1 FROM fact t JOIN fact_revision n ON n.fact = t.fact AND n.revision = t.revision
    JOIN fact_revision v ON v.body = n.body
    WHERE t.fact = hit.rowid >> 4 AND (SELECT min(valid_from) FROM fact_revision WHERE body = n.body) BETWEEN ?2 AND ?3
      AND (?4 IS NULL OR (v.state = 'current' AND v.valid_from <= ?4 AND (v.valid_until IS NULL OR v.valid_until > ?4)))
  )""",
)
PAST_TEXTS = IndexTable(
    "long_term_past",
    every="""SELECT b.fact_body << 4 | 3 AS row FROM fact_body b JOIN fact f ON f.fact = b.fact
  JOIN fact_revision r ON r.fact = f.fact AND r.revision = f.revision
  WHERE f.state <> 'current' OR r.body IS NOT b.fact_body""",
    belongs="""EXISTS (
    SELECT 1 FROM fact_body b JOIN fact f ON f.fact = b.fact
    JOIN fact_revision r ON r.fact = f.fact AND r.revision = f.revision
    WHERE b.fact_body = d.id >> 4 AND (f.state <> 'current' OR r.body IS NOT b.fact_body)
  )""",
    within="""EXISTS (
    SELECT 1 FROM fact_revision v
    WHERE v.body = hit.rowid >> 4 AND (SELECT min(valid_from) FROM fact_revision WHERE body = v.body) BETWEEN ?2 AND ?3
      AND v.state = 'current' AND v.valid_from <= ?4 AND (v.valid_until IS NULL OR v.valid_until > ?4)
  )""",
)
"""What was current once: each text by its own key."""
MISSING_SQL = """
SELECT fact FROM fact f
WHERE fact > ? AND (
  (state = 'current' AND NOT EXISTS (SELECT 1 FROM recall_index_docsize WHERE id = f.fact << 4 | 2))
  OR EXISTS (
    SELECT 1 FROM fact_body b JOIN fact_revision r ON r.fact = f.fact AND r.revision = f.revision
    WHERE b.fact = f.fact AND (f.state <> 'current' OR r.body IS NOT b.fact_body)
      AND NOT EXISTS (SELECT 1 FROM recall_index_docsize WHERE id = b.fact_body << 4 | 3)
  )
)
ORDER BY fact LIMIT ?
"""
WITH_TEXTS_SQL = "SELECT DISTINCT fact FROM fact_body WHERE fact > ? ORDER BY fact LIMIT ?"
INDEXED_SQL = """
SELECT b.fact_body, b.content,
  (SELECT f.topic_mac FROM fact_revision r WHERE r.fact = f.fact AND r.revision = f.revision AND r.body = b.fact_body),
  b.topic, (SELECT content_mac FROM fact_revision r WHERE r.body = b.fact_body LIMIT 1), f.fact
FROM fact_body b JOIN fact f ON f.fact = b.fact
WHERE b.fact_body > ? AND (
  EXISTS (SELECT 1 FROM recall_index_docsize WHERE id = b.fact_body << 4 | 3)
  OR EXISTS (SELECT 1 FROM recall_index_docsize WHERE id = b.fact << 4 | 2)
)
ORDER BY b.fact_body LIMIT ?
"""
SPACE_OF_FACT_SQL = "SELECT space FROM fact WHERE fact = ?"
ROWS_SQL = "SELECT json_object('facts', (SELECT count(*) FROM fact))"
STANDS_SQL = """
SELECT f.fact FROM fact f LEFT JOIN fact_revision r ON r.fact = f.fact AND r.revision = f.revision
WHERE (r.fact IS NULL OR r.state <> f.state OR r.visibility <> f.visibility OR r.content_mac IS NOT f.content_mac)
  AND (?1 IS NULL OR (f.space = ?1 AND (?2 OR f.visibility = 'shared'))) LIMIT 100
"""
CHAIN_SQL = """
SELECT DISTINCT f.fact FROM fact_revision r JOIN fact f ON f.fact = r.fact
LEFT JOIN fact_revision p ON p.fact = r.fact AND p.revision = r.revision - 1
WHERE r.revision > 1 AND (p.fact IS NULL OR p.valid_until IS NOT r.valid_from)
  AND (?1 IS NULL OR (f.space = ?1 AND (?2 OR f.visibility = 'shared'))) LIMIT 100
"""
HOLDS_SQL = """
SELECT DISTINCT r.fact FROM fact_revision r JOIN fact f ON f.fact = r.fact
WHERE (r.valid_until IS NULL) <> (r.revision = f.revision)
  AND (?1 IS NULL OR (f.space = ?1 AND (?2 OR f.visibility = 'shared'))) LIMIT 100
"""
TEXT_SQL = """
SELECT DISTINCT r.fact FROM fact_revision r JOIN fact f ON f.fact = r.fact
LEFT JOIN fact_body b ON b.fact_body = r.body AND b.fact = r.fact
WHERE ((b.fact IS NULL) <> (f.state = 'deleted') OR (r.body IS NULL) <> (f.state = 'deleted'))
  AND (?1 IS NULL OR (f.space = ?1 AND (?2 OR f.visibility = 'shared'))) LIMIT 100
"""
UNSHOWN_SQL = """
SELECT DISTINCT f.fact FROM fact_body b JOIN fact f ON f.fact = b.fact
LEFT JOIN fact_revision r ON r.body = b.fact_body
WHERE r.body IS NULL
  AND (?1 IS NULL OR (f.space = ?1 AND (?2 OR f.visibility = 'shared'))) LIMIT 100
"""
SUPERSEDED_SQL = """
SELECT f.fact FROM fact f WHERE f.state = 'superseded' AND f.superseded_by IS NULL
  AND (?1 IS NULL OR (f.space = ?1 AND (?2 OR f.visibility = 'shared'))) LIMIT 100
"""
CHECKS = {
    STANDS_SQL: "its last revision is missing, or says otherwise than the record",
    CHAIN_SQL: "its revisions do not follow one another",
    HOLDS_SQL: "another revision than its last one holds",
    TEXT_SQL: "is deleted and has a text, or is not and lacks one",
    UNSHOWN_SQL: "has a text that no revision shows",
    SUPERSEDED_SQL: "is superseded, and nothing says by which",
}
DERIVED_SQL = """
SELECT d.derived_ref, d.derived FROM derived_ref d LEFT JOIN fact f ON f.fact = d.fact
WHERE d.fact IS NOT NULL AND d.derived IS NOT 'long_term:' || f.record_id LIMIT 100
"""
COUNTS_SQL = """
SELECT json_object(
  'facts', (
    SELECT count(*) FROM fact WHERE space = ?1 AND state = 'current' AND (?2 OR visibility = 'shared')
  ),
  'stale_facts', (
    SELECT count(*) FROM fact WHERE space = ?1 AND state = 'stale' AND (?2 OR visibility = 'shared')
  ),
  'superseded_facts', (
    SELECT count(*) FROM fact WHERE space = ?1 AND state = 'superseded' AND (?2 OR visibility = 'shared')
  ),
  'deleted_facts', (
    SELECT count(*) FROM fact WHERE space = ?1 AND state = 'deleted' AND (?2 OR visibility = 'shared')
  ),
  'waiting_candidates', (
    SELECT count(*) FROM candidate WHERE space = ?1 AND (?2 OR privacy IN ('public_runtime', 'shared_with_subject'))
      AND (?3 OR target NOT IN ('private_garden', 'soul_candidate'))
  )
)
"""


def counts(tx: Reading, space: int | None, sight: Sight) -> dict[str, int]:
    """What a space holds, as an inspection counts it, with what waits to become a fact."""
    return json.loads(tx.value(COUNTS_SQL, space, *map(int, sight)))


def rows(tx: Reading) -> dict[str, int]:
    """What the store holds, as a verification counts it."""
    return json.loads(tx.value(ROWS_SQL))


def facts(tx: Reading) -> Iterator[Finding]:
    """Facts, revisions and texts that do not go together."""
    for sql, problem in CHECKS.items():
        for (fact,) in tx.rows(sql, None, None):
            yield Finding("long_term", f"fact {fact}", problem)


def facts_of_space(tx: Reading, space: int, sight: Sight) -> Iterator[tuple[int, str]]:
    """(fact, problem) of those of a space that a caller may know of: others are narrowed away before a list is cut."""
    for sql, problem in CHECKS.items():
        for (fact,) in tx.rows(sql, space, int(sight.private)):
            yield fact, problem


def links(tx: Reading) -> Iterator[Finding]:
    """Derived refs of a fact that name another record."""
    for ref, derived in tx.rows(DERIVED_SQL):
        yield Finding("derived_refs", f"row {ref}", f"is of another record than it says ({derived})")


def missing(tx: Reading, after: int, limit: int) -> list[int]:
    """Keys behind `after` of facts of which the index should hold a text and does not."""
    return [row[0] for row in tx.rows(MISSING_SQL, after, limit)]


def with_texts(tx: Reading, after: int, limit: int) -> list[int]:
    """Keys behind `after` of facts that have texts: the index holds each of them."""
    return [row[0] for row in tx.rows(WITH_TEXTS_SQL, after, limit)]


def indexed(tx: Reading, after: int, limit: int) -> list[IndexedText]:
    """Texts of facts behind `after` that the index holds."""
    return [
        IndexedText(key, content, digest, topic, topic_digest, fact)
        for key, content, topic_digest, topic, digest, fact in tx.rows(INDEXED_SQL, after, limit)
    ]


def space_of_fact(tx: Reading, fact: int) -> int | None:
    """The space of a fact."""
    return tx.value(SPACE_OF_FACT_SQL, fact)
