"""Judging what is asked to be remembered: against policies, evidence and what is believed already; and the queue."""

from __future__ import annotations

from collections.abc import Iterable

from beetle.contracts.common import DerivedMemoryRef
from beetle.contracts.governance import GovernanceOutcome
from beetle.contracts.refs import evidence_named
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
from beetle.named_tuple import NamedTuple
from beetle.runtime.areas.governance import grounds, queue, targets
from beetle.runtime.areas.governance.targets import Claim, ExistingRecords, StoredClaim
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.planes import sealed_items
from beetle.runtime.planes.forgetting import Topic
from beetle.store import candidates, policies
from beetle.store.candidates import Body, Waiting
from beetle.store.engine.transaction import Reading
from beetle.store.engine.write_transaction import WriteTransaction


class Judged(NamedTuple):
    """A candidate of the queue, the verdict on it, and where it is kept now."""

    row: Waiting
    verdict: Verdict
    kept: StoredClaim = StoredClaim()


def ready(invocation: Invocation) -> None:
    """Load what sealing takes. Call it before a transaction of the writer, which must not wait for it."""
    sealed_items.available(invocation)


def cited(tx: Reading, space: int, refs: tuple[str, ...]) -> tuple[Cited, ...]:
    """The messages that evidence refs name, each ref once; text that is no evidence ref names none."""
    found: list[Cited] = []
    for text in dict.fromkeys(refs):
        ref = evidence_named(text)
        rows = [] if ref is None else candidates.messages_of_ref(tx, space, ref)
        messages = tuple(EvidenceMessage(row.role, row.visibility, row.state, bool(row.by_subject)) for row in rows)
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
        put = _put_off(invocation, tx, space, claim, verdict.reason)
        verdict, kept = (verdict, put) if put is not None else (Verdict("rejected", "queue_full"), kept)
    _log_judgement(invocation, tx, claim, verdict, kept)
    if verdict.outcome == "accepted":
        besides = _settle_assertions(invocation, tx, space, claim, evidence, kept)
        # What had waited and says the same is evidence of the record too: its revision is the one to change it by.
        now = [each.kept.revision for each in besides if each.kept.ref == kept.ref]
        kept = kept._replace(revision=now[-1]) if now else kept
    outcome = GovernanceOutcome(
        index=index,
        candidate_id=claim.candidate_id or None,
        outcome=verdict.outcome,
        reason=_as_shown(invocation, claim, verdict).reason,
        ref=kept.ref,
        record_id=kept.record_id,
        superseded_ref=kept.superseded_ref,
        revision=kept.revision,
        waiting_id=kept.waiting_id,
    )
    return outcome, kept.derived_refs


def foresee(invocation: Invocation, tx: Reading, space: int, claim: Claim) -> tuple[Verdict, ExistingRecords]:
    """What judging a new claim now would come to, and what stands there; nothing is changed."""
    claim = claim._replace(by_operator=invocation.caller.is_operator)
    verdict, found = _judged(invocation, tx, space, claim, cited(tx, space, claim.evidence), vouched=False)
    return _as_shown(invocation, claim, verdict), found


def _as_shown(invocation: Invocation, claim: Claim, verdict: Verdict) -> Verdict:
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
    verdict = judge(case)
    if verdict.outcome == "deferred" and not queue.is_keepable(invocation, claim):
        verdict = Verdict("rejected", "private_unavailable")
    return verdict, found


def _put_off(invocation: Invocation, tx: WriteTransaction, space: int, claim: Claim, reason: str) -> StoredClaim | None:
    """Have a claim wait; None when there is no room for it. What the soul is to take over waits in the private plane,
    with its derived refs.
    """
    if reason == "soul_handoff":
        return targets.keep_sealed(invocation, tx, space, claim, "handoff")
    row = queue.waiting_row(invocation, claim, reason, tx.now)
    # Whoever may not know of what waits is answered as if there were room: any candidate may be dropped later.
    fits = queue.make_room(invocation, tx, space, row)
    if not fits and queue.knows(invocation, row.level):
        return None
    sealed = claim.target in SEALED
    kept = targets.keep_sealed(invocation, tx, space, claim, "waiting") if sealed else StoredClaim()
    body = None if sealed else Body(claim.topic, claim.content, claim.keywords)
    put, new = queue.keep(invocation, tx, space, row._replace(record_id=kept.record_id), body)
    if new and not fits:
        queue.drop(invocation, tx, space, put, "queue_full")
    return kept._replace(waiting_id=put.waiting_id) if queue.knows(invocation, row.level) else kept


def _settle_assertions(
    invocation: Invocation,
    tx: WriteTransaction,
    space: int,
    claim: Claim,
    evidence: tuple[Cited, ...],
    kept: StoredClaim,
) -> list[Judged]:
    """A user or a tool has spoken: what an assistant had claimed of it is more evidence, or is overtaken. Those that
    were decided.
    """
    if claim.authority not in ASSERTING_AUTHORITIES and not asserted(evidence):
        return []
    # What waits sealed is not decided by who may not know of it: the number of the event would tell that it waited.
    if claim.target in SEALED and not invocation.reads_private:
        return []
    if kept.record_id is not None:
        rows = candidates.waiting_in(tx, space, "needs_assertion", kept.record_id)
    else:
        topic = (claim.target, claim.kind, claim.topic_mac)
        rows = _waiting_on(invocation, tx, space, "needs_assertion", topic, claim.content_mac)
    decided: list[Judged] = []
    for row in rows:
        if queue.matter_of(row) == "private" and not invocation.sees_private:
            continue
        # One that is accepted may decide others of the same list.
        if not candidates.still_waits(tx, row.candidate):
            continue
        alike = (claim.content_mac, sealed_items.blinded(invocation, tx, space, claim.content_mac))
        if row.record_id is not None or row.content_mac in alike:
            decided += _judge_waiting(invocation, tx, space, row, vouched=True)
        else:
            queue.drop(invocation, tx, space, row, "superseded")
            decided.append(Judged(row, Verdict("rejected", "superseded")))
    return decided


def _waiting_on(
    invocation: Invocation, tx: Reading, space: int, reason: str, topic: Topic, content_mac: bytes | None
) -> list[Waiting]:
    """What waits on a topic, the oldest first; sealed texts are known by digests of their own."""
    target, kind, mac = topic
    rows = candidates.waiting_on(tx, space, reason, target, kind, mac, content_mac)
    blinded = sealed_items.blinded(invocation, tx, space, mac if mac is not None else content_mac)
    if blinded is None:
        return rows
    macs = (blinded, None) if mac is not None else (None, blinded)
    return sorted(
        (*rows, *candidates.waiting_on(tx, space, reason, target, kind, *macs)), key=lambda row: row.candidate
    )


def judge_again(
    invocation: Invocation, tx: WriteTransaction, space: int, *, reason: str, topics: Iterable[Topic] | None = None
) -> int:
    """Judge candidates again that wait for what has just arrived; how many were decided of those that the caller may
    know of.

    Args:
        reason: what they wait for, such as `weaker_authority` when a stronger record is gone.
        topics: only those of these targets, kinds and topics.
    """
    if topics is None:
        return _judge_each(invocation, tx, space, candidates.waiting_for(tx, space, reason))
    named = [topic for topic in dict.fromkeys(topics) if topic[2] is not None]
    rows = (row for topic in named for row in _waiting_on(invocation, tx, space, reason, topic, None))
    return _judge_each(invocation, tx, space, rows)


def judge_skill_again(invocation: Invocation, tx: WriteTransaction, space: int, name: str) -> None:
    """Judge again what waits for a skill to go, once it is gone."""
    found: list[Waiting] = []
    for row in candidates.waiting_for(tx, space, "weaker_authority"):
        body = queue.body_of(invocation, tx, space, row) if row.target == "procedural" else None
        if body is not None and targets.named(body.topic, row.candidate_id) == name:
            found.append(row)
    # The first that is accepted is the skill that the others are judged beside.
    _judge_each(invocation, tx, space, found)


def _judge_each(invocation: Invocation, tx: WriteTransaction, space: int, rows: Iterable[Waiting]) -> int:
    """How many of those were decided that the caller may know of: these come first, so that nothing hidden decides
    what becomes of them.
    """
    decided = 0
    oldest = queue.oldest_allowed(invocation, tx)
    for row in sorted(rows, key=lambda row: not queue.knows(invocation, row.level)):
        # One that is accepted may decide others of the same list. What has waited too long is only to be dropped.
        if row.at < oldest or not candidates.still_waits(tx, row.candidate):
            continue
        if _judge_waiting(invocation, tx, space, row, vouched=False):
            decided += queue.knows(invocation, row.level)
    return decided


def _judge_waiting(
    invocation: Invocation, tx: WriteTransaction, space: int, row: Waiting, *, vouched: bool
) -> list[Judged]:
    """A candidate of the queue as it is decided now, and what that decided besides; nothing, where it goes on waiting,
    perhaps for something else.
    """
    invocation = queue.judged_for(invocation, row)
    body = queue.body_of(invocation, tx, space, row)
    if body is None:
        return []
    claim = queue.claim_of(invocation, row, body)
    evidence = cited(tx, space, claim.evidence)
    verdict, kept = _decide(invocation, tx, space, claim, evidence, vouched=vouched)
    if verdict.outcome == "deferred" and verdict.reason != "soul_handoff":
        if verdict.reason != row.reason:
            candidates.wait_for(tx, row.candidate, verdict.reason)
            _log_judgement(invocation, tx, claim, verdict, kept, row)
        return []
    return _conclude(invocation, tx, space, row, claim, evidence, verdict, kept)


def decide(invocation: Invocation, tx: WriteTransaction, space: int, row: Waiting, claim: Claim) -> list[Judged]:
    """Judge a candidate of the queue as `claim`, the word of who decides; behind it those that this decides besides.
    What is deferred waits on, as it did.
    """
    evidence = cited(tx, space, claim.evidence)
    verdict, kept = _decide(invocation, tx, space, claim, evidence, vouched=False)
    if verdict.outcome != "deferred" or verdict.reason == "soul_handoff":
        return _conclude(invocation, tx, space, row, claim, evidence, verdict, kept)
    return [Judged(row, verdict, kept)]


def reject(invocation: Invocation, tx: WriteTransaction, space: int, row: Waiting, claim: Claim) -> None:
    """Take a candidate out of the queue that a person does not want."""
    queue.take_out(tx, space, row)
    _log_judgement(invocation, tx, claim, Verdict("rejected", "declined"), StoredClaim(), row)


def _conclude(
    invocation: Invocation,
    tx: WriteTransaction,
    space: int,
    row: Waiting,
    claim: Claim,
    evidence: tuple[Cited, ...],
    verdict: Verdict,
    kept: StoredClaim,
) -> list[Judged]:
    """A candidate of the queue is decided: it leaves the queue, and what waits for such a word is judged."""
    if verdict.reason == "soul_handoff":
        kept = targets.keep_sealed(invocation, tx, space, claim, "handoff")
    queue.take_out(tx, space, row)
    _log_judgement(invocation, tx, claim, verdict, kept, row)
    besides = _settle_assertions(invocation, tx, space, claim, evidence, kept) if verdict.outcome == "accepted" else []
    return [Judged(row, verdict, kept), *besides]


def _log_judgement(
    invocation: Invocation,
    tx: WriteTransaction,
    claim: Claim,
    verdict: Verdict,
    kept: StoredClaim,
    waited: Waiting | None = None,
) -> None:
    """The event of a decision: ids, kinds and the reason, never what the candidate says. `waited`: in the queue."""
    subject = {
        "candidate_id": claim.candidate_id,
        "target": claim.target,
        "kind": claim.kind,
        "authority": claim.authority,
        "privacy": claim.privacy,
        "reason": verdict.reason,
        "ref": kept.ref,
        "record_id": kept.record_id,
        "waited_for": waited and waited.reason,
        "waiting_id": waited and waited.waiting_id,
    }
    told = {name: value for name, value in subject.items() if value}
    tx.log(invocation.event("memory", f"candidate_{verdict.outcome}", queue.matter_of(claim), **told))
