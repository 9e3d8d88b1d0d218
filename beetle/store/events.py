"""Messages by time: one row each, which every door's turns get when they are written."""

from __future__ import annotations

from collections.abc import Sequence

from beetle.named_tuple import NamedTuple
from beetle.store.engine.transaction import Reading, Writing

MS_OF_MESSAGE = "(m.at - (m.at % 1000 + 1000) % 1000) / 1000"
"""The time of a message `m` in whole milliseconds, as Python's `//` has it before the epoch too."""
# Of one row, as a SELECT is not: else SQLite keeps what undoes the statement, before which the recall index is flushed.
ADD_SQL = "INSERT INTO event VALUES ((SELECT space FROM conversation WHERE conversation = ?), ?, ?, ?)"
NAMED_SQL = "SELECT message FROM event WHERE space = ? AND event_id = ? AND event_id <> ''"
NAMED_BESIDE_SQL = """
SELECT 1 FROM event e JOIN conversation c ON c.space = e.space
WHERE c.conversation = ? AND e.event_id = ? AND e.event_id <> ''
"""
RANGE_SQL = """
SELECT e.at_ms, e.event_id, e.message, t.conversation, t.sequence, t.turn_id, m.message_id, c.channel_id,
  c.conversation_id
FROM event e
CROSS JOIN message m ON m.message = e.message
CROSS JOIN turn t ON t.turn = m.turn AND t.conversation = m.conversation
  AND m.message BETWEEN t.first_message AND t.last_message
CROSS JOIN conversation c ON c.conversation = t.conversation AND c.space = e.space
WHERE e.space = ? AND (e.at_ms, e.event_id, e.message) > (?, ?, ?) AND e.at_ms <= ?
ORDER BY e.at_ms, e.event_id, e.message LIMIT ?
"""


class EventPosition(NamedTuple):
    """Where a message stands in the order of time; between places of one millisecond their ids decide."""

    at_ms: int
    event_id: str
    message: int


class Timed(NamedTuple):
    """A message by its time, and the turn that it is of."""

    at_ms: int
    event_id: str
    message: int
    conversation: int
    sequence: int
    turn_id: str
    message_id: str
    channel_id: str
    conversation_id: str

    @property
    def place(self) -> EventPosition:
        return EventPosition(self.at_ms, self.event_id, self.message)


class EventPlace(NamedTuple):
    """A message that was just written, and its id as an event, empty when it is none; `at` in microseconds."""

    conversation: int
    at: int
    event_id: str
    message: int


def add(tx: Writing, placed: Sequence[EventPlace]) -> None:
    """Put messages into their place.

    An id that is taken in the space stays its first one's: the message is then known by its ref alone.
    """
    taken: set[str] = set()
    rows: list[tuple[int, int, str, int]] = []
    for conversation, at, event_id, message in placed:
        if event_id and (event_id in taken or tx.value(NAMED_BESIDE_SQL, conversation, event_id) is not None):
            event_id = ""
        taken.add(event_id)
        rows.append((conversation, at // 1000, event_id, message))
    tx.insert_rows(ADD_SQL, rows)


def named(tx: Reading, space: int, event_id: str) -> int | None:
    """The message of an ingested event."""
    found: int | None = tx.value(NAMED_SQL, space, event_id)
    return found


def between(tx: Reading, space: int, after: EventPosition, until_ms: int, limit: int) -> list[Timed]:
    """Messages of a space behind a place, up to a time that is included."""
    return [Timed(*row) for row in tx.rows(RANGE_SQL, space, *after, until_ms, limit)]
