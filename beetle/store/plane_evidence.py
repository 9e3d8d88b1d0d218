"""What the upkeep of evidence asks of its tables: the rows of the recall index, checks, counts."""

from __future__ import annotations

import json
from collections.abc import Iterator

from beetle.store import message_times
from beetle.store.engine.transaction import Reading
from beetle.store.events import MS_OF_MESSAGE
from beetle.store.index_tail import INDEXED_TO
from beetle.store.indexed import IS_INDEXED, IndexedText, IndexTable
from beetle.store.sight import Sight
from beetle.store.turn_messages import MISPLACED_SQL, OF_TURN, OUTSIDE_SQL
from beetle.store.turn_times import MISTAKEN_SQL
from beetle.store.verify import Finding

MESSAGES = IndexTable(
    "evidence",
    every=f"SELECT message << 4 AS row FROM message WHERE {IS_INDEXED} AND message <= {INDEXED_TO}",  # noqa: S608 - our own text
    belongs=f"""EXISTS (SELECT 1 FROM message
    WHERE message = d.id >> 4 AND {IS_INDEXED} AND message <= {INDEXED_TO})""",  # noqa: S608 - our own text
    within="EXISTS (SELECT 1 FROM message WHERE message = hit.rowid >> 4 AND at BETWEEN ?2 AND ?3)",
)
MISSING_SQL = f"""
SELECT message FROM message m
WHERE message > ? AND message <= {INDEXED_TO} AND {IS_INDEXED}
  AND NOT EXISTS (SELECT 1 FROM recall_index_docsize WHERE id = m.message << 4)
ORDER BY message LIMIT ?
"""  # noqa: S608 - our own text
INDEXED_SQL = """
SELECT m.message, m.digest, b.content FROM message m JOIN body b ON b.message = m.message
WHERE m.message > ? AND EXISTS (SELECT 1 FROM recall_index_docsize WHERE id = m.message << 4)
ORDER BY m.message LIMIT ?
"""
CONTENTS_SQL = "SELECT m.message, m.digest, b.content FROM message m JOIN body b ON b.message = m.message"
LAST_MESSAGE_SQL = "SELECT coalesce(max(message), 0) FROM message"
PLACE_OF_MESSAGE_SQL = """
SELECT c.conversation, c.channel_id, c.conversation_id, c.space
FROM message m JOIN conversation c ON c.conversation = m.conversation WHERE m.message = ?
"""
ROWS_SQL = """
SELECT json_object('turns', (SELECT count(*) FROM turn), 'messages', (SELECT count(*) FROM message),
  'derived_refs', (SELECT count(*) FROM derived_ref))
"""
BODY_SQL = """
SELECT m.message, m.state, b.message IS NOT NULL FROM message m LEFT JOIN body b ON b.message = m.message
WHERE (b.message IS NULL) <> (m.state = 'deleted')
UNION ALL
SELECT b.message, 'none', 1 FROM body b LEFT JOIN message m ON m.message = b.message WHERE m.message IS NULL
LIMIT 100
"""
# Behind a content may stand tool calls and results.
LENGTH_SQL = """
SELECT m.message FROM message m JOIN body b ON b.message = m.message
WHERE m.length <> length(b.content) AND instr(b.content, char(0)) = 0
  AND (m.length > length(b.content) OR substr(b.content, m.length + 1, 8) <> char(10) || '{"tool_') LIMIT 100
"""
COUNTERS_SQL = """
SELECT c.conversation, c.turns, count(t.turn), c.last_sequence, coalesce(max(t.sequence), 0), c.messages,
  (SELECT count(*) FROM message m WHERE m.conversation = c.conversation) AS held
FROM conversation c LEFT JOIN turn t ON t.conversation = c.conversation GROUP BY c.conversation
HAVING c.turns <> count(t.turn) OR c.last_sequence <> coalesce(max(t.sequence), 0) OR c.messages <> held
  OR c.first_at IS NOT min(t.at) OR c.last_at IS NOT max(t.at) LIMIT 100
"""
EMPTY_TURNS_SQL = f"""
SELECT turn FROM turn t WHERE NOT EXISTS (SELECT 1 FROM message m WHERE {OF_TURN}) LIMIT 100
"""  # noqa: S608 - our own text
DERIVED_SQL = """
SELECT d.derived_ref, d.evidence FROM derived_ref d LEFT JOIN turn t ON t.turn = d.turn
WHERE d.turn IS NOT NULL AND t.turn IS NULL LIMIT 100
"""
# Those of a conversation of which turns are being erased or masked are settled behind its last turn.
SPEAKERS_SQL = """
SELECT DISTINCT conversation FROM (
  SELECT * FROM (
    SELECT conversation, visibility, speaker FROM conversation_speaker
    EXCEPT SELECT conversation, visibility, speaker FROM message WHERE state = 'live' AND speaker IS NOT NULL
  )
  UNION ALL
  SELECT * FROM (
    SELECT conversation, visibility, speaker FROM message WHERE state = 'live' AND speaker IS NOT NULL
    EXCEPT SELECT conversation, visibility, speaker FROM conversation_speaker
  )
) WHERE conversation NOT IN (SELECT first FROM erasure_left WHERE plane = 'speakers') LIMIT 100
"""
# What an event is called is its message's id, so that a row that was changed by hand is found.
ASTRAY_SQL = f"""
SELECT m.message, 'is not in the index by time' FROM message m JOIN conversation c ON c.conversation = m.conversation
WHERE NOT EXISTS (
  SELECT 1 FROM event e WHERE e.space = c.space AND e.at_ms = {MS_OF_MESSAGE} AND e.event_id IN ('', m.message_id)
    AND e.message = m.message)
UNION ALL
SELECT e.message, 'stands at a wrong place in the index by time' FROM event e
LEFT JOIN message m ON m.message = e.message LEFT JOIN conversation c ON c.conversation = m.conversation
WHERE m.message IS NULL OR c.space IS NOT e.space OR e.at_ms <> {MS_OF_MESSAGE} OR e.event_id NOT IN ('', m.message_id)
LIMIT 100
"""  # noqa: S608 - our own text
# A key that another turn has is no damage: an archive may bring a turn that was captured here meanwhile.
UNTAKEN_SQL = """
SELECT t.turn FROM turn t
CROSS JOIN conversation c ON c.conversation = t.conversation
CROSS JOIN attr a ON a.turn = t.turn AND a.message IS NULL AND a.key = 'capture' AND json_valid(a.value)
WHERE t.door = 'capture' AND NOT EXISTS (SELECT 1 FROM captured_turn k WHERE k.turn = t.turn) AND NOT EXISTS (
  SELECT 1 FROM captured_turn k WHERE k.space = c.space AND k.host_session_id = a.value ->> '$.host_session_id'
    AND k.host_turn_index = a.value ->> '$.host_turn_index')
LIMIT 100
"""
COUNTS_SQL = """
SELECT json_object(
  'conversations', (SELECT count(*) FROM conversation WHERE space = ?1),
  'turns', (SELECT CAST(total(turns) AS INTEGER) FROM conversation WHERE space = ?1),
  'messages', (SELECT CAST(total(messages) AS INTEGER) FROM conversation WHERE space = ?1),
  'masked_messages', (SELECT count(*) FROM message m INDEXED BY message_hidden JOIN conversation c USING (conversation)
    WHERE c.space = ?1 AND m.state <> 'live' AND m.state = 'masked'),
  'deleted_messages', (SELECT count(*) FROM message m INDEXED BY message_hidden JOIN conversation c USING (conversation)
    WHERE c.space = ?1 AND m.state <> 'live' AND m.state = 'deleted'),
  'derived_refs', (
    SELECT count(*) FROM derived_ref d LEFT JOIN fact f ON f.fact = d.fact
    WHERE d.space = ?1 AND (?2 OR f.fact IS NULL OR f.visibility = 'shared')
      AND (?3 OR (d.derived NOT GLOB 'private_garden:*' AND d.derived NOT GLOB 'soul_candidate:*'))
  )
)
"""


def counts(tx: Reading, space: int | None, sight: Sight) -> dict[str, int]:
    """What a space holds, as an inspection counts it."""
    return json.loads(tx.value(COUNTS_SQL, space, *map(int, sight)))


def rows(tx: Reading) -> dict[str, int]:
    """What the store holds, as a verification counts it; the links to evidence among it."""
    return json.loads(tx.value(ROWS_SQL))


def bodies(tx: Reading) -> Iterator[Finding]:
    """Messages without their content, contents without their message."""
    for message, state, has_body in tx.rows(BODY_SQL):
        yield Finding("evidence", f"message {message}", f"is {state} and {'has' if has_body else 'lacks'} content")
    for (message,) in tx.rows(LENGTH_SQL):
        yield Finding("evidence", f"message {message}", "its content is not as long as it was")
    empty = [turn for (turn,) in tx.rows(EMPTY_TURNS_SQL)]
    for turn in empty:
        yield Finding("evidence", f"turn {turn}", "has no message")
    for (turn,) in tx.rows(MISPLACED_SQL):
        if turn not in empty:
            yield Finding("evidence", f"turn {turn}", "its messages do not stand where it says")
    for (turn,) in tx.rows(MISTAKEN_SQL):
        yield Finding("evidence", f"turn {turn}", "says another latest time than the turns up to it have")
    for (message,) in tx.rows(OUTSIDE_SQL):
        yield Finding("evidence", f"message {message}", "does not stand where its turn says")
    for (message,) in tx.rows(message_times.MISTAKEN_SQL):
        yield Finding("evidence", f"message {message}", "says wrongly whether it has its turn's time")


def counters(tx: Reading) -> Iterator[Finding]:
    """Conversations that hold another number of turns or messages than they say."""
    for conversation, turns, counted, last, highest, messages, held in tx.rows(COUNTERS_SQL):
        said, there = (turns, last, messages), (counted, highest, held)
        problem = f"says {turns} turns up to {last} and {messages} messages, holds {counted} up to {highest} and {held}"
        problem = "says other times than its turns have" if said == there else problem
        yield Finding("evidence", f"conversation {conversation}", problem)


def speakers(tx: Reading) -> Iterator[Finding]:
    """Conversations whose list of speakers is not that of their live messages."""
    for (conversation,) in tx.rows(SPEAKERS_SQL):
        yield Finding("evidence", f"conversation {conversation}", "its speakers are not those of its live messages")


def events(tx: Reading) -> Iterator[Finding]:
    """Messages that lack their place in the order of time, and places without their message."""
    for message, problem in tx.rows(ASTRAY_SQL):
        yield Finding("evidence", f"event of message {message}", problem)


def untaken(tx: Reading) -> Iterator[Finding]:
    """Captured turns whose keys nobody has: host coverage lacks them."""
    for (turn,) in tx.rows(UNTAKEN_SQL):
        yield Finding("evidence", f"turn {turn}", "was captured, and its key is not taken")


def contents(tx: Reading) -> Iterator[tuple[int, bytes, str]]:
    """(message, digest, content) of every message that has content."""
    return ((row[0], row[1], row[2]) for row in tx.rows(CONTENTS_SQL))


def links(tx: Reading) -> Iterator[Finding]:
    """Derived refs that are linked to no turn."""
    for ref, named in tx.rows(DERIVED_SQL):
        yield Finding("derived_refs", f"row {ref}", f"names evidence that is not there ({named})")


def missing(tx: Reading, after: int, limit: int) -> list[int]:
    """Keys behind `after` of messages that the index should hold and does not."""
    return [row[0] for row in tx.rows(MISSING_SQL, after, limit)]


def indexed(tx: Reading, after: int, limit: int) -> list[IndexedText]:
    """Messages behind `after` that the index holds."""
    return [IndexedText(key, content, digest) for key, digest, content in tx.rows(INDEXED_SQL, after, limit)]


def last_message(tx: Reading) -> int:
    """The highest key of a message; 0 without one."""
    return tx.value(LAST_MESSAGE_SQL)


def place_of_message(tx: Reading, message: int) -> tuple[int, str, str, int] | None:
    """(conversation, channel_id, conversation_id, space) of a message."""
    found = tx.row(PLACE_OF_MESSAGE_SQL, message)
    return None if found is None else (found[0], found[1], found[2], found[3])
