"""What a lifecycle step or an erasure does to evidence: the turns and messages that it touches, and their states."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from beetle.named_tuple import NamedTuple
from beetle.store import toc_outbox
from beetle.store.engine.transaction import Reading, Row, Writing
from beetle.store.evidence import NEW_SPEAKER_SQL
from beetle.store.turn_messages import OF_TURNS, by_turn


class AffectedMessage(NamedTuple):
    """A message that a lifecycle step touches, with what its index row was made of."""

    message: int
    turn: int
    turn_id: str
    message_id: str
    conversation: int
    visibility: str
    state: str
    speaker: str | None
    at: int
    content: str | None
    digest: bytes


AFFECTED_SQL = f"""
SELECT m.position, m.message, t.turn, t.turn_id, m.message_id, m.conversation, m.visibility, m.state, m.speaker, m.at,
  b.content, m.digest
{OF_TURNS} AND +m.conversation = t.conversation
LEFT JOIN body b ON b.message = m.message
"""
TURN_BY_ID_SQL = "SELECT turn FROM turn WHERE conversation = ? AND turn_id = ?"
NEW_LIFECYCLE_SQL = """
INSERT INTO transcript_lifecycle (conversation, action, reason, principal, at, turns, messages)
VALUES (?, ?, ?, ?, ?, ?, ?)
"""
ARCHIVE_SQL = "UPDATE turn SET archived = 1 WHERE turn = ? AND archived = 0 RETURNING turn"
STATE_SQL = "UPDATE message SET state = ?, lifecycle = ? WHERE message IN (SELECT value FROM json_each(?))"
DELETE_MESSAGES_SQL = """
UPDATE message SET state = 'deleted', lifecycle = ?, speaker = NULL, trigger_source = NULL
WHERE message IN (SELECT value FROM json_each(?))
"""
SEQUENCE_SQL = "SELECT sequence FROM turn WHERE conversation = ? AND turn_id = ?"
TURNS_BETWEEN_SQL = """
SELECT turn, sequence, turn_id FROM turn WHERE conversation = ? AND sequence BETWEEN ? AND ? ORDER BY sequence LIMIT ?
"""
SPEAKERS_SQL = "SELECT visibility, speaker FROM conversation_speaker WHERE conversation = ?"
SETTLE_LIFECYCLE_SQL = "UPDATE transcript_lifecycle SET turns = ?, messages = ? WHERE lifecycle = ?"
DROP_LIFECYCLE_SQL = """
DELETE FROM transcript_lifecycle
WHERE lifecycle = ?1 AND NOT EXISTS (
  SELECT 1 FROM message m WHERE m.conversation = transcript_lifecycle.conversation AND m.lifecycle = ?1)
"""
DERIVED_SQL = """
SELECT d.turn, d.derived, d.evidence, d.relation
FROM json_each(?) j CROSS JOIN derived_ref d ON d.turn = j.value WHERE d.space = ? ORDER BY d.turn, d.derived_ref
"""
SPOKEN_SQL = """
SELECT 1 FROM message WHERE conversation = ? AND visibility = ? AND speaker = ? AND state = 'live' LIMIT 1
"""
FORGET_SPEAKER_SQL = "DELETE FROM conversation_speaker WHERE conversation = ? AND visibility = ? AND speaker = ?"


def turns_by_id(tx: Reading, conversation: int, turn_ids: Iterable[str]) -> list[int]:
    """Keys of the turns that are there, in the order asked, each once."""
    found = (tx.value(TURN_BY_ID_SQL, conversation, turn_id) for turn_id in dict.fromkeys(turn_ids))
    return [turn for turn in found if turn is not None]


def sequences_by_id(tx: Reading, conversation: int, turn_ids: Iterable[str]) -> list[int]:
    """Sequences of the turns that are there, in their order, each once."""
    found = (tx.value(SEQUENCE_SQL, conversation, turn_id) for turn_id in dict.fromkeys(turn_ids))
    return sorted(sequence for sequence in found if sequence is not None)


class PlacedTurn(NamedTuple):
    """A turn by its key, its place in the conversation and its id."""

    turn: int
    sequence: int
    turn_id: str


def turns_between(tx: Reading, conversation: int, first: int, last: int, most: int) -> list[PlacedTurn]:
    """At most `most` turns between two sequences, both ends included."""
    return [PlacedTurn(*row) for row in tx.rows(TURNS_BETWEEN_SQL, conversation, first, last, most)]


def affected_messages(tx: Reading, turn: int) -> list[AffectedMessage]:
    """The messages of a turn."""
    return affected_of_turns(tx, (turn,)).get(turn, [])


def affected_of_turns(tx: Reading, turns: Iterable[int]) -> Mapping[int, list[AffectedMessage]]:
    """The messages of turns, by turn. SQLite does not order them: it would copy their contents for that."""
    found: defaultdict[int, list[tuple[int, AffectedMessage]]] = defaultdict(list)
    for position, *row in tx.rows(AFFECTED_SQL, json.dumps(list(turns))):
        message = AffectedMessage(*row)
        found[message.turn].append((position, message))
    return {turn: [message for _, message in sorted(placed)] for turn, placed in found.items()}


def derived_from(tx: Reading, turns: Iterable[int], space: int) -> Mapping[int, list[Row]]:
    """(derived, evidence, relation) of what the space derived from turns, by turn."""
    return by_turn(tx.rows(DERIVED_SQL, json.dumps(list(turns)), space))


def archive_turn(tx: Writing, turn: int) -> bool:
    """Whether the turn was not archived before."""
    return tx.value(ARCHIVE_SQL, turn) is not None


def set_states(tx: Writing, messages: Sequence[int], state: str, lifecycle: int) -> None:
    """Mark messages live or masked by a lifecycle step."""
    toc_outbox.note_messages(tx, messages)
    tx.run(STATE_SQL, state, lifecycle, json.dumps(messages))


def delete_messages(tx: Writing, messages: Sequence[int], lifecycle: int | None) -> None:
    """Mark messages deleted by a step, without who spoke and what set them off; ids, role and times stay."""
    toc_outbox.note_messages(tx, messages)
    tx.run(DELETE_MESSAGES_SQL, lifecycle, json.dumps(messages))


def settle_speakers(tx: Writing, conversation: int, speakers: Iterable[tuple[str, str]]) -> None:
    """Keep (visibility, speaker) pairs of a conversation only while a live message has them: the list is not masked."""
    for visibility, speaker in speakers:
        spoken = tx.value(SPOKEN_SQL, conversation, visibility, speaker) is not None
        tx.run(NEW_SPEAKER_SQL if spoken else FORGET_SPEAKER_SQL, conversation, visibility, speaker)


def speakers_of(tx: Reading, conversation: int) -> list[tuple[str, str]]:
    """The (visibility, speaker) pairs that a conversation is known by."""
    return [(row[0], row[1]) for row in tx.rows(SPEAKERS_SQL, conversation)]


def settle_lifecycle(tx: Writing, lifecycle: int, turns: int, messages: int) -> None:
    """Put down how much a step came to once it is over; of one that came to nothing, before a crash too, no record
    stays."""
    if turns or messages:
        tx.run(SETTLE_LIFECYCLE_SQL, turns, messages, lifecycle)
    else:
        tx.run(DROP_LIFECYCLE_SQL, lifecycle)


def add_lifecycle(
    tx: Writing, conversation: int, action: str, reason: str, principal: str, now: int, turns: int, messages: int
) -> int:
    """The record of a lifecycle step; its key."""
    return tx.insert(NEW_LIFECYCLE_SQL, conversation, action, reason, principal, now, turns, messages)
