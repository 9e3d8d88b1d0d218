"""Uploaded skills: what each is now, and its versions, which are never changed."""

from __future__ import annotations

import json
from collections.abc import Iterator

from beetle.named_tuple import NamedTuple
from beetle.store.columns import texts
from beetle.store.engine.transaction import Reading, Row, Writing
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.sight import Sight


class SkillText(NamedTuple):
    """What is said of a skill: its latest version's words, and why it has its status."""

    name: str
    description: str
    tags: tuple[str, ...]
    triggers: tuple[str, ...]
    warnings: tuple[str, ...]
    status_reason: str | None


class RegistrySkillRow(NamedTuple):
    """A skill as it stands. Times in microseconds."""

    skill: int
    skill_id: str
    status: str
    versions: int
    created_at: int
    updated_at: int
    text: SkillText


class VersionRow(NamedTuple):
    """A version without its content; `number` counts from 0, `size` is the content's bytes."""

    version: int
    number: int
    version_id: str
    uploaded_at: int
    principal: str
    agent_id: str
    agent_name: str
    agent_owner: str | None
    chain_key: str | None
    format: str
    schema_version: int
    size: int
    content_hash: bytes
    signing_key_id: str | None = None
    key: bytes | None = None
    signature: bytes | None = None


class BodyRow(NamedTuple):
    """A version's content as it is packed, with what it must be."""

    number: int
    encoding: str
    packed: bytes
    size: int
    content_hash: bytes


class SkillPosition(NamedTuple):
    """Where a skill stands among those last changed."""

    updated_at: int
    skill: int


FIRST = SkillPosition(2**63 - 1, 2**63 - 1)
"""Before the skill that was changed last."""
SKILL_COLUMNS = """
SELECT s.registry_skill, s.skill_id, s.status, s.versions, s.created_at, s.updated_at,
  t.name, t.description, t.tags, t.triggers, t.warnings, t.status_reason
FROM registry_skill s JOIN registry_skill_text t USING (registry_skill)
"""
FIND_SQL = SKILL_COLUMNS + "WHERE s.space = ? AND s.skill_id = ?"
BY_KEY_SQL = SKILL_COLUMNS + "WHERE s.registry_skill = ? AND s.space = ?"
LIST_SQL = (
    SKILL_COLUMNS
    + """
WHERE s.space = ? AND (s.updated_at, s.registry_skill) < (?, ?)
ORDER BY s.updated_at DESC, s.registry_skill DESC LIMIT ?
"""
)
EVERY_SQL = SKILL_COLUMNS + "WHERE s.space = ? ORDER BY s.skill_id"
COUNT_SQL = "SELECT count(*) FROM registry_skill WHERE space = ?"
VERSION_COLUMNS = """
SELECT registry_version, number, version_id, uploaded_at, principal, agent_id, agent_name, agent_owner, chain_key,
  format, schema_version, bytes, content_hash, signing_key_id, key, signature
FROM registry_version
"""
VERSIONS_SQL = VERSION_COLUMNS + "WHERE registry_skill = ? AND number > ? ORDER BY number LIMIT ?"
VERSION_SQL = VERSION_COLUMNS + "WHERE registry_skill = ? AND version_id = ?"
NUMBERED_SQL = VERSION_COLUMNS + "WHERE registry_skill = ? AND number = ?"
BODIES_SQL = """
SELECT v.number, b.encoding, b.packed, v.bytes, v.content_hash
FROM registry_version v JOIN registry_version_body b USING (registry_version)
WHERE v.registry_skill = ?1 AND v.number <= ?2 AND v.number >= (
  SELECT coalesce(max(w.number), 0) FROM registry_version w JOIN registry_version_body c USING (registry_version)
  WHERE w.registry_skill = ?1 AND w.number <= ?2 AND c.encoding = 'whole'
)
ORDER BY v.number
"""
ALL_BODIES_SQL = """
SELECT v.registry_skill, v.number, b.encoding, b.packed, v.bytes, v.content_hash
FROM registry_version v LEFT JOIN registry_version_body b USING (registry_version)
ORDER BY v.registry_skill, v.number
"""
NEW_SKILL_SQL = """
INSERT INTO registry_skill (space, skill_id, status, versions, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?)
"""
PUT_TEXT_SQL = """
INSERT INTO registry_skill_text (registry_skill, name, description, tags, triggers, warnings, status_reason)
VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET name = excluded.name, description = excluded.description,
  tags = excluded.tags, triggers = excluded.triggers, warnings = excluded.warnings,
  status_reason = excluded.status_reason
"""
CHANGE_SQL = "UPDATE registry_skill SET status = ?, versions = ?, updated_at = ? WHERE registry_skill = ?"
NEW_VERSION_SQL = """
INSERT INTO registry_version (registry_skill, number, version_id, uploaded_at, principal, agent_id, agent_name,
  agent_owner, chain_key, format, schema_version, bytes, content_hash, signing_key_id, key, signature)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
NEW_BODY_SQL = "INSERT INTO registry_version_body (registry_version, encoding, packed) VALUES (?, ?, ?)"
DELETE_SQLS = (
    "DELETE FROM registry_version_body WHERE registry_version IN ("
    "SELECT registry_version FROM registry_version WHERE registry_skill = ?)",
    "DELETE FROM registry_version WHERE registry_skill = ?",
    "DELETE FROM registry_skill_text WHERE registry_skill = ?",
    "DELETE FROM registry_skill WHERE registry_skill = ?",
)
COUNTS_SQL = """
SELECT json_object(
  'uploaded_skills', (SELECT count(*) FROM registry_skill WHERE space = ?1),
  'uploaded_skill_versions', (SELECT CAST(total(versions) AS INTEGER) FROM registry_skill WHERE space = ?1)
)
"""
ROWS_SQL = "SELECT json_object('uploaded_skills', (SELECT count(*) FROM registry_version))"
UNCOUNTED_SQL = """
SELECT s.registry_skill FROM registry_skill s LEFT JOIN registry_skill_text t USING (registry_skill)
WHERE t.registry_skill IS NULL OR s.versions < 1
  OR s.versions <> (SELECT count(*) FROM registry_version v WHERE v.registry_skill = s.registry_skill)
LIMIT 100
"""


def find_skill(tx: Reading, space: int | None, skill_id: str) -> RegistrySkillRow | None:
    """The skill of that id."""
    found = tx.row(FIND_SQL, space, skill_id)
    return None if found is None else _skill(found)


def skill_by_key(tx: Reading, space: int, skill: int) -> RegistrySkillRow | None:
    """The skill of that key."""
    found = tx.row(BY_KEY_SQL, skill, space)
    return None if found is None else _skill(found)


def list_skills(tx: Reading, space: int | None, after: SkillPosition, limit: int) -> list[RegistrySkillRow]:
    """Skills behind a place, the last changed first."""
    return [_skill(row) for row in tx.rows(LIST_SQL, space, *after, limit)]


def every_skill(tx: Reading, space: int) -> list[RegistrySkillRow]:
    """The skills of a space by id."""
    return [_skill(row) for row in tx.rows(EVERY_SQL, space)]


def count_skills(tx: Reading, space: int | None) -> int:
    """Skills of a space."""
    return tx.value(COUNT_SQL, space)


def versions_of(tx: Reading, skill: int, after: int = -1, limit: int = -1) -> list[VersionRow]:
    """A skill's versions behind a number, the oldest first."""
    return [VersionRow(*row) for row in tx.rows(VERSIONS_SQL, skill, after, limit)]


def find_version(tx: Reading, skill: int, version_id: str) -> VersionRow | None:
    """The version of that id."""
    return tx.one(VersionRow, VERSION_SQL, skill, version_id)


def version_numbered(tx: Reading, skill: int, number: int) -> VersionRow | None:
    """The version of that number."""
    return tx.one(VersionRow, NUMBERED_SQL, skill, number)


def bodies_to(tx: Reading, skill: int, number: int) -> list[BodyRow]:
    """What a version's content is made of: the last one that is held whole, and what follows up to the version."""
    return [BodyRow(*row) for row in tx.rows(BODIES_SQL, skill, number)]


def all_bodies(tx: Reading) -> Iterator[tuple[int, int, BodyRow | None]]:
    """(skill, number, content as it is packed, None where it is missing) of every version of the store, in order."""
    for skill, number, encoding, packed, size, content_hash in tx.rows(ALL_BODIES_SQL):
        yield skill, number, None if encoding is None else BodyRow(number, encoding, packed, size, content_hash)


def add_skill(tx: Writing, space: int, row: RegistrySkillRow) -> int:
    """A new skill; its key. The row's own key does not count."""
    skill = tx.insert(NEW_SKILL_SQL, space, row.skill_id, row.status, row.versions, row.created_at, row.updated_at)
    _put_text(tx, skill, row.text)
    return skill


def change_skill(tx: Writing, row: RegistrySkillRow) -> None:
    """Its status, number of versions, time of change and words, as they are now."""
    tx.run(CHANGE_SQL, row.status, row.versions, row.updated_at, row.skill)
    _put_text(tx, row.skill, row.text)


def add_version(tx: Writing, skill: int, row: VersionRow, encoding: str, packed: bytes) -> None:
    """One more version with its packed content."""
    version = tx.insert(NEW_VERSION_SQL, skill, *row[1:])
    tx.run(NEW_BODY_SQL, version, encoding, packed)


def delete_skill(tx: WriteTransaction, skill: int) -> None:
    """Take a skill away with every version; its words leave the store."""
    for sql in DELETE_SQLS:
        tx.run(sql, skill)
    tx.expect_erasure()


def counts(tx: Reading, space: int | None, sight: Sight) -> dict[str, int]:
    """What a space holds, as an inspection counts it: no uploaded skill is private."""
    del sight
    return json.loads(tx.value(COUNTS_SQL, space))


def rows(tx: Reading) -> dict[str, int]:
    """Versions of the store, as a verification counts them."""
    return json.loads(tx.value(ROWS_SQL))


def uncounted(tx: Reading) -> Iterator[int]:
    """Keys of skills without their words, or without as many versions as they count."""
    return (row[0] for row in tx.rows(UNCOUNTED_SQL))


def _put_text(tx: Writing, skill: int, text: SkillText) -> None:
    lists = (json.dumps(each, ensure_ascii=False) for each in text[2:5])
    tx.run(PUT_TEXT_SQL, skill, text.name, text.description, *lists, text.status_reason)


def _skill(row: Row) -> RegistrySkillRow:
    words = SkillText(row[6], row[7], texts(row[8]), texts(row[9]), texts(row[10]), row[11])
    return RegistrySkillRow._make((*row[:6], words))
