"""A job of the scheduler: its row of the table, one run of it, and how it stands."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC
from typing import TYPE_CHECKING, Literal

from beetle.contracts.errors import InvalidRequest, nearest
from beetle.contracts.scheduler import SchedulerJob, SkipReason
from beetle.domain.cron import OFF, Schedule
from beetle.domain.retention import Policy
from beetle.named_tuple import NamedTuple
from beetle.runtime.host.zone import zone_of
from beetle.store.damaged_rows import DamagedRow
from beetle.store.scheduled_jobs import ScheduledJobRow

if TYPE_CHECKING:
    from beetle.runtime.host.scheduler import Scheduler
    from beetle.runtime.pipeline.invocation import Invocation

SECOND_US = 1_000_000
FIRST_PAUSE_S = 30
MOST_PAUSE_S = 3600
MOST_GRACE_S = 30
"""How long after its time a run may take to end before it is told as hung, and no longer than its time was."""

Uses = Literal["store", "model"]
"""What a job may use. Jobs that use the same run one after the other."""


class Job(NamedTuple):
    """A job of the scheduler: one row of a table.

    `cron` has six fields, or is `off`; the configuration may say another. `run` gets an invocation of the operator's
    kind, and ends, with an error, once `invocation.check` or `shared.lifecycle.check` says so; between two pieces of
    work it calls `invocation.work.rest()`, which keeps to the profile's share. It answers how many things it did: 0
    says that there was nothing to do. Past `timeout_s` it must end, and is told as hung as long as it does not. `due`
    may say when it wants to run beside its schedule, in microseconds since the epoch; nobody asks where that is `off`.
    """

    name: str
    cron: str
    run: Callable[[Invocation], int]
    description: str
    uses: Uses = "store"
    timeout_s: int = 600
    due: Callable[[Scheduler], int | None] | None = None


class Run:
    """One run of a job, on a thread of its own or its caller's."""

    def __init__(self, stop: threading.Event, job: Job, at: int, *, asked: bool) -> None:
        self._stop = stop
        self.job = job
        self.at = at
        self.began = time.monotonic()
        self.deadline = self.began + job.timeout_s
        self.hangs_at = self.deadline + min(job.timeout_s, MOST_GRACE_S)
        self.ended = threading.Event()
        self.hung = False
        self.asked = asked
        """Whether somebody has asked for it, and is told of its end."""
        self.waited_since: float | None = None
        """Since when the job waited that it is of, where it was due."""

    @property
    def must_end(self) -> bool:
        """Whether the runtime ends, or the run has taken too long."""
        return self._stop.is_set() or time.monotonic() > self.deadline

    def pause(self, seconds: float) -> None:
        """Do nothing for a while, or until the runtime ends."""
        self._stop.wait(min(seconds, max(0.0, self.deadline - time.monotonic())))


class Limits(NamedTuple):
    """What a scheduler keeps to. `begin` makes the invocation of a run; `is_busy` says whether others ask just now;
    `rests` whether the runtime is in a mode in which no job runs."""

    begin: Callable[[Run], AbstractContextManager[Invocation]]
    is_busy: Callable[[], bool]
    rests: Callable[[], bool]
    share_percent: int
    clock: Callable[[], int]
    schedules: Mapping[str, str]
    time_zone: str | None
    zone_variable: str
    keep_snapshots: Policy


class ScheduledJob:
    """A job and how it stands."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.row = ScheduledJobRow(job.name)
        self.schedule: Schedule | None = None
        self.next: int | None = None
        self.wanted: int | None = None
        """When it wants to run beside its schedule."""
        self.waits_since: float | None = None
        self.run: Run | None = None
        self.kept_at = float("-inf")
        self.unkept = False
        """Whether the store does not know yet how it stands."""
        self.damaged = False
        """Whether its row is: nobody knows whether it is paused, so it runs neither by the clock nor when asked."""

    def check(self) -> None:
        """Whether its row can be read. Raises DamagedRow."""
        if self.damaged:
            raise DamagedRow("scheduled_job", self.job.name)

    def plan(self, now: int) -> None:
        """The next time by the schedule; after failures in a row, one that is not too soon."""
        assert self.schedule is not None
        if self.damaged:
            self.next = None
            return
        pause = min(FIRST_PAUSE_S * 2 ** min(self.row.failures - 1, 16), MOST_PAUSE_S) if self.row.failures else 0
        self.next = self.schedule.next_us(now + pause * SECOND_US)

    def has_missed(self, since: int, now: int) -> bool:
        """Whether a time by the schedule came after `since`, up to now; also where `since` is of a clock that was ahead
        of this one, and nobody knows."""
        assert self.schedule is not None
        if self.damaged:
            return False
        first = self.schedule.next_us(min(since, now))
        return first is not None and (first <= now or since > now)

    @property
    def has_schedule(self) -> bool:
        """Whether it ever runs by itself."""
        assert self.schedule is not None
        return self.schedule.expression != OFF and not self.damaged

    def skip(self, reason: SkipReason) -> None:
        """Leave a time out."""
        self.unkept = True
        self.row = self.row.skipped(reason)

    def leave_out(self) -> None:
        """What waits of a paused job is left out; of one whose row is damaged, nobody counts it."""
        if self.waits_since is None or not (self.row.paused or self.damaged):
            return
        self.waits_since = None
        if not self.damaged:
            self.skip("paused")

    @property
    def first(self) -> int | None:
        """When it is due next, one way or the other."""
        return min((each for each in (self.next, self.wanted) if each is not None), default=None)

    def shown(self) -> SchedulerJob:
        """The job as reports have it. Raises DamagedRow."""
        self.check()
        row, run = self.row, self.run
        assert self.schedule is not None
        skipped = row.last_result == "skipped"
        return SchedulerJob(
            job_name=row.name,
            description=self.job.description,
            cron_expr=self.schedule.expression,
            last_run_ms=(row.last_run or 0) // 1000,
            last_duration_ms=row.last_duration,
            last_result=row.last_result,
            last_error=row.error,
            last_error_key=row.error_key,
            skip_reason=row.skip_reason if skipped else None,
            next_run_ms=(self.first or 0) // 1000,
            run_count=row.run_count,
            error_count=row.error_count,
            skip_count=row.skip_count,
            is_running=run is not None,
            is_paused=row.paused,
            is_hung=run is not None and run.hung,
            waiting=self.waits_since is not None,
            running_ms=0 if run is None else round((time.monotonic() - run.began) * 1000),
            timeout_s=self.job.timeout_s,
        )


class Lane:
    """Jobs that use the same. A run that hangs holds nobody up."""

    def __init__(self) -> None:
        self.run: Run | None = None
        self.rests_until = 0.0


def check_schedules(jobs: Sequence[Job], schedules: Mapping[str, str], time_zone: str | None) -> None:
    """Whether a configuration's schedules are of jobs that there are, and can be read.

    Raises:
        InvalidRequest: the first that is not, with its path.
    """
    names = [each.name for each in jobs]
    zone = UTC if time_zone is None else zone_of(time_zone)
    for name, cron in schedules.items():
        if name not in names:
            path = "$.scheduler.jobs"
            raise InvalidRequest(
                reason=f"{path}: no job is named {name[:80]!r}", hint=nearest(name, names), path=f"{path}.{name[:80]}"
            )
        Schedule(cron, zone, f"$.scheduler.jobs.{name}")
