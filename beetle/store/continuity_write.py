"""Writing what was taken in, with the times that it has; and taking away what a scope holds.

What stands in the recall index is put there and taken out by the callers, who know its fields.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from beetle.contracts.continuity_records import FactRecord, RegistryRecord, SkillRecord
from beetle.named_tuple import NamedTuple
from beetle.store import long_term, skill_registry, skills, toc_outbox, tool_registries
from beetle.store.engine.transaction import Reading, Row, Writing
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.events import MS_OF_MESSAGE
from beetle.store.long_term import FactRow
from beetle.store.skills import RevisionRow, SkillRow
from beetle.store.tool_registries import RegistryRow, ToolRow

SUPERSEDED_BY_SQL = "UPDATE fact SET superseded_by = ? WHERE fact = ?"
NEW_DERIVED_SQL = """
INSERT INTO derived_ref (space, derived, evidence, relation, skill, fact, turn, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""
USED_PAGES_SQL = """
SELECT (SELECT page_count FROM pragma_page_count) - (SELECT freelist_count FROM pragma_freelist_count)
"""
TURNS_SQL = "SELECT turn FROM turn WHERE conversation = ? ORDER BY turn"
FOLLOWERS_SQL = """
SELECT f.fact, b.record_id FROM fact f JOIN fact b ON b.fact = f.superseded_by
WHERE f.space = ?1 AND f.superseded_by IN (SELECT value FROM json_each(?2))
  AND f.fact NOT IN (SELECT value FROM json_each(?2))
"""
LOOSE_SQL = """
SELECT derived_ref, evidence FROM derived_ref
WHERE space = ? AND turn IN (SELECT turn FROM turn WHERE conversation = ?)
"""
LOOSEN_SQL = "UPDATE derived_ref SET turn = NULL WHERE derived_ref = ?"
FASTEN_SQL = "UPDATE derived_ref SET turn = ? WHERE derived_ref = ?"
IN_CONVERSATION = "(SELECT turn FROM turn WHERE conversation = ?1)"
CONVERSATION_SQLS = tuple(
    sql.replace("@TURNS", IN_CONVERSATION).replace("@MS", MS_OF_MESSAGE)
    for sql in (
        "DELETE FROM tool_brief WHERE tool_observation IN ("
        "SELECT tool_observation FROM tool_observation WHERE turn IN @TURNS "
        "AND +space = (SELECT space FROM conversation WHERE conversation = ?1))",
        "UPDATE tool_observation SET turn = NULL WHERE turn IN @TURNS",
        "DELETE FROM host_ref_label WHERE host_ref IN (SELECT host_ref FROM host_ref WHERE turn IN @TURNS)",
        "DELETE FROM host_ref WHERE turn IN @TURNS",
        "DELETE FROM attr WHERE turn IN @TURNS",
        "DELETE FROM body WHERE message IN (SELECT message FROM message WHERE conversation = ?1)",
        "DELETE FROM captured_turn WHERE turn IN @TURNS",
        "DELETE FROM event WHERE (space, at_ms, event_id, message) IN ("
        "SELECT c.space, @MS, '', m.message FROM conversation c "
        "JOIN message m ON m.conversation = c.conversation WHERE c.conversation = ?1)",
        "DELETE FROM event WHERE (space, at_ms, event_id, message) IN ("
        "SELECT c.space, @MS, m.message_id, m.message FROM conversation c "
        "JOIN message m ON m.conversation = c.conversation WHERE c.conversation = ?1)",
        "DELETE FROM message WHERE conversation = ?1",
        "DELETE FROM conversation_speaker WHERE conversation = ?1",
        "DELETE FROM maintained WHERE conversation = ?1",
        "DELETE FROM transcript_lifecycle WHERE conversation = ?1",
        "DELETE FROM turn WHERE conversation = ?1",
        "UPDATE conversation SET turns = 0, last_sequence = 0, messages = 0, first_at = NULL, last_at = NULL "
        "WHERE conversation = ?1",
    )
)
FORGET_CONVERSATION_SQLS = (
    "DELETE FROM remembered_conversation WHERE conversation = ?",
    "DELETE FROM conversation WHERE conversation = ?",
)
FACT_SQLS = (
    "DELETE FROM fact_reason WHERE fact_revision IN (SELECT fact_revision FROM fact_revision WHERE fact = ?)",
    "DELETE FROM fact_revision WHERE fact = ?",
    "DELETE FROM fact_body WHERE fact = ?",
    # By damage one of another space may name it.
    "UPDATE derived_ref SET fact = NULL WHERE fact = ?1 AND space <> (SELECT space FROM fact WHERE fact = ?1)",
    "DELETE FROM derived_ref WHERE fact = ?",
    "UPDATE fact SET superseded_by = NULL WHERE superseded_by = ?",
)
DELETE_FACT_SQL = "DELETE FROM fact WHERE fact = ?"
ITEM_SQLS = (
    "DELETE FROM derived_ref WHERE space = ?1 AND derived = ?3 || ':' || ?2 AND skill IS NULL AND fact IS NULL",
    "DELETE FROM candidate WHERE space = ?1 AND record_id = ?2 AND ?3 = ?3",
    "DELETE FROM private_item WHERE space = ?1 AND record_id = ?2 AND ?3 = ?3",
)
SPACE_SQLS = (
    "DELETE FROM derived_ref WHERE space = ?",
    "DELETE FROM tool_brief WHERE tool_observation IN (SELECT tool_observation FROM tool_observation WHERE space = ?)",
    "DELETE FROM tool_observation WHERE space = ?",
    "DELETE FROM registered_tool WHERE tool_registry IN (SELECT tool_registry FROM tool_registry WHERE space = ?)",
    "DELETE FROM tool_registry WHERE space = ?",
    *(
        sql.replace(
            "registry_skill = ?", "registry_skill IN (SELECT registry_skill FROM registry_skill WHERE space = ?)"
        )
        for sql in skill_registry.DELETE_SQLS
    ),
    "DELETE FROM policy_text WHERE policy IN (SELECT policy FROM policy WHERE space = ?)",
    "DELETE FROM policy WHERE space = ?",
    "DELETE FROM candidate_body WHERE candidate IN (SELECT candidate FROM candidate WHERE space = ?)",
    "DELETE FROM candidate WHERE space = ?",
    "DELETE FROM private_item WHERE space = ?",
)


class Digests(NamedTuple):
    """Keyed digests of what a fact says: of its topic and content now, and of each revision's content."""

    topic: bytes | None
    contents: tuple[bytes, ...]


class Derived(NamedTuple):
    """A derived ref to be written."""

    derived: str
    evidence: str
    relation: str
    skill: int | None
    fact: int | None
    turn: int | None


def add_skill(tx: Writing, space: int, each: SkillRecord, revisions: list[RevisionRow]) -> SkillRow:
    """A skill as it stood, with every revision."""
    number = len(revisions)
    row = SkillRow(0, each.name, each.enabled, each.retired, number, each.created_at, each.updated_at)
    key = tx.insert(skills.NEW_SKILL_SQL, space, *row[1:], each.authority)
    for revision in revisions:
        *head, citations, edit_reason = revision
        tx.run(skills.NEW_REVISION_SQL, key, *head, json.dumps(citations, ensure_ascii=False), edit_reason)
    return row._replace(skill=key)


def add_fact(tx: Writing, space: int, each: FactRecord, record_id: str, digests: Digests) -> int:
    """A fact as it stood, without its texts and revisions; its key."""
    last = each.revisions[-1]
    row = FactRow(
        0, record_id, each.target, each.kind, digests.topic, digests.contents[-1], last.visibility, each.authority,
        last.state, len(each.revisions), None, each.confidence, each.created_at, last.valid_from,
    )  # fmt: skip
    return long_term.add_fact(tx, space, row)


def add_fact_revisions(
    tx: Writing, fact: int, each: FactRecord, bodies: list[int], digests: Digests, principal: str, chat_id: str | None
) -> None:
    """Its revisions; `chat_id` stands for the chat that it is taken in as."""
    for number, one in enumerate(each.revisions, 1):
        assert one.text is not None, "what is taken in says something"
        key = tx.insert(
            long_term.NEW_REVISION_SQL, fact, number, one.action, one.state, bodies[one.text],
            digests.contents[number - 1], one.visibility, one.authority, principal,
            chat_id if one.here else one.source_chat_id, one.extractor, one.valid_from, one.valid_until,
        )  # fmt: skip
        if one.reason is not None:
            tx.run(long_term.NEW_REASON_SQL, key, one.reason)


def supersede(tx: Writing, fact: int, by: int) -> None:
    """Have a fact say which one stands in its place."""
    tx.run(SUPERSEDED_BY_SQL, by, fact)


def add_derived_ref(tx: WriteTransaction, space: int, each: Derived) -> None:
    """One derived ref."""
    tx.run(NEW_DERIVED_SQL, space, *each, tx.now)


def add_registry(tx: Writing, space: int, each: RegistryRecord, principal: str) -> None:
    """A tool registry as it stood."""
    row = RegistryRow(
        0, each.registry_id, each.scope, each.fingerprint, each.revision, principal, each.created_at, each.updated_at
    )
    tools = (
        ToolRow(tool.tool_id, tool.title, tool.summary, tool.schema_fingerprint, tool.permission_tags, tool.risk_tags)
        for tool in each.tools
    )
    tool_registries.add_registry(tx, space, row, tools)


def used_pages(tx: Reading) -> int:
    """Pages of the database in use."""
    return tx.value(USED_PAGES_SQL)


def turns_of(tx: Reading, conversation: int) -> list[int]:
    """Keys of a conversation's turns."""
    return [row[0] for row in tx.rows(TURNS_SQL, conversation)]


def followers(tx: Reading, space: int, facts: Iterable[int]) -> list[tuple[int, str]]:
    """(fact, record id of what took its place) of the facts outside these that one of these superseded."""
    return [(row[0], row[1]) for row in tx.rows(FOLLOWERS_SQL, space, json.dumps(list(facts)))]


def loosen(tx: Writing, space: int, conversation: int) -> list[tuple[int, str]]:
    """Untie derived refs from the turns of a conversation: (key, evidence) of each."""
    loose: list[Row] = list(tx.rows(LOOSE_SQL, space, conversation))
    for key, _ in loose:
        tx.run(LOOSEN_SQL, key)
    return [(key, evidence) for key, evidence in loose]


def fasten(tx: Writing, derived_ref: int, turn: int) -> None:
    """Tie a derived ref to a turn."""
    tx.run(FASTEN_SQL, turn, derived_ref)


def clear_conversation(tx: Writing, conversation: int, *, whole: bool) -> None:
    """Take every turn of a conversation away, and with `whole` the conversation; its index rows are gone before."""
    toc_outbox.note_conversation(tx, conversation)
    # A new message may get the number of one that is gone, and then does not come behind all others.
    tx.index_changed(None)
    for sql in CONVERSATION_SQLS:
        tx.run(sql, conversation)
    if whole:
        for sql in FORGET_CONVERSATION_SQLS:
            tx.run(sql, conversation)


def remove_facts(tx: Writing, facts: list[int]) -> None:
    """Take facts away without a trace; their index rows are gone before."""
    for fact in facts:
        for sql in FACT_SQLS:
            tx.run(sql, fact)
    for fact in facts:
        tx.run(DELETE_FACT_SQL, fact)


def remove_item(tx: Writing, space: int, record_id: str, plane: str) -> None:
    """Take a private item away, with what waits in it and its derived refs."""
    for sql in ITEM_SQLS:
        tx.run(sql, space, record_id, plane)


def clear_space(tx: Writing, space: int) -> None:
    """Take away all of a space but its conversations, skills and facts."""
    for sql in SPACE_SQLS:
        tx.run(sql, space)
