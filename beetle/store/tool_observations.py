"""What hosts observed of their tools, in short."""

from __future__ import annotations

import json
from typing import NamedTuple

from beetle.store.transaction import Reading, Writing


class ObservationRow(NamedTuple):
    """One use of a tool. `turn` is set where the turn is in this store; `at` in microseconds."""

    registry_id: str
    registry_fingerprint: str
    registry_scope: str
    tool_id: str
    schema_fingerprint: str
    outcome: str
    duration_ms: int | None
    permission_tags: tuple[str, ...]
    risk_tags: tuple[str, ...]
    turn: int | None
    turn_id: str | None
    principal: str
    at: int


class Brief(NamedTuple):
    """What is said of it, and of the whole feedback that it came with."""

    summary: str
    result_summary: str
    reuse_outcome: str | None
    operator_note: str | None


NEW_SQL = """
INSERT INTO tool_observation (space, registry_id, registry_fingerprint, registry_scope, tool_id, schema_fingerprint,
  outcome, duration_ms, permission_tags, risk_tags, turn, turn_id, principal, at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
NEW_BRIEF_SQL = "INSERT INTO tool_brief VALUES (?, ?)"
TURN_SQL = "SELECT turn FROM turn WHERE conversation = ? AND turn_id = ?"
ERASED_SQL = "SELECT 1 FROM message WHERE turn = ? AND state = 'deleted' LIMIT 1"


def add_observation(tx: Writing, space: int, row: ObservationRow, brief: Brief | None) -> int:
    """Write one observation; its key. Its brief is content, and is left out when None."""
    *head, permission, risk, turn, turn_id, principal, at = row
    tags = (json.dumps(permission, ensure_ascii=False), json.dumps(risk, ensure_ascii=False))
    key = tx.insert(NEW_SQL, space, *head, *tags, turn, turn_id, principal, at)
    if brief is not None:
        tx.run(NEW_BRIEF_SQL, key, json.dumps(brief._asdict(), ensure_ascii=False))
    return key


def find_turn(tx: Reading, conversation: int, turn_id: str) -> int | None:
    """The key of a turn of a conversation."""
    return tx.value(TURN_SQL, conversation, turn_id)


def is_erased(tx: Reading, turn: int) -> bool:
    """Whether content of the turn was raw-deleted."""
    return tx.value(ERASED_SQL, turn) is not None
