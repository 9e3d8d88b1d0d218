"""governance.report, and what memory.inspect tells of deferred governance."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import cast

from beetle.contracts.codec import format_us, to_us
from beetle.contracts.maintain import (
    DecisionCount,
    DecisionName,
    DeferredGovernance,
    GovernanceReport,
    GovernanceReportRequest,
    JobCount,
    OpenJob,
    PolicyAction,
    PolicyInForce,
    WaitingCandidates,
)
from beetle.runtime.pipeline.handlers import Handler, Read
from beetle.runtime.pipeline.invocation import Invocation
from beetle.store import evidence, governance_report, jobs, policies
from beetle.store.damaged_rows import shown_time, whole
from beetle.store.engine.transaction import Reading
from beetle.store.jobs import JobRow

ROWS_READ = 20_000
"""Most events of its space that one report looks at."""
JOBS_SHOWN = 50


def report(invocation: Invocation, request: GovernanceReportRequest, tx: Reading) -> GovernanceReport:
    """Counts and ids of this space."""
    space = evidence.find_space(tx, invocation.space_id)
    since = invocation.shared.started_at if request.since is None else to_us(request.since)
    found, complete = governance_report.decisions(
        tx, invocation.space_id, invocation.level or "sealed", since, ROWS_READ, private=invocation.sees_private
    )
    model = invocation.shared.model
    return GovernanceReport(
        deferred=deferred(invocation, tx, space),
        since=format_us(since),
        decisions=tuple(
            DecisionCount(outcome=cast(DecisionName, outcome), reason=reason, count=count)
            for (outcome, reason), count in sorted(found.items())
        ),
        complete=complete,
        policies=tuple([] if space is None else whole(policies.policies(tx, space), _in_force)),
        model=None if model is None else model.name,
    )


def deferred(invocation: Invocation, tx: Reading, space: int | None) -> DeferredGovernance:
    """What waits in a space, as this caller may know it."""
    if space is None:
        return DeferredGovernance()
    rows = governance_report.waiting(tx, space, invocation.now, private=invocation.sees_private)
    return DeferredGovernance(
        waiting=tuple(whole(rows, _waiting)),
        jobs=tuple(
            JobCount(kind=each.kind, state=each.state, reason=each.reason, count=each.jobs)
            for each in jobs.counts(tx, space)
        ),
        open_jobs=tuple(whole(jobs.open_jobs(tx, space, JOBS_SHOWN), partial(_open_job, invocation))),
    )


def _waiting(row: governance_report.WaitingCount) -> WaitingCandidates:
    return WaitingCandidates(
        reason=row.reason,
        count=row.candidates,
        within_day=row.within_day,
        within_week=row.within_week,
        longer=row.longer,
        oldest_at=shown_time(row.oldest, "candidate", row.reason),
    )


def _in_force(row: policies.PolicyRow) -> PolicyInForce:
    at = shown_time(row.at, "policy", row.number)
    return PolicyInForce(policy_id=row.number, action=cast(PolicyAction, row.action), kind=row.kind, at=at)


def _open_job(invocation: Invocation, row: JobRow) -> OpenJob:
    return OpenJob(
        job_id=row.job_id,
        kind=row.kind,
        state=row.state,
        reason=row.reason,
        attempts=row.attempts,
        created_at=shown_time(row.created_at, "job", row.job_id),
        due_at=shown_time(jobs.due_at(row, invocation.now), "job", row.job_id),
        principal=row.principal,
    )


HANDLERS: Mapping[str, Handler] = {
    "governance.report": Read(report),
}
