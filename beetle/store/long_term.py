"""Long-term facts: the record as it stands, its texts, every revision with the time for which it held."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from beetle.contracts.errors import IntegrityViolation
from beetle.named_tuple import NamedTuple
from beetle.store.columns import is_array, texts
from beetle.store.engine.transaction import Reading, Row, Writing
from beetle.store.engine.write_transaction import WriteTransaction


class FactRow(NamedTuple):
    """A record as it stands. Times in microseconds; the digests are keyed, and NULL once the text was erased."""

    fact: int
    record_id: str
    target: str
    kind: str
    topic_mac: bytes | None
    content_mac: bytes | None
    visibility: str
    authority: str
    state: str
    revision: int
    superseded_by: int | None
    confidence: float | None
    created_at: int
    updated_at: int


class BodyRow(NamedTuple):
    """A text of a fact. `learned_at` is when it first held; `visibility` that of the last revision which shows it."""

    body: int
    fact: int
    topic: str
    content: str
    keywords: tuple[str, ...]
    learned_at: int
    visibility: str
    whole: bool = True
    """Whether its keywords are what was stored, and a revision has it."""


class RevisionRow(NamedTuple):
    """One revision of a fact. `body` is None once the text was erased, `valid_until` while the revision holds."""

    revision: int
    action: str
    state: str
    body: int | None
    content_mac: bytes | None
    visibility: str
    authority: str
    principal: str
    source_chat_id: str | None
    extractor: str | None
    valid_from: int
    valid_until: int | None
    reason: str | None = None


class Shown(NamedTuple):
    """A fact with the text that it shows, now or at a past time."""

    row: FactRow
    body: BodyRow
    authority: str


FACT_FIELDS = """
fact, record_id, target, kind, topic_mac, content_mac, visibility, authority, state, revision, superseded_by,
confidence, created_at, updated_at
"""
FACT_COLUMNS = f"SELECT {FACT_FIELDS} FROM fact "  # noqa: S608 - constants, as all of these
OF_TOPIC_SQL = (
    FACT_COLUMNS
    + """
WHERE space = ? AND target = ? AND kind = ? AND topic_mac = ? AND state = 'current' ORDER BY fact
"""
)
SAYING_SQL = (
    FACT_COLUMNS
    + """
WHERE space = ? AND target = ? AND kind = ? AND content_mac = ? AND state = 'current' ORDER BY fact LIMIT 1
"""
)
BY_RECORD_SQL = FACT_COLUMNS + "WHERE space = ? AND record_id = ?"
BY_KEYS_SQL = FACT_COLUMNS + "WHERE fact IN (SELECT value FROM json_each(?)) AND +space = ? ORDER BY fact DESC"  # noqa: S608
SUPERSEDES_SQL = "SELECT record_id FROM fact WHERE superseded_by = ? ORDER BY fact"
RECORD_ID_SQL = "SELECT record_id FROM fact WHERE fact = ?"
NEW_FACT_SQL = """
INSERT INTO fact (space, record_id, target, kind, topic_mac, content_mac, visibility, authority, state, revision,
  superseded_by, confidence, created_at, updated_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
STANDS_SQL = """
UPDATE fact SET topic_mac = ?, content_mac = ?, visibility = ?, authority = ?, state = ?, revision = ?,
  superseded_by = ?, confidence = ?, updated_at = ?
WHERE fact = ?
"""
NEW_BODY_SQL = "INSERT INTO fact_body (fact, topic, content, keywords) VALUES (?, ?, ?, ?)"
BODY_COLUMNS = """
SELECT b.fact_body, b.fact, b.topic, b.content, b.keywords,
  (SELECT min(valid_from) FROM fact_revision WHERE body = b.fact_body),
  (SELECT visibility FROM fact_revision WHERE body = b.fact_body ORDER BY revision DESC LIMIT 1)
FROM fact_body b
"""
BODY_SQL = BODY_COLUMNS + "WHERE b.fact_body = ? AND b.fact = ?"
BODIES_SQL = BODY_COLUMNS + "WHERE b.fact = ? ORDER BY b.fact_body"
SHOWN_SQL = """
SELECT f.fact, f.record_id, f.target, f.kind, f.topic_mac, f.content_mac, f.visibility, f.authority, f.state,
  f.revision, f.superseded_by, f.confidence, f.created_at, f.updated_at,
  b.fact_body, b.fact, b.topic, b.content, b.keywords,
  (SELECT min(valid_from) FROM fact_revision WHERE body = b.fact_body), f.visibility
FROM fact f JOIN fact_revision r ON r.fact = f.fact AND r.revision = f.revision
JOIN fact_body b ON b.fact_body = r.body AND b.fact = f.fact
WHERE f.fact IN (SELECT value FROM json_each(?)) AND +f.space = ? ORDER BY f.fact DESC
"""
SHOWN_BODY_SQL = "SELECT body FROM fact_revision WHERE fact = ? AND revision = ?"
BODY_AT_SQL = """
SELECT body, authority FROM fact_revision
WHERE fact = ? AND state = 'current' AND valid_from <= ? AND (valid_until IS NULL OR valid_until > ?)
"""
NEW_REVISION_SQL = """
INSERT INTO fact_revision (fact, revision, action, state, body, content_mac, visibility, authority, principal,
  source_chat_id, extractor, valid_from, valid_until)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
END_REVISION_SQL = "UPDATE fact_revision SET valid_until = ? WHERE fact = ? AND revision = ?"
SINCE_SQL = "SELECT valid_from FROM fact_revision WHERE fact = ? AND revision = ?"
REASONS_SQL = """
SELECT r.fact, n.reason
FROM fact_reason n CROSS JOIN fact_revision r ON r.fact_revision = n.fact_revision JOIN fact f ON f.fact = r.fact
WHERE f.space = ?1 AND (?2 OR (f.visibility = 'shared' AND r.visibility = 'shared') OR r.principal = ?3)
"""
NEW_REASON_SQL = "INSERT INTO fact_reason VALUES (?, ?)"
REVISIONS_SQL = """
SELECT r.revision, r.action, r.state, r.body, r.content_mac, r.visibility, r.authority, r.principal, r.source_chat_id,
  r.extractor, r.valid_from, r.valid_until, n.reason
FROM fact_revision r LEFT JOIN fact_reason n ON n.fact_revision = r.fact_revision
WHERE r.fact = ? ORDER BY r.revision
"""
MACS_SQL = "SELECT DISTINCT content_mac FROM fact_revision WHERE fact = ? AND content_mac IS NOT NULL ORDER BY 1"
ERASE_SQLS = (
    "DELETE FROM fact_reason WHERE fact_revision IN (SELECT fact_revision FROM fact_revision WHERE fact = ?)",
    "UPDATE fact_revision SET body = NULL, content_mac = NULL WHERE fact = ?",
    "DELETE FROM fact_body WHERE fact = ?",
)
NEW_DERIVED_SQL = """
INSERT INTO derived_ref (space, derived, evidence, relation, fact, turn, at) VALUES (?, ?, ?, ?, ?, ?, ?)
"""
KNOWN_DERIVED_SQL = "SELECT 1 FROM derived_ref WHERE fact = ? AND evidence = ? AND relation = ?"
DERIVED_SQL = """
SELECT derived, evidence, relation FROM derived_ref
WHERE fact = ?1 AND space = (SELECT space FROM fact WHERE fact = ?1) ORDER BY derived_ref
"""
EVIDENCE_COUNT_SQL = "SELECT count(*) FROM derived_ref WHERE fact = ? AND relation = 'cites'"
PAGE_SQL = (
    FACT_COLUMNS  # noqa: S608 - constants
    + """
WHERE space = ? AND state = ? AND fact < ? AND (?4 IS NULL OR kind = ?4) AND (?5 OR visibility = 'shared'
  OR (?7 IS NOT NULL AND EXISTS (
    SELECT 1 FROM fact_revision last JOIN fact_revision said ON said.fact = last.fact AND said.body IS last.body
    WHERE last.fact = fact.fact AND last.revision = fact.revision AND said.principal = ?7
      AND (said.action IN ('created', 'corrected') OR said.visibility = 'private')
      AND (last.body IS NOT NULL OR last.principal = ?7)
  )))
ORDER BY fact DESC LIMIT ?6
"""
)
COUNT_SQL = """
SELECT count(*) FROM fact
WHERE space = ?1 AND state = ?2 AND (?3 IS NULL OR kind = ?3) AND (?4 OR visibility = 'shared')
"""
COUNT_OWN_SQL = """
SELECT count(*) FROM fact
WHERE space = ?1 AND state = ?2 AND (?3 IS NULL OR kind = ?3) AND visibility = 'private' AND EXISTS (
  SELECT 1 FROM fact_revision last JOIN fact_revision said ON said.fact = last.fact AND said.body IS last.body
  WHERE last.fact = fact.fact AND last.revision = fact.revision AND said.principal = ?4
    AND (said.action IN ('created', 'corrected') OR said.visibility = 'private')
    AND (last.body IS NOT NULL OR last.principal = ?4)
)
"""
WORD_OF_SQL = """
SELECT 1 FROM fact_revision last JOIN fact_revision said ON said.fact = last.fact AND said.body IS last.body
WHERE last.fact = ?1 AND last.revision = ?2 AND said.principal = ?3
  AND (said.action IN ('created', 'corrected') OR said.visibility = 'private')
  AND (last.body IS NOT NULL OR last.principal = ?3)
"""
FACT_OF_BODY_SQL = """
SELECT b.fact, r.body IS b.fact_body FROM fact_body b
JOIN fact f ON f.fact = b.fact JOIN fact_revision r ON r.fact = f.fact AND r.revision = f.revision
WHERE b.fact_body IN (SELECT value FROM json_each(?))
"""


def current_of_topic(tx: Reading, space: int, target: str, kind: str, topic_mac: bytes | None) -> list[FactRow]:
    """The current records of a topic, the oldest first; none for an empty topic."""
    if topic_mac is None:
        return []
    return [FactRow(*row) for row in tx.rows(OF_TOPIC_SQL, space, target, kind, topic_mac)]


def current_saying(tx: Reading, space: int, target: str, kind: str, content_mac: bytes | None) -> FactRow | None:
    """The current record that says this, or None."""
    return None if content_mac is None else tx.one(FactRow, SAYING_SQL, space, target, kind, content_mac)


def find_fact(tx: Reading, space: int | None, record_id: str) -> FactRow | None:
    """The record of that id in a space, whatever its state."""
    return tx.one(FactRow, BY_RECORD_SQL, space, record_id)


def facts_by_key(tx: Reading, space: int | None, keys: Iterable[int]) -> list[FactRow]:
    """The records of a space with these keys, the newest first."""
    return [FactRow(*row) for row in tx.rows(BY_KEYS_SQL, json.dumps(list(keys)), space)]


def page_of_facts(
    tx: Reading, space: int | None, states: Iterable[str], *, below: int, kind: str | None, private: bool,
    writer: str | None, limit: int,
) -> list[FactRow]:  # fmt: skip
    """At most `limit` records in these states with keys below `below`, the newest first.

    Args:
        writer: whose own private ones are meant without `private`.
    """
    found = [row for state in states for row in tx.rows(PAGE_SQL, space, state, below, kind, private, limit, writer)]
    return [FactRow(*row) for row in sorted(found, reverse=True)[:limit]]


def count_facts(
    tx: Reading, space: int | None, states: Iterable[str], kind: str | None, private: bool, writer: str | None
) -> int:
    """How many records are in these states; `writer`: whose own private ones count without `private`."""
    states = tuple(states)
    own = 0 if writer is None else sum(tx.value(COUNT_OWN_SQL, space, state, kind, writer) for state in states)
    return own + sum(tx.value(COUNT_SQL, space, state, kind, private) for state in states)


def reasons(tx: Reading, space: int, *, private: bool, writer: str | None) -> Iterable[Row]:
    """(fact, reason) of the changes of a space's facts: the shared ones, those of `writer`, or with `private` all."""
    return tx.rows(REASONS_SQL, space, private, writer)


def is_word_of(tx: Reading, row: FactRow, principal: str) -> bool:
    """Whether what a record says now, or that it is private, or its deletion, is that principal's own doing."""
    return tx.value(WORD_OF_SQL, row.fact, row.revision, principal) is not None


def record_id_of(tx: Reading, fact: int | None) -> str | None:
    """The id of a record by its key."""
    return None if fact is None else tx.value(RECORD_ID_SQL, fact)


def superseded_records(tx: Reading, fact: int) -> list[str]:
    """Ids of the records that this one superseded."""
    return [row[0] for row in tx.rows(SUPERSEDES_SQL, fact)]


def add_fact(tx: Writing, space: int, row: FactRow) -> int:
    """Write a new record, without its revisions; its key. The row's own key does not count."""
    return tx.insert(NEW_FACT_SQL, space, *row[1:])


def add_body(tx: Writing, fact: int, topic: str, content: str, keywords: tuple[str, ...]) -> int:
    """Write a text of a fact; its key."""
    return tx.insert(NEW_BODY_SQL, fact, topic, content, json.dumps(keywords, ensure_ascii=False))


def find_body(tx: Reading, fact: int, body: int) -> BodyRow | None:
    """One text of a fact; None where it is missing, by damage."""
    found = tx.row(BODY_SQL, body, fact)
    return None if found is None else _body(found)


def body_of(tx: Reading, fact: int, body: int) -> BodyRow:
    """One text of a fact.

    Raises:
        IntegrityViolation: it is missing.
    """
    found = find_body(tx, fact, body)
    if found is None:
        raise IntegrityViolation(reason=f"a text of the fact {tx.value(RECORD_ID_SQL, fact)} is missing")
    return found


def bodies_of(tx: Reading, fact: int) -> list[BodyRow]:
    """Every text that a fact has had and has not lost, the oldest first."""
    return [_body(row) for row in tx.rows(BODIES_SQL, fact)]


def shown_body(tx: Reading, row: FactRow) -> int | None:
    """The key of the text that the record's last revision shows; None once it was erased."""
    return tx.value(SHOWN_BODY_SQL, row.fact, row.revision)


def shown(tx: Reading, row: FactRow) -> Shown | None:
    """A record with its text; None once that was erased, and where it is missing."""
    body = shown_body(tx, row)
    return None if body is None else _shown(tx, row, body, row.authority)


def _shown(tx: Reading, row: FactRow, body: int, authority: str) -> Shown | None:
    found = find_body(tx, row.fact, body)
    return None if found is None else Shown(row, found, authority)


def shown_by_key(tx: Reading, space: int | None, keys: Iterable[int]) -> list[Shown]:
    """The records of a space with these keys whose text is there, the newest first."""
    split = len(FactRow._fields)
    rows = tx.rows(SHOWN_SQL, json.dumps(list(keys)), space)
    found = ((FactRow(*row[:split]), _body(row[split:])) for row in rows)
    return [Shown(fact, body, fact.authority) for fact, body in found]


def shown_at(tx: Reading, row: FactRow, at: int) -> Shown | None:
    """A record with the text that was current at a time; None when none was, it was erased since, or is missing."""
    found = tx.row(BODY_AT_SQL, row.fact, at, at)
    return None if found is None or found[0] is None else _shown(tx, row, *found)


def revisions_of(tx: Reading, fact: int) -> list[RevisionRow]:
    """Every revision, the first one first."""
    return [RevisionRow(*row) for row in tx.rows(REVISIONS_SQL, fact)]


def revise(tx: WriteTransaction, row: FactRow, revision: RevisionRow) -> FactRow:
    """Write the next revision and bring the record to it; the one before ends where it begins.

    Args:
        row: the record as it shall stand, but for its revision and its time.
        revision: its number and times are set here: it follows the last, and never begins before it.
    """
    before = tx.value(SINCE_SQL, row.fact, row.revision)
    at = tx.now if before is None else max(tx.now, before)
    number = row.revision + 1
    tx.run(END_REVISION_SQL, at, row.fact, row.revision)
    key = tx.insert(
        NEW_REVISION_SQL, row.fact, number, revision.action, revision.state, revision.body, revision.content_mac,
        revision.visibility, revision.authority, revision.principal, revision.source_chat_id, revision.extractor, at,
        None,
    )  # fmt: skip
    if revision.reason is not None:
        tx.run(NEW_REASON_SQL, key, revision.reason)
    after = row._replace(revision=number, updated_at=at)
    tx.run(
        STANDS_SQL, after.topic_mac, after.content_mac, after.visibility, after.authority, after.state, number,
        after.superseded_by, after.confidence, at, after.fact,
    )  # fmt: skip
    return after


def digests_of(tx: Reading, fact: int) -> list[bytes]:
    """The keyed digests of every content that a fact has had and has not lost."""
    return [row[0] for row in tx.rows(MACS_SQL, fact)]


def erase_texts(tx: WriteTransaction, fact: int) -> None:
    """Remove every text of a fact, with the reasons and the digests that go with them; the caller expects erasure."""
    for sql in ERASE_SQLS:
        tx.run(sql, fact)


def add_derived_ref(
    tx: WriteTransaction, space: int, fact: int, derived: str, evidence: str, relation: str, turn: int | None
) -> bool:
    """Join a fact to what it came from; whether that was not known before."""
    if tx.value(KNOWN_DERIVED_SQL, fact, evidence, relation) is not None:
        return False
    tx.run(NEW_DERIVED_SQL, space, derived, evidence, relation, fact, turn, tx.now)
    return True


def derived_refs_of(tx: Reading, fact: int) -> Iterator[Row]:
    """(derived, evidence, relation) of a fact, in the order in which they came."""
    return tx.rows(DERIVED_SQL, fact)


def count_evidence(tx: Reading, fact: int) -> int:
    """How many pieces of evidence a fact cites."""
    return tx.value(EVIDENCE_COUNT_SQL, fact)


def facts_of_bodies(tx: Reading, bodies: Iterable[int]) -> list[tuple[int, bool]]:
    """(fact, whether its last revision shows this text) of some texts."""
    return [(fact, bool(last)) for fact, last in tx.rows(FACT_OF_BODY_SQL, json.dumps(list(bodies)))]


def _body(row: Row) -> BodyRow:
    body, fact, topic, content, keywords, learned_at, visibility = row
    whole = is_array(keywords) and learned_at is not None
    return BodyRow(body, fact, topic, content, texts(keywords), learned_at or 0, visibility, whole)
