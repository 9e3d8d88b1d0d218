"""What a model has written of segments: titles, and the texts of bullets. The rest of the table of contents is places.

A title, also an empty one, says that the model was asked about the segment as its events are now.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from beetle.store.engine.transaction import Reading, Writing
from beetle.store.toc import NODE_COLUMNS, GripRow, NodeRow

PUT_TITLE_SQL = "INSERT INTO toc_title VALUES (?, ?) ON CONFLICT DO UPDATE SET title = excluded.title"
TITLES_SQL = "SELECT t.toc_node, t.title FROM json_each(?) j CROSS JOIN toc_title t ON t.toc_node = j.value"
GRIPS_SQL = """
SELECT g.grip_id, g.segment, g.message, g.last_message, g.begins, g.ends, g.written
FROM json_each(?) j CROSS JOIN grip g ON g.segment = j.value AND g.written IS NOT NULL ORDER BY g.segment, g.grip
"""
IDS_SQL = """
SELECT g.segment, g.grip_id FROM json_each(?) j CROSS JOIN grip g ON g.segment = j.value AND g.written IS NOT NULL
ORDER BY g.segment, g.grip
"""
UNWRITTEN_SQL = f"""{NODE_COLUMNS}
WHERE level = 5 AND stale = 0 AND toc_node < ?
  AND NOT EXISTS (SELECT 1 FROM toc_title t WHERE t.toc_node = toc_node.toc_node)
ORDER BY toc_node DESC LIMIT ?
"""  # noqa: S608 - our own text


def put_title(tx: Writing, key: int, title: str) -> None:
    """What a model calls a segment; empty where it found no name for it."""
    tx.run(PUT_TITLE_SQL, key, title)


def titles(tx: Reading, keys: Iterable[int]) -> dict[int, str]:
    """What a model calls these segments, those of them that it was asked about."""
    return {row[0]: row[1] for row in tx.rows(TITLES_SQL, json.dumps(list(keys)))}


def grips(tx: Reading, segment: int) -> list[GripRow]:
    """The bullets that a model has written of a segment, in their order."""
    return [GripRow(*row) for row in tx.rows(GRIPS_SQL, json.dumps([segment]))]


def ids(tx: Reading, segments: Iterable[int]) -> dict[int, list[str]]:
    """For each of these segments of which a model has written bullets: their ids, in their order."""
    found: dict[int, list[str]] = {}
    for segment, grip_id in tx.rows(IDS_SQL, json.dumps(list(segments))):
        found.setdefault(segment, []).append(grip_id)
    return found


def unwritten(tx: Reading, before: int, most: int) -> list[NodeRow]:
    """Segments with bullets about which no model was asked, with keys below one; the highest first."""
    return [NodeRow(*row) for row in tx.rows(UNWRITTEN_SQL, before, most)]
