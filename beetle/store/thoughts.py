"""Thoughts: their rows, bodies, links and marks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from beetle.named_tuple import NamedTuple
from beetle.store.chains import Segment
from beetle.store.columns import texts
from beetle.store.engine.transaction import Reading, Row, Writing
from beetle.store.engine.write_transaction import WriteTransaction

REFERS = "refers"


class LinkRow(NamedTuple):
    """A ref or relation. To a thought of the chain by its place, or to any record by its ref; times in microseconds."""

    kind: str
    position: int | None
    ref: str | None
    valid_at: int | None
    invalid_at: int | None


class BodyRow(NamedTuple):
    """What can be erased."""

    salt: bytes
    content: str
    tags: tuple[str, ...]
    concepts: tuple[str, ...]
    signature: bytes | None


class ThoughtRow(NamedTuple):
    """A thought as it stands. `at` in microseconds; digest and hashes have 32 bytes, `previous` none at the beginning.

    `mark` is masked or erased, None while it is live; without a body it is erased, or damaged.
    """

    thought: int
    chain: int
    position: int
    schema_version: int
    thought_id: str
    at: int
    session_id: str | None
    agent_id: str
    signing_key_id: str | None
    thought_type: str
    role: str
    confidence: float | None
    importance: float
    digest: bytes
    previous: bytes
    hash: bytes
    body: BodyRow | None
    mark: str | None
    marked_at: int | None
    links: tuple[LinkRow, ...]


class Prefilter(NamedTuple):
    """Which rows are worth reading. What it lets through is looked at again; None filters nothing.

    `like` is a LIKE pattern and `glob` a GLOB pattern over what is said, which a row of one of the `saying` agents need
    not fit. `tags` and `concepts` are GLOB patterns of which one fits the JSON of the labels.
    """

    thought_types: tuple[str, ...] | None = None
    roles: tuple[str, ...] | None = None
    agent_ids: tuple[str, ...] | None = None
    min_importance: float | None = None
    min_confidence: float | None = None
    since: int | None = None
    until: int | None = None
    tags: tuple[str, ...] | None = None
    concepts: tuple[str, ...] | None = None
    like: str | None = None
    glob: str | None = None
    saying: tuple[str, ...] = ()


EVERYTHING = Prefilter()

COLUMNS = """
SELECT t.thought, t.chain, t.position, t.schema_version, t.thought_id, t.at, t.session_id, t.agent_id, t.signing_key_id,
  t.thought_type, t.role, t.confidence, t.importance, t.digest, t.previous, t.hash,
  b.salt, b.content, b.tags, b.concepts, b.signature, m.state, m.marked_at,
  (SELECT json_group_array(json_array(l.kind, l.position, l.ref, l.valid_at, l.invalid_at) ORDER BY l.place)
    FROM thought_link l WHERE l.thought = t.thought)
FROM thought t LEFT JOIN thought_body b ON b.thought = t.thought LEFT JOIN thought_mark m ON m.thought = t.thought
"""
# LIKE and GLOB end at a NUL, and content may have one: that is looked at again.
WITHIN = r"""
WHERE t.chain = ?1 AND t.position >= ?2 AND t.position < ?3
  AND (?4 IS NULL OR t.thought_type IN (SELECT value FROM json_each(?4)))
  AND (?5 IS NULL OR t.role IN (SELECT value FROM json_each(?5)))
  AND (?6 IS NULL OR t.agent_id IN (SELECT value FROM json_each(?6)))
  AND (?7 IS NULL OR t.importance >= ?7) AND (?8 IS NULL OR t.confidence >= ?8)
  AND (?9 IS NULL OR t.at >= ?9) AND (?10 IS NULL OR t.at <= ?10)
  AND (?11 IS NULL OR EXISTS (SELECT 1 FROM json_each(?11) j WHERE b.tags GLOB j.value))
  AND (?12 IS NULL OR EXISTS (SELECT 1 FROM json_each(?12) j WHERE b.concepts GLOB j.value))
  AND (?13 IS NULL OR b.content LIKE ?13 ESCAPE '\' OR b.tags LIKE ?13 ESCAPE '\' OR b.concepts LIKE ?13 ESCAPE '\'
    OR t.agent_id IN (SELECT value FROM json_each(?15)) OR instr(b.content, char(0)))
  AND (?14 IS NULL OR b.content GLOB ?14 OR b.tags GLOB ?14 OR b.concepts GLOB ?14
    OR t.agent_id IN (SELECT value FROM json_each(?15)) OR instr(b.content, char(0)))
"""
FORWARDS_SQL = COLUMNS + WITHIN + "ORDER BY t.position"
BACKWARDS_SQL = COLUMNS + WITHIN + "ORDER BY t.position DESC"
AT_SQL = COLUMNS + "WHERE t.chain = ? AND t.position = ?"
BY_KEYS_SQL = COLUMNS + "WHERE t.thought IN (SELECT value FROM json_each(?)) ORDER BY t.thought"  # noqa: S608 - constants
BY_ID_SQL = "SELECT chain, position FROM thought WHERE thought_id = ? ORDER BY thought"
BY_HASH_SQL = "SELECT chain, position FROM thought WHERE hash = ? ORDER BY thought"
KEY_SQL = "SELECT thought FROM thought WHERE chain = ? AND position = ?"
NEW_SQL = """
INSERT INTO thought (chain, position, schema_version, thought_id, at, session_id, agent_id, signing_key_id,
  thought_type, role, confidence, importance, digest, previous, hash)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
NEW_BODY_SQL = "INSERT INTO thought_body VALUES (?, ?, ?, ?, ?, ?)"
NEW_LINK_SQL = """
INSERT INTO thought_link (thought, place, kind, position, target, ref, valid_at, invalid_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""
MARK_SQL = """
INSERT INTO thought_mark VALUES (?, ?, ?)
ON CONFLICT DO UPDATE SET state = excluded.state, marked_at = excluded.marked_at
"""
UNMARK_SQL = "DELETE FROM thought_mark WHERE thought = ?"
ERASE_BODY_SQL = "DELETE FROM thought_body WHERE thought = ?"


def between(tx: Reading, segment: Segment, wanted: Prefilter = EVERYTHING, *, backwards: bool) -> Iterator[ThoughtRow]:
    """The thoughts of a segment that a prefilter lets through, in their order or the other way round."""
    values = (json.dumps(each) if isinstance(each, tuple) else each for each in wanted)
    sql = BACKWARDS_SQL if backwards else FORWARDS_SQL
    return map(_thought, tx.rows(sql, *segment, *values))


def at(tx: Reading, line: Iterable[Segment], position: int) -> ThoughtRow | None:
    """The thought at a place of a chain, given what the chain is made of."""
    chain = next((each.chain for each in line if each.first <= position < each.until), None)
    found = None if chain is None else tx.row(AT_SQL, chain, position)
    return None if found is None else _thought(found)


def key_at(tx: Reading, line: Iterable[Segment], position: int) -> int | None:
    """The row number of the thought at a place."""
    chain = next((each.chain for each in line if each.first <= position < each.until), None)
    return None if chain is None else tx.value(KEY_SQL, chain, position)


def by_keys(tx: Reading, keys: Iterable[int]) -> list[ThoughtRow]:
    """The thoughts with these row numbers."""
    return [_thought(row) for row in tx.rows(BY_KEYS_SQL, json.dumps(list(keys)))]


def places_of_id(tx: Reading, thought_id: str) -> list[tuple[int, int]]:
    """(chain, position) of thoughts of that id."""
    return [(row[0], row[1]) for row in tx.rows(BY_ID_SQL, thought_id)]


def places_of_hash(tx: Reading, digest: bytes) -> list[tuple[int, int]]:
    """(chain, position) of thoughts of that hash."""
    return [(row[0], row[1]) for row in tx.rows(BY_HASH_SQL, digest)]


def add(tx: Writing, row: ThoughtRow, targets: Iterable[int | None]) -> int:
    """A new thought with its body, mark and links; `targets` are the row numbers that each link's place stands for."""
    key = tx.insert(NEW_SQL, *row[1:16])
    body = row.body
    if body is not None:
        tx.run(NEW_BODY_SQL, key, body.salt, body.content, _text(body.tags), _text(body.concepts), body.signature)
    if row.mark is not None:
        tx.run(MARK_SQL, key, row.mark, row.marked_at)
    for place, (link, target) in enumerate(zip(row.links, targets, strict=True)):
        tx.run(NEW_LINK_SQL, key, place, link.kind, link.position, target, *link[2:])
    return key


def set_mark(tx: Writing, thought: int, mark: str | None, now: int) -> None:
    """Mask a thought, or let it be seen again."""
    if mark is None:
        tx.run(UNMARK_SQL, thought)
    else:
        tx.run(MARK_SQL, thought, mark, now)


def erase(tx: WriteTransaction, thought: int, now: int) -> None:
    """Take the body away, its salt with it; what says that it was there stays."""
    tx.run(ERASE_BODY_SQL, thought)
    tx.run(MARK_SQL, thought, "erased", now)
    tx.expect_erasure()


def _thought(row: Row) -> ThoughtRow:
    salt, content, tags, concepts, signature = row[16:21]
    body = None if content is None else BodyRow(salt, content, _labels(tags), _labels(concepts), signature)
    links: list[list[Any]] = json.loads(row[23])
    return ThoughtRow._make((*row[:16], body, *row[21:23], tuple(LinkRow(*each) for each in links)))


def _text(labels: tuple[str, ...]) -> str:
    return json.dumps(labels, ensure_ascii=False)


def _labels(text: str) -> tuple[str, ...]:
    """Tags or concepts. Of a text that was not written here itself is the one label: no digest holds of that."""
    found = texts(text)
    return found if text == _text(found) else (text,)
