"""What hosts observed of their tools, in short."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from beetle.named_tuple import NamedTuple
from beetle.store.engine.transaction import Reading, Writing
from beetle.store.turn_messages import OF_ONE_TURN


class ObservationRow(NamedTuple):
    """One use of a tool. `turn` is set where the turn is in this store; `at` in microseconds.

    Channel and conversation say where a turn that is not there yet is awaited.
    """

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
    channel_id: str | None = None
    conversation_id: str | None = None


class ClaimedConversation(NamedTuple):
    """A conversation as feedback may have named it; by anyone where `principal` is None."""

    channel_id: str
    conversation_id: str
    principal: str | None = None


class Brief(NamedTuple):
    """What is said of it, and of the whole feedback that it came with."""

    summary: str
    result_summary: str
    reuse_outcome: str | None
    operator_note: str | None


NEW_SQL = """
INSERT INTO tool_observation (space, registry_id, registry_fingerprint, registry_scope, tool_id, schema_fingerprint,
  outcome, duration_ms, permission_tags, risk_tags, turn, turn_id, principal, at, channel_id, conversation_id)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
NEW_BRIEF_SQL = "INSERT INTO tool_brief VALUES (?, ?)"
TURN_SQL = "SELECT turn FROM turn WHERE conversation = ? AND turn_id = ?"
UNTIED_SQL = """
SELECT 1 FROM tool_observation WHERE space = ? AND turn IS NULL AND turn_id IS NOT NULL LIMIT 1
"""
TIE_SQL = """
UPDATE tool_observation SET turn = ?1
WHERE space = ?2 AND turn_id = ?3 AND turn IS NULL AND channel_id = ?4 AND conversation_id = ?5
  AND (?6 IS NULL OR principal = ?6)
"""
ERASED_SQL = f"SELECT 1 {OF_ONE_TURN} WHERE t.turn = ? AND m.state = 'deleted' LIMIT 1"
OF_SPACE = """
o.space = (SELECT c.space FROM turn t JOIN conversation c ON c.conversation = t.conversation WHERE t.turn = o.turn)
"""
ERASE_BRIEFS_SQL = f"""
DELETE FROM tool_brief WHERE tool_observation IN
  (SELECT o.tool_observation FROM json_each(?) j CROSS JOIN tool_observation o ON o.turn = j.value AND {OF_SPACE})
"""  # noqa: S608 - our own text
HOLDS_BRIEF_SQL = f"""
SELECT EXISTS (
  SELECT 1 FROM tool_observation o JOIN tool_brief b USING (tool_observation) WHERE o.turn = ? AND {OF_SPACE}
)
"""  # noqa: S608 - our own text


def holds_brief(tx: Reading, turn: int) -> bool:
    """Whether anything is said of the tools that a turn used."""
    return bool(tx.value(HOLDS_BRIEF_SQL, turn))


def erase_briefs(tx: Writing, turns: Sequence[int]) -> None:
    """Remove what is said of the tools that turns used."""
    tx.run(ERASE_BRIEFS_SQL, json.dumps(turns))


def add_observation(tx: Writing, space: int, row: ObservationRow, brief: Brief | None) -> int:
    """Write one observation; its key. Its brief is content, and is left out when None."""
    *head, permission, risk, turn, turn_id, principal, at, channel_id, conversation_id = row
    tags = (json.dumps(permission, ensure_ascii=False), json.dumps(risk, ensure_ascii=False))
    key = tx.insert(NEW_SQL, space, *head, *tags, turn, turn_id, principal, at, channel_id, conversation_id)
    if brief is not None:
        tx.run(NEW_BRIEF_SQL, key, json.dumps(brief._asdict(), ensure_ascii=False))
    return key


def tie(
    tx: Writing, space: int, conversation: int, turn_ids: Iterable[str], places: Iterable[ClaimedConversation]
) -> None:
    """Join observations that came before their turn to it, now that it is committed.

    Args:
        conversation: where the turns were committed.
        places: the conversation by its names; of a chat id with the principal whose feedback may mean it by that.
    """
    if (UNTIED_SQL, space) in tx.known:
        return
    if tx.value(UNTIED_SQL, space) is None:
        tx.known[UNTIED_SQL, space] = True
        return
    for turn_id in turn_ids:
        turn = find_turn(tx, conversation, turn_id)
        for place in places:
            tx.run(TIE_SQL, turn, space, turn_id, place.channel_id, place.conversation_id, place.principal)


def find_turn(tx: Reading, conversation: int, turn_id: str) -> int | None:
    """The key of a turn of a conversation."""
    return tx.value(TURN_SQL, conversation, turn_id)


def is_erased(tx: Reading, turn: int) -> bool:
    """Whether content of the turn was raw-deleted."""
    return tx.value(ERASED_SQL, turn) is not None
