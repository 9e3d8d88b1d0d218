"""Events by the agents that they came from."""

from __future__ import annotations

import json

from beetle.named_tuple import NamedTuple
from beetle.store.engine.transaction import Reading

DAY_MS = 86_400_000
SUMMARIES_SQL = """
SELECT m.agent_id, count(*), count(DISTINCT m.conversation), min(e.at_ms), max(e.at_ms) AS last
FROM event e CROSS JOIN message m ON m.message = e.message
WHERE e.space = ?1 AND m.agent_id IS NOT NULL AND m.state = 'live' AND m.visibility IN (SELECT value FROM json_each(?2))
GROUP BY m.agent_id ORDER BY last DESC, m.agent_id LIMIT ?3
"""
# 1970 began on a Thursday: weeks are counted from the Monday before.
ACTIVITY_SQL = """
SELECT (e.at_ms + ?6 - ((e.at_ms + ?6) % ?5 + ?5) % ?5) - ?6 AS start, count(*), m.agent_id
FROM event e CROSS JOIN message m ON m.message = e.message
WHERE e.space = ?1 AND e.at_ms BETWEEN ?3 AND ?4 AND m.agent_id IS NOT NULL AND (?7 IS NULL OR m.agent_id = ?7)
  AND m.state = 'live' AND m.visibility IN (SELECT value FROM json_each(?2))
GROUP BY start, m.agent_id ORDER BY start, m.agent_id LIMIT ?8
"""


class Summary(NamedTuple):
    """What came from one agent; times in milliseconds."""

    agent_id: str
    events: int
    conversations: int
    first: int
    last: int


class Active(NamedTuple):
    """How many events of an agent began with a time in milliseconds."""

    start: int
    events: int
    agent_id: str


def summaries(tx: Reading, space: int, kinds: tuple[str, ...], most: int) -> list[Summary]:
    """The agents of live events of these visibilities, the last one heard first."""
    return [Summary(*row) for row in tx.rows(SUMMARIES_SQL, space, json.dumps(kinds), most)]


def activity(
    tx: Reading,
    space: int,
    kinds: tuple[str, ...],
    between: tuple[int, int],
    days: int,
    agent_id: str | None,
    most: int,
) -> list[Active]:
    """Live events of these visibilities between two times, by so many days from a Monday and by agent."""
    size, offset = days * DAY_MS, 3 * DAY_MS if days > 1 else 0
    found = tx.rows(ACTIVITY_SQL, space, json.dumps(kinds), *between, size, offset, agent_id, most)
    return [Active(*row) for row in found]
