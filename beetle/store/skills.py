"""Runtime skills: current state, every revision, derived refs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from beetle.contracts.errors import IntegrityViolation
from beetle.contracts.refs import EvidenceRef
from beetle.contracts.skills import SkillSort
from beetle.named_tuple import NamedTuple
from beetle.store.columns import texts
from beetle.store.engine.transaction import Reading, Row, Writing
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.repair import TURN_NAMED_SQL
from beetle.store.turn_messages import OF_ONE_TURN


class SkillRow(NamedTuple):
    """A skill as it stands. Times in microseconds."""

    skill: int
    name: str
    enabled: bool
    retired: bool
    revision: int
    created_at: int
    updated_at: int


class RevisionRow(NamedTuple):
    """One revision. `observed_at` in epoch seconds as given, `at` in microseconds."""

    revision: int
    source: str
    source_chat_id: str | None
    observed_at: int | None
    at: int
    topic: str
    title: str
    summary: str
    content: str
    citations: tuple[str, ...]
    edit_reason: str | None


class SkillOrder(NamedTuple):
    """What skills are listed by; by name where that is the same."""

    by: SkillSort
    descending: bool


class SkillFilter(NamedTuple):
    """Which skills are listed: those that hold every one of `words` (lower case)."""

    words: list[str]
    disabled: bool
    retired: bool


SkillPlace = tuple[int | str, ...]
"""What an order compares: the name, or a number and the name."""


class _Way(NamedTuple):
    sql: str
    before: SkillPlace
    """A place before the first skill."""


SKILL_COLUMNS = "SELECT skill, name, enabled, retired, revision, created_at, updated_at FROM skill "
FIND_SQL = SKILL_COLUMNS + "WHERE space = ? AND name = ?"
BY_KEYS_SQL = f"""
{SKILL_COLUMNS}
WHERE skill IN (SELECT value FROM json_each(?)) AND +space = ? AND enabled = 1 AND retired = 0
"""  # noqa: S608 - constants
NEW_SKILL_SQL = """
INSERT INTO skill (space, name, enabled, retired, revision, created_at, updated_at, authority)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""
REVISE_SQL = "UPDATE skill SET revision = ?, updated_at = ?, authority = ? WHERE skill = ?"
AUTHORITY_SQL = "SELECT authority FROM skill WHERE skill = ?"
SET_AUTHORITY_SQL = "UPDATE skill SET authority = ? WHERE skill = ?"
ENABLE_SQL = "UPDATE skill SET enabled = ?, updated_at = ? WHERE skill = ?"
NEW_REVISION_SQL = """
INSERT INTO skill_revision (skill, revision, source, source_chat_id, observed_at, at, topic, title, summary, content,
  citations, edit_reason)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
NAME_SQL = "SELECT name FROM skill WHERE skill = ?"
REVISION_COLUMNS = """
SELECT revision, source, source_chat_id, observed_at, at, topic, title, summary, content, citations, edit_reason
FROM skill_revision
"""
REVISIONS_SQL = REVISION_COLUMNS + "WHERE skill = ? ORDER BY revision"
REVISION_SQL = REVISION_COLUMNS + "WHERE skill = ? AND revision = ?"
REVISION_AS_OF_SQL = REVISION_COLUMNS + "WHERE skill = ? AND at <= ? ORDER BY revision DESC LIMIT 1"
LISTED_COLUMNS = """
SELECT s.skill, s.name, s.enabled, s.retired, s.revision, s.created_at, s.updated_at, r.title, r.topic, r.summary
FROM skill s JOIN skill_revision r ON r.skill = s.skill AND r.revision = s.revision
WHERE s.space = ? AND """
LISTED_WHERE = """ AND (? OR s.enabled = 1) AND (? OR s.retired = 0)
  AND NOT EXISTS (
    SELECT 1 FROM json_each(?) w
    WHERE NOT instr(lower(s.name || ' ' || r.title || ' ' || r.topic || ' ' || r.summary), w.value)
  )
ORDER BY """
LIST_NAME_SQL = f"{LISTED_COLUMNS} s.name > ? {LISTED_WHERE} s.name LIMIT ?"
LIST_NAME_DOWN_SQL = f"{LISTED_COLUMNS} s.name < ? {LISTED_WHERE} s.name DESC LIMIT ?"
LIST_UPDATED_SQL = f"{LISTED_COLUMNS} (s.updated_at, s.name) > (?, ?) {LISTED_WHERE} s.updated_at, s.name LIMIT ?"
LIST_UPDATED_DOWN_SQL = (
    f"{LISTED_COLUMNS} (s.updated_at, s.name) < (?, ?) {LISTED_WHERE} s.updated_at DESC, s.name DESC LIMIT ?"
)
LIST_REVISION_SQL = f"{LISTED_COLUMNS} (s.revision, s.name) > (?, ?) {LISTED_WHERE} s.revision, s.name LIMIT ?"
LIST_REVISION_DOWN_SQL = (
    f"{LISTED_COLUMNS} (s.revision, s.name) < (?, ?) {LISTED_WHERE} s.revision DESC, s.name DESC LIMIT ?"
)
PAST_TIME = 2**63 - 1
PAST_NAMES = "\U0010ffff" * 257
"""Behind every name: none is so long."""
LISTED: Mapping[SkillOrder, _Way] = {
    SkillOrder("name", False): _Way(LIST_NAME_SQL, ("",)),
    SkillOrder("name", True): _Way(LIST_NAME_DOWN_SQL, (PAST_NAMES,)),
    SkillOrder("updated", False): _Way(LIST_UPDATED_SQL, (-PAST_TIME, "")),
    SkillOrder("updated", True): _Way(LIST_UPDATED_DOWN_SQL, (PAST_TIME, "")),
    SkillOrder("revision", False): _Way(LIST_REVISION_SQL, (0, "")),
    SkillOrder("revision", True): _Way(LIST_REVISION_DOWN_SQL, (PAST_TIME, "")),
}
# Counts alone: SQLite counts a part of an index faster than it adds up its rows.
COUNT_SQL = """
SELECT (SELECT count(*) FROM skill WHERE space = ?1),
  (SELECT count(*) FROM skill WHERE space = ?1 AND enabled = 1 AND retired = 0),
  (SELECT count(*) FROM skill WHERE space = ?1 AND enabled = 0)
"""
NEW_DERIVED_SQL = """
INSERT INTO derived_ref (space, derived, evidence, relation, skill, turn, at) VALUES (?, ?, ?, ?, ?, ?, ?)
"""
DERIVED_OF_SKILL_SQL = """
SELECT derived, evidence, relation, turn FROM derived_ref
WHERE skill = ?1 AND space = (SELECT space FROM skill WHERE skill = ?1) ORDER BY derived_ref
"""
DELETE_SQLS = (
    # By damage one of another space may name it.
    "UPDATE derived_ref SET skill = NULL WHERE skill = ?1 AND space <> (SELECT space FROM skill WHERE skill = ?1)",
    "DELETE FROM derived_ref WHERE skill = ?",
    "DELETE FROM skill_revision WHERE skill = ?",
    "DELETE FROM skill WHERE skill = ?",
)
MESSAGE_OF_REF_SQL = f"SELECT 1 {OF_ONE_TURN} WHERE t.turn = ? AND m.message_id = ?"


def find_skill(tx: Reading, space: int | None, name: str) -> SkillRow | None:
    """The skill of that full name."""
    found = tx.row(FIND_SQL, space, name)
    return None if found is None else _skill(found)


def skills_by_key(tx: Reading, space: int | None, keys: Iterable[int]) -> list[SkillRow]:
    """The enabled, unretired skills of a space with these keys."""
    return [_skill(row) for row in tx.rows(BY_KEYS_SQL, json.dumps(list(keys)), space)]


def add_skill(tx: Writing, space: int, name: str, now: int) -> SkillRow:
    """A new skill, enabled, at revision 1 (which the caller writes)."""
    row = SkillRow(0, name, True, False, 1, now, now)
    return row._replace(skill=tx.insert(NEW_SKILL_SQL, space, *row[1:], None))


def add_revision(tx: Writing, skill: int, revision: RevisionRow, authority: str | None = None) -> None:
    """Write one revision and make it the current one, on an authority: None is a person's or a host's own hand."""
    *head, citations, edit_reason = revision
    number, *rest = head
    tx.run(NEW_REVISION_SQL, skill, number, *rest, json.dumps(citations, ensure_ascii=False), edit_reason)
    tx.run(REVISE_SQL, number, revision.at, authority, skill)


def authority_of(tx: Reading, skill: int) -> str:
    """Whose word the current revision is; what was written by hand is the operator's."""
    return tx.value(AUTHORITY_SQL, skill) or "operator"


def set_authority(tx: Writing, skill: int, authority: str) -> None:
    """Have the current revision stand on another authority."""
    tx.run(SET_AUTHORITY_SQL, authority, skill)


def set_enabled(tx: Writing, skill: int, enabled: bool, now: int) -> None:
    """Enable or disable."""
    tx.run(ENABLE_SQL, int(enabled), now, skill)


def delete_skill(tx: WriteTransaction, skill: int) -> None:
    """Remove the skill, its revisions and its derived refs; their bytes leave the write-ahead log soon after."""
    for sql in DELETE_SQLS:
        tx.run(sql, skill)
    tx.expect_erasure()


def find_revision(tx: Reading, skill: int, revision: int) -> RevisionRow | None:
    """One revision; None where it is missing, by damage."""
    found = tx.row(REVISION_SQL, skill, revision)
    return None if found is None else _revision(found)


def revision_of(tx: Reading, skill: int, revision: int) -> RevisionRow:
    """One revision.

    Raises:
        IntegrityViolation: it is missing.
    """
    found = find_revision(tx, skill, revision)
    if found is None:
        raise IntegrityViolation(reason=f"revision {revision} of the skill {tx.value(NAME_SQL, skill)} is missing")
    return found


def revision_as_of(tx: Reading, skill: int, at: int) -> RevisionRow | None:
    """The revision that was current at a time."""
    found = tx.row(REVISION_AS_OF_SQL, skill, at)
    return None if found is None else _revision(found)


def revisions(tx: Reading, skill: int) -> list[RevisionRow]:
    """Every revision, the first one first."""
    return [_revision(row) for row in tx.rows(REVISIONS_SQL, skill)]


def list_skills(
    tx: Reading, space: int | None, order: SkillOrder, after: SkillPlace | None, wanted: SkillFilter, limit: int
) -> list[tuple[SkillRow, str, str, str]]:
    """(skill, title, topic, summary) in an order, behind the place `after`, or from the first on."""
    way = LISTED[order]
    place = way.before if after is None else after
    rows = tx.rows(way.sql, space, *place, int(wanted.disabled), int(wanted.retired), json.dumps(wanted.words), limit)
    return [(_skill(row[:7]), row[7], row[8], row[9]) for row in rows]


def place_of(skill: SkillRow, order: SkillOrder) -> SkillPlace:
    """Where a skill stands in an order."""
    match order.by:
        case "name":
            return (skill.name,)
        case "updated":
            return (skill.updated_at, skill.name)
        case "revision":
            return (skill.revision, skill.name)


def count_skills(tx: Reading, space: int | None) -> tuple[int, int, int]:
    """Total, active and disabled skills of a space."""
    found = tx.row(COUNT_SQL, space)
    assert found is not None
    return (found[0], found[1], found[2])


def add_derived_ref(
    tx: Writing, space: int, derived: str, evidence: str, skill: int, turn: int | None, now: int
) -> None:
    """Join a skill's revision to evidence."""
    tx.run(NEW_DERIVED_SQL, space, derived, evidence, "cites", skill, turn, now)


def derived_refs_of(tx: Reading, skill: int) -> list[Row]:
    """(derived, evidence, relation, turn)."""
    return list(tx.rows(DERIVED_OF_SKILL_SQL, skill))


def turn_of_ref(tx: Reading, space: int | None, ref: EvidenceRef) -> int | None:
    """The key of the turn that an evidence ref names, None when it, or its message, is not there."""
    turn = tx.value(TURN_NAMED_SQL, space, ref.channel_id, ref.conversation_id, ref.turn_id)
    if turn is None or ref.message_id is None:
        return turn
    return None if tx.value(MESSAGE_OF_REF_SQL, turn, ref.message_id) is None else turn


def _skill(row: Row) -> SkillRow:
    skill, name, enabled, retired, revision, created_at, updated_at = row
    return SkillRow(skill, name, bool(enabled), bool(retired), revision, created_at, updated_at)


def _revision(row: Row) -> RevisionRow:
    return RevisionRow._make((*row[:9], texts(row[9]), row[10]))
