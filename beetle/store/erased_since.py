"""What was erased in a store since a copy of it was made: what the copy still holds, and the store holds no more."""

from __future__ import annotations

import json
from collections.abc import Iterator

from beetle.named_tuple import NamedTuple
from beetle.store.engine.transaction import Reading, Writing
from beetle.store.event_places import last_places

DELETED_SQL = """
SELECT s.memory_space_id, c.channel_id, c.conversation_id, m.message_id, m.digest
FROM message m INDEXED BY message_hidden JOIN conversation c ON c.conversation = m.conversation
JOIN space s ON s.space = c.space WHERE m.state <> 'live' AND m.state = 'deleted'
ORDER BY m.conversation, m.ordinal
"""
HELD_SQL = """
SELECT m.message, m.turn, c.space FROM space s JOIN conversation c ON c.space = s.space
JOIN message m ON m.conversation = c.conversation
WHERE s.memory_space_id = ? AND c.channel_id = ? AND c.conversation_id = ? AND m.message_id = ? AND m.digest = ?
  AND m.state <> 'deleted'
"""
TURN_SQL = """
SELECT t.turn, t.sequence, t.turn_id, c.space, s.memory_space_id, c.channel_id, c.conversation_id, c.conversation
FROM turn t JOIN conversation c ON c.conversation = t.conversation JOIN space s ON s.space = c.space WHERE t.turn = ?
"""
FACTS_SQL = """
SELECT s.memory_space_id, f.record_id FROM fact f JOIN space s ON s.space = f.space
WHERE f.state = 'deleted' ORDER BY f.fact
"""
HELD_FACT_SQL = """
SELECT f.fact, f.space FROM fact f JOIN space s ON s.space = f.space
WHERE s.memory_space_id = ? AND f.record_id = ? AND f.state <> 'deleted'
"""
ITEMS_SQL = """
SELECT i.private_item, i.space, s.memory_space_id, i.record_id, i.plane
FROM private_item i JOIN space s ON s.space = i.space ORDER BY i.private_item
"""
HAS_ITEM_SQL = """
SELECT 1 FROM private_item i JOIN space s ON s.space = i.space WHERE s.memory_space_id = ? AND i.record_id = ?
"""
PROPOSALS_SQL = """
SELECT p.proposal, p.space, s.memory_space_id, p.proposal_id FROM proposal p JOIN space s ON s.space = p.space
WHERE p.state = 'open' ORDER BY p.proposal
"""
DROPPED_PROPOSAL_SQL = """
SELECT 1 FROM proposal p JOIN space s ON s.space = p.space
WHERE s.memory_space_id = ? AND p.proposal_id = ? AND p.outcome IN ('forgotten', 'evidence_erased', 'target_erased')
"""
BRIEFS_SQL = """
SELECT o.tool_observation, o.space, s.memory_space_id, o.tool_id, o.at FROM tool_observation o
JOIN tool_brief b USING (tool_observation) JOIN space s ON s.space = o.space ORDER BY o.tool_observation
"""
BRIEF_GONE_SQL = """
SELECT 1 FROM tool_observation o LEFT JOIN tool_brief b USING (tool_observation)
WHERE o.tool_observation = ? AND o.tool_id = ? AND o.at = ? AND b.brief IS NULL
"""
REGISTRIES_SQL = """
SELECT g.tool_registry, g.space, s.memory_space_id, g.registry_id
FROM tool_registry g JOIN space s ON s.space = g.space ORDER BY g.tool_registry
"""
HAS_REGISTRY_SQL = """
SELECT 1 FROM tool_registry g JOIN space s ON s.space = g.space WHERE s.memory_space_id = ? AND g.registry_id = ?
"""
THOUGHTS_SQL = """
SELECT s.memory_space_id, t.hash, t.thought_id FROM thought_mark k JOIN thought t ON t.thought = k.thought
JOIN chain c ON c.chain = t.chain JOIN space s ON s.space = c.space WHERE k.state = 'erased' ORDER BY t.thought
"""
HELD_THOUGHT_SQL = """
SELECT t.thought, c.space FROM thought t JOIN thought_body b ON b.thought = t.thought
JOIN chain c ON c.chain = t.chain JOIN space s ON s.space = c.space WHERE s.memory_space_id = ? AND t.hash = ?
"""
TOLD_SQL = """
SELECT space, subject ->> ?1 FROM event_log
WHERE seq > ?2 AND topic = ?3 AND event = ?4 AND space IS NOT NULL
  AND (?5 IS NULL OR subject ->> '$.reason' IN (SELECT value FROM json_each(?5))) ORDER BY seq
"""
HELD_SKILL_SQL = """
SELECT k.skill, k.space FROM skill k JOIN space s ON s.space = k.space WHERE s.memory_space_id = ? AND k.name = ?
"""
HELD_CANDIDATE_SQL = """
SELECT c.candidate, c.space FROM candidate c JOIN space s ON s.space = c.space
WHERE s.memory_space_id = ? AND c.candidate_id = ?
"""
HELD_UPLOADED_SQL = """
SELECT k.registry_skill, k.space FROM registry_skill k JOIN space s ON s.space = k.space
WHERE s.memory_space_id = ? AND k.skill_id = ?
"""
HELD_CHUNK_SQL = """
SELECT c.chunk, c.space FROM chunk c JOIN space s ON s.space = c.space WHERE s.memory_space_id = ? AND c.chunk_id = ?
"""
HASH_SQL = "SELECT hash FROM event_log WHERE seq = ?"
TAIL_SQL = "SELECT * FROM event_log WHERE seq > ? ORDER BY seq"
PLACES_SQL = "SELECT * FROM event_place WHERE space = ? AND place > ? ORDER BY place"
SIGNED_SQL = "SELECT signed FROM log_head"
NEW_ROW_SQL = "INSERT INTO event_log VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
NEW_PLACE_SQL = "INSERT INTO event_place VALUES (?, ?, ?, ?, ?, ?)"
SIGN_SQL = "UPDATE log_head SET signed = ?"
BY_ERASURE = ("forgotten", "evidence_unavailable")
"""Why a candidate is dropped when something is erased; one that expired is only gone."""


class HeldRecord(NamedTuple):
    """A record of the copy that is erased in the store: its plane, key and space there, and what it is called."""

    plane: str
    key: int
    space: int
    memory_space_id: str
    name: str


class HeldTurn(NamedTuple):
    """A turn of the copy, and its messages that are erased in the store, by their keys there."""

    turn: int
    sequence: int
    turn_id: str
    space: int
    memory_space_id: str
    channel_id: str
    conversation_id: str
    conversation: int
    messages: frozenset[int]


def turns(store: Reading, copy: Reading) -> list[HeldTurn]:
    """The turns of which the copy holds messages that are erased in the store."""
    held: dict[int, set[int]] = {}
    for row in store.rows(DELETED_SQL):
        found = copy.row(HELD_SQL, *row)
        if found is not None:
            held.setdefault(found[1], set()).add(found[0])
    made: list[HeldTurn] = []
    for turn, messages in held.items():
        row = copy.row(TURN_SQL, turn)
        assert row is not None
        made.append(HeldTurn._make((*row, frozenset(messages))))
    return made


def records(store: Reading, copy: Reading, since: int | None) -> Iterator[HeldRecord]:
    """The other records. What leaves no tombstone is told by the event log behind its row `since`, where that is known
    to go on from the copy's.
    """
    for space, record_id in store.rows(FACTS_SQL):
        if (row := copy.row(HELD_FACT_SQL, space, record_id)) is not None:
            yield HeldRecord("fact", row[0], row[1], space, record_id)
    for key, number, space, record_id, plane in copy.rows(ITEMS_SQL):
        if store.row(HAS_ITEM_SQL, space, record_id) is None:
            yield HeldRecord("private", key, number, space, f"{plane}:{record_id}")
    for key, number, space, proposal_id in copy.rows(PROPOSALS_SQL):
        if store.row(DROPPED_PROPOSAL_SQL, space, proposal_id) is not None:
            yield HeldRecord("proposal", key, number, space, proposal_id)
    for key, number, space, tool_id, at in copy.rows(BRIEFS_SQL):
        if store.row(BRIEF_GONE_SQL, key, tool_id, at) is not None:
            yield HeldRecord("brief", key, number, space, tool_id)
    for key, number, space, registry_id in copy.rows(REGISTRIES_SQL):
        if store.row(HAS_REGISTRY_SQL, space, registry_id) is None:
            yield HeldRecord("registry", key, number, space, registry_id)
    for space, digest, thought_id in store.rows(THOUGHTS_SQL):
        if (row := copy.row(HELD_THOUGHT_SQL, space, digest)) is not None:
            yield HeldRecord("thought", row[0], row[1], space, thought_id)
    if since is not None:
        yield from _named_by_events(store, copy, since, ("skill", "$.name", "skill", "deleted", None), HELD_SKILL_SQL)
        forgotten = ("uploaded", "$.skill_id", "skill", "registry_forgotten", None)
        yield from _named_by_events(store, copy, since, forgotten, HELD_UPLOADED_SQL)
        deleted = ("chunk", "$.chunk_id", "chunk", "deleted", None)
        yield from _named_by_events(store, copy, since, deleted, HELD_CHUNK_SQL)
        reasons = json.dumps(BY_ERASURE)
        dropped = ("candidate", "$.candidate_id", "memory", "candidate_dropped", reasons)
        yield from _named_by_events(store, copy, since, dropped, HELD_CANDIDATE_SQL)


def _named_by_events(
    store: Reading, copy: Reading, since: int, told: tuple[str, str, str, str, str | None], held: str
) -> Iterator[HeldRecord]:
    plane, path, topic, event, reasons = told
    seen: set[int] = set()
    for space, name in store.rows(TOLD_SQL, path, since, topic, event, reasons):
        for key, number in copy.rows(held, space, name):
            if key not in seen:
                seen.add(key)
                yield HeldRecord(plane, key, number, space, name)


def goes_on(store: Reading, seq: int, head: bytes) -> bool:
    """Whether the store's event log goes on from a row of this number and hash; before the first row it does."""
    return seq == 0 or store.value(HASH_SQL, seq) == head


def carry_events(store: Reading, copy: Writing, seq: int) -> int:
    """Write the rows of the store's event log behind one into the copy, whose log ends there; how many."""
    rows = 0
    spaces: set[str] = set()
    for row in store.rows(TAIL_SQL, seq):
        copy.run(NEW_ROW_SQL, *row)
        rows += 1
        if row[2] is not None:
            spaces.add(row[2])
    for space in sorted(spaces):
        for row in store.rows(PLACES_SQL, space, last_places(copy, space).sealed):
            copy.run(NEW_PLACE_SQL, *row)
    copy.run(SIGN_SQL, store.value(SIGNED_SQL))
    return rows
