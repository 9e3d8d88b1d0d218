"""Reading a whole scope, for fingerprints, continuity snapshots and archives; and taking a scope away."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from beetle.named_tuple import NamedTuple
from beetle.store.columns import mapping, texts
from beetle.store.engine.transaction import Reading, Row
from beetle.store.long_term import FACT_FIELDS, FactRow
from beetle.store.private import ITEM_COLUMNS, ItemRow
from beetle.store.sight import Sight
from beetle.store.tool_registries import TOOLS_SQL
from beetle.store.turn_messages import OF_ONE_TURN, OF_TURN

CONVERSATIONS_SQL = """
SELECT conversation, channel_id, conversation_id FROM conversation
WHERE space = ?1 AND (?2 IS NULL OR conversation = ?2) ORDER BY conversation
"""
DOORS_SQL = "SELECT turn_id, door FROM turn WHERE conversation = ? AND sequence BETWEEN ? AND ?"
MESSAGES_SQL = "SELECT count(*) FROM message WHERE conversation = ? AND state <> 'deleted'"
SKILLS_SQL = """
SELECT s.skill, s.name, s.enabled, s.retired, s.created_at, s.updated_at, s.authority
FROM skill s JOIN skill_revision r ON r.skill = s.skill AND r.revision = s.revision
WHERE s.space = ?1 AND (?2 IS NULL OR r.source_chat_id = ?2) ORDER BY s.skill
"""
SKILL_DERIVED_SQL = "SELECT derived, evidence, relation FROM derived_ref WHERE skill = ? ORDER BY derived_ref"
FACTS_SQL = f"SELECT {FACT_FIELDS} FROM fact WHERE space = ? ORDER BY fact"  # noqa: S608 - constants, as all of these
FACTS_OF_CHAT_SQL = f"""
SELECT {FACT_FIELDS} FROM fact f WHERE space = ?1 AND (
  EXISTS (
    SELECT 1 FROM derived_ref d JOIN turn t ON t.turn = d.turn WHERE d.fact = f.fact AND t.conversation = ?2
  )
  OR (
    (SELECT source_chat_id FROM fact_revision r WHERE r.fact = f.fact AND r.revision = 1) = ?3
    AND NOT EXISTS (SELECT 1 FROM derived_ref d WHERE d.fact = f.fact AND d.turn IS NOT NULL)
  )
) ORDER BY fact
"""  # noqa: S608
FACT_DERIVED_SQL = "SELECT evidence, relation FROM derived_ref WHERE fact = ? ORDER BY derived_ref"
REGISTRIES_SQL = """
SELECT tool_registry, registry_id, scope, fingerprint, revision, created_at, updated_at FROM tool_registry
WHERE space = ? ORDER BY tool_registry
"""
OBSERVATIONS_SQL = f"""
SELECT o.registry_id, o.registry_fingerprint, o.registry_scope, o.tool_id, o.schema_fingerprint, o.outcome,
  o.duration_ms, o.permission_tags, o.risk_tags, o.turn_id, o.at, b.brief, c.channel_id, c.conversation_id, t.turn_id,
  NOT EXISTS (SELECT 1 FROM message m WHERE {OF_TURN} AND (m.state <> 'live' OR m.visibility <> 'shared'))
FROM tool_observation o LEFT JOIN tool_brief b USING (tool_observation)
LEFT JOIN turn t ON t.turn = o.turn LEFT JOIN conversation c ON c.conversation = t.conversation
WHERE o.space = ? ORDER BY o.tool_observation
"""  # noqa: S608 - our own text
ITEMS_SQL = ITEM_COLUMNS + "WHERE space = ? ORDER BY private_item"
ITEMS_OF_CHAT_SQL = (
    ITEM_COLUMNS  # noqa: S608 - constants
    + """
WHERE space = ?1 AND EXISTS (
  SELECT 1 FROM derived_ref d JOIN turn t ON t.turn = d.turn
  WHERE t.conversation = ?2 AND d.space = ?1 AND d.derived = plane || ':' || record_id
) ORDER BY private_item
"""
)
ITEM_DERIVED_SQL = """
SELECT evidence FROM derived_ref WHERE space = ? AND derived = ? AND skill IS NULL AND fact IS NULL ORDER BY derived_ref
"""
ALIASES_SQL = """
SELECT principal, agent_id, channel, chat_id, conversation FROM remembered_conversation WHERE space = ?
ORDER BY principal, agent_id, channel, chat_id
"""
LEDGER_SQL = """
SELECT t.turn, t.sequence, t.turn_id, t.at, t.committed_at, t.door, t.archived FROM turn t
WHERE t.conversation = ? AND t.sequence > ? ORDER BY t.sequence LIMIT ?
"""
LEDGER_MESSAGES_SQL = f"""
SELECT m.message_id, m.role, m.at, m.state, l.lifecycle, l.action, l.at
{OF_ONE_TURN} LEFT JOIN transcript_lifecycle l ON l.lifecycle = m.lifecycle
WHERE t.turn = ? ORDER BY m.position
"""
LEDGER_DERIVED_SQL = """
SELECT d.derived, d.evidence, d.relation FROM derived_ref d LEFT JOIN fact f ON f.fact = d.fact
WHERE d.turn = ?1 AND d.space = ?2
  AND CASE WHEN substr(d.derived, 1, instr(d.derived, ':') - 1) IN ('private_garden', 'soul_candidate') THEN ?4
    WHEN f.visibility = 'private' THEN ?3 ELSE 1 END
ORDER BY d.derived_ref LIMIT ?5
"""


class SkillHead(NamedTuple):
    """A skill without its revisions. Times in microseconds."""

    skill: int
    name: str
    enabled: int
    retired: int
    created_at: int
    updated_at: int
    authority: str | None


class Observed(NamedTuple):
    """One use of a tool; `channel`, `conversation_id` and `in_turn` name the turn of it, where that is known.

    `open` says that nothing of that turn is withheld from anyone.
    """

    registry_id: str
    registry_fingerprint: str
    registry_scope: str
    tool_id: str
    schema_fingerprint: str
    outcome: str
    duration_ms: int | None
    permission_tags: str
    risk_tags: str
    turn_id: str | None
    at: int
    brief: str | None
    channel: str | None
    conversation_id: str | None
    in_turn: str | None
    open: int


class LedgerTurn(NamedTuple):
    """A turn as the ledger has it: no content. Times in microseconds."""

    turn: int
    sequence: int
    turn_id: str
    at: int
    committed_at: int
    door: str
    archived: int


class LedgerMessage(NamedTuple):
    """A message as the ledger has it, with the lifecycle step that last changed it."""

    message_id: str
    role: str
    at: int
    state: str
    step: int | None
    action: str | None
    stepped_at: int | None


class LedgerDerived(NamedTuple):
    """A derived ref."""

    derived: str
    evidence: str
    relation: str


def conversations(tx: Reading, space: int, only: int | None) -> list[tuple[int, str, str]]:
    """(key, channel, id) of a space's conversations, in the order in which they began."""
    return [(row[0], row[1], row[2]) for row in tx.rows(CONVERSATIONS_SQL, space, only)]


def doors(tx: Reading, conversation: int, first: int, last: int) -> dict[str, str]:
    """By which door each turn of a stretch of sequences came in."""
    return {turn_id: door for turn_id, door in tx.rows(DOORS_SQL, conversation, first, last)}


def count_messages(tx: Reading, conversation: int) -> int:
    """Messages of a conversation whose content is there."""
    return tx.value(MESSAGES_SQL, conversation)


def skill_heads(tx: Reading, space: int, chat_id: str | None) -> list[SkillHead]:
    """The skills of a space, or those whose current revision comes from a chat."""
    return [SkillHead(*row) for row in tx.rows(SKILLS_SQL, space, chat_id)]


def skill_derived(tx: Reading, skill: int) -> list[Row]:
    """(derived, evidence, relation) of a skill."""
    return list(tx.rows(SKILL_DERIVED_SQL, skill))


def facts(tx: Reading, space: int) -> list[FactRow]:
    """Every fact of a space."""
    return [FactRow(*row) for row in tx.rows(FACTS_SQL, space)]


def facts_of_chat(tx: Reading, space: int, conversation: int | None, chat_id: str) -> list[FactRow]:
    """The facts that rest on a conversation and, of those that rest on no turn, the ones first learned in that chat."""
    return [FactRow(*row) for row in tx.rows(FACTS_OF_CHAT_SQL, space, conversation, chat_id)]


def fact_derived(tx: Reading, fact: int) -> list[Row]:
    """(evidence, relation) of a fact."""
    return list(tx.rows(FACT_DERIVED_SQL, fact))


def registries(tx: Reading, space: int) -> Iterator[tuple[Row, list[Row]]]:
    """Each registry of a space with its tools."""
    for row in tx.rows(REGISTRIES_SQL, space):
        yield row, list(tx.rows(TOOLS_SQL, row[0]))


def observations(tx: Reading, space: int) -> Iterator[Observed]:
    """What was observed of tools."""
    return (Observed(*row) for row in tx.rows(OBSERVATIONS_SQL, space))


def items(tx: Reading, space: int, conversation: int | None, *, of_chat: bool) -> list[ItemRow]:
    """The private items of a space, or those that rest on a conversation."""
    rows = tx.rows(ITEMS_OF_CHAT_SQL, space, conversation) if of_chat else tx.rows(ITEMS_SQL, space)
    return [ItemRow(*row) for row in rows]


def item_derived(tx: Reading, space: int, item: ItemRow) -> list[str]:
    """What a private item rests on."""
    return [row[0] for row in tx.rows(ITEM_DERIVED_SQL, space, f"{item.plane}:{item.record_id}")]


def aliases(tx: Reading, space: int) -> list[Row]:
    """(principal, agent, channel, chat id, conversation) of what was last committed to."""
    return list(tx.rows(ALIASES_SQL, space))


def ledger(tx: Reading, conversation: int, after: int, limit: int) -> list[LedgerTurn]:
    """Turns behind a sequence, in sequence order."""
    return [LedgerTurn(*row) for row in tx.rows(LEDGER_SQL, conversation, after, limit)]


def ledger_messages(tx: Reading, turn: int) -> list[LedgerMessage]:
    """The messages of a turn."""
    return [LedgerMessage(*row) for row in tx.rows(LEDGER_MESSAGES_SQL, turn)]


def ledger_derived(tx: Reading, turn: int, space: int, sight: Sight, limit: int) -> list[LedgerDerived]:
    """What the space derived from a turn, at most `limit` of what may be told of."""
    return [LedgerDerived(*row) for row in tx.rows(LEDGER_DERIVED_SQL, turn, space, *sight, limit)]


def tags(text: str) -> tuple[str, ...]:
    """The tags of a tool as they are stored."""
    return texts(text)


def brief(text: str) -> dict[str, Any]:
    """A tool's brief as it is stored."""
    return mapping(text)
