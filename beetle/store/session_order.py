"""The messages of a session in their order: by time, then ingested events by their ids, others as they came."""

from __future__ import annotations

import json

from beetle.named_tuple import NamedTuple
from beetle.store.engine.transaction import Reading
from beetle.store.events import Timed

PLACE_SQL = """
SELECT m.conversation, m.at, iif(t.door = 'event', t.turn_id, ''), iif(t.door = 'event', 0, t.sequence), m.position
FROM message m JOIN turn t ON t.turn = m.turn WHERE m.message = ?
"""
COLUMNS = """
SELECT (m.at - (m.at % 1000 + 1000) % 1000) / 1000, iif(t.door = 'event', t.turn_id, ''), m.message, m.conversation,
  t.sequence, t.turn_id, m.message_id, c.channel_id, c.conversation_id
FROM message m INDEXED BY message_at
CROSS JOIN turn t ON t.turn = m.turn
CROSS JOIN conversation c ON c.conversation = m.conversation
WHERE m.conversation = ?1 AND m.visibility IN (SELECT value FROM json_each(?2))
"""
KEY = "(m.at, iif(t.door = 'event', t.turn_id, ''), iif(t.door = 'event', 0, t.sequence), m.position)"
UPWARDS = "ORDER BY m.at, 2, iif(t.door = 'event', 0, t.sequence), m.position LIMIT ?7"
DOWNWARDS = "ORDER BY m.at DESC, 2 DESC, iif(t.door = 'event', 0, t.sequence) DESC, m.position DESC LIMIT ?7"
BEFORE_SQL = f"{COLUMNS} AND m.at <= ?3 AND {KEY} < (?3, ?4, ?5, ?6) {DOWNWARDS}"
AFTER_SQL = f"{COLUMNS} AND m.at >= ?3 AND {KEY} > (?3, ?4, ?5, ?6) {UPWARDS}"
BETWEEN_SQL = f"""{COLUMNS} AND m.at BETWEEN ?3 AND ?8
  AND {KEY} >= (?3, ?4, ?5, ?6) AND {KEY} <= (?8, ?9, ?10, ?11) {UPWARDS}"""


class Placed(NamedTuple):
    """Where a message stands in its session."""

    conversation: int
    at: int
    event_id: str
    sequence: int
    position: int


def place(tx: Reading, message: int) -> Placed | None:
    """Where a message stands, None where it is gone."""
    return tx.one(Placed, PLACE_SQL, message)


def before(tx: Reading, at: Placed, kinds: tuple[str, ...], most: int) -> list[Timed]:
    """The last messages of some visibilities before a place, in order."""
    rows = tx.rows(BEFORE_SQL, at.conversation, json.dumps(kinds), *at[1:], most)
    return [Timed(*row) for row in rows][::-1]


def after(tx: Reading, at: Placed, kinds: tuple[str, ...], most: int) -> list[Timed]:
    """The first messages of some visibilities behind a place."""
    return [Timed(*row) for row in tx.rows(AFTER_SQL, at.conversation, json.dumps(kinds), *at[1:], most)]


def between(tx: Reading, first: Placed, last: Placed, kinds: tuple[str, ...], most: int) -> list[Timed]:
    """Messages from one place to another, both included."""
    rows = tx.rows(BETWEEN_SQL, first.conversation, json.dumps(kinds), *first[1:], most, *last[1:])
    return [Timed(*row) for row in rows]
