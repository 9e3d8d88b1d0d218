"""What the upkeep of runtime skills asks of their tables: the rows of the recall index, checks, counts."""

from __future__ import annotations

import json
from collections.abc import Iterator

from beetle.store.engine.transaction import Reading
from beetle.store.indexed import IndexTable
from beetle.store.sight import Sight
from beetle.store.verify import Finding

SKILLS = IndexTable(
    "procedural",
    every="SELECT skill << 4 | 1 AS row FROM skill WHERE enabled = 1 AND retired = 0",
    belongs="EXISTS (SELECT 1 FROM skill WHERE skill = d.id >> 4 AND enabled = 1 AND retired = 0)",
    within="""
EXISTS (SELECT 1 FROM skill WHERE skill = hit.rowid >> 4 AND updated_at >= ?2 AND created_at <= ?3)
""",
)
MISSING_SQL = """
SELECT skill FROM skill s
WHERE skill > ? AND enabled = 1 AND retired = 0
  AND NOT EXISTS (SELECT 1 FROM recall_index_docsize WHERE id = s.skill << 4 | 1)
ORDER BY skill LIMIT ?
"""
SPACE_OF_SKILL_SQL = "SELECT space FROM skill WHERE skill = ?"
ROWS_SQL = "SELECT json_object('skills', (SELECT count(*) FROM skill))"
REVISION_SQL = """
SELECT s.skill FROM skill s LEFT JOIN skill_revision r ON r.skill = s.skill AND r.revision = s.revision
WHERE r.skill IS NULL LIMIT 100
"""
REVISION_IN_SPACE_SQL = """
SELECT s.name FROM skill s LEFT JOIN skill_revision r ON r.skill = s.skill AND r.revision = s.revision
WHERE r.skill IS NULL AND s.space = ? LIMIT 100
"""
COUNTS_SQL = """
SELECT json_object(
  'runtime_skills', (SELECT count(*) FROM skill WHERE space = ?1),
  'skill_revisions', (SELECT CAST(total(revision) AS INTEGER) FROM skill WHERE space = ?1)
)
"""


def counts(tx: Reading, space: int | None, sight: Sight) -> dict[str, int]:
    """What a space holds, as an inspection counts it: no skill is private."""
    del sight
    return json.loads(tx.value(COUNTS_SQL, space))


def rows(tx: Reading) -> dict[str, int]:
    """What the store holds, as a verification counts it."""
    return json.loads(tx.value(ROWS_SQL))


def revisions(tx: Reading) -> Iterator[Finding]:
    """Skills without their current revision."""
    for (skill,) in tx.rows(REVISION_SQL):
        yield Finding("procedural", f"skill {skill}", "its current revision is missing")


def without_revision(tx: Reading, space: int) -> Iterator[str]:
    """Names of a space's skills without their current revision."""
    return (row[0] for row in tx.rows(REVISION_IN_SPACE_SQL, space))


def missing(tx: Reading, after: int, limit: int) -> list[int]:
    """Keys behind `after` of skills that the index should hold and does not."""
    return [row[0] for row in tx.rows(MISSING_SQL, after, limit)]


def space_of_skill(tx: Reading, skill: int) -> int | None:
    """The space of a skill."""
    return tx.value(SPACE_OF_SKILL_SQL, skill)
