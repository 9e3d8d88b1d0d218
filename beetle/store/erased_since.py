"""What was erased in a store since a copy of it was made: what the copy still holds, and the store holds no more."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from beetle.named_tuple import NamedTuple
from beetle.store import held_records, restores
from beetle.store.engine.transaction import Reading, Writing
from beetle.store.event_places import last_places
from beetle.store.held_records import Held, HeldRecord, Scope
from beetle.store.place_checks import subject_of

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
BRIEFS_SQL = """
SELECT o.tool_observation, o.space, s.memory_space_id, o.tool_id, o.at FROM tool_observation o
JOIN tool_brief b USING (tool_observation) JOIN space s ON s.space = o.space ORDER BY o.tool_observation
"""
BRIEF_GONE_SQL = """
SELECT 1 FROM tool_observation o LEFT JOIN tool_brief b USING (tool_observation)
WHERE o.tool_observation = ? AND o.tool_id = ? AND o.at = ? AND b.brief IS NULL
"""
CLOSED_PROPOSALS_SQL = """
SELECT s.memory_space_id, p.proposal_id, p.created_at FROM proposal p JOIN space s ON s.space = p.space
WHERE p.state IN ('submitted', 'refused')
  OR (p.state = 'dropped' AND p.outcome IN ('forgotten', 'evidence_erased', 'target_erased', 'withdrawn'))
"""
HELD_PROPOSAL_SQL = """
SELECT p.proposal, p.space FROM proposal p JOIN space s ON s.space = p.space
WHERE s.memory_space_id = ? AND p.proposal_id = ? AND p.created_at = ? AND p.state = 'open'
"""
THOUGHTS_SQL = """
SELECT s.memory_space_id, t.hash, t.thought_id FROM thought_mark k JOIN thought t ON t.thought = k.thought
JOIN chain c ON c.chain = t.chain JOIN space s ON s.space = c.space WHERE k.state = 'erased' ORDER BY t.thought
"""
HELD_THOUGHT_SQL = """
SELECT t.thought, c.space FROM thought t JOIN thought_body b ON b.thought = t.thought
JOIN chain c ON c.chain = t.chain JOIN space s ON s.space = c.space WHERE s.memory_space_id = ? AND t.hash = ?
"""
BLANK_AGENTS_SQL = """
SELECT s.memory_space_id, json_array(c.chain_key, c.created_at, a.agent_id)
FROM space s JOIN chain c ON c.space = s.space JOIN chain_agent a ON a.chain = c.chain
WHERE a.display_name = a.agent_id AND a.owner IS NULL AND a.description IS NULL
  AND NOT EXISTS (SELECT 1 FROM chain_alias l WHERE l.chain_agent = a.chain_agent)
"""
TOLD_SQL = """
SELECT seq, space, topic, event, subject FROM event_log
WHERE seq > ? AND space IS NOT NULL AND event IN (SELECT value FROM json_each(?)) ORDER BY seq
"""
HASH_SQL = "SELECT hash FROM event_log WHERE seq = ?"
TAIL_SQL = "SELECT * FROM event_log WHERE seq > ? ORDER BY seq"
PLACES_SQL = "SELECT * FROM event_place WHERE space = ? AND place > ? ORDER BY place"
SIGNED_SQL = "SELECT signed FROM log_head"
NEW_ROW_SQL = "INSERT INTO event_log VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
NEW_PLACE_SQL = "INSERT INTO event_place VALUES (?, ?, ?, ?, ?, ?)"
SIGN_SQL = "UPDATE log_head SET signed = ?"
NAMES = {
    ("skill", "deleted"): ("skill", "name"),
    ("skill", "registry_forgotten"): ("uploaded", "skill_id"),
    ("chunk", "deleted"): ("chunk", "chunk_id"),
    ("memory", "candidate_dropped"): ("candidate", "waiting_id"),
    ("memory", "candidate_rejected"): ("candidate", "waiting_id"),
    ("memory", "private_forgotten"): ("private", "record_id"),
    ("memory", "private_deleted"): ("private", "record_id"),
    ("memory", "tool_registry_deleted"): ("registry", "registry_id"),
}
"""By topic and event: the kind of record that it tells of, and what of its subject names the record."""
IMPORTED, FORGOTTEN = ("memory", "imported"), ("memory", "forgotten")
BY_ERASURE = ("forgotten", "evidence_unavailable", "declined")
"""Why a candidate leaves the queue when something is erased, or is not wanted; one that expired is only gone."""
REPLACED = "full_restore"


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


class Named(NamedTuple):
    """A record that an event says was erased. `called` is what older rows name a candidate by."""

    plane: str
    memory_space_id: str
    name: str
    called: bool = False


class Told(NamedTuple):
    """What the store's log tells of erasures: of records by name, of scopes that were replaced, and of spaces of which
    every tool registry went.
    """

    names: tuple[Named, ...] = ()
    replaced: tuple[Scope, ...] = ()
    registries: tuple[str, ...] = ()
    known: bool = True


UNKNOWN = Told(known=False)
"""The store's log does not go on from the copy's."""


def events(
    store: Reading, since: int, wanted: Iterable[tuple[str, str]]
) -> Iterator[tuple[int, str, tuple[str, str], dict[str, Any]]]:
    """(row, space, (topic, event), subject) of the events of spaces behind the row `since` that are wanted."""
    kinds = frozenset(wanted)
    for seq, space, topic, event, text in store.rows(TOLD_SQL, since, json.dumps(sorted({name for _, name in kinds}))):
        if (topic, event) in kinds:
            yield seq, space, (topic, event), subject_of(text)


def told(store: Reading, since: int | None) -> Told:
    """What the log tells behind its row `since`, without what a restore has brought back since."""
    if since is None:
        return UNKNOWN
    names: dict[Named, None] = {}
    replaced: dict[Scope, None] = {}
    registries: dict[str, None] = {}
    brought_back = [each for each in restores.undone(store) if each.kept_erased]
    for seq, space, event, subject in events(store, since, (*NAMES, IMPORTED, FORGOTTEN)):
        if restores.is_undone(brought_back, seq):
            continue
        if event in NAMES:
            names |= dict.fromkeys(_named(space, *NAMES[event], subject))
        elif event == IMPORTED and subject.get("mode") == REPLACED:
            replaced |= dict.fromkeys(_scopes(store, space, subject))
        elif event == FORGOTTEN and subject.get("tool_registries"):
            registries[space] = None
    return Told(tuple(names), tuple(replaced), tuple(registries))


def _named(space: str, plane: str, field: str, subject: dict[str, Any]) -> Iterator[Named]:
    if plane == "candidate" and subject.get("reason") not in BY_ERASURE:
        return
    if isinstance(name := subject.get(field), str):
        yield Named(plane, space, name)
    elif plane == "candidate" and isinstance(name := subject.get("candidate_id"), str) and name:
        yield Named(plane, space, name, called=True)


def _scopes(store: Reading, space: str, subject: dict[str, Any]) -> Iterator[Scope]:
    """What an import has replaced; older rows do not name the conversation of a chat."""
    chat_id = subject.get("chat_id")
    if subject.get("kind") == "space":
        yield Scope(space)
    elif isinstance(chat_id, str):
        channel, conversation = subject.get("channel_id"), subject.get("conversation_id")
        if isinstance(channel, str) and isinstance(conversation, str):
            yield Scope(space, chat_id, (channel, conversation))
            return
        for each in held_records.conversations_of_chat(store, space, chat_id) or (None,):
            yield Scope(space, chat_id, each)


def turns(store: Reading, copy: Reading, since: Told) -> list[HeldTurn]:
    """The turns of which the copy holds messages that are erased in the store."""
    held: dict[int, set[int]] = {}
    for row in store.rows(DELETED_SQL):
        found = copy.row(HELD_SQL, *row)
        if found is not None:
            held.setdefault(found[1], set()).add(found[0])
    for scope in since.replaced:
        for message, turn in _replaced_messages(store, copy, scope):
            held.setdefault(turn, set()).add(message)
    made: list[HeldTurn] = []
    for turn, messages in held.items():
        row = copy.row(TURN_SQL, turn)
        assert row is not None
        made.append(HeldTurn._make((*row, frozenset(messages))))
    return made


def _replaced_messages(store: Reading, copy: Reading, scope: Scope) -> Iterator[tuple[int, int]]:
    """(message, turn) of what the copy holds of a scope's conversations and the store does not."""
    now = {(channel, name): key for key, channel, name in held_records.conversations(store, scope.memory_space_id)}
    for conversation, *where in held_records.conversations(copy, scope.memory_space_id):
        if scope.chat_id is not None and (*where,) != scope.conversation:
            continue
        key = now.get((where[0], where[1]))
        stay = set() if key is None else {(each[0], each[1]) for each in held_records.messages(store, key)}
        for message_id, digest, message, turn in held_records.messages(copy, conversation):
            if (message_id, digest) not in stay:
                yield message, turn


def records(store: Reading, copy: Reading, since: Told) -> list[HeldRecord]:
    """The other records: those that the store does not hold now and that were erased, as a tombstone, an event, or the
    import that replaced their scope says.
    """
    found = [*_by_tombstones(store, copy), *_by_names(store, copy, since), *_by_scopes(store, copy, since)]
    order = list(held_records.IN_SPACE)
    made = {(order.index(each.plane), each.key): each for each in reversed(found)}
    return [made[place] for place in sorted(made)]


def _by_tombstones(store: Reading, copy: Reading) -> Iterator[HeldRecord]:
    for space, proposal_id, created_at in store.rows(CLOSED_PROPOSALS_SQL):
        if (row := copy.row(HELD_PROPOSAL_SQL, space, proposal_id, created_at)) is not None:
            yield HeldRecord("proposal", row[0], row[1], space, proposal_id)
    for key, number, space, tool_id, at in copy.rows(BRIEFS_SQL):
        if store.row(BRIEF_GONE_SQL, key, tool_id, at) is not None:
            yield HeldRecord("brief", key, number, space, tool_id)
    for space, record_id in store.rows(FACTS_SQL):
        if (row := copy.row(HELD_FACT_SQL, space, record_id)) is not None:
            yield HeldRecord("fact", row[0], row[1], space, record_id)
    for space, digest, thought_id in store.rows(THOUGHTS_SQL):
        if (row := copy.row(HELD_THOUGHT_SQL, space, digest)) is not None:
            yield HeldRecord("thought", row[0], row[1], space, thought_id)
    blank: dict[str, set[str]] = {}
    for space, alike in store.rows(BLANK_AGENTS_SQL):
        blank.setdefault(space, set()).add(alike)
    for space, agents in blank.items():
        for each in held_records.in_space(copy, "chain_agent", space):
            if each.alike in agents:
                yield each.record


def _by_names(store: Reading, copy: Reading, since: Told) -> Iterator[HeldRecord]:
    items: dict[str, list[Held]] = {}
    for plane, space, name, called in since.names:
        if plane == "candidate":
            # Two that say the same may wait, each under its own name.
            found = held_records.called(copy, space, name) if called else held_records.named(copy, plane, space, name)
            for each in found:
                if not held_records.named(store, plane, space, each.record.name):
                    yield each.record
            continue
        for each in held_records.named(copy, plane, space, name):
            if plane == "private" and space not in items:
                # An import gives one a new name.
                items[space] = held_records.in_space(store, plane, space)
            now = items[space] if plane == "private" else held_records.named(store, plane, space, name)
            if not held_records.holds(now, each):
                yield each.record


def _by_scopes(store: Reading, copy: Reading, since: Told) -> Iterator[HeldRecord]:
    wanted = [(scope, plane) for scope in since.replaced for plane in held_records.IN_SPACE]
    wanted += [(Scope(space), "registry") for space in since.registries]
    if not since.known:
        # They leave nothing behind: what is not there may have been erased.
        spaces = held_records.spaces(copy)
        wanted += [(Scope(space), plane) for space in spaces for plane in ("private", "registry")]
    for scope, plane in wanted:
        there = held_records.of_scope(copy, plane, scope)
        if plane in held_records.OF_TURNS:
            # Those of other turns go with them.
            there = [each for each in there if held_records.has_turn_of(store, each)]
        now: dict[str, list[Held]] = {}
        for each in held_records.in_space(store, plane, scope.memory_space_id) if there else ():
            now.setdefault(each.alike, []).append(each)
        yield from (each.record for each in there if not held_records.holds(now.get(each.alike, ()), each))


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
