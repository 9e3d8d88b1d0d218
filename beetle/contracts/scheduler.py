"""scheduler.status, pause, resume and run: the jobs that the daemon runs by the clock."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from beetle.contracts.common import Report
from beetle.contracts.fields import NO_CONTROL, Open, OperatorOnly, Piece, Request
from beetle.contracts.operation import RPC, SCHEDULER, Operation

JobResult = Literal["unspecified", "success", "failed", "skipped"]
"""What came of a job's last time: it has not come yet; it succeeded; it failed; it was left out, since the job was
paused or still ran. gRPC numbers them 0 to 3 in this order."""
SkipReason = Literal["paused", "overlap"]

JobName = Annotated[
    str,
    Meta(min_length=1, max_length=64, pattern=NO_CONTROL, description="the job's name, as `scheduler.status` has it"),
]


class SchedulerJob(Piece, frozen=True, kw_only=True):
    """One job. Times are milliseconds since the epoch, durations milliseconds.

    `cron_expr` has six fields, seconds first, and is `off` where the configuration switched the schedule off; then the
    job runs by `scheduler.run` alone. `last_run_ms` is when the last run began, 0 before the first; `next_run_ms` when
    the next one is due, 0 when none is. A paused job has a next time too, and leaves it out when it comes. `run_count`
    counts runs that succeeded, `error_count` those that failed, `skip_count` times that were left out. `last_error`
    says why the last failed run failed, until a run succeeds; `last_error_key` is that error's key. `skip_reason` says
    why the last time was left out, where `last_result` is `skipped`. `is_hung` says that a run has taken longer than
    `timeout_s`: it counts as failed, and others do not wait for it. `waiting` says that the job is due and waits, for
    another job to end or for the device to have less to do. `running_ms` is how long it has run, 0 when it does not.
    """

    job_name: Open[str]
    description: Open[str]
    cron_expr: Open[str]
    last_run_ms: Open[int] = 0
    last_duration_ms: Open[int] = 0
    last_result: Open[JobResult] = "unspecified"
    last_error: OperatorOnly[str | None] = None
    last_error_key: Open[str | None] = None
    skip_reason: Open[SkipReason | None] = None
    next_run_ms: Open[int] = 0
    run_count: Open[int] = 0
    error_count: Open[int] = 0
    skip_count: Open[int] = 0
    is_running: Open[bool] = False
    is_paused: Open[bool] = False
    is_hung: Open[bool] = False
    waiting: Open[bool] = False
    running_ms: Open[int] = 0
    timeout_s: Open[int]


class SchedulerStatusRequest(Request, frozen=True, kw_only=True):
    """List the background jobs with their schedules, counters, last error and next run."""


class SchedulerStatusReport(Report, frozen=True, kw_only=True):
    """The jobs in the order of their names. `scheduler_running` says whether somebody starts them when they are due: in
    a daemon and an in-process runtime; not for a command that opened the store itself, and not in a profile whose share
    for background work is 0. `time_zone` is the zone in which the schedules are read."""

    scheduler_running: Open[bool]
    jobs: Open[tuple[SchedulerJob, ...]]
    time_zone: Open[str]


class SchedulerPauseRequest(Request, frozen=True, kw_only=True):
    """Pause a background job, past restarts too; a run that has begun goes on."""

    job_name: JobName


class SchedulerPauseReport(Report, frozen=True, kw_only=True):
    """The job as it is now. `changed` is false where it was paused before. `success` is true: an unknown job is
    `not_found`."""

    success: Open[bool]
    changed: Open[bool]
    job: Open[SchedulerJob]


class SchedulerResumeRequest(Request, frozen=True, kw_only=True):
    """Resume a paused background job: it runs at its next time."""

    job_name: JobName


class SchedulerResumeReport(Report, frozen=True, kw_only=True):
    """The job as it is now. `changed` is false where it was not paused. `success` is true: an unknown job is
    `not_found`."""

    success: Open[bool]
    changed: Open[bool]
    job: Open[SchedulerJob]


class SchedulerRunRequest(Request, frozen=True, kw_only=True):
    """Start a background job now, paused or not; refused while it runs."""

    job_name: JobName
    wait: Annotated[bool, Meta(description="answer when the run has ended, not when it has begun")] = False


class SchedulerRunReport(Report, frozen=True, kw_only=True):
    """The job as it is now: running, or with `wait` and where no scheduler runs, as its run left it."""

    success: Open[bool]
    job: Open[SchedulerJob]


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "scheduler.status", "scheduler_status", SchedulerStatusRequest, SchedulerStatusReport, "read", "scheduler",
        SCHEDULER, ("scheduler", "status"),
        "list the background jobs with their schedules, counters, last error and next run",
        exposed=RPC,
    ),
    Operation(
        "scheduler.pause", "pause_job", SchedulerPauseRequest, SchedulerPauseReport, "admin", "scheduler",
        SCHEDULER, ("scheduler", "pause"),
        "pause a background job, past restarts too; a run that has begun goes on",
        batch=False, grows=False, word="job_name",
        example={"job_name": "hourly-rollup"},
        shell=("beetle scheduler pause hourly-rollup",),
        exposed=RPC,
    ),
    Operation(
        "scheduler.resume", "resume_job", SchedulerResumeRequest, SchedulerResumeReport, "admin", "scheduler",
        SCHEDULER, ("scheduler", "resume"),
        "resume a paused background job: it runs at its next time",
        batch=False, grows=False, word="job_name",
        example={"job_name": "hourly-rollup"},
        shell=("beetle scheduler resume hourly-rollup",),
        exposed=RPC,
    ),
    Operation(
        "scheduler.run", "run_job", SchedulerRunRequest, SchedulerRunReport, "admin", "scheduler",
        SCHEDULER, ("scheduler", "run"),
        "start a background job now, paused or not; refused while it runs",
        batch=False, grows=False, deadline_ms=3_600_000, word="job_name",
        example={"job_name": "verification"},
        shell=("beetle scheduler run verification", "beetle scheduler run verification --wait"),
    ),
)  # fmt: skip
