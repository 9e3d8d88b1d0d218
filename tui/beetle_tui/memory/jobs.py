"""Background jobs: when each runs, what came of it, and what a person does with it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import ClassVar, cast

from textual.binding import Binding, BindingType

from beetle.contracts.codec import format_us
from beetle.contracts.memory import MemoryCapabilityCatalog
from beetle.contracts.scheduler import SchedulerJob, SchedulerRunReport, SchedulerStatusReport
from beetle_tui.area import AreaScreen
from beetle_tui.loaded_rows import LoadedRows
from beetle_tui.memory.section import Section
from beetle_tui.prose import Block
from beetle_tui.split import remark, value
from beetle_tui.table import Column
from beetle_tui.text import count, moment


class Jobs(Section[SchedulerJob]):
    """What the scheduler runs by the clock."""

    TITLE = "Jobs"
    NOUN = ("job", "jobs")
    EMPTY = "No job"
    HOW = "The daemon runs its jobs by the clock: {job-pause} pauses one, {job-run} runs one now."
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("m", "pause", "Pause", id="job-pause", tooltip="pause the job, past restarts too"),
        Binding("u", "resume", "Resume", id="job-resume", tooltip="have the job run at its times again"),
        Binding("R", "run", "Run", id="job-run", tooltip="run the job now"),
    ]

    def __init__(self, area: AreaScreen) -> None:
        super().__init__(area)
        self._jobs: tuple[SchedulerJob, ...] = ()

    def columns(self) -> Sequence[Column[SchedulerJob]]:
        """See Section."""
        return (
            Column("Job", lambda row: row.job_name),
            Column("State", state_of, 8),
            Column("Last", lambda row: row.last_result if row.last_run_ms or row.skip_count else "-", 7),
            Column("Next", lambda row: at(row.next_run_ms), 20, narrow=70),
            Column("Runs", lambda row: f"{row.run_count:,}", 6, right=True, narrow=100),
            Column("Errors", lambda row: f"{row.error_count:,}", 6, right=True),
        )

    def key(self, row: SchedulerJob) -> object:
        """See Section."""
        return row.job_name

    def faint(self, row: SchedulerJob) -> bool:
        """See Section."""
        return row.is_paused or not row.next_run_ms

    async def load(self, catalog: MemoryCapabilityCatalog) -> None:
        """See Section."""
        report = cast(SchedulerStatusReport, await self.area.link.call("scheduler.status"))
        self._jobs = report.jobs
        if self.table.rows is not None:
            self.table.renew(LoadedRows(self._jobs))
        await super().load(catalog)

    async def rows(self) -> LoadedRows[SchedulerJob]:
        """See Section."""
        return LoadedRows(self._jobs)

    async def look(self, row: SchedulerJob) -> tuple[str, Iterable[Block]]:
        """See Section."""
        parts = [
            *remark(f"{row.description[:1].upper()}{row.description[1:]}."),
            value("State", state_of(row)),
            value("Schedule", row.cron_expr),
            value("Next run", at(row.next_run_ms)),
            value("Last run", at(row.last_run_ms)),
            value("Took", f"{row.last_duration_ms / 1000:,.2f} s" if row.last_run_ms else "-"),
            value("Result", row.last_result if row.skip_reason is None else f"{row.last_result}: {row.skip_reason}"),
            value("Counts", ", ".join((
                count(row.run_count, "run"), count(row.error_count, "error"), f"{row.skip_count:,} left out",
            ))),
        ]  # fmt: skip
        if row.last_error_key is not None:
            parts.append(value("Error", f"{row.last_error_key}: {row.last_error or '(for operators alone)'}"))
        return row.job_name, parts

    def action_pause(self) -> None:
        """Pause the chosen job."""
        self.with_chosen(partial(self._set, "pause"))

    def action_resume(self) -> None:
        """Have the chosen job run at its times again."""
        self.with_chosen(partial(self._set, "resume"))

    async def _set(self, step: str, row: SchedulerJob) -> None:
        if await self.changed(f"scheduler.{step}", {"job_name": row.job_name}) is not None:
            self.area.show_notice(f"{row.job_name}: {step}d")

    def action_run(self) -> None:
        """Run the chosen job now."""
        self.with_chosen(self._run)

    async def _run(self, row: SchedulerJob) -> None:
        done = await self.changed("scheduler.run", {"job_name": row.job_name})
        if done is not None:
            job = cast(SchedulerRunReport, done).job
            self.area.show_notice(f"{job.job_name}: {'started' if job.is_running else job.last_result}")


def state_of(job: SchedulerJob) -> str:
    """What a job does now, in a word."""
    if job.is_running:
        return "hung" if job.is_hung else "running"
    return "paused" if job.is_paused else "waits" if job.waiting else "active" if job.next_run_ms else "off"


def at(ms: int) -> str:
    """A time in milliseconds since the epoch, for a person; 0 is none."""
    return moment(format_us(ms * 1000)) if ms else "-"
