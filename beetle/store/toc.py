"""The table of contents: its outbox, nodes, grips, and the texts that their places stand in.

No content is kept here: bullets and keywords are places in bodies. What is read back of them is live, shared and of the
node's space, whatever became of a message since.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from itertools import groupby
from operator import itemgetter

from beetle.contracts.codec import LAST_US
from beetle.named_tuple import NamedTuple
from beetle.store.engine.transaction import Reading, Row, Writing
from beetle.store.message_times import EVENT_ID, SEQUENCE, by_kind, in_stretch, stretch
from beetle.store.toc_outbox import NOTE_SQL

DAY_US = 86_400_000_000
LEVELS = {"year": 1, "month": 2, "week": 3, "day": 4, "segment": 5}
SEGMENT = LEVELS["segment"]

TAKE_SQL = """
UPDATE toc_outbox SET taken = ?1 WHERE (conversation, day) IN (
  SELECT conversation, day FROM toc_outbox WHERE (conversation, day) > (?2, ?3) ORDER BY conversation, day LIMIT ?4
)
RETURNING conversation, day
"""
OUTBOX_SIZE_SQL = "SELECT count(*) FROM toc_outbox"
SETTLE_OUTBOX_SQL = "DELETE FROM toc_outbox WHERE conversation = ? AND day = ? AND taken = ?"
WAITS_SQL = "SELECT 1 FROM toc_outbox WHERE conversation = ? AND day = ?"
PLACE_SQL = """
SELECT c.space, s.memory_space_id, c.channel_id, c.conversation_id
FROM conversation c JOIN space s ON s.space = c.space WHERE c.conversation = ?
"""
MEMBERS_SQLS = by_kind(
    f"m.at, {EVENT_ID}, {SEQUENCE}, m.position, m.message, m.role, m.length, m.state, m.message_id",
    "AND m.visibility = 'shared' ORDER BY {oldest}",
)
SEGMENTS_SQL = """
SELECT toc_node, node_id, space, parent, members, starts, ends FROM toc_node
WHERE level = 5 AND conversation = ? AND day = ?
"""
NODE_COLUMNS = """
SELECT toc_node, space, level, node_id, parent, starts, ends, conversation, day, version, stale, bullets, words,
  keywords
FROM toc_node
"""
NODE_SQL = NODE_COLUMNS + "WHERE space = ? AND node_id = ?"
BY_KEY_SQL = NODE_COLUMNS + "WHERE toc_node = ?"
OF_PARENT = "WHERE parent = ?1 AND space = (SELECT space FROM toc_node WHERE toc_node = ?1)"
CHILDREN_SQL = f"{NODE_COLUMNS}{OF_PARENT} ORDER BY starts, node_id LIMIT ?2 OFFSET ?3"
YEARS_SQL = NODE_COLUMNS + "WHERE space = ? AND level = 1 AND starts < ? ORDER BY starts DESC LIMIT ?"
LEVEL_SQL = NODE_COLUMNS + "WHERE space = ? AND level = ? ORDER BY starts, node_id"
CHILD_IDS_SQL = f"SELECT node_id FROM toc_node {OF_PARENT} ORDER BY starts, node_id LIMIT ?2"  # noqa: S608 - our own text
STALE_SQL = NODE_COLUMNS + "WHERE level = ? AND toc_node > ? AND stale > 0 ORDER BY toc_node LIMIT ?"
STALE_SEGMENTS_SQL = """
SELECT toc_node FROM (
  SELECT toc_node, conversation, day FROM toc_node WHERE level = 5 AND toc_node > ? AND stale > 0
  ORDER BY toc_node LIMIT ?
) ORDER BY conversation, day, toc_node
"""
STALE_COUNT_SQL = "SELECT count(*) FROM toc_node WHERE level BETWEEN ? AND ? AND stale > 0"
NEW_NODE_SQL = """
INSERT INTO toc_node (space, level, node_id, parent, starts, ends, conversation, day, members, version, stale)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 1, 1)
"""
RECUT_SQL = """
UPDATE toc_node SET parent = ?, starts = ?, ends = ?, members = ?, version = version + 1, stale = stale + 1
WHERE toc_node = ?
"""
STALE_NODE_SQL = "UPDATE toc_node SET stale = stale + 1 WHERE toc_node = ?"
KEY_SQL = "SELECT toc_node FROM toc_node WHERE space = ? AND node_id = ?"
PUT_SQL = """
UPDATE toc_node SET bullets = ?1, words = ?2, keywords = ?3, stale = 0,
  version = version + (bullets <> ?1 OR keywords <> ?3 OR ?4)
WHERE toc_node = ?5 AND stale = ?6 RETURNING toc_node
"""
PUT_KEYWORDS_SQL = "UPDATE toc_node SET keywords = ?1, version = version + 1 WHERE toc_node = ?2 AND keywords <> ?1"
DIGEST_SQL = "SELECT members FROM toc_node WHERE toc_node = ?"
PARENT_SQL = "SELECT parent FROM toc_node WHERE toc_node = ?"
HAS_CHILD_SQL = "SELECT 1 FROM toc_node WHERE parent = ? LIMIT 1"
DROP_NODE_SQL = "DELETE FROM toc_node WHERE toc_node = ?"
DROP_TITLE_SQL = "DELETE FROM toc_title WHERE toc_node = ?"
DROP_WRITTEN_SQL = "DELETE FROM grip WHERE segment = ? AND written IS NOT NULL"
DROP_GRIPS_SQL = "DELETE FROM grip WHERE segment = ?"
DROP_OTHER_GRIPS_SQL = """
DELETE FROM grip WHERE segment = ? AND grip_id NOT IN (SELECT value FROM json_each(?))
"""
PUT_GRIP_SQL = """
INSERT INTO grip (space, grip_id, segment, message, last_message, begins, ends, written) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (space, grip_id) DO UPDATE SET segment = excluded.segment, message = excluded.message,
  last_message = excluded.last_message, begins = excluded.begins, ends = excluded.ends, written = excluded.written
"""
GRIPS_SQL = """
SELECT g.grip_id, g.segment, g.message, g.last_message, g.begins, g.ends, g.written
FROM json_each(?) j CROSS JOIN grip g ON g.space = ? AND g.grip_id = j.value
"""
GRIP_SQL = """
SELECT g.grip_id, g.segment, g.message, g.last_message, g.begins, g.ends, g.written FROM grip g
WHERE g.space = ? AND g.grip_id = ?
"""
NAMED_SQL = "SELECT at, message_id FROM message WHERE message = ?"
TEXTS_SQL = """
SELECT m.message, m.role, m.length, m.digest, b.content
FROM json_each(?) j
CROSS JOIN message m ON m.message = j.value
CROSS JOIN conversation c ON c.conversation = m.conversation AND c.space = ?
CROSS JOIN body b ON b.message = m.message
WHERE m.state = 'live' AND m.visibility = 'shared'
"""
SEGMENT_OF_SQL = """
SELECT n.toc_node FROM message m
CROSS JOIN toc_node n ON n.level = 5 AND n.conversation = m.conversation
  AND n.day = (m.at - (m.at % 86400000000 + 86400000000) % 86400000000) / 86400000000
  AND n.starts <= (m.at - (m.at % 1000 + 1000) % 1000) / 1000 AND n.ends >= (m.at - (m.at % 1000 + 1000) % 1000) / 1000
WHERE m.message = ? AND m.visibility = 'shared' AND n.space = ? ORDER BY n.starts DESC, n.node_id DESC LIMIT 1
"""
HAS_EVENTS_SQL = """
SELECT 1 FROM event e CROSS JOIN message m ON m.message = e.message
WHERE e.space = ? AND e.at_ms BETWEEN ? AND ?
  AND m.state = 'live' AND m.visibility IN (SELECT value FROM json_each(?)) LIMIT 1
"""
HAS_EVENTS_OF_SQL = in_stretch(
    "1", "AND m.state = 'live' AND m.visibility IN (SELECT value FROM json_each(?6)) LIMIT 1"
)
SHOWN = "AND m.state = 'live' AND m.visibility = 'shared'"
TIME_SQL = """
SELECT m.at FROM message m JOIN conversation c ON c.conversation = m.conversation WHERE m.message = ? AND c.space = ?
"""
BULLETS_BETWEEN_SQL = """
SELECT g.message FROM toc_node n CROSS JOIN json_each(n.bullets) j
CROSS JOIN grip g ON g.space = n.space AND g.grip_id = j.value
CROSS JOIN message m ON m.message = g.message AND m.state = 'live' AND m.visibility = 'shared'
WHERE n.space = ?1 AND n.level = ?2 AND n.starts BETWEEN ?3 AND ?4 AND n.ends <= ?4
ORDER BY n.starts DESC LIMIT ?5
"""
BULLETS_OF_SQL = """
SELECT g.message FROM toc_node n CROSS JOIN grip g ON g.segment = n.toc_node
CROSS JOIN message m ON m.message = g.message AND m.state = 'live' AND m.visibility = 'shared'
WHERE n.level = 5 AND n.conversation = ?1 AND n.day BETWEEN ?2 AND ?3 AND n.starts BETWEEN ?4 AND ?5
ORDER BY n.day DESC, n.starts DESC LIMIT ?6
"""
# The newest of those that may be shown are taken first: how many others there are between them must not be told. The
# bullets of a segment that is stale are of before.
UNSEGMENTED = """
WHERE NOT EXISTS (
  SELECT 1 FROM toc_node n WHERE n.level = 5 AND n.stale = 0 AND n.conversation = newest.conversation
  AND n.day = (newest.at - (newest.at % 86400000000 + 86400000000) % 86400000000) / 86400000000
  AND n.starts <= newest.at_ms AND n.ends >= newest.at_ms
)
"""
UNSEGMENTED_BETWEEN_SQL = f"""
SELECT newest.message FROM (
  SELECT e.message, e.at_ms, m.at, m.conversation FROM event e CROSS JOIN message m ON m.message = e.message
  WHERE e.space = ? AND e.at_ms BETWEEN ? AND ? {SHOWN}
  ORDER BY e.at_ms DESC LIMIT ?
) newest{UNSEGMENTED}"""  # noqa: S608 - our own text
UNSEGMENTED_OF_SQL = f"""
SELECT newest.message FROM (
  SELECT message, at, conversation, (at - (at % 1000 + 1000) % 1000) / 1000 AS at_ms FROM (
{in_stretch("m.message, m.at, m.conversation", f"{SHOWN} ORDER BY {{oldest}} DESC LIMIT ?6")}
  ) ORDER BY at DESC LIMIT ?6
) newest{UNSEGMENTED}"""  # noqa: S608 - our own text
MESSAGE_NAMED_SQL = """
SELECT m.message FROM conversation c JOIN message m ON m.conversation = c.conversation
WHERE c.space = ? AND c.channel_id = ? AND c.conversation_id = ? AND m.message_id = ?
"""
DAYS_SQL = f"""
SELECT DISTINCT conversation, (at - (at % 86400000000 + 86400000000) % 86400000000) / 86400000000 AS day
FROM message WHERE visibility = 'shared' AND at BETWEEN ? AND {LAST_US}
"""  # noqa: S608 - a number
CUT_DAYS_SQL = "SELECT DISTINCT conversation, day FROM toc_node WHERE level = 5 AND day >= ?"
ALL_STALE_SQL = "UPDATE toc_node SET stale = stale + 1 WHERE ends >= ?"
VERSIONS_SQL = "SELECT space, node_id, version FROM toc_node"
ROWS_SQL = """
SELECT json_object('toc_nodes', (SELECT count(*) FROM toc_node), 'grips', (SELECT count(*) FROM grip))
"""
LOST_GRIPS_SQL = """
SELECT n.node_id, j.value FROM toc_node n, json_each(n.bullets) j
WHERE n.stale = 0 AND n.level = 5 AND NOT EXISTS (SELECT 1 FROM grip g WHERE g.space = n.space AND g.grip_id = j.value)
LIMIT ?
"""
LOST_NODES_SQL = """
SELECT node_id FROM toc_node n
WHERE level < 5 AND NOT EXISTS (SELECT 1 FROM toc_node c WHERE c.parent = n.toc_node) LIMIT ?
"""
CONVERSATION_OF_SQL = "SELECT channel_id, conversation_id FROM conversation WHERE conversation = ? AND space = ?"


class Waiting(NamedTuple):
    """A day of a conversation that is to be cut anew."""

    conversation: int
    day: int


class ConversationPlace(NamedTuple):
    """Where a conversation belongs."""

    space: int
    space_id: str
    channel_id: str
    conversation_id: str


class CutSegment(NamedTuple):
    """A segment as it was cut."""

    key: int
    node_id: str
    space: int
    parent: int
    members: bytes | None
    starts: int
    ends: int


class NodeRow(NamedTuple):
    """A node as it is kept; `bullets`, `words` and `keywords` are JSON."""

    key: int
    space: int
    level: int
    node_id: str
    parent: int | None
    starts: int
    ends: int
    conversation: int | None
    day: int | None
    version: int
    stale: int
    bullets: str
    words: str
    keywords: str


class GripRow(NamedTuple):
    """What a bullet rests on; `written` is a model's text of it."""

    grip_id: str
    segment: int
    message: int
    last_message: int
    begins: int
    ends: int
    written: str | None


class TextRow(NamedTuple):
    """A live, shared message; behind `length` characters of its content may stand tool calls."""

    message: int
    role: str
    length: int
    digest: bytes
    content: str


def take_waiting(tx: Writing, run: int, after: Waiting, most: int) -> list[Waiting]:
    """The next days that are to be cut anew, behind `after`; they note that this run has taken them."""
    return sorted(Waiting(*row) for row in tx.rows(TAKE_SQL, run, *after, most))


def waiting_count(tx: Reading) -> int:
    """How many days are to be cut anew."""
    return tx.value(OUTBOX_SIZE_SQL)


def waits(tx: Reading, conversation: int, day: int) -> bool:
    """Whether a day is to be cut anew."""
    return tx.value(WAITS_SQL, conversation, day) is not None


def put_waiting(tx: Writing, conversation: int, day: int) -> None:
    """Have a day cut anew."""
    tx.run(NOTE_SQL, conversation, day)


def settle_waiting(tx: Writing, each: Waiting, run: int) -> bool:
    """A run has cut a day, as it was when it was taken. It is done, unless its events have changed since.

    Returns:
        Whether what was cut counts; not when another run has cut the day meanwhile.
    """
    counts = waits(tx, *each)
    tx.run(SETTLE_OUTBOX_SQL, *each, run)
    return counts


def place_of(tx: Reading, conversation: int) -> ConversationPlace | None:
    """Where a conversation belongs, None where it is gone."""
    return tx.one(ConversationPlace, PLACE_SQL, conversation)


def members(tx: Reading, conversation: int, first: int, last: int) -> Iterator[Row]:
    """The shared events of a conversation between two times (µs, both included), as fields of a `Member`, in their
    order. They may be many: those of one time are held at once."""
    of = stretch(tx, conversation, first, last)
    on_time, late, apart = MEMBERS_SQLS
    return merge(*map(_in_order, (tx.rows(on_time, *of[:3]), tx.rows(late, *of), tx.rows(apart, *of))))


def _in_order(rows: Iterable[Row]) -> Iterator[Row]:
    """Rows that come in the order of their first columns, in that of all of them."""
    for _, same in groupby(rows, key=itemgetter(0)):
        yield from sorted(same)


def segments(tx: Reading, conversation: int, day: int) -> list[CutSegment]:
    """The segments that a day of a conversation was cut into."""
    return [CutSegment(*row) for row in tx.rows(SEGMENTS_SQL, conversation, day)]


def node(tx: Reading, space: int, node_id: str) -> NodeRow | None:
    """The node of that id."""
    return tx.one(NodeRow, NODE_SQL, space, node_id)


def by_key(tx: Reading, key: int) -> NodeRow | None:
    """The node of that key."""
    return tx.one(NodeRow, BY_KEY_SQL, key)


def digest_of(tx: Reading, key: int) -> bytes | None:
    """The digest of the events that a segment was cut from."""
    return tx.value(DIGEST_SQL, key)


def children(tx: Reading, parent: int, most: int, offset: int = 0) -> list[NodeRow]:
    """Children of a node in order of time."""
    return [NodeRow(*row) for row in tx.rows(CHILDREN_SQL, parent, most, offset)]


def child_ids(tx: Reading, parent: int, most: int) -> list[str]:
    """Ids of the first children of a node, in order of time."""
    return [row[0] for row in tx.rows(CHILD_IDS_SQL, parent, most)]


def years(tx: Reading, space: int, before: int, most: int) -> list[NodeRow]:
    """Years of a space that begin before a time, newest first."""
    return [NodeRow(*row) for row in tx.rows(YEARS_SQL, space, before, most)]


def level(tx: Reading, space: int, number: int) -> list[NodeRow]:
    """All nodes of a level, in order of time."""
    return [NodeRow(*row) for row in tx.rows(LEVEL_SQL, space, number)]


def stale(tx: Reading, number: int, after: int, most: int) -> list[NodeRow]:
    """Nodes of a level whose bullets are to be made anew, behind a key."""
    return [NodeRow(*row) for row in tx.rows(STALE_SQL, number, after, most)]


def stale_segments(tx: Reading, after: int, most: int) -> list[int]:
    """Segments whose bullets are to be made anew, behind a key; those of one day of a session stand together."""
    return [row[0] for row in tx.rows(STALE_SEGMENTS_SQL, after, most)]


def stale_count(tx: Reading, first: int, last: int) -> int:
    """How many nodes of some levels are to be made anew."""
    return tx.value(STALE_COUNT_SQL, first, last)


def key_of(tx: Reading, space: int, node_id: str) -> int | None:
    """The key of the node of that id."""
    return tx.value(KEY_SQL, space, node_id)


def add_node(
    tx: Writing, space: int, number: int, node_id: str, parent: int | None, bounds: tuple[int, int],
    cut_from: tuple[int | None, int | None, bytes | None] = (None, None, None),
) -> int:  # fmt: skip
    """A new node, which is stale; its key. `cut_from`: a segment's conversation, day and digest of members."""
    return tx.insert(NEW_NODE_SQL, space, number, node_id, parent, *bounds, *cut_from)


def recut(tx: Writing, key: int, parent: int, bounds: tuple[int, int], digest: bytes) -> None:
    """A segment has other events now; what a model has written was of those before."""
    tx.run(RECUT_SQL, parent, *bounds, digest, key)
    tx.run(DROP_TITLE_SQL, key)
    tx.run(DROP_WRITTEN_SQL, key)


def make_stale(tx: Writing, key: int) -> None:
    """What is below a node has changed."""
    tx.run(STALE_NODE_SQL, key)


def drop_segment(tx: Writing, key: int) -> None:
    """A segment is gone, with its grips."""
    tx.run(DROP_GRIPS_SQL, key)
    tx.run(DROP_TITLE_SQL, key)
    tx.run(DROP_NODE_SQL, key)


def drop_if_empty(tx: Writing, key: int) -> int | None:
    """Take a period away that holds nothing, and those above that hold nothing then; the first one that stays."""
    at: int | None = key
    while at is not None and tx.value(HAS_CHILD_SQL, at) is None:
        above: int | None = tx.value(PARENT_SQL, at)
        tx.run(DROP_NODE_SQL, at)
        at = above
    return at


def put(tx: Writing, row: NodeRow, bullets: Sequence[str], words: object, keywords: object, *, other: bool) -> bool:
    """What was made of a node, unless something below changed meanwhile. `other`: something else of it changed too."""
    made = (json.dumps(bullets), json.dumps(words), json.dumps(keywords))
    return tx.value(PUT_SQL, *made, int(other), row.key, row.stale) is not None


def put_keywords(tx: Writing, key: int, keywords: object) -> None:
    """Which words of a node are shown."""
    tx.run(PUT_KEYWORDS_SQL, json.dumps(keywords), key)


def put_grips(tx: Writing, space: int, segment: int, grips: Sequence[GripRow]) -> None:
    """The grips of a segment, in place of those that it had."""
    tx.run(DROP_OTHER_GRIPS_SQL, segment, json.dumps([each.grip_id for each in grips]))
    for each in grips:
        tx.run(
            PUT_GRIP_SQL, space, each.grip_id, segment, each.message, each.last_message, each.begins, each.ends,
            each.written,
        )  # fmt: skip


def grips(tx: Reading, space: int, ids: Iterable[str]) -> dict[str, GripRow]:
    """The grips of these ids that are there."""
    return {row[0]: GripRow(*row) for row in tx.rows(GRIPS_SQL, json.dumps(list(ids)), space)}


def grip(tx: Reading, space: int, grip_id: str) -> GripRow | None:
    """The grip of that id."""
    return tx.one(GripRow, GRIP_SQL, space, grip_id)


def named(tx: Reading, message: int) -> tuple[int, str]:
    """Time (µs) and id of a message that is there."""
    found = tx.row(NAMED_SQL, message)
    assert found is not None
    return found[0], found[1]


def texts(tx: Reading, space: int, keys: Iterable[int]) -> list[TextRow]:
    """Those of these messages that are live, shared and of the space, in the order asked."""
    return [TextRow(*row) for row in tx.rows(TEXTS_SQL, json.dumps(list(keys)), space)]


def segment_of(tx: Reading, space: int, message: int) -> int | None:
    """The segment that a shared message stands in, as far as it was cut."""
    return tx.value(SEGMENT_OF_SQL, message, space)


def message_named(tx: Reading, space: int, channel: str, conversation: str, message_id: str) -> int | None:
    """The key of a message by its names."""
    return tx.value(MESSAGE_NAMED_SQL, space, channel, conversation, message_id)


def has_events(
    tx: Reading, space: int, conversation: int | None, since: int, until: int, kinds: tuple[str, ...]
) -> bool:
    """Whether anything live of some visibilities was said between two times (µs), in the space or a conversation."""
    shown = json.dumps(kinds)
    if conversation is None:
        return tx.value(HAS_EVENTS_SQL, space, since // 1000, until // 1000, shown) is not None
    return tx.value(HAS_EVENTS_OF_SQL, *stretch(tx, conversation, since, until), shown) is not None


def time_of(tx: Reading, space: int, message: int) -> int | None:
    """When a message of a space was (µs)."""
    return tx.value(TIME_SQL, message, space)


def bullets_between(tx: Reading, space: int, number: int, since_ms: int, until_ms: int, most: int) -> list[int]:
    """The messages behind the bullets of a level's nodes that lie between two times, the newest first."""
    return [row[0] for row in tx.rows(BULLETS_BETWEEN_SQL, space, number, since_ms, until_ms, most)]


def bullets_of(tx: Reading, conversation: int, since_ms: int, until_ms: int, most: int) -> list[int]:
    """The messages behind the bullets of a conversation's segments that began between two times, the newest first."""
    days = (since_ms * 1000 // DAY_US, until_ms * 1000 // DAY_US)
    return [row[0] for row in tx.rows(BULLETS_OF_SQL, conversation, *days, since_ms, until_ms, most)]


def unsegmented_between(tx: Reading, space: int, since_ms: int, until_ms: int, most: int) -> list[int]:
    """Of the newest `most` live, shared events between two times, those that no segment holds that is up to date."""
    return [row[0] for row in tx.rows(UNSEGMENTED_BETWEEN_SQL, space, since_ms, until_ms, most)]


def unsegmented_of(tx: Reading, conversation: int, since: int, until: int, most: int) -> list[int]:
    """The same of a conversation, between two times in microseconds."""
    return [row[0] for row in tx.rows(UNSEGMENTED_OF_SQL, *stretch(tx, conversation, since, until), most)]


def all_days(tx: Reading, first: int) -> list[Waiting]:
    """Every day of every conversation from a day on: those with events, and those that were cut."""
    found = {Waiting(*row) for row in tx.rows(DAYS_SQL, first * DAY_US)}
    found |= {Waiting(*row) for row in tx.rows(CUT_DAYS_SQL, first)}
    return sorted(found)


def lost_grips(tx: Reading, most: int) -> list[Row]:
    """(segment, grip) of bullets whose grips are not there."""
    return list(tx.rows(LOST_GRIPS_SQL, most))


def lost_nodes(tx: Reading, most: int) -> list[str]:
    """Periods that hold nothing."""
    return [row[0] for row in tx.rows(LOST_NODES_SQL, most)]


def make_all_stale(tx: Writing, since_ms: int) -> None:
    """Have every node made anew that ends at a time or later."""
    tx.run(ALL_STALE_SQL, since_ms)


def versions(tx: Reading) -> dict[tuple[int, str], int]:
    """The version of every node."""
    return {(row[0], row[1]): row[2] for row in tx.rows(VERSIONS_SQL)}


def conversation_of(tx: Reading, space: int, conversation: int) -> tuple[str, str] | None:
    """Channel and id of a conversation of a space."""
    found = tx.row(CONVERSATION_OF_SQL, conversation, space)
    return None if found is None else (found[0], found[1])
