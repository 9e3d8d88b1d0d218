"""governance.decide: a person accepts or rejects what waits, or has a job tried again."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager

from beetle.contracts.codec import replace
from beetle.contracts.errors import BeetleError, Conflict, Forbidden, NotFound, PrivacyDenied, WeakerAuthority
from beetle.contracts.waiting import DecisionOutcome, GovernanceDecideReport, GovernanceDecideRequest
from beetle.domain.digest import keyed
from beetle.domain.governance import SEALED, STRENGTH, Verdict
from beetle.runtime.areas import receipts, secrets
from beetle.runtime.areas.evidence.lifecycle import settle
from beetle.runtime.areas.facts.mutate import authority_of, check_room
from beetle.runtime.areas.governance import judging, queue, targets
from beetle.runtime.areas.governance.judging import Judged
from beetle.runtime.areas.governance.targets import Claim
from beetle.runtime.areas.governance.waiting import known_to
from beetle.runtime.host import jobs as work
from beetle.runtime.pipeline.handlers import Apply, Handler, Write
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.planes import removed, sealed_items
from beetle.store import candidates, evidence, jobs, private
from beetle.store.candidates import Known, Waiting
from beetle.store.engine.transaction import Reading
from beetle.store.engine.write_transaction import WriteTransaction

LISTING = "`beetle governance list` lists what waits"


def decide(invocation: Invocation, request: GovernanceDecideRequest) -> Apply:
    """In one transaction, each in its order. A dry run does the same, undoes it, and names no record."""
    secrets.refuse(secrets.fields(request, "$.args", "reason"))
    receipts.ready(invocation)
    judging.ready(invocation)

    def apply(tx: WriteTransaction) -> GovernanceDecideReport:
        if request.dry_run:
            with tx.rehearsal():
                outcomes, _ = _decided(invocation, tx, request)
            none = {"ref": None, "record_id": None, "superseded_ref": None, "revision": None}
            return _report(request, [replace(each, **none) for each in outcomes])
        outcomes, digests = _decided(invocation, tx, request)
        report = _report(request, outcomes)
        return _receipted(invocation, tx, request, report, digests) if report.decided else report

    return apply


def _report(request: GovernanceDecideRequest, outcomes: list[DecisionOutcome]) -> GovernanceDecideReport:
    return GovernanceDecideReport(
        decision=request.decision,
        dry_run=request.dry_run,
        outcomes=tuple(outcomes),
        decided=sum(each.outcome != "deferred" for each in outcomes),
    )


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


@contextmanager
def _naming(index: int) -> Generator[None]:
    """An error says which id it is about."""
    try:
        yield
    except BeetleError as error:
        error.details.update(index=index, path=f"$.args.ids[{index}]")
        raise


def _decided(
    invocation: Invocation, tx: WriteTransaction, request: GovernanceDecideRequest
) -> tuple[list[DecisionOutcome], list[bytes]]:
    """What became of each, behind them of those that were decided besides; and digests of what they said."""
    space = evidence.find_space(tx, invocation.space_id)
    if request.decision == "retry":
        retried: list[DecisionOutcome] = []
        for index, name in enumerate(request.ids):
            with _naming(index):
                retried.append(_retry(invocation, tx, space, name))
        return retried, []
    known = known_to(invocation, request.view)
    for index, name in enumerate(request.ids):
        with _naming(index):
            space = _check(invocation, tx, space, name, request, known)
    judged: dict[str, Judged] = {}
    for index, name in enumerate(request.ids):
        row = candidates.named(tx, space, name)
        # One that is accepted may decide others of the same request.
        if space is not None and row is not None:
            with _naming(index):
                judged |= {each.row.waiting_id: each for each in _judge(invocation, tx, space, row, request)}
    besides = [name for name, each in judged.items() if name not in request.ids and known.has(each.row)]
    told = [judged[name] for name in (*request.ids, *besides)]
    digests = [each.row.content_mac for each in told if each.row.content_mac is not None]
    return [_outcome(each) for each in told], digests


def _check(
    invocation: Invocation,
    tx: Reading,
    space: int | None,
    name: str,
    request: GovernanceDecideRequest,
    known: Known,
) -> int:
    """The space of a candidate that the caller may decide so.

    Raises:
        NotFound: none waits by this name, as far as the caller may know.
        WeakerAuthority: it is the word of somebody stronger.
        PrivacyDenied: it is to be accepted, and a former identity has sealed it.
    """
    row = candidates.named(tx, space, name)
    if space is None or row is None or not known.has(row):
        raise NotFound(kind="waiting candidate", name=name, listing=LISTING)
    mine = authority_of(invocation)
    if STRENGTH[mine] < STRENGTH[row.authority]:
        raise WeakerAuthority(
            f"{name} is the word of {row.authority}, over which {mine} does not decide",
            hint="an operator may decide it",
            authority=row.authority,
        )
    if request.decision == "accept" and private.is_closed(tx, space, row.candidate, row.record_id):
        raise sealed_items.closed(f"the text of {row.waiting_id}", "governance.decide rejects it")
    return space


def _judge(
    invocation: Invocation, tx: WriteTransaction, space: int, row: Waiting, request: GovernanceDecideRequest
) -> list[Judged]:
    """A candidate as it was decided, and behind it those that this decided besides."""
    if request.decision == "accept":
        claim = _claim(invocation, tx, space, row)._replace(note=request.reason)
        check_room(invocation, tx)
        return judging.decide(invocation, tx, space, row, claim)
    if private.is_closed(tx, space, row.candidate, row.record_id):
        queue.drop(invocation, tx, space, row, "declined")
    else:
        _reject(invocation, tx, space, row, _claim(invocation, tx, space, row))
    return [Judged(row, Verdict("rejected", "declined"))]


def _outcome(judged: Judged) -> DecisionOutcome:
    verdict, kept = judged.verdict, judged.kept
    return DecisionOutcome(
        id=judged.row.waiting_id,
        outcome=verdict.outcome,
        reason=verdict.reason,
        ref=kept.ref,
        record_id=kept.record_id,
        superseded_ref=kept.superseded_ref,
        revision=kept.revision,
    )


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


def _reject(invocation: Invocation, tx: WriteTransaction, space: int, row: Waiting, claim: Claim) -> None:
    """Take it out, and write down by whose authority: a weaker one does not bring the value back."""
    there = targets.standing(invocation, tx, space, claim).standing
    if claim.target not in SEALED and not (there is not None and there.says_the_same):
        topic = targets.named(claim.topic, claim.candidate_id) if claim.target == "procedural" else claim.topic
        value = removed.Value(topic, claim.content, private=row.level != "shared")
        removed.record(invocation, tx, space, [value], claim.authority)
    judging.reject(invocation, tx, space, row, claim)


def _retry(invocation: Invocation, tx: WriteTransaction, space: int | None, name: str) -> DecisionOutcome:
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
    work.retry_now(tx, job)
    return DecisionOutcome(id=name, outcome="retried")


HANDLERS: Mapping[str, Handler] = {
    "governance.decide": Write(decide, settle),
}
