"""governance.report, and what memory.inspect tells of deferred governance."""

from __future__ import annotations

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
from beetle.runtime.handling import Context
from beetle.store import evidence, governance_report, jobs, policies
from beetle.store.jobs import JobRow
from beetle.store.transaction import Reading

ROWS_READ = 20_000
"""Most rows of the event log that one report looks at."""
JOBS_SHOWN = 50


def report(context: Context, request: GovernanceReportRequest, tx: Reading) -> GovernanceReport:
    """Counts and ids of this space."""
    space = evidence.find_space(tx, context.space_id)
    since = context.shared.started_at if request.since is None else to_us(request.since)
    found, complete = governance_report.decisions(tx, context.space_id, since, ROWS_READ, private=context.sees_private)
    model = context.shared.model
    return GovernanceReport(
        deferred=deferred(context, tx, space),
        since=format_us(since),
        decisions=tuple(
            DecisionCount(outcome=cast(DecisionName, outcome), reason=reason, count=count)
            for (outcome, reason), count in sorted(found.items())
        ),
        complete=complete,
        policies=tuple(
            PolicyInForce(
                policy_id=row.policy, action=cast(PolicyAction, row.action), kind=row.kind, at=format_us(row.at)
            )
            for row in ([] if space is None else policies.policies(tx, space))
        ),
        model=None if model is None else model.name,
    )


def deferred(context: Context, tx: Reading, space: int | None) -> DeferredGovernance:
    """What waits in a space, as this caller may know it."""
    if space is None:
        return DeferredGovernance()
    rows = governance_report.waiting(tx, space, context.now, private=context.sees_private)
    return DeferredGovernance(
        waiting=tuple(
            WaitingCandidates(
                reason=row.reason,
                count=row.candidates,
                within_day=row.within_day,
                within_week=row.within_week,
                longer=row.longer,
                oldest_at=format_us(row.oldest),
            )
            for row in rows
        ),
        jobs=tuple(
            JobCount(kind=each.kind, state=each.state, reason=each.reason, count=each.jobs)
            for each in jobs.counts(tx, space)
        ),
        open_jobs=tuple(_open_job(row) for row in jobs.open_jobs(tx, space, JOBS_SHOWN)),
    )


def _open_job(row: JobRow) -> OpenJob:
    due = row.not_before if row.lease_until is None else max(row.not_before, row.lease_until)
    return OpenJob(
        job_id=row.job_id,
        kind=row.kind,
        state=row.state,
        reason=row.reason,
        attempts=row.attempts,
        created_at=format_us(row.created_at),
        due_at=format_us(due),
        principal=row.principal,
    )
