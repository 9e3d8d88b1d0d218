"""What recovery looks for and mends: the recall index against the tables, stuck work, rows that nobody needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from beetle.store.recall_index import PLANE_BITS, PLANES
from beetle.store.transaction import Reading, Writing
from beetle.store.writer import WriteTransaction

REBUILDING = "index_rebuild"
"""Key of `meta` that stands while the index is made anew."""
SPACE_AFTER_SQL = "SELECT space, memory_space_id FROM space WHERE space > ? ORDER BY space LIMIT 1"
MISSING_MESSAGES_SQL = """
SELECT message FROM message m
WHERE message > ? AND state = 'live' AND visibility IN ('shared', 'private')
  AND NOT EXISTS (SELECT 1 FROM recall_index_docsize WHERE id = m.message << 4)
ORDER BY message LIMIT ?
"""
MISSING_SKILLS_SQL = """
SELECT skill FROM skill s
WHERE skill > ? AND enabled = 1 AND retired = 0
  AND NOT EXISTS (SELECT 1 FROM recall_index_docsize WHERE id = s.skill << 4 | 1)
ORDER BY skill LIMIT ?
"""
MISSING_FACTS_SQL = """
SELECT fact FROM fact f
WHERE fact > ? AND (
  (state = 'current' AND NOT EXISTS (SELECT 1 FROM recall_index_docsize WHERE id = f.fact << 4 | 2))
  OR EXISTS (
    SELECT 1 FROM fact_body b JOIN fact_revision r ON r.fact = f.fact AND r.revision = f.revision
    WHERE b.fact = f.fact AND (f.state <> 'current' OR r.body IS NOT b.fact_body)
      AND NOT EXISTS (SELECT 1 FROM recall_index_docsize WHERE id = b.fact_body << 4 | 3)
  )
)
ORDER BY fact LIMIT ?
"""
EXTRA_SQL = """
SELECT id FROM recall_index_docsize d
WHERE id > ?1 AND NOT CASE id & 15
  WHEN 0 THEN EXISTS (SELECT 1 FROM message WHERE message = d.id >> 4 AND state = 'live'
    AND visibility IN ('shared', 'private'))
  WHEN 1 THEN EXISTS (SELECT 1 FROM skill WHERE skill = d.id >> 4 AND enabled = 1 AND retired = 0)
  WHEN 2 THEN EXISTS (SELECT 1 FROM fact WHERE fact = d.id >> 4 AND state = 'current')
  WHEN 3 THEN EXISTS (
    SELECT 1 FROM fact_body b JOIN fact f ON f.fact = b.fact
    JOIN fact_revision r ON r.fact = f.fact AND r.revision = f.revision
    WHERE b.fact_body = d.id >> 4 AND (f.state <> 'current' OR r.body IS NOT b.fact_body)
  )
  ELSE 0
END
ORDER BY id LIMIT ?2
"""
INDEXED_MESSAGES_SQL = """
SELECT m.message, m.digest, b.content FROM message m JOIN body b ON b.message = m.message
WHERE m.message > ? AND EXISTS (SELECT 1 FROM recall_index_docsize WHERE id = m.message << 4)
ORDER BY m.message LIMIT ?
"""
INDEXED_BODIES_SQL = """
SELECT b.fact_body, b.content, f.topic_mac, b.topic,
  (SELECT content_mac FROM fact_revision r WHERE r.body = b.fact_body LIMIT 1), f.fact
FROM fact_body b JOIN fact f ON f.fact = b.fact
WHERE b.fact_body > ? AND (
  EXISTS (SELECT 1 FROM recall_index_docsize WHERE id = b.fact_body << 4 | 3)
  OR EXISTS (SELECT 1 FROM recall_index_docsize WHERE id = b.fact << 4 | 2)
)
ORDER BY b.fact_body LIMIT ?
"""
CHECK_INDEX_SQL = "PRAGMA quick_check('recall_index')"
TOUCH_INDEX_SQL = "SELECT rowid FROM recall_index WHERE recall_index MATCH 'x' LIMIT 1"
EMPTY_INDEX_SQL = "INSERT INTO recall_index (recall_index) VALUES ('delete-all')"
MERGE_SQL = "INSERT INTO recall_index (recall_index, rank) VALUES ('merge', ?)"
MARK_SQL = "INSERT OR REPLACE INTO meta VALUES (?, ?)"
MARKED_SQL = "SELECT 1 FROM meta WHERE key = ?"
UNMARK_SQL = "DELETE FROM meta WHERE key = ?"
PLACE_OF_MESSAGE_SQL = """
SELECT c.conversation, c.channel_id, c.conversation_id, c.space
FROM message m JOIN conversation c ON c.conversation = m.conversation WHERE m.message = ?
"""
COUNTED_MESSAGES_SQL = "SELECT coalesce(sum(messages), 0) FROM conversation WHERE space <= ?"
LAST_MESSAGE_SQL = "SELECT coalesce(max(message), 0) FROM message"
SPACE_OF_SKILL_SQL = "SELECT space FROM skill WHERE skill = ?"
SPACE_OF_FACT_SQL = "SELECT space FROM fact WHERE fact = ?"
SPENT_KEYS_SQL = """
DELETE FROM idempotency WHERE idempotency IN (
  SELECT idempotency FROM idempotency WHERE idempotency <= (SELECT max(idempotency) FROM idempotency) - ?1
  ORDER BY idempotency LIMIT ?2
) RETURNING idempotency
"""
DEVICE_KEYS_SQL = """
DELETE FROM idempotency WHERE idempotency IN (
  SELECT idempotency FROM idempotency
  WHERE principal GLOB 'device:*'
    AND substr(principal, 8) NOT IN (SELECT device_id FROM device WHERE state <> 'revoked')
  LIMIT ?
) RETURNING idempotency
"""
DEAD_REMEMBERED_SQL = """
DELETE FROM remembered_conversation AS kept
WHERE NOT EXISTS (SELECT 1 FROM conversation c WHERE c.conversation = kept.conversation AND c.space = kept.space)
  OR (kept.principal GLOB 'device:*' AND NOT EXISTS (
    SELECT 1 FROM device WHERE device_id = substr(kept.principal, 8) AND state <> 'revoked'))
RETURNING conversation
"""


class IndexedText(NamedTuple):
    """A text that the index holds, with what proves it: its digest, and for a fact its topic's too."""

    key: int
    content: str
    digest: bytes | None
    topic: str = ""
    topic_digest: bytes | None = None
    fact: int = 0


def space_after(tx: Reading, space: int) -> tuple[int, str] | None:
    """(space, memory_space_id) of the next space."""
    found = tx.row(SPACE_AFTER_SQL, space)
    return None if found is None else (found[0], found[1])


def missing(tx: Reading, plane: str, after: int, limit: int) -> list[int]:
    """Keys behind `after` of records of a plane that the index should hold and does not; of facts any of its texts."""
    sql = {"evidence": MISSING_MESSAGES_SQL, "procedural": MISSING_SKILLS_SQL, "long_term": MISSING_FACTS_SQL}[plane]
    return [row[0] for row in tx.rows(sql, after, limit)]


def extra(tx: Reading, after: int, limit: int) -> list[tuple[int, str, int]]:
    """(row, plane, key) behind `after` of what the index holds and should not; the plane is empty when none is such."""
    planes = {code: plane for plane, code in PLANES.items()}
    return [(row, planes.get(row & 15, ""), row >> PLANE_BITS) for (row,) in tx.rows(EXTRA_SQL, after, limit)]


def indexed_messages(tx: Reading, after: int, limit: int) -> list[IndexedText]:
    """Messages behind `after` that the index holds."""
    return [IndexedText(key, content, digest) for key, digest, content in tx.rows(INDEXED_MESSAGES_SQL, after, limit)]


def indexed_bodies(tx: Reading, after: int, limit: int) -> list[IndexedText]:
    """Texts of facts behind `after` that the index holds."""
    return [
        IndexedText(key, content, digest, topic, topic_digest, fact)
        for key, content, topic_digest, topic, digest, fact in tx.rows(INDEXED_BODIES_SQL, after, limit)
    ]


def index_is_sound(tx: Reading) -> bool:
    """Whether SQLite finds the index's own pages in order; a damaged page may raise `apsw.CorruptError` instead."""
    tx.row(TOUCH_INDEX_SQL)
    return [row[0] for row in tx.rows(CHECK_INDEX_SQL)] == ["ok"]


def empty_index(tx: WriteTransaction) -> None:
    """Take every row out of the index, and mark that it has to be filled again."""
    tx.run(EMPTY_INDEX_SQL)
    tx.run(MARK_SQL, REBUILDING, tx.now)
    tx.expect_erasure()


def is_rebuilding(tx: Reading) -> bool:
    """Whether the index was emptied and not filled since."""
    return tx.value(MARKED_SQL, REBUILDING) is not None


def rebuilt(tx: Writing) -> None:
    """The index is whole again."""
    tx.run(UNMARK_SQL, REBUILDING)


def merge_index(tx: Writing, pages: int) -> bool:
    """Merge about so many pages of the index, of all its segments when negative; whether there was work."""
    before = tx.connection.total_changes()
    tx.run(MERGE_SQL, pages)
    # FTS5 counts one change of its own for the command itself.
    return tx.connection.total_changes() - before > 1


def place_of_message(tx: Reading, message: int) -> tuple[int, str, str, int] | None:
    """(conversation, channel_id, conversation_id, space) of a message."""
    found = tx.row(PLACE_OF_MESSAGE_SQL, message)
    return None if found is None else (found[0], found[1], found[2], found[3])


def last_message(tx: Reading) -> int:
    """The highest key of a message; 0 without one."""
    return tx.value(LAST_MESSAGE_SQL)


def messages_up_to(tx: Reading, space: int) -> int:
    """Messages of the spaces up to one, as their conversations say."""
    return tx.value(COUNTED_MESSAGES_SQL, space)


def space_of_skill(tx: Reading, skill: int) -> int | None:
    """The space of a skill."""
    return tx.value(SPACE_OF_SKILL_SQL, skill)


def space_of_fact(tx: Reading, fact: int) -> int | None:
    """The space of a fact."""
    return tx.value(SPACE_OF_FACT_SQL, fact)


def drop_keys(tx: Writing, most: int, limit: int) -> int:
    """Drop first reports beyond the newest `most`, and those of devices that may call no more; at most `limit` of
    each. How many went."""
    return sum(len(list(rows)) for rows in (tx.rows(SPENT_KEYS_SQL, most, limit), tx.rows(DEVICE_KEYS_SQL, limit)))


def drop_remembered(tx: Writing) -> int:
    """Forget conversations that are gone, and those of devices that may call no more; how many."""
    return len(list(tx.rows(DEAD_REMEMBERED_SQL)))


def in_pieces(page: Callable[[int], list[int]]) -> Iterator[list[int]]:
    """Pages of keys, each behind the last key of the one before."""
    after = 0
    while found := page(after):
        yield found
        after = found[-1]
