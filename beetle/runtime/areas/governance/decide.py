"""governance.decide: a person accepts or rejects what waits, or has a job tried again."""

from __future__ import annotations

from collections.abc import Mapping

from beetle.contracts.errors import BeetleError, Conflict, Forbidden, NotFound, PrivacyDenied, WeakerAuthority
from beetle.contracts.waiting import DecisionOutcome, GovernanceDecideReport, GovernanceDecideRequest
from beetle.domain.digest import keyed
from beetle.domain.governance import SEALED, STRENGTH
from beetle.named_tuple import NamedTuple
from beetle.runtime.areas import receipts, secrets
from beetle.runtime.areas.evidence.lifecycle import settle
from beetle.runtime.areas.facts.mutate import authority_of, check_room
from beetle.runtime.areas.governance import judging, queue, targets
from beetle.runtime.areas.governance.targets import Claim
from beetle.runtime.areas.governance.waiting import known_to
from beetle.runtime.host import jobs as work
from beetle.runtime.pipeline.handlers import Apply, Handler, Write
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.planes import removed, sealed_items
from beetle.store import candidates, evidence, jobs, private
from beetle.store.candidates import Waiting
from beetle.store.engine.write_transaction import WriteTransaction

LISTING = "`beetle governance list` lists what waits"


class Decided(NamedTuple):
    """What became of one, and the digests of what it said."""

    outcome: DecisionOutcome
    digests: tuple[bytes, ...] = ()


def decide(invocation: Invocation, request: GovernanceDecideRequest) -> Apply:
    """In one transaction, each in its order. A dry run judges each as things stand, and writes nothing."""
    secrets.refuse(secrets.fields(request, "$.args", "reason"))
    receipts.ready(invocation)
    judging.ready(invocation)

    def apply(tx: WriteTransaction) -> GovernanceDecideReport:
        space = evidence.find_space(tx, invocation.space_id)
        done: list[Decided] = []
        for index, each in enumerate(request.ids):
            try:
                done.append(_one(invocation, tx, space, each, request))
            except BeetleError as error:
                error.details.update(index=index, path=f"$.args.ids[{index}]")
                raise
        decided = sum(each.outcome.outcome != "deferred" for each in done)
        report = GovernanceDecideReport(
            decision=request.decision,
            dry_run=request.dry_run,
            outcomes=tuple(each.outcome for each in done),
            decided=decided,
        )
        if request.dry_run or not decided:
            return report
        return _receipted(invocation, tx, request, report, [each for one in done for each in one.digests])

    return apply


def _receipted(
    invocation: Invocation,
    tx: WriteTransaction,
    request: GovernanceDecideRequest,
    report: GovernanceDecideReport,
    digests: list[bytes],
) -> GovernanceDecideReport:
    # Whoever keeps the reason can prove that it was given; the store keeps none of what was rejected.
    if request.reason is not None:
        digests.append(keyed(invocation.key, "decision reason", request.reason.encode()))
    kind, counts = f"governance.{request.decision}", {"decided": report.decided}
    receipt = receipts.make(invocation, tx, kind, tx.logged[-1].seq, counts, digests)
    erasure = None if request.decision == "retry" else "pending"
    return GovernanceDecideReport(
        decision=report.decision,
        dry_run=False,
        outcomes=report.outcomes,
        decided=report.decided,
        erasure=erasure,
        receipt=receipt,
    )


def _one(
    invocation: Invocation, tx: WriteTransaction, space: int | None, name: str, request: GovernanceDecideRequest
) -> Decided:
    if request.decision == "retry":
        return Decided(_retry(invocation, tx, space, name, dry_run=request.dry_run))
    row = candidates.named(tx, space, name)
    if space is None or row is None or not known_to(invocation, request.view).has(row):
        raise NotFound(kind="waiting candidate", name=name, listing=LISTING)
    mine = authority_of(invocation)
    if STRENGTH[mine] < STRENGTH[row.authority]:
        raise WeakerAuthority(
            f"{name} is the word of {row.authority}, over which {mine} does not decide",
            hint="an operator may decide it",
            authority=row.authority,
        )
    digests = () if row.content_mac is None else (row.content_mac,)
    if private.is_closed(tx, space, row.candidate, row.record_id):
        if request.decision == "accept":
            raise sealed_items.closed(f"the text of {row.waiting_id}", "governance.decide rejects it")
        if not request.dry_run:
            queue.drop(invocation, tx, space, row, "declined")
        return Decided(DecisionOutcome(id=name, outcome="rejected", reason="declined"), digests)
    claim = _claim(invocation, tx, space, row)._replace(note=request.reason)
    if request.decision == "accept":
        return Decided(_accept(invocation, tx, space, row, claim, dry_run=request.dry_run), digests)
    if not request.dry_run:
        _reject(invocation, tx, space, row, claim)
    return Decided(DecisionOutcome(id=name, outcome="rejected", reason="declined"), digests)


def _claim(invocation: Invocation, tx: WriteTransaction, space: int, row: Waiting) -> Claim:
    """What waits, as the word of who decides.

    Raises:
        PrivacyDenied: it is sealed, and cannot be opened now.
    """
    body = queue.body_of(invocation, tx, space, row)
    if body is None:
        raise PrivacyDenied(
            reason=f"the text of {row.waiting_id} is sealed and does not open",
            hint="`beetle doctor` shows the state of the device identity, `beetle verify` what is damaged",
        )
    by_operator = invocation.caller.is_operator
    return queue.claim_of(invocation, row, body)._replace(authority=authority_of(invocation), by_operator=by_operator)


def _accept(
    invocation: Invocation, tx: WriteTransaction, space: int, row: Waiting, claim: Claim, *, dry_run: bool
) -> DecisionOutcome:
    if dry_run:
        verdict, _ = judging.foresee(invocation, tx, space, claim)
        return DecisionOutcome(id=row.waiting_id, outcome=verdict.outcome, reason=verdict.reason)
    check_room(invocation, tx)
    verdict, kept = judging.decide(invocation, tx, space, row, claim)
    return DecisionOutcome(
        id=row.waiting_id,
        outcome=verdict.outcome,
        reason=verdict.reason,
        ref=kept.ref,
        record_id=kept.record_id,
        superseded_ref=kept.superseded_ref,
        revision=kept.revision,
    )


def _reject(invocation: Invocation, tx: WriteTransaction, space: int, row: Waiting, claim: Claim) -> None:
    """Take it out, and write down by whose authority: a weaker one does not bring the value back."""
    there = targets.standing(invocation, tx, space, claim).standing
    if claim.target not in SEALED and not (there is not None and there.says_the_same):
        topic = targets.named(claim.topic, claim.candidate_id) if claim.target == "procedural" else claim.topic
        value = removed.Value(topic, claim.content, private=row.level != "shared")
        removed.record(invocation, tx, space, [value], claim.authority)
    judging.reject(invocation, tx, space, row, claim)


def _retry(
    invocation: Invocation, tx: WriteTransaction, space: int | None, name: str, *, dry_run: bool
) -> DecisionOutcome:
    """Have a job taken up at once, with all its attempts before it.

    Raises:
        NotFound: there is no such job in this space.
        Forbidden: it is another principal's.
        Conflict: it is at work, or has ended; or the same job is left already.
    """
    job = jobs.find(tx, name)
    if job is None or job.space != space:
        raise NotFound(kind="job", name=name, listing=LISTING)
    if not invocation.caller.is_operator and job.principal != invocation.caller.name:
        raise Forbidden(reason=f"{name} is the work of another principal", hint="an operator may retry it")
    if job.state not in ("failed", "waiting"):
        hint = "a job that failed or waits can be retried"
        raise Conflict(reason=f"{name} is {job.state}", hint=hint, state=job.state)
    other = None if job.state == "waiting" else jobs.open_like(tx, job)
    if other is not None:
        raise Conflict(
            reason=f"the same work is left already, as {other.job_id}",
            hint=f"retry {other.job_id} instead",
            job_id=other.job_id,
        )
    if not dry_run:
        work.retry_now(tx, job)
    return DecisionOutcome(id=name, outcome="retried")


HANDLERS: Mapping[str, Handler] = {
    "governance.decide": Write(decide, settle),
}
