"""Counts over a space."""

from __future__ import annotations

import json

from beetle.store.transaction import Reading

COUNTS_SQL = """
SELECT json_object(
  'conversations', (SELECT count(*) FROM conversation WHERE space = ?1),
  'turns', (SELECT coalesce(sum(turns), 0) FROM conversation WHERE space = ?1),
  'messages', (SELECT coalesce(sum(messages), 0) FROM conversation WHERE space = ?1),
  'masked_messages', (SELECT count(*) FROM message m INDEXED BY message_hidden JOIN conversation c USING (conversation)
    WHERE c.space = ?1 AND m.state <> 'live' AND m.state = 'masked'),
  'deleted_messages', (SELECT count(*) FROM message m INDEXED BY message_hidden JOIN conversation c USING (conversation)
    WHERE c.space = ?1 AND m.state <> 'live' AND m.state = 'deleted'),
  'runtime_skills', (SELECT count(*) FROM skill WHERE space = ?1),
  'skill_revisions', (SELECT coalesce(sum(revision), 0) FROM skill WHERE space = ?1),
  'derived_refs', (SELECT count(*) FROM derived_ref WHERE space = ?1),
  'facts', (SELECT count(*) FROM fact WHERE space = ?1 AND state = 'current'),
  'stale_facts', (SELECT count(*) FROM fact WHERE space = ?1 AND state = 'stale'),
  'superseded_facts', (SELECT count(*) FROM fact WHERE space = ?1 AND state = 'superseded'),
  'deleted_facts', (SELECT count(*) FROM fact WHERE space = ?1 AND state = 'deleted'),
  'waiting_candidates', (SELECT count(*) FROM candidate WHERE space = ?1)
)
"""
SINCE_SQL = "SELECT created_at FROM space WHERE space = ?"


def space_since(tx: Reading, space: int | None) -> int | None:
    """When a space was first written to, in microseconds."""
    return tx.value(SINCE_SQL, space)


def plane_counts(tx: Reading, space: int | None) -> dict[str, int]:
    """Rows of a space by plane; zeros when nothing was ever written to it."""
    counts: dict[str, int] = json.loads(tx.value(COUNTS_SQL, space))
    return counts
