"""Chunks: their rows, bodies, tags and accesses. Their links: `chunk_links`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from beetle.contracts.chunks import MOST_COUNT
from beetle.named_tuple import NamedTuple
from beetle.store.columns import is_array, texts
from beetle.store.engine.transaction import Reading, Row, Writing
from beetle.store.engine.write_transaction import WriteTransaction

MOST_ACCESSES = 2**53 - 1
"""Accesses of a chunk that are counted: what every reader of JSON can hold, and twice as many are no overflow."""
COUNTED_TAG = 1000
"""A list by several tags walks the rarest of them; so many of each are counted to find it."""


class LinkRow(NamedTuple):
    """A link: `target` is the row of the chunk that it leads to, None where `name` is no chunk of the space."""

    kind: str
    target: int | None
    name: str
    strength: float


class BodyRow(NamedTuple):
    """What a chunk says. `tags` and `extra` are JSON texts as they are stored."""

    content: str
    tags: str
    extra: str | None


class Identity(NamedTuple):
    """What tells a chunk from every other that a store ever had: the row of one that is gone is given to the next."""

    space: int
    chunk_id: str
    created_at: int


class ChunkRow(NamedTuple):
    """A chunk as it stands. Times in microseconds; `body` None where it is damaged."""

    chunk: int
    space: int
    chunk_id: str
    conversation_id: str
    type: str
    tokens: int
    source: str
    confidence: float
    created_at: int
    archived_at: int | None
    revision: int
    digest: bytes
    body: BodyRow | None
    accesses: int
    last_accessed: int | None
    links: tuple[LinkRow, ...]

    @property
    def tags(self) -> tuple[str, ...]:
        """Its tags; none where they are damaged."""
        return () if self.body is None else texts(self.body.tags)

    @property
    def is_live(self) -> bool:
        return self.archived_at is None

    @property
    def identity(self) -> Identity:
        return Identity(self.space, self.chunk_id, self.created_at)


class Wanted(NamedTuple):
    """What a list is of. `tags` are their digests; `archived` None: live and archived. Times in microseconds."""

    space: int | None
    conversation_id: str | None = None
    tags: tuple[int, ...] = ()
    type: str | None = None
    since: int | None = None
    until: int | None = None
    archived: bool | None = False


class Neighbour(NamedTuple):
    """What the rules of linking see of a chunk that is there."""

    chunk: int
    chunk_id: str
    conversation_id: str
    created_at: int
    tags: tuple[str, ...]


COLUMNS = """
SELECT c.chunk, c.space, c.chunk_id, c.conversation_id, c.type, c.tokens, c.source, c.confidence, c.created_at,
  c.archived_at, c.revision, c.digest, b.content, b.tags, b.extra, coalesce(a.count, 0), a.last_at,
  (SELECT json_group_array(json_array(l.kind, l.target, coalesce(t.chunk_id, l.target_id), l.strength) ORDER BY l.place)
    FROM chunk_link l LEFT JOIN chunk t ON t.chunk = l.target AND t.space = c.space
    WHERE l.chunk = c.chunk AND (l.target IS NULL OR t.chunk IS NOT NULL))
FROM {begin} LEFT JOIN chunk_body b ON b.chunk = c.chunk LEFT JOIN chunk_access a ON a.chunk = c.chunk
"""
FILTERS = """
  AND (?3 IS NULL OR c.conversation_id = ?3) AND (?4 IS NULL OR c.type = ?4)
  AND (?5 IS NULL OR c.created_at >= ?5) AND (?6 IS NULL OR c.created_at <= ?6)
  AND (?7 IS NULL OR (c.archived_at IS NOT NULL) = ?7)
  AND NOT EXISTS (SELECT 1 FROM json_each(?8) w
    WHERE NOT EXISTS (SELECT 1 FROM chunk_tag o WHERE o.tag = w.value AND o.chunk = c.chunk))
"""
ONE = COLUMNS.format(begin="chunk c")
FIND_SQL = ONE + "WHERE c.space = ? AND c.chunk_id = ?"
BY_KEYS_SQL = ONE + "WHERE c.chunk IN (SELECT value FROM json_each(?)) ORDER BY c.chunk"  # noqa: S608 - constants
EVERY_SQL = ONE + "WHERE c.chunk > ? ORDER BY c.chunk"
OF_SPACE_SQL = COLUMNS.format(begin="chunk c INDEXED BY chunk_of_space") + (
    "WHERE c.space = ? AND c.chunk > ? ORDER BY c.chunk"
)
LISTED_SQL = COLUMNS.format(begin="chunk c INDEXED BY chunk_of_space") + (
    f"WHERE c.space = ?1 AND c.chunk > ?2 {FILTERS} ORDER BY c.chunk"
)
IN_CONVERSATION_SQL = COLUMNS.format(begin="chunk c INDEXED BY chunk_of_conversation") + (
    f"WHERE c.space = ?1 AND c.conversation_id = ?3 AND c.chunk > ?2 {FILTERS} ORDER BY c.chunk"
)
ARCHIVED_SQL = COLUMNS.format(begin="chunk c INDEXED BY chunk_archived") + (
    f"WHERE c.space = ?1 AND c.archived_at IS NOT NULL AND c.chunk > ?2 {FILTERS} ORDER BY c.chunk"
)
TAGGED_SQL = COLUMNS.format(begin="chunk_tag g CROSS JOIN chunk c ON c.chunk = g.chunk") + (
    f"WHERE g.tag = ?9 AND g.chunk > ?2 AND c.space = ?1 {FILTERS} ORDER BY g.chunk"
)
NEWEST_SQL = COLUMNS.format(begin="chunk c INDEXED BY chunk_of_space") + (
    "WHERE c.space = ? AND c.archived_at IS NULL ORDER BY c.chunk DESC LIMIT ?"
)
CHANGED_SQL = COLUMNS.format(begin="chunk c INDEXED BY chunk_by_revision") + (
    f"WHERE c.space = ?1 AND c.revision > ?2 {FILTERS} ORDER BY c.revision"
)
REMOVED_SQL = "SELECT chunk_id, revision FROM removed_chunk WHERE space = ? AND revision > ? ORDER BY revision LIMIT ?"
COUNT_TAG_SQL = "SELECT count(*) FROM (SELECT 1 FROM chunk_tag WHERE tag = ? LIMIT ?)"
REMOVED_SINCE_SQL = "SELECT 1 FROM removed_chunk WHERE space = ? AND chunk_id = ? AND revision > ?"
REVISION_SQL = """
SELECT max(
  coalesce((SELECT max(revision) FROM chunk WHERE space = ?1 AND revision < 1 << 62), 0),
  coalesce((SELECT max(revision) FROM removed_chunk WHERE space = ?1 AND revision < 1 << 62), 0)
)
"""
"""A damaged one is above: what counts on from it would have no number left."""
HAS_ID_SQL = "SELECT 1 FROM chunk WHERE space = ? AND chunk_id = ?"
KEY_SQL = "SELECT chunk FROM chunk WHERE space = ? AND chunk_id = ?"
KEYS_SQL = """
SELECT c.chunk, c.chunk_id FROM json_each(?2) j CROSS JOIN chunk c ON c.space = ?1 AND c.chunk_id = j.value
"""
NEW_SQL = """
INSERT INTO chunk (space, chunk_id, conversation_id, type, tokens, source, confidence, created_at, archived_at,
  revision, digest)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
CHANGE_SQL = """
UPDATE chunk SET conversation_id = ?, type = ?, tokens = ?, source = ?, confidence = ?, created_at = ?, archived_at = ?,
  revision = ?, digest = ?
WHERE chunk = ?
"""
NEW_BODY_SQL = "INSERT INTO chunk_body VALUES (?, ?, ?, ?)"
CHANGE_BODY_SQL = "UPDATE chunk_body SET content = ?, tags = ?, extra = ? WHERE chunk = ?"
NEW_TAG_SQL = "INSERT OR IGNORE INTO chunk_tag VALUES (?, ?, ?)"
DROP_TAG_SQL = "DELETE FROM chunk_tag WHERE tag = ? AND chunk = ?"
DROP_TAGS_SQL = "DELETE FROM chunk_tag WHERE chunk = ?"
ACCESS_SQL = """
INSERT INTO chunk_access SELECT chunk, min(?4, ?6), ?5 FROM chunk WHERE space = ?1 AND chunk_id = ?2 AND created_at = ?3
ON CONFLICT DO UPDATE SET count = min(min(count, ?6) + excluded.count, ?6), last_at = max(last_at, excluded.last_at)
"""
SET_ACCESS_SQL = "INSERT INTO chunk_access VALUES (?, ?, ?)"
TYPES_SQL = "SELECT type, count(*) FROM chunk WHERE space = ? AND archived_at IS NULL GROUP BY type ORDER BY type"
ARCHIVED_COUNT_SQL = "SELECT count(*) FROM chunk WHERE space = ? AND archived_at IS NOT NULL"
CONVERSATIONS_SQL = """
SELECT conversation_id, count(*) FROM chunk INDEXED BY chunk_of_conversation
WHERE space = ? AND conversation_id > ? AND archived_at IS NULL
GROUP BY conversation_id ORDER BY conversation_id LIMIT ?
"""
TAGS_SQL = """
SELECT j.value, count(DISTINCT c.chunk)
FROM chunk c JOIN chunk_body b ON b.chunk = c.chunk JOIN json_each(iif(json_valid(b.tags), b.tags, '[]')) j
WHERE c.space = ? AND j.value > ? AND c.archived_at IS NULL GROUP BY j.value ORDER BY j.value LIMIT ?
"""
REMOVED_ID_SQL = """
INSERT INTO removed_chunk (space, chunk_id, revision) VALUES (?, ?, ?)
ON CONFLICT DO UPDATE SET revision = excluded.revision
"""
TAKEN_ID_SQL = "DELETE FROM removed_chunk WHERE space = ? AND chunk_id = ?"
ERASE_SQLS = (
    "DELETE FROM chunk_access WHERE chunk = ?",
    "DELETE FROM chunk_body WHERE chunk = ?",
    "DELETE FROM chunk WHERE chunk = ?",
)
FOLLOWED_SQL = """
SELECT chunk, chunk_id, conversation_id, created_at, '[]' FROM chunk INDEXED BY chunk_by_time
WHERE space = ? AND conversation_id = ? AND created_at BETWEEN ? AND ? AND archived_at IS NULL
ORDER BY created_at DESC, chunk DESC LIMIT ?
"""
SHARING_SQL = """
SELECT c.chunk, c.chunk_id, c.conversation_id, c.created_at, b.tags
FROM (SELECT chunk, conversation FROM chunk_tag WHERE tag = ?1 ORDER BY chunk DESC LIMIT ?3) g
CROSS JOIN chunk c ON c.chunk = g.chunk CROSS JOIN chunk_body b ON b.chunk = g.chunk
WHERE g.conversation <> ?2 AND c.archived_at IS NULL AND c.space = ?5 ORDER BY g.chunk DESC LIMIT ?4
"""


def find(tx: Reading, space: int | None, chunk_id: str) -> ChunkRow | None:
    """The chunk of that id."""
    found = tx.row(FIND_SQL, space, chunk_id)
    return None if found is None else _chunk(found)


def key_of(tx: Reading, space: int | None, chunk_id: str) -> int | None:
    """The row number of the chunk of that id."""
    return tx.value(KEY_SQL, space, chunk_id)


def keys_of(tx: Reading, space: int | None, names: Iterable[str]) -> dict[str, int]:
    """The row numbers of the chunks that are there of these ids, by id."""
    wanted = json.dumps([each for each in names if "\0" not in each])
    return {chunk_id: chunk for chunk, chunk_id in tx.rows(KEYS_SQL, space, wanted)}


def by_keys(tx: Reading, keys: Iterable[int]) -> list[ChunkRow]:
    """The chunks with these row numbers, in the order of the numbers."""
    return [_chunk(row) for row in tx.rows(BY_KEYS_SQL, json.dumps(list(keys)))]


def every(tx: Reading, after: int = 0) -> Iterator[ChunkRow]:
    """The chunks of all spaces behind a row."""
    return map(_chunk, tx.rows(EVERY_SQL, after))


def of_space(tx: Reading, space: int, after: int = 0) -> Iterator[ChunkRow]:
    """All chunks of a space behind a row, in the order in which they were stored."""
    return map(_chunk, tx.rows(OF_SPACE_SQL, space, after))


def listed(tx: Reading, wanted: Wanted, after: int) -> Iterator[ChunkRow]:
    """The chunks behind a row that are wanted, in the order in which they were stored."""
    given = _filters(wanted)
    if wanted.tags and wanted.archived is not True:
        counted = {tag: tx.value(COUNT_TAG_SQL, tag, COUNTED_TAG) for tag in wanted.tags}
        rarest = min(counted, key=counted.__getitem__)
        return map(_chunk, tx.rows(TAGGED_SQL, wanted.space, after, *given, rarest))
    sql = LISTED_SQL
    if wanted.archived:
        sql = ARCHIVED_SQL
    elif wanted.conversation_id is not None:
        sql = IN_CONVERSATION_SQL
    return map(_chunk, tx.rows(sql, wanted.space, after, *given))


def newest(tx: Reading, space: int | None, limit: int) -> Iterator[ChunkRow]:
    """The live chunks of a space that were stored last, the newest first."""
    return map(_chunk, tx.rows(NEWEST_SQL, space, limit))


def changed(tx: Reading, wanted: Wanted, since: int) -> Iterator[ChunkRow]:
    """The wanted chunks that changed behind a revision, in the order of revisions."""
    return map(_chunk, tx.rows(CHANGED_SQL, wanted.space, since, *_filters(wanted)))


def removed(tx: Reading, space: int | None, since: int, limit: int) -> list[tuple[str, int]]:
    """(id, revision) of chunks that were deleted behind a revision, in the order of revisions."""
    return [(row[0], row[1]) for row in tx.rows(REMOVED_SQL, space, since, limit)]


def is_removed_since(tx: Reading, space: int, chunk_id: str, since: int) -> bool:
    """Whether the chunk of that id was deleted for good behind a revision."""
    return tx.value(REMOVED_SINCE_SQL, space, chunk_id, since) is not None


def revision(tx: Reading, space: int | None) -> int:
    """The newest revision of a space's chunks; 0 where there never was one."""
    return tx.value(REVISION_SQL, space)


def has_id(tx: Reading, space: int, chunk_id: str) -> bool:
    """Whether a chunk has this id."""
    return tx.value(HAS_ID_SQL, space, chunk_id) is not None


def followed(tx: Reading, space: int, conversation_id: str, since: int, until: int, limit: int) -> list[Neighbour]:
    """The newest live chunks of a conversation that were created in a time, ends included; without their tags."""
    return [_neighbour(row) for row in tx.rows(FOLLOWED_SQL, space, conversation_id, since, until, limit)]


def sharing(tx: Reading, space: int, tag: int, but: int, window: int, limit: int) -> list[Neighbour]:
    """The newest live chunks with a tag, of other conversations than one, among the `window` newest with that tag."""
    return [_neighbour(row) for row in tx.rows(SHARING_SQL, tag, but, window, limit, space)]


def count_types(tx: Reading, space: int | None) -> dict[str, int]:
    """How many live chunks of each type a space has."""
    return {row[0]: row[1] for row in tx.rows(TYPES_SQL, space)}


def count_archived(tx: Reading, space: int | None) -> int:
    """How many archived chunks a space has."""
    return tx.value(ARCHIVED_COUNT_SQL, space)


def conversations(tx: Reading, space: int | None, after: str, limit: int) -> list[tuple[str, int]]:
    """Conversations behind one in their order, each with the number of its live chunks."""
    return [(row[0], row[1]) for row in tx.rows(CONVERSATIONS_SQL, space, after, limit)]


def tags(tx: Reading, space: int | None, after: str, limit: int) -> list[tuple[str, int]]:
    """Tags behind one in their order, each with the number of live chunks that have it. Reads every chunk's."""
    return [(row[0], row[1]) for row in tx.rows(TAGS_SQL, space, after, limit)]


def add(tx: Writing, row: ChunkRow, tagged: Sequence[int], conversation: int) -> int:
    """A new chunk without its links; `tagged` and `conversation` are the digests by which it is found."""
    body = row.body
    assert body is not None
    key = tx.insert(NEW_SQL, *row[1:12])
    tx.run(NEW_BODY_SQL, key, *body)
    _tag(tx, key, tagged, conversation)
    if row.accesses and row.last_accessed is not None:
        tx.run(SET_ACCESS_SQL, key, row.accesses, row.last_accessed)
    tx.run(TAKEN_ID_SQL, row.space, row.chunk_id)
    return key


def change(tx: Writing, row: ChunkRow) -> None:
    """Write a chunk's own columns."""
    tx.run(CHANGE_SQL, *row[3:12], row.chunk)


def change_body(
    tx: Writing, chunk: int, body: BodyRow, before: Sequence[int], now: Sequence[int], conversation: int
) -> None:
    """Write what a chunk says; digests of its tags before and now."""
    for tag in before:
        tx.run(DROP_TAG_SQL, tag, chunk)
    tx.run(CHANGE_BODY_SQL, *body, chunk)
    _tag(tx, chunk, now, conversation)


def _tag(tx: Writing, chunk: int, tagged: Sequence[int], conversation: int) -> None:
    for tag in tagged:
        tx.run(NEW_TAG_SQL, tag, chunk, conversation)


def drop_tags(tx: Writing, chunk: int) -> None:
    """Forget by which tags a chunk is found, whatever they are. Looks through all of them: for a damaged chunk."""
    tx.run(DROP_TAGS_SQL, chunk)


def count_access(tx: Writing, chunk: Identity, count: int, at: int) -> None:
    """Add accesses of a chunk, if it is there, up to `MOST_ACCESSES`."""
    tx.run(ACCESS_SQL, *chunk, count, at, MOST_ACCESSES)


def erase(tx: WriteTransaction, row: ChunkRow, tagged: Sequence[int], at_revision: int) -> None:
    """Take a chunk away for good, once no link leads to it; its id and the revision stay."""
    for tag in tagged:
        tx.run(DROP_TAG_SQL, tag, row.chunk)
    for sql in ERASE_SQLS:
        tx.run(sql, row.chunk)
    tx.run(REMOVED_ID_SQL, row.space, row.chunk_id, at_revision)
    tx.expect_erasure()


def _filters(wanted: Wanted) -> tuple[Any, ...]:
    archived = None if wanted.archived is None else int(wanted.archived)
    return (wanted.conversation_id, wanted.type, wanted.since, wanted.until, archived, json.dumps(wanted.tags))


def _chunk(row: Row) -> ChunkRow:
    content, tags, extra = row[12:15]
    body = None if content is None or not is_array(tags) else BodyRow(content, tags, extra)
    links: list[list[Any]] = json.loads(row[17])
    # Earlier builds took any number from a file; what no archive carries is read as the nearest that one does.
    tokens, accesses = min(max(row[5], 1), MOST_COUNT), min(row[15], MOST_COUNT)
    return ChunkRow._make(
        (*row[:5], tokens, *row[6:12], body, accesses, row[16], tuple(LinkRow(*each) for each in links))
    )


def _neighbour(row: Row) -> Neighbour:
    return Neighbour(row[0], row[1], row[2], row[3], texts(row[4]))
