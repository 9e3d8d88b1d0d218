"""Changing long-term facts: each change is a revision and an event, and the recall index is kept in step with it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from beetle.contracts.common import DerivedMemoryRef
from beetle.contracts.refs import evidence_named
from beetle.domain.governance import STRENGTH
from beetle.named_tuple import NamedTuple
from beetle.runtime.areas.evolve import proposals
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.planes import removed
from beetle.runtime.planes.long_term import (
    Change,
    content_mac,
    erase,
    fact_ref,
    index_rows,
    log_change,
    reindex,
    revision_of,
    topic_mac,
    value_of,
)
from beetle.store import long_term, skills
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.long_term import FactRow


class Draft(NamedTuple):
    """What is to be remembered. `evidence` are refs that were looked up before; `visibility` is shared or private."""

    target: str
    kind: str
    topic: str
    content: str
    keywords: tuple[str, ...]
    authority: str
    visibility: str
    source_chat_id: str | None
    confidence: float | None = None
    evidence: tuple[str, ...] = ()
    extractor: str | None = None


class Learned(NamedTuple):
    """The record as it stands after a change, and the derived refs that the change made."""

    row: FactRow
    derived_refs: tuple[DerivedMemoryRef, ...]


def replace(
    invocation: Invocation, tx: WriteTransaction, space: int, old: FactRow, draft: Draft, *, reason: str | None = None
) -> Learned:
    """A new record in the place of another, which becomes superseded and is found no more but with `as_of`."""
    learned = learn(invocation, tx, space, draft, reason)
    change = Change("superseded", old.authority, draft.source_chat_id, draft.extractor, reason)
    made = supersede(invocation, tx, space, old, learned.row, change)
    return Learned(learned.row, (*learned.derived_refs, *made))


def supersede(
    invocation: Invocation, tx: WriteTransaction, space: int, old: FactRow, by: FactRow, change: Change
) -> tuple[DerivedMemoryRef, ...]:
    """Have a record stand in the place of another; the derived ref that joins the two."""
    _remove_shown(invocation, tx, space, old, by.authority, by)
    after = restate(invocation, tx, space, old._replace(state="superseded", superseded_by=by.fact), change)
    # Whoever knew the old record is told, but not by which private one.
    told = by.visibility == "shared" or after.visibility == "private"
    more: dict[str, Any] = {"by": by.record_id} if told else {}
    log_change(invocation, tx, "fact_superseded", after, **more)
    return _derive(tx, space, by, (fact_ref(old),), "supersedes")


def add_evidence(invocation: Invocation, tx: WriteTransaction, space: int, row: FactRow, draft: Draft) -> Learned:
    """More evidence for what a record says already; nothing changes when all of it is known."""
    made = _derive(tx, space, row, draft.evidence, "cites")
    authority = max(row.authority, draft.authority, key=lambda each: (STRENGTH[each], each == row.authority))
    sure = [each for each in (row.confidence, draft.confidence) if each is not None]
    confidence = max(sure, default=None)
    if not made and (authority, confidence) == (row.authority, row.confidence):
        return Learned(row, ())
    change = Change("evidence_added", authority, draft.source_chat_id, draft.extractor)
    after = restate(invocation, tx, space, row._replace(authority=authority, confidence=confidence), change)
    log_change(invocation, tx, "fact_evidence_added", after, evidence=len(made))
    return Learned(after, made)


def restate(invocation: Invocation, tx: WriteTransaction, space: int, row: FactRow, change: Change) -> FactRow:
    """The next revision of a record that goes on saying what it says; `row` is how the record shall stand."""
    body = long_term.shown_body(tx, row)
    (stored,) = long_term.facts_by_key(tx, space, [row.fact])
    before = index_rows(tx, space, stored)
    after = long_term.revise(tx, row, revision_of(invocation, row, body, change))
    reindex(tx, before, index_rows(tx, space, after))
    return after


def reword(
    invocation: Invocation,
    tx: WriteTransaction,
    space: int,
    row: FactRow,
    text: tuple[str, str, tuple[str, ...]],
    change: Change,
) -> FactRow:
    """The next revision of a record, which says `text` (topic, content, keywords) from now on and is current."""
    before = index_rows(tx, space, row)
    topic, content, keywords = text
    said = row._replace(topic_mac=topic_mac(invocation.key, topic), content_mac=content_mac(invocation.key, content))
    _remove_shown(invocation, tx, space, row, change.authority, said)
    body = long_term.add_body(tx, row.fact, topic, content, keywords)
    stands = said._replace(authority=change.authority, state="current", confidence=None)
    after = long_term.revise(tx, stands, revision_of(invocation, stands, body, change))
    reindex(tx, before, index_rows(tx, space, after))
    return after


def forget(
    invocation: Invocation, tx: WriteTransaction, space: int, rows: Iterable[FactRow], authority: str
) -> list[FactRow]:
    """Erase some records, and what is proposed about them. As `planes.long_term.erase`."""
    rows = list(rows)
    proposals.drop_about(invocation, tx, space, map(fact_ref, rows))
    return erase(invocation, tx, space, rows, authority)


def _remove_shown(
    invocation: Invocation, tx: WriteTransaction, space: int, old: FactRow, authority: str, by: FactRow
) -> None:
    """Write down that what a record says is said no more, unless what comes in its place says it too."""
    key = long_term.shown_body(tx, old)
    if key is not None and (old.topic_mac, old.content_mac) != (by.topic_mac, by.content_mac):
        removed.record(invocation, tx, space, [value_of(old, long_term.body_of(tx, old.fact, key))], authority)


def learn(invocation: Invocation, tx: WriteTransaction, space: int, draft: Draft, reason: str | None = None) -> Learned:
    """A new record."""
    row = FactRow(
        fact=0,
        record_id=invocation.new_id("f"),
        target=draft.target,
        kind=draft.kind,
        topic_mac=topic_mac(invocation.key, draft.topic),
        content_mac=content_mac(invocation.key, draft.content),
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
    row = long_term.revise(tx, row, revision_of(invocation, row, body, change))
    reindex(tx, set(), index_rows(tx, space, row))
    log_change(invocation, tx, "fact_created", row, target=row.target)
    return Learned(row, _derive(tx, space, row, draft.evidence, "cites"))


def _derive(
    tx: WriteTransaction, space: int, row: FactRow, evidence: tuple[str, ...], relation: str
) -> tuple[DerivedMemoryRef, ...]:
    derived = fact_ref(row)
    made: list[DerivedMemoryRef] = []
    for text in dict.fromkeys(evidence):
        cited = evidence_named(text)
        turn = None if cited is None else skills.turn_of_ref(tx, space, cited)
        if long_term.add_derived_ref(tx, space, row.fact, derived, text, relation, turn):
            made.append(DerivedMemoryRef(derived=derived, evidence=text, relation=relation))
    return tuple(made)
