"""Where an accepted claim is kept: as a long-term fact, as a runtime skill, or sealed in the private plane."""

from __future__ import annotations

from typing import Literal, cast

from beetle.contracts.common import DerivedMemoryRef
from beetle.contracts.governance import ExtractedItem, Privacy
from beetle.contracts.maintain import ModelItem
from beetle.contracts.private import PrivatePlane, PrivatePrivacy
from beetle.contracts.refs import evidence_named, format_ref
from beetle.contracts.skills import SKILL_PREFIX, RuntimeSkillWrite
from beetle.domain.governance import SEALED, STRENGTH, VISIBILITY, Standing, first_line, fits, normalised, skill_name
from beetle.named_tuple import NamedTuple
from beetle.runtime.areas.facts import facts
from beetle.runtime.areas.facts.facts import Change, Draft
from beetle.runtime.areas.skills import procedural
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.planes import removed, sealed_items
from beetle.runtime.planes.long_term import content_mac, fact_ref, topic_mac
from beetle.store import long_term, private, skills
from beetle.store.engine.transaction import Reading
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.long_term import FactRow
from beetle.store.skills import SkillRow

TITLE_LIMIT = 256


class Claim(NamedTuple):
    """A candidate as it is judged, new or out of the queue. `evidence` are refs.

    `topic_mac` and `content_mac` are the keyed digests that claims are compared by; `record_id` names the private item
    that holds the text of a sealed claim out of the queue, which has neither text nor digests. `by_operator`: whether
    an operator wrote it, now or before it waited. `note`: why a person accepted it.
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
    by_operator: bool = False
    note: str | None = None


def claim_of_item(
    invocation: Invocation,
    item: ExtractedItem | ModelItem,
    evidence: tuple[str, ...],
    authority: str,
    privacy: Privacy,
    chat_id: str,
    extractor: str,
) -> Claim:
    """What somebody read out of a conversation, as it is judged."""
    return Claim(
        candidate_id="",
        authority=authority,
        target="long_term",
        privacy=privacy,
        kind=item.kind,
        topic=item.topic,
        content=item.content,
        keywords=item.keywords,
        confidence=item.confidence,
        evidence=evidence,
        chat_id=chat_id,
        extractor=extractor,
        topic_mac=topic_mac(invocation.key, item.topic),
        content_mac=content_mac(invocation.key, item.content),
    )


class StoredClaim(NamedTuple):
    """Where a claim is now, and the derived refs that were made."""

    ref: str | None = None
    record_id: str | None = None
    superseded_ref: str | None = None
    revision: int | None = None
    waiting_id: str | None = None
    derived_refs: tuple[DerivedMemoryRef, ...] = ()


class ExistingRecords(NamedTuple):
    """What is believed already of a claim's topic, in the terms of the rules and as it is stored.

    Of `facts` the first is the one that the claim is judged beside.
    """

    standing: Standing | None
    facts: tuple[FactRow, ...] = ()
    skill: SkillRow | None = None


def standing(invocation: Invocation, tx: Reading, space: int, claim: Claim) -> ExistingRecords:
    """What stands there: a record that says the same if there is one, else the strongest."""
    if claim.target in SEALED:
        return ExistingRecords(_sealed_standing(invocation, tx, space, claim))
    if claim.target == "procedural":
        return _skill_standing(tx, space, claim)
    rows = long_term.current_of_topic(tx, space, claim.target, claim.kind, claim.topic_mac)
    if claim.topic_mac is None:
        row = long_term.current_saying(tx, space, claim.target, claim.kind, claim.content_mac)
        rows = [] if row is None else [row]
    # Who may not see a private fact learns from no outcome that it is there, and replaces none.
    own = invocation.caller.name if invocation.caller.is_operator else None
    rows = [
        row
        for row in rows
        if row.visibility == "shared"
        or invocation.sees_private
        or (own is not None and long_term.is_word_of(tx, row, own))
    ]
    if not rows:
        return ExistingRecords(None)
    rows.sort(key=lambda row: (row.content_mac == claim.content_mac, STRENGTH[row.authority], row.fact), reverse=True)
    return ExistingRecords(Standing(rows[0].authority, rows[0].content_mac == claim.content_mac), tuple(rows))


def remover_of(invocation: Invocation, tx: Reading, space: int, claim: Claim) -> str | None:
    """The authority that corrected or deleted what a claim says, if one did; of what is sealed nothing is known."""
    if claim.target in SEALED:
        return None
    topic = named(claim.topic, claim.candidate_id) if claim.target == "procedural" else claim.topic
    return removed.remover_of(invocation, tx, space, topic, claim.content)


def _skill_standing(tx: Reading, space: int, claim: Claim) -> ExistingRecords:
    found = skills.find_skill(tx, space, named(claim.topic, claim.candidate_id))
    if found is None:
        return ExistingRecords(None)
    says = skills.revision_of(tx, found.skill, found.revision).content
    same = normalised(says) == normalised(claim.content)
    return ExistingRecords(Standing(skills.authority_of(tx, found.skill), same), skill=found)


def _sealed_standing(invocation: Invocation, tx: Reading, space: int, claim: Claim) -> Standing | None:
    """Private material keeps no topic: only an item with this very text can stand there."""
    if (
        claim.record_id is not None
        or not fits(claim.target, claim.privacy)
        or sealed_items.available(invocation) is not None
    ):
        return None
    plane, privacy = cast(PrivatePlane, claim.target), cast(PrivatePrivacy, claim.privacy)
    record_id = sealed_items.saying(invocation, tx, space, plane, privacy, claim.content)
    item = None if record_id is None else private.find_item(tx, space, record_id)
    return None if item is None or item.state == "waiting" else Standing(item.authority, says_the_same=True)


def accept(
    invocation: Invocation, tx: WriteTransaction, space: int, claim: Claim, found: ExistingRecords, reason: str
) -> StoredClaim:
    """Keep a claim beside, or in the place of, what stands there; `reason` is created, unchanged or superseded."""
    if claim.target in SEALED:
        return keep_sealed(invocation, tx, space, claim, "kept")
    if claim.target == "procedural":
        return _accept_skill(invocation, tx, space, claim, found.skill, reason)
    return _accept_fact(invocation, tx, space, claim, found.facts, reason)


def _accept_fact(
    invocation: Invocation, tx: WriteTransaction, space: int, claim: Claim, rows: tuple[FactRow, ...], reason: str
) -> StoredClaim:
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
        learned = facts.add_evidence(invocation, tx, space, rows[0], draft)
    elif reason == "created":
        learned = facts.learn(invocation, tx, space, draft, claim.note)
    else:
        learned = facts.replace(invocation, tx, space, rows[0], draft, reason=claim.note)
        superseded = fact_ref(rows[0])
        for other in rows[1:]:
            # A correction can bring two records to one topic; the next word on it stands for both.
            facts.supersede(invocation, tx, space, other, learned.row, Change("superseded", other.authority))
    row = learned.row
    return StoredClaim(fact_ref(row), None, superseded, row.revision, derived_refs=learned.derived_refs)


def _accept_skill(
    invocation: Invocation, tx: WriteTransaction, space: int, claim: Claim, skill: SkillRow | None, reason: str
) -> StoredClaim:
    if reason == "unchanged" and skill is not None:
        made = procedural.cite(invocation, tx, space, skill, claim.evidence)
        if STRENGTH[claim.authority] > STRENGTH[skills.authority_of(tx, skill.skill)]:
            skills.set_authority(tx, skill.skill, claim.authority)
        return StoredClaim(format_ref("procedural", skill.name), None, None, skill.revision, derived_refs=tuple(made))
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
    outcome, made = procedural.write_skill(invocation, tx, space, given, "candidate", claim.authority)
    old = None if skill is None else format_ref("procedural", skill.name, skill.revision)
    return StoredClaim(format_ref("procedural", outcome.name), None, old, outcome.revision, derived_refs=tuple(made))


def named(topic: str, candidate_id: str) -> str:
    """The full name of the skill that a procedural claim is about."""
    return SKILL_PREFIX + skill_name(topic, candidate_id)


def keep_sealed(
    invocation: Invocation, tx: WriteTransaction, space: int, claim: Claim, state: Literal["kept", "waiting", "handoff"]
) -> StoredClaim:
    """Seal a claim's text, or bring the item that holds it already to another state.

    What waits for a pause to end may have a privacy class that its target does not take; until that is judged it is
    kept as the most private there is.
    """
    record_id = claim.record_id
    if record_id is None:
        plane = cast(PrivatePlane, claim.target)
        privacy = cast(PrivatePrivacy, claim.privacy) if fits(claim.target, claim.privacy) else "soul_private"
        there = sealed_items.saying(invocation, tx, space, plane, privacy, claim.content)
        if there is not None and state == "waiting":
            # It may be kept already, and what waits takes nothing back.
            return StoredClaim(record_id=there)
        words = sealed_items.Words(plane, privacy, claim.authority, claim.candidate_id, claim.content)
        record_id = there or sealed_items.keep(invocation, tx, space, words)
    private.set_item_state(tx, space, record_id, state)
    if state == "waiting":
        return StoredClaim(record_id=record_id)
    return StoredClaim(record_id=record_id, derived_refs=_join_sealed(invocation, tx, space, claim, record_id))


def _join_sealed(
    invocation: Invocation, tx: WriteTransaction, space: int, claim: Claim, record_id: str
) -> tuple[DerivedMemoryRef, ...]:
    """The refs that were made; to who may not read the private plane all, since a known one would tell of its item."""
    derived = f"{claim.target}:{record_id}"
    made: list[DerivedMemoryRef] = []
    for text in claim.evidence:
        ref = evidence_named(text)
        turn = None if ref is None else skills.turn_of_ref(tx, space, ref)
        if turn is not None and (
            private.add_derived_ref(tx, space, derived, text, turn) or not invocation.reads_private
        ):
            made.append(DerivedMemoryRef(derived=derived, evidence=text))
    return tuple(made)
