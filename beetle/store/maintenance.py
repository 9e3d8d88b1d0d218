"""Up to where conversations were maintained, and the evidence behind that."""

from __future__ import annotations

from beetle.named_tuple import NamedTuple
from beetle.store.engine.transaction import Reading, Writing
from beetle.store.turn_messages import OF_ONE_TURN


class TurnRow(NamedTuple):
    turn: int
    turn_id: str
    sequence: int


class MessageRow(NamedTuple):
    """A message of a turn; `content` is None where it was erased, `at` in microseconds."""

    message_id: str
    role: str
    at: int
    visibility: str
    state: str
    speaker: str | None
    content: str | None
    digest: bytes


WATERMARK_SQL = "SELECT sequence FROM maintained WHERE conversation = ?"
SET_SQL = """
INSERT INTO maintained VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET sequence = excluded.sequence, at = excluded.at
"""
TURNS_SQL = "SELECT turn, turn_id, sequence FROM turn WHERE conversation = ? AND sequence > ? ORDER BY sequence LIMIT ?"
MESSAGES_SQL = f"""
SELECT m.message_id, m.role, m.at, m.visibility, m.state, m.speaker, b.content, m.digest
{OF_ONE_TURN} LEFT JOIN body b ON b.message = m.message WHERE t.turn = ? ORDER BY m.position
"""
LAST_SQL = "SELECT last_sequence FROM conversation WHERE conversation = ?"


def watermark(tx: Reading, conversation: int) -> int:
    """The sequence up to which a conversation was looked through; 0 for not at all."""
    return tx.value(WATERMARK_SQL, conversation) or 0


def set_watermark(tx: Writing, conversation: int, sequence: int, now: int) -> None:
    """A conversation was looked through up to a sequence."""
    tx.run(SET_SQL, conversation, sequence, now)


def turns_after(tx: Reading, conversation: int, sequence: int, most: int) -> list[TurnRow]:
    """At most `most` turns behind a sequence, in their order."""
    return [TurnRow(*row) for row in tx.rows(TURNS_SQL, conversation, sequence, most)]


def messages_of(tx: Reading, turn: int) -> list[MessageRow]:
    """The messages of a turn, in their order."""
    return [MessageRow(*row) for row in tx.rows(MESSAGES_SQL, turn)]


def last_sequence(tx: Reading, conversation: int) -> int:
    """The sequence of a conversation's newest turn; 0 without one."""
    return tx.value(LAST_SQL, conversation) or 0
