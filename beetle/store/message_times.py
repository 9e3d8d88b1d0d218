"""Messages by their times. Nearly all have the time of their turn, and `turn_times` finds those.

The others stand apart: their time is not their turn's, and each has a row in an index. So the messages of a stretch of
time are those of the turns that are not late, those of the late ones, and the ones apart. Most commits write no page of
the index.
"""

from __future__ import annotations

from beetle.named_tuple import NamedTuple
from beetle.store import turn_times
from beetle.store.engine.transaction import Reading
from beetle.store.turn_messages import OF_TURN

EVER = 1 << 62
EVENT_ID, SEQUENCE = "iif(t.door = 'event', t.turn_id, '')", "iif(t.door = 'event', 0, t.sequence)"
"""What orders messages of one time: ingested events by their ids, others as they came."""
ON_TIME = f"""
FROM turn t CROSS JOIN message m ON {OF_TURN} AND m.apart = 0 AND +m.conversation = t.conversation
WHERE t.conversation = ?1 AND t.sequence BETWEEN ?2 AND ?3 AND t.at = t.latest"""
LATE = f"""
FROM turn t INDEXED BY turn_late CROSS JOIN message m ON {OF_TURN} AND m.apart = 0 AND +m.conversation = t.conversation
WHERE t.conversation = ?1 AND t.at < t.latest AND t.at BETWEEN ?4 AND ?5"""
APART = """
FROM message m INDEXED BY message_apart CROSS JOIN turn t ON t.turn = m.turn AND t.conversation = m.conversation
WHERE m.conversation = ?1 AND m.apart = 1 AND m.at BETWEEN ?4 AND ?5"""
MISTAKEN_SQL = """
SELECT m.message FROM message m CROSS JOIN turn t ON t.turn = m.turn WHERE m.apart <> (m.at <> t.at) LIMIT 100
"""


class Stretch(NamedTuple):
    """A stretch of time of a conversation, both ends included, in microseconds; and the sequences of the turns in it
    that are not late. The first parameters of a statement of `in_stretch`."""

    conversation: int
    first_sequence: int
    last_sequence: int
    begin: int
    end: int


def by_kind(columns: str, more: str) -> tuple[str, str, str]:
    """Statements that have `columns` of the messages `m` of a stretch, with their turns `t`: one for each kind.

    Args:
        more: further conditions, an order and a limit, with `{at}` for the time of a message and `{oldest}` for what a
            kind is to be ordered by so that the oldest come first.
    """
    # The time, and what has its order, as the index of a kind has them.
    kinds = ((ON_TIME, "t.at", "t.sequence"), (LATE, "t.at", "t.at"), (APART, "m.at", "m.at"))
    first, second, third = (f"SELECT {columns}{kind} {more.format(at=at, oldest=oldest)}" for kind, at, oldest in kinds)
    return first, second, third


def in_stretch(columns: str, more: str) -> str:
    """One statement that has what those of `by_kind` have. A limit holds for each kind on its own: up to three times as
    many rows come."""
    statements = (f"SELECT * FROM (\n{each}\n)" for each in by_kind(columns, more))  # noqa: S608 - our own text
    return "\nUNION ALL ".join(statements)


def stretch(tx: Reading, conversation: int, begin: int, end: int) -> Stretch:
    """The stretch between two times; `-EVER` and `EVER` are before and behind all of them."""
    first = 1 if begin == -EVER else turn_times.first_at(tx, conversation, begin) or EVER
    behind = EVER if end == EVER else turn_times.first_at(tx, conversation, end + 1) or EVER
    return Stretch(conversation, first, behind - 1, begin, end)
