"""The messages of a session in their order: by time, then ingested events by their ids, others as they came."""

from __future__ import annotations

import json

from beetle.named_tuple import NamedTuple
from beetle.store import turn_times
from beetle.store.engine.transaction import Reading
from beetle.store.events import MS_OF_MESSAGE, Timed
from beetle.store.message_times import EVENT_ID, EVER, ON_TIME, SEQUENCE, Stretch, in_stretch, stretch

PLACE_SQL = f"""
SELECT m.conversation, m.at, {EVENT_ID}, {SEQUENCE}, m.position
FROM message m JOIN turn t ON t.turn = m.turn AND t.conversation = m.conversation
JOIN conversation c ON c.conversation = m.conversation AND c.space = ?
WHERE m.message = ?
"""  # noqa: S608 - our own text
COLUMNS = f"""m.at, {EVENT_ID}, {SEQUENCE}, m.position, {MS_OF_MESSAGE}, m.message, m.conversation, t.sequence,
  t.turn_id, m.message_id, (SELECT channel_id FROM conversation WHERE conversation = ?1),
  (SELECT conversation_id FROM conversation WHERE conversation = ?1)"""  # noqa: S608 - our own text
VISIBLE = "AND m.visibility IN (SELECT value FROM json_each(?6))"
KEY = f"({{at}}, {EVENT_ID}, {SEQUENCE}, m.position)"
IS_BEFORE, IS_AFTER = f"{KEY} < (?7, ?8, ?9, ?10)", f"{KEY} > (?7, ?8, ?9, ?10)"
UPWARDS = f"ORDER BY {{at}}, {EVENT_ID}, {SEQUENCE}, m.position LIMIT ?11"
DOWNWARDS = f"ORDER BY {{at}} DESC, {EVENT_ID} DESC, {SEQUENCE} DESC, m.position DESC LIMIT ?11"
BEFORE_SQL = in_stretch(COLUMNS, f"{VISIBLE} AND {IS_BEFORE} {DOWNWARDS}")
AFTER_SQL = in_stretch(COLUMNS, f"{VISIBLE} AND {IS_AFTER} {UPWARDS}")
BETWEEN_SQL = in_stretch(
    COLUMNS, f"{VISIBLE} AND {KEY} >= (?7, ?8, ?9, ?10) AND {KEY} <= (?12, ?13, ?14, ?15) {UPWARDS}"
)
# The time of the message that stands so many places away among those with the time of a turn that is not late. Such
# turns are in the order of their times by sequence, which SQLite does not know: it would sort all of them.
REACH = "SELECT t.at {0} {1} AND {2} ORDER BY t.sequence {3} LIMIT 1 OFFSET ?11"
REACH_BEFORE_SQL = REACH.format(ON_TIME, VISIBLE, IS_BEFORE.format(at="t.at"), "DESC")
REACH_AFTER_SQL = REACH.format(ON_TIME, VISIBLE, IS_AFTER.format(at="t.at"), "")


class Placed(NamedTuple):
    """Where a message stands in its session."""

    conversation: int
    at: int
    event_id: str
    sequence: int
    position: int


def place(tx: Reading, space: int, message: int) -> Placed | None:
    """Where a message of a space stands, None where it is gone."""
    return tx.one(Placed, PLACE_SQL, space, message)


def before(tx: Reading, at: Placed, kinds: tuple[str, ...], most: int) -> list[Timed]:
    """The last messages of some visibilities before a place, in order."""
    if most < 1:
        return []
    place_and_kinds = (json.dumps(kinds), *at[1:])
    past = stretch(tx, at.conversation, -EVER, at.at)
    reach = tx.value(REACH_BEFORE_SQL, *past, *place_and_kinds, most - 1)
    if reach is not None and (first := turn_times.first_at(tx, at.conversation, reach)) is not None:
        past = past._replace(first_sequence=first)
    return _in_order(tx, BEFORE_SQL, past, *place_and_kinds, most)[-most:]


def after(tx: Reading, at: Placed, kinds: tuple[str, ...], most: int) -> list[Timed]:
    """The first messages of some visibilities behind a place."""
    if most < 1:
        return []
    place_and_kinds = (json.dumps(kinds), *at[1:])
    future = stretch(tx, at.conversation, at.at, EVER)
    reach = tx.value(REACH_AFTER_SQL, *future, *place_and_kinds, most - 1)
    if reach is not None and (behind := turn_times.first_at(tx, at.conversation, reach + 1)) is not None:
        future = future._replace(last_sequence=behind - 1)
    return _in_order(tx, AFTER_SQL, future, *place_and_kinds, most)[:most]


def between(tx: Reading, first: Placed, last: Placed, kinds: tuple[str, ...], most: int) -> list[Timed]:
    """The first messages from one place to another, both included."""
    found = stretch(tx, first.conversation, first.at, last.at)
    return _in_order(tx, BETWEEN_SQL, found, json.dumps(kinds), *first[1:], most, *last[1:])[:most]


def _in_order(tx: Reading, sql: str, of: Stretch, *values: object) -> list[Timed]:
    rows = sorted(tx.rows(sql, *of, *values))
    return [Timed(at_ms, event_id, *rest) for _, event_id, _, _, at_ms, *rest in rows]
