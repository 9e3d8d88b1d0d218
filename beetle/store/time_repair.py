"""What recovery mends of the index by time, of captured turns and of the table of contents."""

from __future__ import annotations

from beetle.named_tuple import NamedTuple
from beetle.store import events
from beetle.store.engine.transaction import Reading, Writing
from beetle.store.events import MS_OF_MESSAGE
from beetle.store.turn_messages import OF_TURN

LAST_MESSAGE_SQL = "SELECT coalesce(max(message), 0) FROM message"
MESSAGES_SQL = "SELECT message FROM message WHERE message > ? ORDER BY message LIMIT ?"
TURNS_SQL = "SELECT turn FROM turn WHERE turn > ? ORDER BY turn LIMIT ?"
# An ingested event's row has its name, unless another event of the space has that; no other message's has one. Of a
# message whose turn cannot be read nobody knows.
WRONG_SQL = f"""
SELECT e.space, e.at_ms, e.event_id, e.message,
  m.message IS NULL OR c.space IS NOT e.space OR e.at_ms <> {MS_OF_MESSAGE}
  OR CASE
    WHEN t.door IN ('transcript', 'capture') THEN e.event_id <> ''
    WHEN t.door IS NOT 'event' THEN 0
    WHEN e.event_id <> '' THEN e.event_id <> m.message_id
    ELSE coalesce((SELECT n.message FROM event n
      WHERE n.space = e.space AND n.event_id = m.message_id AND n.event_id <> ''), e.message) = e.message
  END
FROM event e
LEFT JOIN message m ON m.message = e.message
LEFT JOIN turn t ON t.turn = m.turn
LEFT JOIN conversation c ON c.conversation = m.conversation
WHERE (e.space, e.at_ms, e.event_id, e.message) > (?, ?, ?, ?)
ORDER BY e.space, e.at_ms, e.event_id, e.message LIMIT ?
"""  # noqa: S608 - our own text
DROP_SQL = "DELETE FROM event WHERE space = ? AND at_ms = ? AND event_id = ? AND message = ?"
# What is of a space that is lost itself has no place.
MISSING_SQL = f"""
SELECT m.message, m.conversation, m.at, iif(t.door = 'event', m.message_id, '')
FROM message m CROSS JOIN turn t ON t.turn = m.turn CROSS JOIN conversation c ON c.conversation = m.conversation
CROSS JOIN space s ON s.space = c.space
WHERE m.message BETWEEN ? AND ? AND NOT EXISTS (
  SELECT 1 FROM event e WHERE e.space = c.space AND e.at_ms = {MS_OF_MESSAGE} AND e.event_id IN ('', m.message_id)
    AND e.message = m.message)
"""  # noqa: S608 - our own text
UNCAPTURED_SQL = f"""
SELECT t.turn, c.space, a.value, m.role, substr(b.content, 1, m.length), t.at
FROM turn t CROSS JOIN conversation c ON c.conversation = t.conversation
CROSS JOIN message m ON {OF_TURN} AND +m.position = 0
CROSS JOIN body b ON b.message = m.message
CROSS JOIN attr a ON a.turn = t.turn AND a.message IS NULL AND a.key = ?
WHERE t.turn BETWEEN ? AND ? AND t.door = 'capture'
  AND NOT EXISTS (SELECT 1 FROM captured_turn k WHERE k.turn = t.turn)
"""  # noqa: S608 - our own text
GRIPLESS_SQL = """
SELECT n.toc_node FROM toc_node n WHERE n.stale = 0 AND n.level = 5 AND EXISTS (
  SELECT 1 FROM json_each(n.bullets) j
  WHERE NOT EXISTS (SELECT 1 FROM grip g WHERE g.space = n.space AND g.grip_id = j.value))
"""
EMPTY_SQL = """
SELECT toc_node FROM toc_node n
WHERE level < 5 AND NOT EXISTS (SELECT 1 FROM toc_node c WHERE c.parent = n.toc_node)
"""


class EventRow(NamedTuple):
    """A row of the index by time, and whether it stands there wrongly."""

    space: int
    at_ms: int
    event_id: str
    message: int
    wrong: bool


BEFORE_ALL = EventRow(-1, 0, "", 0, False)


class Uncaptured(NamedTuple):
    """A turn that a host delivered, whose key is not taken; `told` is its attr, `at` in microseconds."""

    turn: int
    space: int
    told: str
    role: str
    content: str
    at: int


def last_message(tx: Reading) -> int:
    """The highest key of a message."""
    return tx.value(LAST_MESSAGE_SQL)


def messages(tx: Reading, after: int, most: int) -> list[int]:
    """Keys of messages behind one. A damaged key may be any number: none is counted up to."""
    return [row[0] for row in tx.rows(MESSAGES_SQL, after, most)]


def turns(tx: Reading, after: int, most: int) -> list[int]:
    """As `messages`, of turns."""
    return [row[0] for row in tx.rows(TURNS_SQL, after, most)]


def rows_behind(tx: Reading, after: EventRow, most: int) -> list[EventRow]:
    """Rows of the index by time behind one, right and wrong."""
    found = tx.rows(WRONG_SQL, *after[:4], most)
    return [EventRow(space, at, name, message, bool(wrong)) for space, at, name, message, wrong in found]


def drop(tx: Writing, row: EventRow) -> None:
    """Take a row out of the index by time."""
    tx.run(DROP_SQL, *row[:4])


def add_missing(tx: Writing, first: int, last: int) -> int:
    """Put the messages of these keys into the index by time that are not in it; how many."""
    rows = list(tx.rows(MISSING_SQL, first, last))
    for message, conversation, at, event_id in rows:
        events.add(tx, (events.EventPlace(conversation, at, event_id, message),))
    return len(rows)


def uncaptured(tx: Reading, attr: str, first: int, last: int) -> list[Uncaptured]:
    """Turns of these keys that hosts delivered, as an attr says, and whose keys are not taken."""
    return [Uncaptured(*row) for row in tx.rows(UNCAPTURED_SQL, attr, first, last)]


def gripless(tx: Reading) -> list[int]:
    """Segments with bullets whose grips are gone."""
    return [row[0] for row in tx.rows(GRIPLESS_SQL)]


def empty_periods(tx: Reading) -> list[int]:
    """Periods that hold nothing."""
    return [row[0] for row in tx.rows(EMPTY_SQL)]
