"""Where an accepted claim is kept: as a long-term fact, as a runtime skill, or sealed in the private plane."""

from __future__ import annotations

from typing import Literal, NamedTuple, cast

from beetle.contracts.common import DerivedMemoryRef
from beetle.contracts.governance import Privacy
from beetle.contracts.private import PrivatePlane, PrivatePrivacy
from beetle.contracts.refs import format_ref, parse_ref
from beetle.contracts.skills import SKILL_PREFIX, RuntimeSkillWrite
from beetle.memory.governance import (
    SEALED,
    STRENGTH,
    VISIBILITY,
    Standing,
    first_line,
    fits,
    normalised,
    skill_name,
)
from beetle.runtime import facts, private, procedural
from beetle.runtime.facts import Change, Draft, fact_ref
from beetle.runtime.handling import Context
from beetle.store import long_term, skills
from beetle.store import private as private_store
from beetle.store.long_term import FactRow
from beetle.store.skills import SkillRow
from beetle.store.transaction import Reading
from beetle.store.writer import WriteTransaction

TITLE_LIMIT = 256


class Claim(NamedTuple):
    """A candidate as it is judged, new or out of the queue. `evidence` are refs.

    `topic_mac` and `content_mac` are the keyed digests that claims are compared by; `record_id` names the private item
    that holds the text of a sealed claim out of the queue, which has neither text nor digests.
    """

    candidate_id: str
    authority: str
    target: str
    privacy: Privacy
    kind: str
    topic: str
    content: str
    keywords: tuple[str, ...]
    confidence: float | None
    evidence: tuple[str, ...]
    chat_id: str
    extractor: str | None
    topic_mac: bytes | None
    content_mac: bytes | None
    record_id: str | None = None


class Kept(NamedTuple):
    """Where a claim is now, and the derived refs that were made."""

    ref: str | None = None
    record_id: str | None = None
    superseded_ref: str | None = None
    revision: int | None = None
    derived_refs: tuple[DerivedMemoryRef, ...] = ()


class Found(NamedTuple):
    """What is believed already of a claim's topic, in the terms of the rules and as it is stored.

    Of `facts` the first is the one that the claim is judged beside.
    """

    standing: Standing | None
    facts: tuple[FactRow, ...] = ()
    skill: SkillRow | None = None


def standing(context: Context, tx: Reading, space: int, claim: Claim) -> Found:
    """What stands there: a record that says the same if there is one, else the strongest."""
    if claim.target in SEALED:
        return Found(_sealed_standing(context, tx, space, claim))
    if claim.target == "procedural":
        return _skill_standing(tx, space, claim)
    rows = long_term.current_of_topic(tx, space, claim.target, claim.kind, claim.topic_mac)
    if claim.topic_mac is None:
        row = long_term.current_saying(tx, space, claim.target, claim.kind, claim.content_mac)
        rows = [] if row is None else [row]
    # Who may not see a private fact learns from no outcome that it is there, and replaces none.
    rows = [row for row in rows if row.visibility == "shared" or context.sees_private]
    if not rows:
        return Found(None)
    rows.sort(key=lambda row: (row.content_mac == claim.content_mac, STRENGTH[row.authority], row.fact), reverse=True)
    return Found(Standing(rows[0].authority, rows[0].content_mac == claim.content_mac), tuple(rows))


def _skill_standing(tx: Reading, space: int, claim: Claim) -> Found:
    found = skills.find_skill(tx, space, named(claim.topic, claim.candidate_id))
    if found is None:
        return Found(None)
    says = skills.revision_of(tx, found.skill, found.revision).content
    same = normalised(says) == normalised(claim.content)
    return Found(Standing(skills.authority_of(tx, found.skill), same), skill=found)


def _sealed_standing(context: Context, tx: Reading, space: int, claim: Claim) -> Standing | None:
    """Private material keeps no topic: only an item with this very text can stand there."""
    if claim.record_id is not None or not fits(claim.target, claim.privacy) or private.available(context) is not None:
        return None
    plane, privacy = cast(PrivatePlane, claim.target), cast(PrivatePrivacy, claim.privacy)
    record_id = private.saying(context, tx, space, plane, privacy, claim.content)
    item = None if record_id is None else private_store.find_item(tx, space, record_id)
    return None if item is None or item.state == "waiting" else Standing(item.authority, says_the_same=True)


def accept(context: Context, tx: WriteTransaction, space: int, claim: Claim, found: Found, reason: str) -> Kept:
    """Keep a claim beside, or in the place of, what stands there; `reason` is created, unchanged or superseded."""
    if claim.target in SEALED:
        return keep_sealed(context, tx, space, claim, "kept")
    if claim.target == "procedural":
        return _accept_skill(context, tx, space, claim, found.skill, reason)
    return _accept_fact(context, tx, space, claim, found.facts, reason)


def _accept_fact(
    context: Context, tx: WriteTransaction, space: int, claim: Claim, rows: tuple[FactRow, ...], reason: str
) -> Kept:
    draft = Draft(
        target=claim.target,
        kind=claim.kind,
        topic=claim.topic,
        content=claim.content,
        keywords=claim.keywords,
        authority=claim.authority,
        visibility=VISIBILITY[claim.privacy],
        confidence=claim.confidence,
        evidence=claim.evidence,
        source_chat_id=claim.chat_id,
        extractor=claim.extractor,
    )
    superseded: str | None = None
    if reason == "unchanged":
        learned = facts.add_evidence(context, tx, space, rows[0], draft)
    elif reason == "created":
        learned = facts.learn(context, tx, space, draft)
    else:
        learned = facts.replace(context, tx, space, rows[0], draft)
        superseded = fact_ref(rows[0])
        for other in rows[1:]:
            # A correction can bring two records to one topic; the next word on it stands for both.
            facts.supersede(context, tx, space, other, learned.row, Change("superseded", other.authority))
    row = learned.row
    return Kept(fact_ref(row), None, superseded, row.revision, learned.derived_refs)


def _accept_skill(
    context: Context, tx: WriteTransaction, space: int, claim: Claim, skill: SkillRow | None, reason: str
) -> Kept:
    if reason == "unchanged" and skill is not None:
        made = procedural.cite(context, tx, space, skill, claim.evidence)
        if STRENGTH[claim.authority] > STRENGTH[skills.authority_of(tx, skill.skill)]:
            skills.set_authority(tx, skill.skill, claim.authority)
        return Kept(format_ref("procedural", skill.name), None, None, skill.revision, tuple(made))
    topic = " ".join(claim.topic.split())
    title = topic or first_line(claim.content)
    given = RuntimeSkillWrite(
        name=named(claim.topic, claim.candidate_id),
        topic=title[:TITLE_LIMIT],
        title=title[:TITLE_LIMIT],
        summary=first_line(claim.content),
        content=claim.content,
        citations=claim.evidence,
        source_chat_id=claim.chat_id,
    )
    outcome, made = procedural.write_skill(context, tx, space, given, "candidate", claim.authority)
    old = None if skill is None else format_ref("procedural", skill.name, skill.revision)
    return Kept(format_ref("procedural", outcome.name), None, old, outcome.revision, tuple(made))


def named(topic: str, candidate_id: str) -> str:
    """The full name of the skill that a procedural claim is about."""
    return SKILL_PREFIX + skill_name(topic, candidate_id)


def keep_sealed(
    context: Context, tx: WriteTransaction, space: int, claim: Claim, state: Literal["kept", "waiting", "handoff"]
) -> Kept:
    """Seal a claim's text, or bring the item that holds it already to another state.

    What waits for a pause to end may have a privacy class that its target does not take; until that is judged it is
    kept as the most private there is.
    """
    record_id = claim.record_id
    if record_id is None:
        plane = cast(PrivatePlane, claim.target)
        privacy = cast(PrivatePrivacy, claim.privacy) if fits(claim.target, claim.privacy) else "soul_private"
        there = private.saying(context, tx, space, plane, privacy, claim.content)
        if there is not None and state == "waiting":
            # It may be kept already, and what waits takes nothing back.
            return Kept(record_id=there)
        words = private.Words(plane, privacy, claim.authority, claim.candidate_id, claim.content)
        record_id = there or private.keep(context, tx, space, words)
    private_store.set_item_state(tx, space, record_id, state)
    if state == "waiting":
        return Kept(record_id=record_id)
    return Kept(record_id=record_id, derived_refs=_join_sealed(tx, space, claim, record_id))


def _join_sealed(tx: WriteTransaction, space: int, claim: Claim, record_id: str) -> tuple[DerivedMemoryRef, ...]:
    derived = f"{claim.target}:{record_id}"
    made: list[DerivedMemoryRef] = []
    for text in claim.evidence:
        ref = parse_ref(text)
        turn = None if ref is None else skills.turn_of_ref(tx, space, ref.segments)
        if turn is not None and private_store.add_derived_ref(tx, space, derived, text, turn):
            made.append(DerivedMemoryRef(derived=derived, evidence=text))
    return tuple(made)
