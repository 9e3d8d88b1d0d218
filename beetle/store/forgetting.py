"""What is to be forgotten: what a selection finds in each plane, and taking single records away."""

from __future__ import annotations

from collections.abc import Iterator

from beetle.named_tuple import NamedTuple
from beetle.store.engine.transaction import Reading, Row, Writing
from beetle.store.turn_messages import OF_ONE_TURN, OF_TURN


class ObservedBrief(NamedTuple):
    """What is said of the use of a tool; `brief` is JSON."""

    observation: int
    turn: int | None
    turn_id: str | None
    tool_id: str
    at: int
    brief: str


class KnownRegistry(NamedTuple):
    """A tool registry as it stands; `created_at` in microseconds."""

    registry: int
    registry_id: str
    revision: int
    created_at: int
    fingerprint: str


class SelectedTurn(NamedTuple):
    """A turn with the visibilities and states of its messages, in their order: `shared live,private masked`."""

    turn: int
    conversation: int
    sequence: int
    turn_id: str
    messages: str


class BesideText(NamedTuple):
    """An attr or a host ref's label: the views that show it, and what it hangs on, as in SelectedTurn."""

    turn: int
    value: str
    views: str
    export_allowed: int
    messages: str | None


class CitingRecord(NamedTuple):
    """A record and the turns that it rests on; `turn` is None where a citation names what is not here."""

    derived: str
    turn: int | None
    fact: int | None
    skill: int | None


TURN_COLUMNS = f"""
SELECT t.turn, t.conversation, t.sequence, t.turn_id, group_concat(m.visibility || ' ' || m.state, ',')
{OF_ONE_TURN}
"""
OF_CONVERSATION_SQL = TURN_COLUMNS + "WHERE t.conversation = ? GROUP BY t.turn ORDER BY t.sequence"
BY_KEY_SQL = f"""
{TURN_COLUMNS} AND +m.conversation = t.conversation
JOIN conversation c ON c.conversation = t.conversation AND c.space = ?
WHERE t.turn IN (SELECT value FROM json_each(?)) GROUP BY t.turn ORDER BY t.turn
"""  # noqa: S608 - constants
CONVERSATIONS_SQL = "SELECT conversation FROM conversation WHERE space = ? ORDER BY channel_id, conversation_id"
NAMES_SQL = "SELECT channel_id, conversation_id FROM conversation WHERE conversation = ?"
SUBJECT_SQL = """
SELECT m.turn, m.visibility, m.state FROM message m JOIN conversation c ON c.conversation = m.conversation
WHERE c.space = ?1 AND ?2 IN (m.subject_id, m.actor_subject_id, m.mounted_subject_id, m.speaker) ORDER BY m.message
"""
UNINDEXED_SQL = """
SELECT m.turn, m.visibility, m.state, b.content, m.speaker, m.trigger_source FROM conversation c
JOIN message m ON m.conversation = c.conversation JOIN body b ON b.message = m.message
WHERE c.space = ?
  AND (m.state <> 'live' OR m.visibility NOT IN ('shared', 'private') OR m.trigger_source IS NOT NULL)
ORDER BY m.message
"""
ATTRS_SQL = f"""
SELECT t.turn, a.value, a.visibility, a.export_allowed,
  (SELECT group_concat(m.visibility || ' ' || m.state, ',') FROM message m
   WHERE {OF_TURN} AND (a.message IS NULL OR m.message = a.message))
FROM turn t JOIN attr a ON a.turn = t.turn WHERE t.conversation = ? ORDER BY t.sequence, a.position
"""  # noqa: S608 - our own text
LABELS_SQL = f"""
SELECT t.turn, l.label, r.visibility, 1,
  (SELECT group_concat(m.visibility || ' ' || m.state, ',') FROM message m WHERE {OF_TURN})
FROM turn t JOIN host_ref r ON r.turn = t.turn JOIN host_ref_label l ON l.host_ref = r.host_ref
WHERE t.conversation = ? ORDER BY t.sequence, r.position
"""  # noqa: S608 - our own text
TURN_OF_SQL = "SELECT turn FROM message WHERE message = ?"
CITING_SQL = """
SELECT derived, turn, fact, skill FROM derived_ref
WHERE space = ? AND (relation = 'cites' OR derived GLOB 'thoughts:*') ORDER BY derived_ref
"""
SKILLS_SQL = "SELECT skill, name, revision, created_at FROM skill WHERE space = ? ORDER BY name"
SKILL_TEXTS_SQL = "SELECT citations, topic, title, summary, content, edit_reason FROM skill_revision WHERE skill = ?"
FACTS_SQL = "SELECT fact FROM fact WHERE space = ? AND state <> 'deleted' ORDER BY fact"
BRIEF_COLUMNS = """
SELECT o.tool_observation, o.turn, o.turn_id, o.tool_id, o.at, b.brief
FROM tool_observation o JOIN tool_brief b USING (tool_observation)
"""
BRIEFS_SQL = BRIEF_COLUMNS + "WHERE o.space = ? ORDER BY o.tool_observation"
BRIEF_BY_KEY_SQL = BRIEF_COLUMNS + "WHERE o.tool_observation = ? AND o.space = ?"
REGISTRY_COLUMNS = "SELECT tool_registry, registry_id, revision, created_at, fingerprint FROM tool_registry "
REGISTRIES_SQL = REGISTRY_COLUMNS + "WHERE space = ? ORDER BY registry_id"
ITEM_BY_KEY_SQL = "SELECT record_id, plane, content_mac FROM private_item WHERE private_item = ? AND space = ?"
ERASE_BRIEF_SQL = "DELETE FROM tool_brief WHERE tool_observation = ? RETURNING tool_observation"
REGISTRY_BY_KEY_SQL = REGISTRY_COLUMNS + "WHERE tool_registry = ? AND space = ?"
SKILL_BY_KEY_SQL = "SELECT name FROM skill WHERE skill = ? AND space = ?"
PROPOSAL_BY_KEY_SQL = "SELECT proposal_id FROM proposal WHERE proposal = ? AND space = ? AND state = 'open'"


def turns_of_conversation(tx: Reading, conversation: int) -> list[SelectedTurn]:
    """Every turn of a conversation."""
    return [SelectedTurn(*row) for row in tx.rows(OF_CONVERSATION_SQL, conversation)]


def turns_by_key(tx: Reading, space: int, turns: str) -> list[SelectedTurn]:
    """The turns of a space with these keys, which are given as JSON."""
    return [SelectedTurn(*row) for row in tx.rows(BY_KEY_SQL, space, turns)]


def conversations(tx: Reading, space: int) -> list[int]:
    """The conversations of a space, by their names' order."""
    return [row[0] for row in tx.rows(CONVERSATIONS_SQL, space)]


def names_of(tx: Reading, conversation: int) -> tuple[str, str]:
    """(channel_id, conversation_id) of a conversation."""
    found = tx.row(NAMES_SQL, conversation)
    assert found is not None
    return found[0], found[1]


def messages_of_subject(tx: Reading, space: int, subject: str) -> list[Row]:
    """(turn, visibility, state) of every message that names a subject or a speaker. Looks through the whole space."""
    return list(tx.rows(SUBJECT_SQL, space, subject))


def unindexed(tx: Reading, space: int) -> list[Row]:
    """(turn, visibility, state, content, speaker, trigger) of every message with content of which the index does not
    hold all: it holds no trigger."""
    return list(tx.rows(UNINDEXED_SQL, space))


def attrs(tx: Reading, conversation: int) -> Iterator[BesideText]:
    """Every attr of a conversation, as they are read."""
    return (BesideText(*row) for row in tx.rows(ATTRS_SQL, conversation))


def labels(tx: Reading, conversation: int) -> Iterator[BesideText]:
    """Every label of a conversation's host refs, as they are read; whether one may leave is decided by its views."""
    return (BesideText(*row) for row in tx.rows(LABELS_SQL, conversation))


def turn_of(tx: Reading, message: int) -> int | None:
    """The turn of a message, of whatever space."""
    return tx.value(TURN_OF_SQL, message)


def citing(tx: Reading, space: int) -> list[CitingRecord]:
    """Every citation of evidence in a space, by the record that makes it."""
    return [CitingRecord(*row) for row in tx.rows(CITING_SQL, space)]


def skills(tx: Reading, space: int) -> list[Row]:
    """(skill, name, revision, created_at) of every skill."""
    return list(tx.rows(SKILLS_SQL, space))


def skill_texts(tx: Reading, skill: int) -> Iterator[tuple[str, str]]:
    """What the revisions of a skill say, and why they were made: of each its texts, and its citations as JSON."""
    for citations, *said in tx.rows(SKILL_TEXTS_SQL, skill):
        yield "\n".join(text for text in said if text is not None), citations


def facts(tx: Reading, space: int) -> list[int]:
    """Keys of the facts that say something."""
    return [row[0] for row in tx.rows(FACTS_SQL, space)]


def briefs(tx: Reading, space: int) -> list[ObservedBrief]:
    """Every tool brief of a space."""
    return [ObservedBrief(*row) for row in tx.rows(BRIEFS_SQL, space)]


def brief_by_key(tx: Reading, space: int, observation: int) -> ObservedBrief | None:
    """What is said of one use of a tool."""
    return tx.one(ObservedBrief, BRIEF_BY_KEY_SQL, observation, space)


def registries(tx: Reading, space: int) -> list[KnownRegistry]:
    """Every tool registry of a space."""
    return [KnownRegistry(*row) for row in tx.rows(REGISTRIES_SQL, space)]


def item_by_key(tx: Reading, space: int, item: int) -> tuple[str, str, bytes] | None:
    """(record_id, plane, keyed digest) of a private item."""
    found = tx.row(ITEM_BY_KEY_SQL, item, space)
    return None if found is None else (found[0], found[1], found[2])


def skill_name(tx: Reading, space: int, skill: int) -> str | None:
    """The full name of a skill."""
    return tx.value(SKILL_BY_KEY_SQL, skill, space)


def open_proposal(tx: Reading, space: int, proposal: int) -> str | None:
    """The id of a proposal that is open."""
    return tx.value(PROPOSAL_BY_KEY_SQL, proposal, space)


def registry_by_key(tx: Reading, space: int, registry: int) -> KnownRegistry | None:
    """A tool registry."""
    return tx.one(KnownRegistry, REGISTRY_BY_KEY_SQL, registry, space)


def erase_brief(tx: Writing, observation: int) -> bool:
    """Remove what is said of one use of a tool; whether anything was."""
    return tx.value(ERASE_BRIEF_SQL, observation) is not None
