"""What repair reads and mends: conversations, turns, messages and derived refs as they stand, damaged or not."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import apsw

from beetle.contracts.errors import IntegrityViolation
from beetle.named_tuple import NamedTuple
from beetle.store.engine.transaction import Reading, Row, Writing
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.index_tail import INDEXED_TO
from beetle.store.indexed import IS_INDEXED
from beetle.store.turn_messages import OF_TURN

CONVERSATIONS_SQL = "SELECT conversation, channel_id, conversation_id, messages FROM conversation WHERE space = ?"
CONVERSATION_SQL = CONVERSATIONS_SQL + " AND conversation = ?"
COUNTS_SQL = """
SELECT turns, last_sequence, messages, first_at, last_at,
  (SELECT count(*) FROM turn t WHERE t.conversation = ?1),
  (SELECT coalesce(max(sequence), 0) FROM turn t WHERE t.conversation = ?1),
  (SELECT count(*) FROM message m WHERE m.conversation = ?1),
  (SELECT coalesce(max(ordinal), 0) FROM message m WHERE m.conversation = ?1),
  (SELECT min(at) FROM turn t WHERE t.conversation = ?1), (SELECT max(at) FROM turn t WHERE t.conversation = ?1),
  EXISTS (SELECT 1 FROM message m CROSS JOIN turn t ON t.turn = m.turn AND t.conversation = m.conversation
    WHERE m.conversation = ?1 AND m.message NOT BETWEEN t.first_message AND t.last_message)
  OR EXISTS (SELECT 1 FROM (
    SELECT at, latest, lag(latest) OVER (ORDER BY sequence, turn) AS before FROM turn WHERE conversation = ?1
  ) WHERE latest <> max(at, coalesce(before, at)))
  OR EXISTS (SELECT 1 FROM message m CROSS JOIN turn t ON t.turn = m.turn
    WHERE m.conversation = ?1 AND m.apart <> (m.at <> t.at))
FROM conversation WHERE conversation = ?1
"""
RECOUNT_SQL = """
UPDATE conversation SET turns = ?, last_sequence = ?, messages = ?, first_at = ?, last_at = ? WHERE conversation = ?
"""
PLACE_SQL = """
WITH held AS MATERIALIZED (
  SELECT turn, min(message) AS first, max(message) AS last FROM message WHERE conversation = ?1 GROUP BY turn
), made AS MATERIALIZED (
  SELECT t.turn, coalesce(held.first, 0) AS first, coalesce(held.last, 0) AS last,
    max(t.at) OVER (ORDER BY t.sequence, t.turn) AS latest
  FROM turn t LEFT JOIN held ON held.turn = t.turn WHERE t.conversation = ?1
)
UPDATE turn SET first_message = made.first, last_message = made.last, latest = made.latest FROM made
WHERE made.turn = turn.turn AND (made.first, made.last, made.latest) <> (first_message, last_message, turn.latest)
"""
APART_SQL = """
UPDATE message SET apart = message.at <> t.at FROM turn t
WHERE message.conversation = ? AND t.turn = message.turn AND apart <> (message.at <> t.at)
"""
STRAY_SQL = """
SELECT m.message, m.message_id, m.ordinal, t.turn_id FROM message m
LEFT JOIN turn t ON t.turn = m.turn LEFT JOIN conversation c ON c.conversation = t.conversation
WHERE m.conversation = ? AND (c.conversation IS NULL OR c.space <> ?)
"""
SPACE_OF_SQL = "SELECT space FROM conversation WHERE conversation = ?"
TWICE_SQLS = (
    "SELECT sequence, min(turn) FROM turn WHERE conversation = ? GROUP BY sequence HAVING count(*) > 1",
    "SELECT turn_id, min(turn) FROM turn WHERE conversation = ? GROUP BY turn_id HAVING count(*) > 1",
    "SELECT ordinal, min(message) FROM message WHERE conversation = ? GROUP BY ordinal HAVING count(*) > 1",
    "SELECT message_id, min(message) FROM message WHERE conversation = ? GROUP BY message_id HAVING count(*) > 1",
)
"""Numbers and ids that stand twice in a conversation: a turn's sequence, its id, a message's ordinal, its id."""
TURN_OF_KEY_SQL = "SELECT turn_id FROM turn WHERE turn = ?"
MESSAGE_OF_KEY_SQL = """
SELECT t.turn_id, m.message_id FROM message m LEFT JOIN turn t ON t.turn = m.turn WHERE m.message = ?
"""
RECORD_COLUMNS = f"""
SELECT t.turn, t.turn_id, t.sequence, t.at, t.door, t.digest, m.message, m.message_id, m.role, m.at, m.visibility,
  m.state, m.length, m.digest, m.conversation, m.speaker, m.subject_id, m.actor_subject_id, m.mounted_subject_id,
  m.agent_id, m.trigger_source, b.content, i.id IS NOT NULL
    OR (m.message > {INDEXED_TO} AND {IS_INDEXED})
"""
RECORD_PARTS = """
LEFT JOIN body b ON b.message = m.message LEFT JOIN recall_index_docsize i ON i.id = m.message << 4
"""
RECORDS_SQL = f"""{RECORD_COLUMNS} FROM turn t LEFT JOIN message m ON {OF_TURN} {RECORD_PARTS}
WHERE t.conversation = ? ORDER BY t.sequence, t.turn, m.position
"""
RECORD_SQL = f"{RECORD_COLUMNS} FROM message m JOIN turn t ON t.turn = m.turn {RECORD_PARTS} WHERE m.message = ?"
REFS_SQL = """
SELECT r.kind, r.ref_id, r.relation, l.label, r.visibility
FROM host_ref r LEFT JOIN host_ref_label l ON l.host_ref = r.host_ref WHERE r.turn = ? ORDER BY r.position
"""
LINKS_SQL = """
SELECT d.derived_ref, d.derived, d.evidence, d.turn, t.turn_id, c.channel_id, c.conversation_id, c.space
FROM derived_ref d LEFT JOIN turn t ON t.turn = d.turn LEFT JOIN conversation c ON c.conversation = t.conversation
WHERE d.space = ?
"""
LINK_SQL = LINKS_SQL + " AND d.derived_ref = ?"
TURN_NAMED_SQL = """
SELECT t.turn, t.conversation FROM conversation c JOIN turn t ON t.conversation = c.conversation
WHERE c.space = ? AND c.channel_id = ? AND c.conversation_id = ? AND t.turn_id = ?
"""
MESSAGE_NAMED_SQL = "SELECT turn FROM message WHERE conversation = ? AND message_id = ?"
SKILL_SQL = "SELECT skill FROM skill WHERE space = ? AND name = ?"
REVISION_SQL = "SELECT 1 FROM skill_revision WHERE skill = ? AND revision = ?"
FACT_SQL = "SELECT 1 FROM fact WHERE space = ? AND record_id = ?"
PRIVATE_SQL = "SELECT 1 FROM private_item WHERE space = ? AND record_id = ?"
INDEXED_SQL = """
SELECT j.value FROM json_each(?) j CROSS JOIN recall_index_docsize d ON d.id = j.value << 4
"""
DROP_LINK_SQL = "DELETE FROM derived_ref WHERE derived_ref = ?"
LINK_TURN_SQL = "UPDATE derived_ref SET turn = ? WHERE derived_ref = ?"


class ConversationKey(NamedTuple):
    """A conversation of the space that is looked through; `messages` is what it says of itself."""

    conversation: int
    channel_id: str
    conversation_id: str
    messages: int


class Counts(NamedTuple):
    """What a conversation says of itself, and what there is. Times in microseconds."""

    turns: int
    last_sequence: int
    messages: int
    first_at: int | None
    last_at: int | None
    held_turns: int
    highest_sequence: int
    held_messages: int
    highest_ordinal: int
    earliest: int | None
    latest: int | None
    astray: bool
    """Whether a turn has messages elsewhere than it says, or says another latest time than the turns up to it have; or
    whether a message says wrongly whether it has its turn's time."""


class Record(NamedTuple):
    """One message with its turn; `message` None for a turn that has none. `actor` has the attribution's fields."""

    turn: int
    turn_id: str
    sequence: int
    turn_at: int
    door: str
    turn_digest: bytes
    message: int | None
    message_id: str
    role: str
    at: int
    visibility: str
    state: str
    length: int
    digest: bytes
    conversation: int
    actor: tuple[str | None, ...]
    content: str | None
    indexed: bool


class Link(NamedTuple):
    """A derived ref, and the turn that it is linked to: its id and place, None where there is none."""

    derived_ref: int
    derived: str
    evidence: str
    turn: int | None
    turn_id: str | None
    channel_id: str | None
    conversation_id: str | None
    space: int | None


def conversations(tx: Reading, space: int, only: int | None) -> list[ConversationKey]:
    """The conversations of a space, or one of them."""
    rows = tx.rows(CONVERSATIONS_SQL, space) if only is None else tx.rows(CONVERSATION_SQL, space, only)
    return [ConversationKey(*row) for row in rows]


def counts(tx: Reading, conversation: int) -> Counts | None:
    """What a conversation says and holds."""
    return tx.one(Counts, COUNTS_SQL, conversation)


def recount(tx: WriteTransaction, conversation: int, held: Counts) -> None:
    """Let a conversation say what it holds, and its turns what of them follows from others, which no seal covers.

    Raises:
        IntegrityViolation: what it holds is damaged, so that nobody can count it.
    """
    try:
        tx.unnoted().run(PLACE_SQL, conversation)
        tx.unnoted().run(APART_SQL, conversation)
        tx.run(
            RECOUNT_SQL, held.held_turns, held.highest_sequence, held.highest_ordinal, held.earliest, held.latest,
            conversation,
        )  # fmt: skip
    except apsw.ConstraintError as error:
        raise IntegrityViolation(
            reason="a conversation has rows that are damaged, and cannot be counted again",
            hint="`beetle repair` makes a store of what can be read",
        ) from error


def strays(tx: Reading, conversation: int, space: int) -> list[tuple[int, str, int, str | None]]:
    """(message, message_id, ordinal, turn_id) of messages whose turn is gone or stands in another space."""
    return [(row[0], row[1], row[2], row[3]) for row in tx.rows(STRAY_SQL, conversation, space)]


def in_space(tx: Reading, conversation: int, space: int) -> bool:
    """Whether a conversation is of that space."""
    return tx.value(SPACE_OF_SQL, conversation) == space


def twice(tx: Reading, conversation: int) -> Iterator[tuple[int, int, str | None, str | None]]:
    """(which of `TWICE_SQLS`, key, turn_id, message_id) of what stands twice; the ids are those of the first."""
    for number, sql in enumerate(TWICE_SQLS):
        for _, key in list(tx.rows(sql, conversation)):
            if number < 2:
                yield number, key, tx.value(TURN_OF_KEY_SQL, key), None
            else:
                found = tx.row(MESSAGE_OF_KEY_SQL, key)
                assert found is not None
                yield number, key, found[0], found[1]


def records(tx: Reading, conversation: int) -> Iterator[Record]:
    """Every message of a conversation's turns, in their order."""
    return (_record(row) for row in tx.rows(RECORDS_SQL, conversation))


def record(tx: Reading, message: int) -> Record | None:
    """One message."""
    found = tx.row(RECORD_SQL, message)
    return None if found is None else _record(found)


def refs(tx: Reading, turn: int) -> list[Row]:
    """(kind, ref_id, relation, label, views) of a turn's host refs."""
    return list(tx.rows(REFS_SQL, turn))


def links(tx: Reading, space: int) -> Iterator[Link]:
    """Every derived ref of a space."""
    return (Link(*row) for row in tx.rows(LINKS_SQL, space))


def link(tx: Reading, space: int, derived_ref: int) -> Link | None:
    """One derived ref."""
    return tx.one(Link, LINK_SQL, space, derived_ref)


def turn_named(tx: Reading, space: int, channel: str, conversation_id: str, turn_id: str) -> tuple[int, int] | None:
    """(turn, conversation) that an evidence ref names."""
    found = tx.row(TURN_NAMED_SQL, space, channel, conversation_id, turn_id)
    return None if found is None else (found[0], found[1])


def turn_of_message(tx: Reading, conversation: int, message_id: str) -> int | None:
    """The turn in which a message of that id stands."""
    return tx.value(MESSAGE_NAMED_SQL, conversation, message_id)


def skill_is_there(tx: Reading, space: int, name: str) -> int | None:
    """The key of a runtime skill."""
    return tx.value(SKILL_SQL, space, name)


def revision_is_there(tx: Reading, skill: int, revision: int) -> bool:
    """Whether a skill has that revision."""
    return tx.value(REVISION_SQL, skill, revision) is not None


def fact_is_there(tx: Reading, space: int, record_id: str) -> bool:
    """Whether a fact is there, if only as its tombstone."""
    return tx.value(FACT_SQL, space, record_id) is not None


def private_is_there(tx: Reading, space: int, record_id: str) -> bool:
    """Whether a private item is there."""
    return tx.value(PRIVATE_SQL, space, record_id) is not None


def is_indexed(tx: Reading, message: int) -> bool:
    """Whether the recall index has a row of a message."""
    return bool(indexed_among(tx, (message,)))


def indexed_among(tx: Reading, messages: Sequence[int]) -> set[int]:
    """The messages of which the recall index has a row."""
    return {row[0] for row in tx.rows(INDEXED_SQL, json.dumps(messages))}


def drop_link(tx: Writing, derived_ref: int) -> None:
    """Remove a derived ref."""
    tx.run(DROP_LINK_SQL, derived_ref)


def link_turn(tx: Writing, derived_ref: int, turn: int) -> None:
    """Link a derived ref to the turn that it names."""
    tx.run(LINK_TURN_SQL, turn, derived_ref)


def _record(row: Row) -> Record:
    head, actor, (content, indexed) = row[:15], row[15:21], row[21:]
    return Record._make((*head, actor, content, bool(indexed)))
