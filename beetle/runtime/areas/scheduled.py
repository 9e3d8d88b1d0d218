"""The jobs that the scheduler runs, and the operations on them.

A job is one row of `JOBS`: its name, when it runs, its function, what it is for, and what it uses (see `Job`). What a
job is done with is imported when there is something to do: an idle daemon holds none of it in memory.
"""

from __future__ import annotations

from collections.abc import Mapping

from beetle.contracts.common import Lifecycle
from beetle.contracts.errors import DeadlineExceeded, IntegrityViolation
from beetle.contracts.scheduler import (
    SchedulerPauseReport,
    SchedulerPauseRequest,
    SchedulerResumeReport,
    SchedulerResumeRequest,
    SchedulerRunReport,
    SchedulerRunRequest,
    SchedulerStatusReport,
    SchedulerStatusRequest,
)
from beetle.runtime.host.scheduled_job import SECOND_US, Job
from beetle.runtime.host.scheduler import TOPIC, Scheduler
from beetle.runtime.pipeline.handlers import Handler, Plain
from beetle.runtime.pipeline.invocation import Invocation, log_apart
from beetle.store import index_rebuild, toc_outbox
from beetle.store.engine.write_transaction import WriteTransaction

OPTIMIZE = "optimize"
FILL_AGAIN_US = 3600 * SECOND_US
"""How long after a run that did not fill the index the next one is due."""
LOOK_S = 1.0
"""How often who waits for a run looks whether anybody waits for the answer still."""


def cut_waiting(invocation: Invocation) -> int:
    """Cut the days whose events have changed into segments."""
    with invocation.reading(heavy=False) as tx:
        if not toc_outbox.has_days(tx):
            return 0
    from beetle.runtime.areas.toc import building

    return building.cut_waiting(invocation)


def summarize_segments(invocation: Invocation) -> int:
    """Choose bullets and words of the segments that have changed."""
    with invocation.reading(heavy=False) as tx:
        if not toc_outbox.has_stale_nodes(tx):
            return 0
    from beetle.runtime.areas.toc import building

    return building.summarize_segments(invocation)


def roll_up(invocation: Invocation) -> int:
    """Sum up the periods whose segments have changed."""
    with invocation.reading(heavy=False) as tx:
        if not toc_outbox.has_stale_nodes(tx):
            return 0
    from beetle.runtime.areas.toc import building

    return building.roll_up(invocation)


def do_deferred(invocation: Invocation) -> int:
    """One job that a principal has left."""
    deferred = invocation.shared.scheduler.deferred
    return 0 if deferred is None else int(deferred.run_next())


def next_deferred(scheduler: Scheduler) -> int | None:
    """When the next of them is due."""
    return None if scheduler.deferred is None else scheduler.deferred.next_due()


def write_summaries(invocation: Invocation) -> int:
    """Have the configured model write titles, bullets and keywords of segments, where it is to."""
    model = invocation.shared.model
    if model is None or not model.summarizes:
        return 0
    from beetle.runtime.areas.toc import writing

    return writing.write(invocation)


def retain(invocation: Invocation) -> int:
    """Drop what has waited for too long in any space, and what no caller can ask for any more."""
    from beetle.runtime.areas import recovery
    from beetle.runtime.areas.governance import queue
    from beetle.store import recover

    dropped, space = 0, 0
    while True:
        with invocation.reading() as tx:
            found = recover.space_after(tx, space)
        if found is None:
            return dropped + recovery.drop_spent(invocation)
        space, name = found
        scope = invocation.scope._replace(owner_id=name.removeprefix("space:"))
        inside = invocation._replace(scope=scope, now=invocation.shared.dependencies.clock())

        def drop(tx: WriteTransaction, inside: Invocation = inside, space: int = space) -> int:
            return queue.drop_expired(inside, tx, space)

        while more := invocation.shared.store.write(drop, grows=False, by=invocation.caller.name):
            dropped += more
            recovery.look(invocation)


def next_filling(scheduler: Scheduler) -> int | None:
    """When an index that was emptied, and not filled since, is to be filled: soon, and again some time after a run that
    did not do it."""
    with scheduler.reading() as tx:
        since = index_rebuild.since(tx)
    if since is None:
        return None
    last = scheduler.last_run(OPTIMIZE)
    return since if last is None or last < since else last + FILL_AGAIN_US


def optimize(invocation: Invocation) -> int:
    """Fold the write-ahead log into the store, fill a recall index that was emptied, merge it and write bitmaps of
    common words."""
    from beetle.runtime.areas import recovery

    with invocation.heavy_turn():
        return recovery.optimize(invocation)


def verify(invocation: Invocation) -> int:
    """Look the whole store through.

    Raises:
        IntegrityViolation: something was found.
    """
    from beetle.runtime.areas import verification

    readers = invocation.shared.store.readers
    with invocation.heavy_turn(), invocation.reading(heavy=True) as tx:
        before = readers.rested
        try:
            checked, findings = verification.run(invocation, tx, pages=True)
        finally:
            # Else other jobs would rest once more for the rests of this one.
            invocation.work.rested += readers.rested - before
    if findings:
        checks = ", ".join(sorted({each.check for each in findings}))
        raise IntegrityViolation(reason=f"{len(findings)} findings of {checks}")
    return sum(checked.values())


def make_snapshot(invocation: Invocation) -> int:
    """Make a snapshot by the clock, and remove the oldest of those that were made so; how many files that were."""
    from beetle.runtime.areas.snapshots import snapshots

    return snapshots.make_scheduled(invocation)


JOBS: tuple[Job, ...] = (
    Job(
        "outbox-processor", "0 * * * * *", cut_waiting,
        "cuts the days of sessions whose events have changed into segments of the table of contents",
    ),
    Job(
        "segment-summarizer", "0 */15 * * * *", summarize_segments,
        "chooses bullets and keywords of the segments that have changed", timeout_s=1800,
    ),
    Job(
        "hourly-rollup", "0 0 * * * *", roll_up,
        "sums up the days, weeks, months and years whose segments have changed", timeout_s=1800,
    ),
    Job(
        "model-summaries", "0 */15 * * * *", write_summaries,
        "has the model write titles, bullets and keywords of segments, where `model.summaries` says so",
        uses="model", timeout_s=1800,
    ),
    Job(
        "deferred-governance", "0 0 * * * *", do_deferred,
        "maintains conversations whose maintenance was left for later; also as soon as one is due",
        uses="model", timeout_s=900, due=next_deferred,
    ),
    Job(
        "retention", "0 30 3 * * *", retain,
        "drops candidates that have waited for too long, old first reports and leases that have ended", timeout_s=1800,
    ),
    Job(
        OPTIMIZE, "0 0 4 * * *", optimize,
        "folds the write-ahead log into the store, merges the recall index and writes bitmaps of common words; soon "
        "where the index was emptied and not filled since, which it fills",
        timeout_s=1800, due=next_filling,
    ),
    Job(
        "verification", "0 0 5 * * 0", verify, "looks the whole store through, as `beetle verify` does", timeout_s=7200
    ),
    Job(
        "snapshot", "off", make_snapshot,
        "makes a snapshot of the store, and removes the oldest of those that it made", timeout_s=7200,
    ),
)  # fmt: skip


def status(invocation: Invocation, request: SchedulerStatusRequest) -> SchedulerStatusReport:
    """Every job, whoever asks: they are the daemon's own, and no space's."""
    del request
    scheduler = _scheduler(invocation)
    jobs = scheduler.status()
    return SchedulerStatusReport(scheduler_running=scheduler.runs, jobs=jobs, time_zone=str(scheduler.zone))


def pause(invocation: Invocation, request: SchedulerPauseRequest) -> SchedulerPauseReport:
    """Leave a job's times out from now on."""
    changed, lifecycle = _set_paused(invocation, request.job_name, paused=True)
    job = invocation.shared.scheduler.job(request.job_name)
    return SchedulerPauseReport(success=True, changed=changed, job=job, lifecycle=lifecycle)


def resume(invocation: Invocation, request: SchedulerResumeRequest) -> SchedulerResumeReport:
    """Run a job at its times again."""
    changed, lifecycle = _set_paused(invocation, request.job_name, paused=False)
    job = invocation.shared.scheduler.job(request.job_name)
    return SchedulerResumeReport(success=True, changed=changed, job=job, lifecycle=lifecycle)


def _set_paused(invocation: Invocation, name: str, *, paused: bool) -> tuple[bool, Lifecycle | None]:
    """Whether that changed anything, and its event."""
    scheduler = _scheduler(invocation)
    if scheduler.is_paused(name) == paused:
        return False, None
    event = invocation.own_event(TOPIC, "scheduled_job_paused" if paused else "scheduled_job_resumed", job_name=name)
    return True, log_apart(
        invocation, event, lambda tx: scheduler.set_paused(tx, name, paused=paused), deadline=invocation.deadline
    )


def run(invocation: Invocation, request: SchedulerRunRequest) -> SchedulerRunReport:
    """Begin a run; with `wait` the answer is of its end."""
    scheduler = _scheduler(invocation)
    event = invocation.own_event(TOPIC, "scheduled_job_started", job_name=request.job_name)
    begun = scheduler.begin(request.job_name)
    try:
        lifecycle = log_apart(invocation, event, deadline=invocation.deadline)
    except BaseException:
        scheduler.take_back(begun)
        raise
    scheduler.launch(begun)
    while request.wait and not begun.ended.wait(LOOK_S):
        if invocation.must_end:
            raise DeadlineExceeded.before("the job had ended")
    return SchedulerRunReport(success=True, job=scheduler.job(request.job_name), lifecycle=lifecycle)


def _scheduler(invocation: Invocation) -> Scheduler:
    """The scheduler, which has read what the store says of its jobs."""
    scheduler = invocation.shared.scheduler
    scheduler.load(invocation.reading)
    return scheduler


HANDLERS: Mapping[str, Handler] = {
    "scheduler.status": Plain(status),
    "scheduler.pause": Plain(pause),
    "scheduler.resume": Plain(resume),
    "scheduler.run": Plain(run),
}
