"""Changing long-term facts: each change is a revision and an event, and the recall index is kept in step with it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from beetle.contracts.common import DerivedMemoryRef
from beetle.contracts.refs import format_ref, parse_ref
from beetle.memory.digest import keyed
from beetle.memory.governance import STRENGTH, normalised
from beetle.memory.lexical import IndexFields, fact_fields
from beetle.runtime import evolve
from beetle.runtime.handling import Context
from beetle.store import long_term, recall_index, skills
from beetle.store.long_term import BodyRow, FactRow, RevisionRow
from beetle.store.recall_index import Entry
from beetle.store.transaction import Reading
from beetle.store.writer import WriteTransaction

MAC_BYTES = 16


class Draft(NamedTuple):
    """What is to be remembered. `evidence` are refs that were looked up before; `visibility` is shared or private."""

    target: str
    kind: str
    topic: str
    content: str
    keywords: tuple[str, ...]
    authority: str
    visibility: str
    confidence: float | None
    evidence: tuple[str, ...]
    source_chat_id: str | None
    extractor: str | None


class Learned(NamedTuple):
    """The record as it stands after a change, and the derived refs that the change made."""

    row: FactRow
    derived_refs: tuple[DerivedMemoryRef, ...]


class Change(NamedTuple):
    """What a new revision says of itself: its action, who is behind it with what authority, and why in words."""

    action: str
    authority: str
    source_chat_id: str | None = None
    extractor: str | None = None
    reason: str | None = None


IndexRows = set[tuple[Entry, IndexFields]]


def topic_mac(key: bytes, topic: str) -> bytes | None:
    """Keyed digest of a topic, whatever its case and spacing; None for an empty one, which nothing matches."""
    plain = normalised(topic)
    return keyed(key, "topic", plain.encode())[:MAC_BYTES] if plain else None


def content_mac(key: bytes, content: str) -> bytes:
    """Keyed digest of what a fact says, whatever its case and spacing."""
    return keyed(key, "content", normalised(content).encode())[:MAC_BYTES]


def fact_ref(row: FactRow) -> str:
    """The ref of a record, which every operation on facts takes."""
    return format_ref("long_term", row.record_id)


def learn(context: Context, tx: WriteTransaction, space: int, draft: Draft) -> Learned:
    """A new record."""
    return _learn(context, tx, space, draft, reason=None)


def replace(
    context: Context, tx: WriteTransaction, space: int, old: FactRow, draft: Draft, *, reason: str | None = None
) -> Learned:
    """A new record in the place of another, which becomes superseded and is found no more but with `as_of`."""
    learned = _learn(context, tx, space, draft, reason)
    change = Change("superseded", old.authority, draft.source_chat_id, draft.extractor, reason)
    made = supersede(context, tx, space, old, learned.row, change)
    return Learned(learned.row, (*learned.derived_refs, *made))


def supersede(
    context: Context, tx: WriteTransaction, space: int, old: FactRow, by: FactRow, change: Change
) -> tuple[DerivedMemoryRef, ...]:
    """Have a record stand in the place of another; the derived ref that joins the two."""
    after = restate(context, tx, space, old._replace(state="superseded", superseded_by=by.fact), change)
    log_change(context, tx, "fact_superseded", after, by=by.record_id)
    return _derive(tx, space, by, (fact_ref(old),), "supersedes")


def add_evidence(context: Context, tx: WriteTransaction, space: int, row: FactRow, draft: Draft) -> Learned:
    """More evidence for what a record says already; nothing changes when all of it is known."""
    made = _derive(tx, space, row, draft.evidence, "cites")
    authority = max(row.authority, draft.authority, key=lambda each: (STRENGTH[each], each == row.authority))
    sure = [each for each in (row.confidence, draft.confidence) if each is not None]
    confidence = max(sure, default=None)
    if not made and (authority, confidence) == (row.authority, row.confidence):
        return Learned(row, ())
    change = Change("evidence_added", authority, draft.source_chat_id, draft.extractor)
    after = restate(context, tx, space, row._replace(authority=authority, confidence=confidence), change)
    log_change(context, tx, "fact_evidence_added", after, evidence=len(made))
    return Learned(after, made)


def restate(context: Context, tx: WriteTransaction, space: int, row: FactRow, change: Change) -> FactRow:
    """The next revision of a record that goes on saying what it says; `row` is how the record shall stand."""
    body = long_term.shown_body(tx, row)
    before = index_rows(tx, space, _stored(tx, space, row))
    after = long_term.revise(tx, row, _revision(context, row, body, change))
    reindex(tx, before, index_rows(tx, space, after))
    return after


def reword(
    context: Context,
    tx: WriteTransaction,
    space: int,
    row: FactRow,
    text: tuple[str, str, tuple[str, ...]],
    change: Change,
) -> FactRow:
    """The next revision of a record, which says `text` (topic, content, keywords) from now on and is current."""
    before = index_rows(tx, space, row)
    topic, content, keywords = text
    body = long_term.add_body(tx, row.fact, topic, content, keywords)
    stands = row._replace(
        topic_mac=topic_mac(context.key, topic),
        content_mac=content_mac(context.key, content),
        authority=change.authority,
        state="current",
        confidence=None,
    )
    after = long_term.revise(tx, stands, _revision(context, stands, body, change))
    reindex(tx, before, index_rows(tx, space, after))
    return after


def forget(context: Context, tx: WriteTransaction, space: int, rows: Iterable[FactRow]) -> list[FactRow]:
    """Erase every text that some records ever had, and what is proposed about them. What stays is a tombstone of each:
    ids, kinds, times, who.
    """
    rows = list(rows)
    evolve.drop_about(context, tx, space, map(fact_ref, rows))
    after: list[FactRow] = []
    for row in rows:
        before = index_rows(tx, space, row)
        long_term.erase_texts(tx, row.fact)
        stands = row._replace(state="deleted", topic_mac=None, content_mac=None, confidence=None)
        after.append(long_term.revise(tx, stands, _revision(context, stands, None, Change("deleted", row.authority))))
        reindex(tx, before, set())
        log_change(context, tx, "fact_deleted", after[-1])
    if after:
        tx.expect_erasure()
    return after


def log_change(
    context: Context, tx: WriteTransaction, event: str, row: FactRow, *, was: FactRow | None = None, **more: Any
) -> int:
    """The event-log row of a change to a fact: ids and numbers alone. Returns its number.

    `was` is the record before it, where whom it may reach has changed: who knew it is told.
    """
    matter = "shared" if "shared" in (row.visibility, was and was.visibility) else "private"
    return tx.log(context.event("memory", event, matter, record_id=row.record_id, revision=row.revision, **more))


def index_rows(tx: Reading, space: int, row: FactRow) -> IndexRows:
    """The rows that the recall index has to hold for a record as the tables tell it.

    The text that is current stands under the record, any other that it had under the text's own key.
    """
    last = long_term.shown_body(tx, row) if row.state == "current" else None
    rows: IndexRows = set()
    for body in long_term.bodies_of(tx, row.fact):
        visibility = "private" if "private" in (row.visibility, body.visibility) else "shared"
        plane, key = ("long_term", row.fact) if body.body == last else ("long_term_past", body.body)
        rows.add((Entry(plane, key, space, None, visibility), _fields(body)))
    return rows


def reindex(tx: WriteTransaction, before: IndexRows, after: IndexRows) -> None:
    """Bring the recall index from one set of rows to another."""
    for entry, fields in sorted(before - after):
        recall_index.remove(tx, entry, fields)
    for entry, fields in sorted(after - before):
        recall_index.add(tx, entry, fields)


def _learn(context: Context, tx: WriteTransaction, space: int, draft: Draft, reason: str | None) -> Learned:
    row = FactRow(
        fact=0,
        record_id=context.new_id("f"),
        target=draft.target,
        kind=draft.kind,
        topic_mac=topic_mac(context.key, draft.topic),
        content_mac=content_mac(context.key, draft.content),
        visibility=draft.visibility,
        authority=draft.authority,
        state="current",
        revision=0,
        superseded_by=None,
        confidence=draft.confidence,
        created_at=tx.now,
        updated_at=tx.now,
    )
    row = row._replace(fact=long_term.add_fact(tx, space, row))
    body = long_term.add_body(tx, row.fact, draft.topic, draft.content, draft.keywords)
    change = Change("created", draft.authority, draft.source_chat_id, draft.extractor, reason)
    row = long_term.revise(tx, row, _revision(context, row, body, change))
    reindex(tx, set(), index_rows(tx, space, row))
    log_change(context, tx, "fact_created", row, target=row.target)
    return Learned(row, _derive(tx, space, row, draft.evidence, "cites"))


def _derive(
    tx: WriteTransaction, space: int, row: FactRow, evidence: tuple[str, ...], relation: str
) -> tuple[DerivedMemoryRef, ...]:
    derived = fact_ref(row)
    made: list[DerivedMemoryRef] = []
    for text in dict.fromkeys(evidence):
        cited = parse_ref(text)
        of_turn = cited is not None and cited.plane == "evidence"
        turn = skills.turn_of_ref(tx, space, cited.segments) if cited is not None and of_turn else None
        if long_term.add_derived_ref(tx, space, row.fact, derived, text, relation, turn):
            made.append(DerivedMemoryRef(derived=derived, evidence=text, relation=relation))
    return tuple(made)


def _revision(context: Context, row: FactRow, body: int | None, change: Change) -> RevisionRow:
    return RevisionRow(
        revision=0,
        action=change.action,
        state=row.state,
        body=body,
        content_mac=row.content_mac,
        visibility=row.visibility,
        authority=change.authority,
        principal=context.caller.name,
        source_chat_id=change.source_chat_id,
        extractor=change.extractor,
        valid_from=0,
        valid_until=None,
        reason=change.reason,
    )


def _stored(tx: Reading, space: int, row: FactRow) -> FactRow:
    found = long_term.find_fact(tx, space, row.record_id)
    assert found is not None
    return found


def _fields(body: BodyRow) -> IndexFields:
    return fact_fields(topic=body.topic, content=body.content, keywords=body.keywords, at_us=body.learned_at)
