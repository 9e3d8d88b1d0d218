"""Judging what is asked to be remembered: against policies, evidence and what is believed already; and the queue."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from beetle.contracts.common import DerivedMemoryRef
from beetle.contracts.governance import GovernanceOutcome, Privacy
from beetle.contracts.refs import evidence_named, format_ref
from beetle.domain.governance import (
    ASSERTING_AUTHORITIES,
    SEALED,
    Case,
    Cited,
    EvidenceMessage,
    Verdict,
    asserted,
    evidence_trouble,
    judge,
)
from beetle.runtime.areas import sealed_items
from beetle.runtime.areas.governance import grounds, targets
from beetle.runtime.areas.governance.targets import Claim, ExistingRecords, StoredClaim
from beetle.runtime.pipeline.invocation import Invocation
from beetle.store import candidates, policies, private
from beetle.store.candidates import Body, Waiting
from beetle.store.engine.transaction import Reading
from beetle.store.engine.writer import WriteTransaction
from beetle.store.event_places import Matter

DAY_US = 86_400_000_000
MOST_DROPPED = 1000
"""Most expired candidates that one write takes out, so that a write after a long sleep is no slower than others."""

Topic = tuple[str, str, bytes | None]
"""A target, a kind and the keyed digest of a topic."""


def ready(invocation: Invocation) -> None:
    """Load what sealing takes. Call it before a transaction of the writer, which must not wait for it."""
    sealed_items.available(invocation)


def cited(tx: Reading, space: int, refs: tuple[str, ...]) -> tuple[Cited, ...]:
    """The messages that evidence refs name, each ref once; text that is no evidence ref names none."""
    found: list[Cited] = []
    for text in dict.fromkeys(refs):
        ref = evidence_named(text)
        rows = [] if ref is None else candidates.messages_of_ref(tx, space, ref)
        messages = tuple(EvidenceMessage(row.role, row.visibility, row.state) for row in rows)
        found.append(Cited(str(ref or text), rows[0].turn if rows else None, messages))
    return tuple(found)


def consider(
    invocation: Invocation, tx: WriteTransaction, space: int, index: int, claim: Claim
) -> tuple[GovernanceOutcome, tuple[DerivedMemoryRef, ...]]:
    """Judge a new claim and do as the rules say: keep it, put it off, or leave only the event."""
    evidence = cited(tx, space, claim.evidence)
    claim = claim._replace(evidence=tuple(each.ref for each in evidence), by_operator=invocation.caller.is_operator)
    verdict, kept = _decide(invocation, tx, space, claim, evidence, vouched=False)
    if verdict.outcome == "deferred":
        kept = _put_off(invocation, tx, space, claim, verdict)
    _tell(invocation, tx, claim, verdict, kept)
    if verdict.outcome == "accepted":
        _settle_assertions(invocation, tx, space, claim, evidence, kept)
    outcome = GovernanceOutcome(
        index=index,
        candidate_id=claim.candidate_id or None,
        outcome=verdict.outcome,
        reason=_told(invocation, claim, verdict).reason,
        ref=kept.ref,
        record_id=kept.record_id,
        superseded_ref=kept.superseded_ref,
        revision=kept.revision,
    )
    return outcome, kept.derived_refs


def foresee(invocation: Invocation, tx: Reading, space: int, claim: Claim) -> tuple[Verdict, ExistingRecords]:
    """What judging a new claim now would come to, and what stands there; nothing is changed."""
    claim = claim._replace(by_operator=invocation.caller.is_operator)
    verdict, found = _judged(invocation, tx, space, claim, cited(tx, space, claim.evidence), vouched=False)
    return _told(invocation, claim, verdict), found


def _told(invocation: Invocation, claim: Claim, verdict: Verdict) -> Verdict:
    """A verdict as the caller may know it: who may not read the private plane is not told that it says the same."""
    if claim.target in SEALED and verdict.reason == "unchanged" and not invocation.reads_private:
        return Verdict(verdict.outcome, "created")
    return verdict


def _decide(
    invocation: Invocation,
    tx: WriteTransaction,
    space: int,
    claim: Claim,
    evidence: tuple[Cited, ...],
    *,
    vouched: bool,
) -> tuple[Verdict, StoredClaim]:
    """What became of a claim, and where it is kept now."""
    verdict, found = _judged(invocation, tx, space, claim, evidence, vouched=vouched)
    if verdict.outcome != "accepted":
        return verdict, StoredClaim()
    return verdict, targets.accept(invocation, tx, space, claim, found, verdict.reason)


def _judged(
    invocation: Invocation, tx: Reading, space: int, claim: Claim, evidence: tuple[Cited, ...], *, vouched: bool
) -> tuple[Verdict, ExistingRecords]:
    acting = policies.acting(tx, space, claim.kind, claim.topic_mac, claim.chat_id)
    found = targets.standing(invocation, tx, space, claim)
    trouble = evidence_trouble(evidence, claim.privacy)
    case = Case(
        authority=claim.authority,
        target=claim.target,
        privacy=claim.privacy,
        suppressed="suppress" in acting,
        paused="pause" in acting,
        sealable=claim.target not in SEALED or sealed_items.available(invocation) is None,
        evidence=evidence,
        vouched=vouched,
        borne=vouched or trouble is not None or grounds.are_borne(invocation, tx, space, claim),
        standing=found.standing,
        removed_by=targets.remover_of(invocation, tx, space, claim),
        by_operator=claim.by_operator,
    )
    return judge(case), found


def _put_off(invocation: Invocation, tx: WriteTransaction, space: int, claim: Claim, verdict: Verdict) -> StoredClaim:
    """Have a claim wait. What the soul is to take over waits in the private plane, with its derived refs."""
    if verdict.reason == "soul_handoff":
        return targets.keep_sealed(invocation, tx, space, claim, "handoff")
    sealed = claim.target in SEALED
    kept = targets.keep_sealed(invocation, tx, space, claim, "waiting") if sealed else StoredClaim()
    row = Waiting(
        candidate=0,
        candidate_id=claim.candidate_id,
        target=claim.target,
        kind=claim.kind,
        topic_mac=None if sealed else claim.topic_mac,
        content_mac=None if sealed else claim.content_mac,
        privacy=claim.privacy,
        authority=claim.authority,
        reason=verdict.reason,
        chat_id=claim.chat_id,
        principal=invocation.caller.name,
        confidence=claim.confidence,
        extractor=claim.extractor,
        evidence=claim.evidence,
        record_id=kept.record_id,
        at=tx.now,
        by_operator=claim.by_operator,
    )
    if not candidates.waits_already(tx, space, row):
        candidates.defer(tx, space, row, None if sealed else Body(claim.topic, claim.content, claim.keywords))
    return kept


def _settle_assertions(
    invocation: Invocation,
    tx: WriteTransaction,
    space: int,
    claim: Claim,
    evidence: tuple[Cited, ...],
    kept: StoredClaim,
) -> None:
    """A user or a tool has spoken: what an assistant had claimed of it is more evidence, or is overtaken."""
    if claim.authority not in ASSERTING_AUTHORITIES and not asserted(evidence):
        return
    # What waits sealed is not decided by who may not know of it: the number of the event would tell that it waited.
    if claim.target in SEALED and not invocation.reads_private:
        return
    if kept.record_id is not None:
        rows = candidates.waiting_in(tx, space, "needs_assertion", kept.record_id)
    else:
        topic = (claim.target, claim.kind, claim.topic_mac)
        rows = candidates.waiting_on(tx, space, "needs_assertion", *topic, claim.content_mac)
    for row in rows:
        if matter_of(row) == "private" and not invocation.sees_private:
            continue
        if row.record_id is not None or row.content_mac == claim.content_mac:
            _judge_waiting(invocation, tx, space, row, vouched=True)
        else:
            drop(invocation, tx, space, row, "superseded")


def judge_again(
    invocation: Invocation, tx: WriteTransaction, space: int, *, reason: str, topic: Topic | None = None
) -> int:
    """Judge candidates again that wait for what has just arrived; how many of them were decided.

    Args:
        reason: what they wait for, such as `weaker_authority` when a stronger record is gone.
        topic: only those of a target, kind and topic.
    """
    if topic is None:
        rows = candidates.waiting_for(tx, space, reason)
    elif topic[2] is None:
        return 0
    else:
        rows = candidates.waiting_on(tx, space, reason, *topic, None)
    # One that is accepted may decide others of the same list. What has waited too long is only to be dropped.
    oldest = _oldest(invocation, tx)
    return sum(
        row.at >= oldest
        and candidates.still_waits(tx, row.candidate)
        and _judge_waiting(invocation, tx, space, row, vouched=False)
        for row in rows
    )


def judge_skill_again(invocation: Invocation, tx: WriteTransaction, space: int, name: str) -> int:
    """Judge again what waits for a skill to go, once it is gone; how many candidates were decided."""
    decided = 0
    oldest = _oldest(invocation, tx)
    for row in candidates.waiting_for(tx, space, "weaker_authority"):
        alive = row.target == "procedural" and row.at >= oldest
        body = candidates.body_of(tx, row.candidate) if alive else None
        # The first that is accepted is the skill that the others are judged beside.
        if body is not None and targets.named(body.topic, row.candidate_id) == name:
            decided += _judge_waiting(invocation, tx, space, row, vouched=False)
    return decided


def _judge_waiting(invocation: Invocation, tx: WriteTransaction, space: int, row: Waiting, *, vouched: bool) -> bool:
    """Whether a candidate of the queue is decided now; if not, it goes on waiting, perhaps for something else."""
    claim = _claim_of(row, candidates.body_of(tx, row.candidate))
    evidence = cited(tx, space, claim.evidence)
    verdict, kept = _decide(invocation, tx, space, claim, evidence, vouched=vouched)
    if verdict.outcome == "deferred" and verdict.reason != "soul_handoff":
        if verdict.reason != row.reason:
            candidates.wait_for(tx, row.candidate, verdict.reason)
            _tell(invocation, tx, claim, verdict, kept, waited_for=row.reason)
        return False
    if verdict.reason == "soul_handoff":
        kept = targets.keep_sealed(invocation, tx, space, claim, "handoff")
    _take_out(tx, space, row)
    _tell(invocation, tx, claim, verdict, kept, waited_for=row.reason)
    if verdict.outcome == "accepted":
        _settle_assertions(invocation, tx, space, claim, evidence, kept)
    return True


def _claim_of(row: Waiting, body: Body | None) -> Claim:
    topic, content, keywords = ("", "", ()) if body is None else body
    return Claim(
        candidate_id=row.candidate_id,
        authority=row.authority,
        target=row.target,
        privacy=cast(Privacy, row.privacy),
        kind=row.kind,
        topic=topic,
        content=content,
        keywords=keywords,
        confidence=row.confidence,
        evidence=row.evidence,
        chat_id=row.chat_id,
        extractor=row.extractor,
        topic_mac=row.topic_mac,
        content_mac=row.content_mac,
        record_id=row.record_id,
        by_operator=bool(row.by_operator),
    )


def drop_expired(invocation: Invocation, tx: WriteTransaction, space: int) -> None:
    """Drop the candidates that have waited for longer than the profile lets them."""
    for row in candidates.expired(tx, space, _oldest(invocation, tx), MOST_DROPPED):
        drop(invocation, tx, space, row, "expired")


def _oldest(invocation: Invocation, tx: WriteTransaction) -> int:
    """Since when a candidate may have waited."""
    return tx.now - invocation.shared.profile.budgets.deferred_days * DAY_US


def drop_citing(
    invocation: Invocation, tx: WriteTransaction, space: int, channel: str, conversation: str, turn_ids: Iterable[str]
) -> None:
    """Drop the candidates that rest on turns whose content was erased: they can never be accepted, and may quote it."""
    refs = {format_ref("evidence", channel, conversation, turn_id) for turn_id in turn_ids}
    for row in candidates.citing(tx, space, refs):
        drop(invocation, tx, space, row, "evidence_unavailable")


def drop_unfounded(invocation: Invocation, tx: WriteTransaction, space: int) -> None:
    """Drop the candidates that rest on any turn of which content was erased, for the same reason."""
    for row in candidates.every(tx, space):
        if any(candidates.cites_erased(tx, space, text) for text in row.evidence):
            drop(invocation, tx, space, row, "evidence_unavailable")


def drop(invocation: Invocation, tx: WriteTransaction, space: int, row: Waiting, reason: str) -> None:
    """Take a candidate out of the queue, and tell why."""
    _take_out(tx, space, row)
    subject = {"candidate_id": row.candidate_id, "target": row.target, "kind": row.kind, "waited_for": row.reason}
    tx.log(invocation.event("memory", "candidate_dropped", matter_of(row), **subject, reason=reason))


def _take_out(tx: WriteTransaction, space: int, row: Waiting) -> None:
    """Out of the queue; a sealed text that was kept for it alone goes too."""
    candidates.remove(tx, row.candidate)
    if row.record_id is None or candidates.holds(tx, space, row.record_id):
        return
    item = private.find_item(tx, space, row.record_id)
    if item is not None and item.state == "waiting":
        private.remove_item(tx, space, row.record_id)


def _tell(
    invocation: Invocation,
    tx: WriteTransaction,
    claim: Claim,
    verdict: Verdict,
    kept: StoredClaim,
    waited_for: str | None = None,
) -> None:
    """The event of a decision: ids, kinds and the reason, never what the candidate says."""
    subject = {
        "candidate_id": claim.candidate_id,
        "target": claim.target,
        "kind": claim.kind,
        "authority": claim.authority,
        "privacy": claim.privacy,
        "reason": verdict.reason,
        "ref": kept.ref,
        "record_id": kept.record_id,
        "waited_for": waited_for,
    }
    told = {name: value for name, value in subject.items() if value}
    tx.log(invocation.event("memory", f"candidate_{verdict.outcome}", matter_of(claim), **told))


def matter_of(candidate: Claim | Waiting) -> Matter:
    """Of whose matter an event about a candidate tells."""
    if candidate.target in SEALED:
        return "sealed"
    return "private" if candidate.privacy in ("subject_private", "soul_private") else "shared"
