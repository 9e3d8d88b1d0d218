"""What a store, or a copy of one, holds of the records that can be erased: of each, what it is called and what it says.

Every query gives a record's key and space, the space's name, the record's name, `alike` and `said`. `alike` is what an
import does not change of what tells it from others, and `said` a JSON array of the texts, or of digests of the texts,
that it has and ever had. Compared are records of a store and of its copies, whose keyed digests are made with one key.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from beetle.named_tuple import NamedTuple
from beetle.store import continuity
from beetle.store.engine.transaction import Reading

CANDIDATES_SQL = """
SELECT c.candidate, c.space, s.memory_space_id, c.waiting_id,
  json_array(c.candidate_id, c.target, c.kind, hex(c.topic_mac), hex(c.content_mac), c.authority, c.at), '[]'
FROM space s JOIN candidate c ON c.space = s.space WHERE s.memory_space_id = ?
"""
PROPOSALS_SQL = """
SELECT p.proposal, p.space, s.memory_space_id, p.proposal_id, json_array(p.proposal_id, p.created_at), '[]'
FROM space s JOIN proposal p ON p.space = s.space WHERE s.memory_space_id = ? AND p.state = 'open'
"""
BRIEFS_SQL = """
SELECT o.tool_observation, o.space, s.memory_space_id, o.tool_id, json_array(o.tool_id, o.schema_fingerprint, o.at),
  json_array(b.brief)
FROM space s JOIN tool_observation o ON o.space = s.space JOIN tool_brief b USING (tool_observation)
WHERE s.memory_space_id = ?
"""
REGISTRIES_SQL = """
SELECT g.tool_registry, g.space, s.memory_space_id, g.registry_id, g.registry_id,
  (SELECT json_group_array(json_array(t.tool_id, t.title, t.summary)) FROM registered_tool t
    WHERE t.tool_registry = g.tool_registry)
FROM space s JOIN tool_registry g ON g.space = s.space WHERE s.memory_space_id = ?
"""
UPLOADED_SQL = """
SELECT k.registry_skill, k.space, s.memory_space_id, k.skill_id, k.skill_id,
  (SELECT json_group_array(hex(v.content_hash)) FROM registry_version v WHERE v.registry_skill = k.registry_skill)
FROM space s JOIN registry_skill k ON k.space = s.space WHERE s.memory_space_id = ?
"""
FACTS_SQL = """
SELECT f.fact, f.space, s.memory_space_id, f.record_id, f.record_id,
  (SELECT json_group_array(json_array(b.topic, b.content, b.keywords)) FROM fact_body b WHERE b.fact = f.fact)
FROM space s JOIN fact f ON f.space = s.space WHERE s.memory_space_id = ? AND f.state <> 'deleted'
"""
SKILLS_SQL = """
SELECT k.skill, k.space, s.memory_space_id, k.name, k.name,
  (SELECT json_group_array(json_array(r.topic, r.title, r.summary, r.content, r.citations)) FROM skill_revision r
    WHERE r.skill = k.skill)
FROM space s JOIN skill k ON k.space = s.space WHERE s.memory_space_id = ?
"""
ITEMS_SQL = """
SELECT i.private_item, i.space, s.memory_space_id, i.record_id,
  json_array(i.candidate_id, i.plane, i.privacy, i.authority, i.at, hex(i.content_mac)), '[]', i.plane
FROM space s JOIN private_item i ON i.space = s.space WHERE s.memory_space_id = ?
"""
THOUGHTS_SQL = """
SELECT t.thought, c.space, s.memory_space_id, t.thought_id, hex(t.hash), '[]'
FROM space s JOIN chain c ON c.space = s.space JOIN thought t ON t.chain = c.chain
JOIN thought_body b ON b.thought = t.thought WHERE s.memory_space_id = ?
"""
CHUNKS_SQL = """
SELECT c.chunk, c.space, s.memory_space_id, c.chunk_id, c.chunk_id,
  (SELECT json_group_array(json_array(b.content, b.tags, b.extra)) FROM chunk_body b WHERE b.chunk = c.chunk)
FROM space s JOIN chunk c ON c.space = s.space WHERE s.memory_space_id = ?
"""
AGENTS_SQL = """
SELECT a.chain_agent, c.space, s.memory_space_id, a.agent_id, json_array(c.chain_key, c.created_at, a.agent_id),
  json_array(json_array(a.display_name, a.owner, a.description,
    (SELECT json_group_array(l.alias) FROM chain_alias l WHERE l.chain_agent = a.chain_agent)))
FROM space s JOIN chain c ON c.space = s.space JOIN chain_agent a ON a.chain = c.chain
WHERE s.memory_space_id = ? AND (a.display_name <> a.agent_id OR a.owner IS NOT NULL OR a.description IS NOT NULL
  OR EXISTS (SELECT 1 FROM chain_alias l WHERE l.chain_agent = a.chain_agent))
"""
POLICIES_SQL = """
SELECT p.policy, p.space, s.memory_space_id, p.number, json_array(p.action, p.kind, hex(p.topic_mac), p.chat_id, p.at),
  json_array(json_array(t.topic, t.reason))
FROM space s JOIN policy p ON p.space = s.space LEFT JOIN policy_text t ON t.policy = p.policy
WHERE s.memory_space_id = ?
"""
LABELS_SQL = """
SELECT r.host_ref, c.space, s.memory_space_id, t.turn_id,
  json_array(c.channel_id, c.conversation_id, t.turn_id, r.kind, r.ref_id), json_array(l.label)
FROM space s JOIN conversation c ON c.space = s.space JOIN turn t ON t.conversation = c.conversation
JOIN host_ref r ON r.turn = t.turn JOIN host_ref_label l ON l.host_ref = r.host_ref WHERE s.memory_space_id = ?
"""
ATTRS_SQL = """
SELECT a.attr, c.space, s.memory_space_id, t.turn_id,
  json_array(c.channel_id, c.conversation_id, t.turn_id, a.key), json_array(a.value)
FROM space s JOIN conversation c ON c.space = s.space JOIN turn t ON t.conversation = c.conversation
JOIN attr a ON a.turn = t.turn WHERE s.memory_space_id = ?
"""
NAMED_SKILL_SQL = SKILLS_SQL + "AND k.name = ?"
NAMED_CHUNK_SQL = CHUNKS_SQL + "AND c.chunk_id = ?"
NAMED_CANDIDATE_SQL = CANDIDATES_SQL + "AND c.waiting_id = ?"
CALLED_CANDIDATE_SQL = CANDIDATES_SQL + "AND c.candidate_id = ?"
NAMED_ITEM_SQL = ITEMS_SQL + "AND i.record_id = ?"
NAMED_REGISTRY_SQL = REGISTRIES_SQL + "AND g.registry_id = ?"
NAMED_UPLOADED_SQL = UPLOADED_SQL + "AND k.skill_id = ?"
HAS_TURN_SQL = """
SELECT 1 FROM space s JOIN conversation c ON c.space = s.space JOIN turn t ON t.conversation = c.conversation
WHERE s.memory_space_id = ? AND c.channel_id = ? AND c.conversation_id = ? AND t.turn_id = ?
"""
SPACES_SQL = "SELECT memory_space_id FROM space ORDER BY space"
CHATS_SQL = """
SELECT c.channel_id, c.conversation_id FROM space s JOIN remembered_conversation r ON r.space = s.space
JOIN conversation c ON c.conversation = r.conversation WHERE s.memory_space_id = ? AND r.chat_id = ?
ORDER BY c.conversation
"""
CONVERSATIONS_SQL = """
SELECT c.conversation, c.channel_id, c.conversation_id FROM space s JOIN conversation c ON c.space = s.space
WHERE s.memory_space_id = ? ORDER BY c.conversation
"""
MESSAGES_SQL = """
SELECT message_id, digest, message, turn FROM message WHERE conversation = ? AND state <> 'deleted' ORDER BY ordinal
"""

IN_SPACE = {
    # What waits goes first, so that nothing of it is judged again when what it waits for is gone.
    "candidate": CANDIDATES_SQL,
    "proposal": PROPOSALS_SQL,
    "brief": BRIEFS_SQL,
    "registry": REGISTRIES_SQL,
    "uploaded": UPLOADED_SQL,
    "fact": FACTS_SQL,
    "skill": SKILLS_SQL,
    "private": ITEMS_SQL,
    "thought": THOUGHTS_SQL,
    "chunk": CHUNKS_SQL,
    "chain_agent": AGENTS_SQL,
    "policy": POLICIES_SQL,
    "label": LABELS_SQL,
    "attr": ATTRS_SQL,
}
"""Every kind of record but turns. Labels and attrs are of turns that came again without them."""
OF_TURNS = ("label", "attr")
BY_NAME = {
    "candidate": NAMED_CANDIDATE_SQL,
    "registry": NAMED_REGISTRY_SQL,
    "uploaded": NAMED_UPLOADED_SQL,
    "skill": NAMED_SKILL_SQL,
    "private": NAMED_ITEM_SQL,
    "chunk": NAMED_CHUNK_SQL,
}


class HeldRecord(NamedTuple):
    """A record of the copy that is erased in the store: its plane, key and space there, and what it is called."""

    plane: str
    key: int
    space: int
    memory_space_id: str
    name: str


class Held(NamedTuple):
    """A record as it is held, with what it is known again by."""

    record: HeldRecord
    alike: str
    said: frozenset[str]


class Scope(NamedTuple):
    """A space, or what is of one chat of it: its id, and the conversation that it stands for, where that is known."""

    memory_space_id: str
    chat_id: str | None = None
    conversation: tuple[str, str] | None = None


def in_space(tx: Reading, plane: str, memory_space_id: str) -> list[Held]:
    """The records of a kind in a space."""
    return [_held(plane, row) for row in tx.rows(IN_SPACE[plane], memory_space_id)]


def named(tx: Reading, plane: str, memory_space_id: str, name: str) -> list[Held]:
    """Those of them with a name."""
    return [_held(plane, row) for row in tx.rows(BY_NAME[plane], memory_space_id, name)]


def called(tx: Reading, memory_space_id: str, candidate_id: str) -> list[Held]:
    """The waiting candidates with the id that their writer gave, which need not be the only ones."""
    return [_held("candidate", row) for row in tx.rows(CALLED_CANDIDATE_SQL, memory_space_id, candidate_id)]


def of_scope(tx: Reading, plane: str, scope: Scope) -> list[Held]:
    """The records of a kind that a replacing import of a scope takes away."""
    found = in_space(tx, plane, scope.memory_space_id)
    if scope.chat_id is None or not found:
        return found
    space = found[0].record.space
    where = next(
        (key for key, *name in conversations(tx, scope.memory_space_id) if (*name,) == scope.conversation), None
    )
    keys: set[int] = set()
    if plane == "fact":
        keys = {row.fact for row in continuity.facts_of_chat(tx, space, where, scope.chat_id)}
    elif plane == "skill":
        keys = {row.skill for row in continuity.skill_heads(tx, space, scope.chat_id)}
    elif plane == "private" and where is not None:
        keys = {row.item for row in continuity.items(tx, space, where, of_chat=True)}
    elif plane in OF_TURNS:
        return [each for each in found if (*json.loads(each.alike)[:2],) == scope.conversation]
    return [each for each in found if each.record.key in keys]


def conversations(tx: Reading, memory_space_id: str) -> list[tuple[int, str, str]]:
    """(key, channel, id) of a space's conversations."""
    return [(row[0], row[1], row[2]) for row in tx.rows(CONVERSATIONS_SQL, memory_space_id)]


def conversations_of_chat(tx: Reading, memory_space_id: str, chat_id: str) -> list[tuple[str, str]]:
    """(channel, id) of the conversations that a chat stands for, in whatever channel."""
    return [(row[0], row[1]) for row in tx.rows(CHATS_SQL, memory_space_id, chat_id)]


def messages(tx: Reading, conversation: int) -> Iterator[tuple[str, bytes, int, int]]:
    """(id, digest, key, turn) of the messages of a conversation that say something."""
    return ((row[0], row[1], row[2], row[3]) for row in tx.rows(MESSAGES_SQL, conversation))


def has_turn_of(tx: Reading, each: Held) -> bool:
    """Whether the turn of a label or an attr is there."""
    return tx.row(HAS_TURN_SQL, each.record.memory_space_id, *json.loads(each.alike)[:3]) is not None


def spaces(tx: Reading) -> list[str]:
    """The names of all spaces."""
    return [row[0] for row in tx.rows(SPACES_SQL)]


def holds(rows: Iterable[Held], each: Held) -> bool:
    """Whether some records hold all that one of a copy says, as the same record."""
    return any(row.alike == each.alike and each.said <= row.said for row in rows)


def _held(plane: str, row: tuple[object, ...]) -> Held:
    key, space, memory_space_id, name, alike, said = row[:6]
    called = f"{row[6]}:{name}" if plane == "private" else str(name)
    record = HeldRecord._make((plane, key, space, memory_space_id, called))
    return Held(record, str(alike), frozenset(json.dumps(each) for each in json.loads(str(said))))
