"""Reading what was observed of tools, as far as it may speak."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from beetle.store.engine.transaction import Reading
from beetle.store.tool_registries import ToolRow, tool_of
from beetle.store.turn_messages import OF_ONE_TURN

# A turn speaks as long as all of it is live, and holds nothing that is withheld from who asks.
SPEAKS = f"""
NOT EXISTS (
  SELECT 1 {OF_ONE_TURN}
  WHERE t.turn = o.turn AND (m.state <> 'live' OR m.visibility IN (SELECT value FROM json_each(?)))
)
"""  # noqa: S608 - our own text
OBSERVED_SQL = """
SELECT r.tool_id, r.title, r.summary, r.schema_fingerprint, r.permission_tags, r.risk_tags FROM registered_tool r
WHERE r.tool_registry = ?3 AND EXISTS (
  SELECT 1 FROM tool_observation o
  WHERE o.space = ?1 AND o.registry_id = ?2 AND o.tool_id = r.tool_id AND o.schema_fingerprint = r.schema_fingerprint
)
ORDER BY r.position
"""
USES_SQL = (
    """
SELECT o.outcome, o.turn, o.turn_id, o.at FROM tool_observation o
WHERE o.space = ? AND o.registry_id = ? AND o.tool_id = ? AND o.schema_fingerprint = ?
  AND (? IS NULL OR o.registry_scope = ?) AND """
    + SPEAKS
    + "ORDER BY o.tool_observation DESC LIMIT ?"
)
NEXT_TOOL_SQL = """
SELECT min(tool_id) FROM tool_observation WHERE space = ? AND registry_id = ? AND tool_id > ?
"""
NEXT_SCHEMA_SQL = """
SELECT min(schema_fingerprint) FROM tool_observation
WHERE space = ? AND registry_id = ? AND tool_id = ? AND schema_fingerprint > ?
"""
NEXT_REGISTRY_SQL = "SELECT min(registry_id) FROM tool_observation WHERE space = ? AND registry_id > ?"

Use = tuple[str, str | None, int]
"""Outcome, the name of its turn, and when, in microseconds."""


def observed_tools(tx: Reading, space: int, registry_id: str, registry: int) -> list[ToolRow]:
    """Tools of a registry that were used under the schema that they are registered with, in the host's order."""
    return [tool_of(row) for row in tx.rows(OBSERVED_SQL, space, registry_id, registry)]


def uses(
    tx: Reading,
    space: int,
    tool: tuple[str, str, str],
    scope: str | None,
    withheld: Iterable[str],
    most: int,
) -> list[Use]:
    """The last uses of a tool that may speak.

    Args:
        tool: registry id, tool id, schema fingerprint.
        scope: the registry's; any when None.
        withheld: visibilities of messages whose turns may not speak to who asks.
    """
    hidden = json.dumps(sorted(withheld))
    found = tx.rows(USES_SQL, space, *tool, scope, scope, hidden, most)
    return [(outcome, _turn(turn, turn_id), at) for outcome, turn, turn_id, at in found]


def _turn(turn: int | None, turn_id: str | None) -> str | None:
    """A turn that is not in the store is told apart by its id alone."""
    if turn is not None:
        return f"#{turn}"
    return None if turn_id is None else f"={turn_id}"


def schemas(tx: Reading, space: int, registry_id: str, tool_id: str) -> Iterator[str]:
    """The schema fingerprints under which a tool was used, each once."""
    return _steps(tx, NEXT_SCHEMA_SQL, space, registry_id, tool_id)


def tools(tx: Reading, space: int, registry_id: str) -> Iterator[str]:
    """The tools of a registry that were used, each once."""
    return _steps(tx, NEXT_TOOL_SQL, space, registry_id)


def registries(tx: Reading, space: int) -> Iterator[str]:
    """The registries whose tools were used, each once."""
    return _steps(tx, NEXT_REGISTRY_SQL, space)


def _steps(tx: Reading, sql: str, *within: object) -> Iterator[str]:
    """Distinct values in order, each found from the one before: their rows may be many."""
    last = ""
    while (found := tx.value(sql, *within, last)) is not None:
        yield found
        last = found
