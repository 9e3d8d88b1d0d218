"""The scheduler: which job is due by the clock, who runs it, and what became of it.

One thread waits for the next time; it wakes at the latest once a minute, and a run has a thread of its own while it
lasts. Times come from the wall clock and waiting is monotonic: after a step of the clock what is past runs once, and
what is ahead is counted from the new time.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import tzinfo
from functools import partial
from typing import TYPE_CHECKING

from beetle.contracts.errors import BeetleError, Conflict, DeadlineExceeded, Internal, NotFound, nearest
from beetle.contracts.scheduler import SchedulerJob
from beetle.domain.cron import Schedule
from beetle.domain.retention import Policy
from beetle.runtime.host.scheduled_job import (
    MOST_PAUSE_S,
    SECOND_US,
    Job,
    Lane,
    Limits,
    Run,
    ScheduledJob,
    Uses,
)
from beetle.runtime.host.zone import zone_of
from beetle.store import scheduled_jobs
from beetle.store.damaged_rows import whole
from beetle.store.engine.store import Store
from beetle.store.engine.transaction import Reading
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.event_log import Event
from beetle.store.scheduled_jobs import ScheduledJobRow, one_more

if TYPE_CHECKING:
    from beetle.runtime.host.jobs import DeferredJobs

log = logging.getLogger("beetle.scheduler")

NAME = "scheduler"
"""The principal of what the scheduler does by itself."""
TOPIC = "job"
LOOK_AGAIN_S = 60.0
"""The clock may be set: nobody sleeps for longer than this until something that is due by it."""
BUSY_LOOK_S = 1.0
"""How often a job that is due looks whether the device has less to do."""
MODE_LOOK_S = 5.0
"""A change of mode wakes nobody."""
MOST_BUSY_S = 300.0
"""So long a job that is due waits for the device to have less to do, and no longer."""
MISSED_S = 300
"""How long after the start a job runs whose time came while nothing was there to run it: agents come first."""
KEEP_EVERY_S = 900.0
"""How often counters of runs that found nothing to do are written down: an idle minute writes nothing to the disk."""
CLOSE_S = 5.0
"""How long closing waits for the runs that were told to end."""


class Scheduler:
    """The jobs of one runtime. Without `start` they run when they are asked for, on the thread of who asks."""

    def __init__(self, store: Store, jobs: Sequence[Job], limits: Limits) -> None:
        """The limits' schedules were checked; see `check_schedules`."""
        self._store = store
        self._limits = limits
        self._guard = threading.Lock()
        self._jobs = {each.name: ScheduledJob(each) for each in sorted(jobs, key=lambda each: each.name)}
        self._lanes: dict[Uses, Lane] = {"store": Lane(), "model": Lane()}
        self._wake = threading.Condition()
        self._woken = self._look = False
        self._loaded = False
        self._seen = 0
        self._open: set[Run] = set()
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()
        self.zone: tzinfo | None = None
        self.deferred: DeferredJobs | None = None
        """What principals have left to be done; None where nobody can do it."""

    @property
    def stopping(self) -> bool:
        """Whether the runtime ends."""
        return self._stop.is_set()

    @property
    def runs(self) -> bool:
        """Whether somebody starts the jobs that are due."""
        return self._thread is not None and not self.stopping

    def start(self) -> None:
        """Begin, unless this profile leaves no time for work of its own or the store cannot be written."""
        if self._limits.share_percent and not self._store.settings.immutable:
            self._look = True
            self._thread = threading.Thread(target=self._loop, name="beetle-scheduler", daemon=True)
            self._thread.start()

    def wake(self) -> None:
        """Look again for what wants to run beside its schedule. Quick: the writer's thread calls it."""
        self._look = True
        self._nudge()

    def configure(self, schedules: Mapping[str, str], time_zone: str | None, keep_snapshots: Policy) -> None:
        """Keep to another configuration from now on; its schedules were checked. What runs or waits goes on."""
        with self._guard:
            self._limits = self._limits._replace(
                schedules=schedules, time_zone=time_zone, keep_snapshots=keep_snapshots
            )
            if self._loaded:
                now = self._limits.clock()
                self._read_schedules()
                for each in self._jobs.values():
                    each.plan(now)
                    each.wanted = each.wanted if each.has_schedule else None
        self.wake()

    @property
    def keep_snapshots(self) -> Policy:
        """Which of the scheduled snapshots are kept."""
        return self._limits.keep_snapshots

    @property
    def days_of(self) -> tzinfo:
        """The zone whose days and hours are meant by schedules."""
        return self.zone or zone_of(self._limits.time_zone, self._limits.zone_variable)

    def times(self, name: str) -> Callable[[int], int | None] | None:
        """When a job runs next after a time, both in microseconds; None where its schedule starts no run: it is paused,
        or the profile leaves no time for it. Raises NotFound."""
        found = self._find(name)
        with self._guard:
            assert found.schedule is not None
            starts = self._limits.share_percent and not (found.row.paused or found.damaged)
            return found.schedule.next_us if starts else None

    def forget(self) -> None:
        """The store is another one: what was known of the jobs is read anew."""
        self._loaded = False
        self.wake()

    def stop(self) -> None:
        """Have every run end, and wait for them as long as closing may wait. One that hangs is left behind."""
        self._stop.set()
        self._nudge()
        if self._thread is not None:
            self._thread.join()
        self.join(CLOSE_S)
        if self._loaded and not self._store.closed:
            self._keep([each for each in self._jobs.values() if each.unkept])

    def join(self, seconds: float) -> None:
        """Wait until the runs that have begun and do not hang are over, at most so long."""
        end = time.monotonic() + seconds
        with self._guard:
            runs = [each for each in self._open if not each.hung]
        for run in runs:
            run.ended.wait(max(0.0, end - time.monotonic()))

    def status(self) -> tuple[SchedulerJob, ...]:
        """Every job as it stands, in the order of their names, without those whose rows are damaged."""
        self.load()
        with self._guard:
            return tuple(whole(self._jobs.values(), ScheduledJob.shown))

    def known(self) -> tuple[SchedulerJob, ...]:
        """As `status`, without a read of the store: nothing where the jobs were not read yet."""
        return self.status() if self._loaded else ()

    def job(self, name: str) -> SchedulerJob:
        """One job as it stands. Raises NotFound, and DamagedRow where its row is."""
        found = self._find(name)
        with self._guard:
            return found.shown()

    def reading(self) -> AbstractContextManager[Reading]:
        """A read of the store, for a job that says when it is due."""
        return self._store.read()

    def last_run(self, name: str) -> int | None:
        """When a job began last, in microseconds since the epoch; None where nothing tells. Raises NotFound."""
        return self._find(name).row.last_run

    def is_paused(self, name: str) -> bool | None:
        """Whether a job is paused; None where its row is damaged. Raises NotFound."""
        found = self._find(name)
        return None if found.damaged else found.row.paused

    def set_paused(self, tx: WriteTransaction, name: str, *, paused: bool) -> None:
        """Pause or resume a job that there is, in a write: it is once that is committed. A damaged row is made anew."""
        found = self._jobs[name]
        if found.damaged:
            scheduled_jobs.drop_damaged(tx, name)
        scheduled_jobs.put_paused(tx, found.row._replace(paused=paused))
        tx.hooks.append(partial(self._note_paused, found, paused))

    def _note_paused(self, found: ScheduledJob, paused: bool) -> None:
        """That a job is paused or resumed is committed."""
        with self._guard:
            found.row = found.row._replace(paused=paused)
            if found.damaged:
                found.damaged = False
                found.plan(self._limits.clock())
            found.leave_out()
        self._nudge()

    def begin(self, name: str) -> Run:
        """Take the place of a run that `launch` then starts, or `take_back` gives up.

        Raises:
            NotFound: no job of that name.
            DamagedRow: its row is damaged.
            Conflict: it runs.
        """
        found = self._find(name)
        with self._guard:
            found.check()
            if found.run is not None:
                raise Conflict(
                    reason=f"the job {name} is running",
                    hint=f"`beetle scheduler status` shows for how long; start {name} again when it has ended",
                )
            return self._begin(found, asked=True)

    def launch(self, run: Run) -> None:
        """Start a run; where nobody starts jobs, it is over when this returns."""
        found = self._jobs[run.job.name]
        if self.runs:
            self._spawn(found, run)
        else:
            self._work(found, run)

    def take_back(self, run: Run) -> None:
        """Nobody starts this run: what was to be written of it has failed."""
        with self._guard:
            found = self._jobs[run.job.name]
            found.run, found.waits_since = None, run.waited_since
            found.leave_out()
            lane = self._lanes[run.job.uses]
            if lane.run is run:
                lane.run = None
            self._open.discard(run)
        run.ended.set()

    def tick(self) -> float:
        """Start what is due and may run; for how many seconds nothing will be."""
        self.load()
        now, mono = self._limits.clock(), time.monotonic()
        if self._look or now < self._seen:
            self._look = False
            self._ask_wanted()
        with self._guard:
            # Set back, the clock would have every job wait for the time that it showed before.
            if now < self._seen:
                for each in self._jobs.values():
                    each.plan(now)
            self._seen = now
            for each in self._jobs.values():
                self._mark_due(each, now, mono)
            hung = [each for each in self._jobs.values() if each.run and not each.run.hung and mono > each.run.hangs_at]
            for each in hung:
                self._log_hung(each, now)
            started = [] if self._limits.rests() else [(each, self._begin(each)) for each in self._free(mono)]
            wait = self._wait(now, time.monotonic())
        self._keep(hung, "scheduled_job_hung")
        for each, run in started:
            self._spawn(each, run)
        return wait

    def _loop(self) -> None:
        """The thread: nothing that goes wrong once may end it."""
        while not self.stopping:
            try:
                wait = self.tick()
            except BeetleError as error:
                log.warning("jobs have to wait: %s", error.message, extra={"event": "jobs_wait"})
                wait = LOOK_AGAIN_S
            except Exception as defect:  # noqa: BLE001 - the last stop of this thread
                log.error("the scheduler met a defect: %s", _recorded(defect, "tick"), extra={"event": "defect"})
                wait = LOOK_AGAIN_S
            with self._wake:
                if not (self.stopping or self._woken):
                    self._wake.wait(wait)
                self._woken = False

    def _nudge(self) -> None:
        with self._wake:
            self._woken = True
            self._wake.notify()

    def _find(self, name: str) -> ScheduledJob:
        self.load()
        if (found := self._jobs.get(name)) is None:
            listing = f"{nearest(name, self._jobs)}; `beetle scheduler status` lists the jobs"
            raise NotFound(kind="job", name=name, listing=listing)
        return found

    def load(self, reading: Callable[[], AbstractContextManager[Reading]] | None = None) -> None:
        """What the store says of the jobs, once, and their schedules; in a read with a caller's deadline, if given."""
        if self._loaded:
            return
        with (reading or self._store.read)() as tx:
            rows, created = scheduled_jobs.every(tx), scheduled_jobs.store_since(tx)
        now = self._limits.clock()
        with self._guard:
            if self._loaded:
                return
            self._read_schedules()
            for name, each in self._jobs.items():
                row = rows.get(name, ScheduledJobRow(name))
                each.damaged, each.row = row is None, row or ScheduledJobRow(name)
                each.leave_out()
                each.plan(now)
                if each.has_missed(created if each.row.last_run is None else each.row.last_run, now):
                    made_up = now + MISSED_S * SECOND_US
                    each.next = made_up if each.next is None else min(each.next, made_up)
            self._seen = now
            self._loaded = True

    def _read_schedules(self) -> None:
        """Every job's schedule as the configuration has it; the guard is held."""
        self.zone = zone_of(self._limits.time_zone, self._limits.zone_variable)
        for name, each in self._jobs.items():
            each.schedule = Schedule(self._limits.schedules.get(name, each.job.cron), self.zone)

    def _ask_wanted(self) -> None:
        for each in self._jobs.values():
            if each.job.due is not None:
                each.wanted = each.job.due(self) if each.has_schedule else None

    def _mark_due(self, each: ScheduledJob, now: int, mono: float) -> None:
        """A job whose time has come waits to be started, or leaves this time out."""
        scheduled = each.next is not None and each.next <= now
        wanted = each.wanted is not None and each.wanted <= now
        if scheduled:
            each.plan(now)
        if wanted:
            each.wanted = None
        if each.waits_since is not None or not (scheduled or wanted):
            return
        if not each.row.paused and each.run is None:
            each.waits_since = mono
        elif scheduled:
            each.skip("paused" if each.row.paused else "overlap")

    def _free(self, mono: float) -> Iterable[ScheduledJob]:
        """Of each lane, the job that has waited longest and may start."""
        busy = self._limits.is_busy()
        waiting = [each for each in self._jobs.values() if each.waits_since is not None]
        for uses, lane in self._lanes.items():
            mine = [each for each in waiting if each.job.uses == uses]
            if lane.run is not None or lane.rests_until > mono or not mine:
                continue
            first = min(mine, key=lambda each: (each.waits_since, each.job.name))
            if not busy or mono - (first.waits_since or mono) >= MOST_BUSY_S:
                yield first

    def _begin(self, each: ScheduledJob, *, asked: bool = False) -> Run:
        """Note that a run begins; the guard is held."""
        each.run = run = Run(self._stop, each.job, self._limits.clock(), asked=asked)
        run.waited_since, each.waits_since = each.waits_since, None
        self._open.add(run)
        lane = self._lanes[each.job.uses]
        if lane.run is None:
            lane.run = run
        return run

    def _spawn(self, each: ScheduledJob, run: Run) -> None:
        threading.Thread(target=self._work, args=(each, run), name=f"beetle-job-{each.job.name}", daemon=True).start()

    def _work(self, each: ScheduledJob, run: Run) -> None:
        """A run, and what became of it: nothing that goes wrong in one may end anything else."""
        failed: BeetleError | None = None
        done, rested = 0, 0.0
        try:
            with self._limits.begin(run) as invocation:
                try:
                    done = each.job.run(invocation)
                finally:
                    rested = invocation.work.rested
        except DeadlineExceeded as error:
            failed = DeadlineExceeded(what=error.details.get("what"), deadline_ms=each.job.timeout_s * 1000)
        except BeetleError as error:
            failed = error
        except Exception as defect:  # noqa: BLE001 - the last stop of this thread; the job runs again at its next time
            failed = Internal(reference=_recorded(defect, each.job.name))
        try:
            took = time.monotonic() - run.began
            with self._guard:
                self._free_lane(run, took - rested)
                event = self._end(each, run, failed, took)
            late = time.monotonic() - each.kept_at > KEEP_EVERY_S
            if each.unkept and (done or event is not None or failed is not None or late):
                self._keep([each], event)
        finally:
            with self._guard:
                self._open.discard(run)
            run.ended.set()
            if each.job.due is not None:
                self._look = True
            self._nudge()

    def _free_lane(self, run: Run, worked: float) -> None:
        """The next one's turn, once the profile's share allows it; the guard is held."""
        lane, share = self._lanes[run.job.uses], self._limits.share_percent
        if lane.run is run:
            lane.run = None
            if share:
                lane.rests_until = time.monotonic() + min(worked * (100 / share - 1), MOST_PAUSE_S)

    def _end(self, each: ScheduledJob, run: Run, failed: BeetleError | None, took: float) -> str | None:
        """Count a run, and say what is to be told of it; the guard is held. What closing breaks off was no run."""
        each.run = None
        if failed is not None and self.stopping:
            return None
        each.unkept = True
        row = each.row._replace(last_run=run.at, last_duration=round(took * 1000), skip_reason=None)
        event: str | None = None
        if run.hung:  # it was counted when it was told
            row = row._replace(failures=0)
        elif failed is None:
            event = "scheduled_job_recovered" if row.error_key is not None else None
            row = row._replace(run_count=one_more(row.run_count), failures=0, last_result="success")
            row = row._replace(error_key=None, error=None)
        else:
            log.warning("the job %s failed: %s", row.name, failed.message, extra={"event": "job_failed"})
            event = "scheduled_job_failed" if row.error_key != failed.key else None
            row = row.failed(failed.key, failed.message)
        each.row = row
        each.plan(self._limits.clock())
        return event or ("scheduled_job_ended" if run.asked else None)

    def _log_hung(self, each: ScheduledJob, now: int) -> None:
        """A run has not ended although it must: it is a failed one, and others wait for it no longer."""
        run, row = each.run, each.row
        assert run is not None
        run.hung = each.unkept = True
        if (lane := self._lanes[run.job.uses]).run is run:
            lane.run = None
        reason = f"the job has run for more than {each.job.timeout_s} s, and has not ended"
        each.row = row.failed("deadline_exceeded", reason)
        each.plan(now)

    def _keep(self, jobs: Iterable[ScheduledJob], event: str | None = None) -> None:
        """Write down how jobs stand. What cannot be written now is known in memory, and written another time."""
        for each in jobs:

            def write(tx: WriteTransaction, each: ScheduledJob = each) -> None:
                row = each.row
                scheduled_jobs.put(tx, row)
                tx.hooks.append(partial(self._note_kept, each, row))
                if event is not None:
                    told = {"job_name": row.name} | ({} if row.error_key is None else {"reason": row.error_key})
                    tx.log(Event(TOPIC, event, "scheduler.run", NAME, None, told))

            try:
                self._store.write(write, grows=False, by=NAME)
            except BeetleError as error:
                log.warning(
                    "the outcome of the job %s could not be written: %s",
                    each.job.name,
                    error.message,
                    extra={"event": "outcome_not_written"},
                )

    def _note_kept(self, each: ScheduledJob, row: ScheduledJobRow) -> None:
        """How a job stood is in the store."""
        with self._guard:
            each.kept_at = time.monotonic()
            each.unkept = each.row != row

    def _wait(self, now: int, mono: float) -> float:
        """Seconds until something may be due; the guard is held."""
        ends = [LOOK_AGAIN_S]
        for each in self._jobs.values():
            if each.first is not None:
                ends.append((each.first - now) / SECOND_US)
            if each.run is not None and not each.run.hung:
                ends.append(each.run.hangs_at - mono)
            if each.waits_since is not None:
                lane = self._lanes[each.job.uses]
                if self._limits.rests():
                    ends.append(MODE_LOOK_S)
                elif lane.rests_until > mono:
                    ends.append(lane.rests_until - mono)
                elif lane.run is None:
                    ends.append(BUSY_LOOK_S)
        # A little beyond it: a wait that ends early would be followed by one of microseconds.
        return max(0.0, min(ends)) + 0.001


def _recorded(defect: BaseException, name: str) -> str:
    """A defect in the log, under a reference. The frames name code, never values; its own text may hold content."""
    import traceback

    reference = f"E{os.urandom(4).hex()}"
    frames = "".join(traceback.format_tb(defect.__traceback__))
    log.error("%s: %s in the job %s\n%s", reference, type(defect).__name__, name, frames, extra={"event": "defect"})
    return reference
