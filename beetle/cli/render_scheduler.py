"""The scheduler's jobs as text for people, in the shape of the Agent Memory command line."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from beetle.cli.text import neutral, when
from beetle.contracts.codec import format_us
from beetle.contracts.common import Report
from beetle.contracts.scheduler import (
    SchedulerJob,
    SchedulerPauseReport,
    SchedulerResumeReport,
    SchedulerRunReport,
    SchedulerStatusReport,
)

Width = int | None
DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def status(report: SchedulerStatusReport, _width: Width) -> str:
    """Whether jobs are started, and every job."""
    lines = [f"Scheduler: {'Running' if report.scheduler_running else 'Stopped'}", "", "Jobs:"]
    return "\n\n".join(("\n".join(lines) + "\n" + _job(report.jobs[0]), *map(_job, report.jobs[1:])))


def _job(job: SchedulerJob) -> str:
    words = in_words(job.cron_expr)
    lines = [
        f"  {neutral(job.job_name)}",
        f"    Schedule: {neutral(job.cron_expr)}{f' ({words})' if words else ''}",
        f"    Status: {state_of(job)}",
        f"    Last Run: {_last(job)}",
        f"    Next Run: {_at(job.next_run_ms)}",
        f"    Stats: {job.run_count} runs, {job.error_count} errors",
    ]
    if job.last_error_key is not None:
        lines.append(f"    Last Error: {neutral(job.last_error or job.last_error_key)}")
    return "\n".join(lines)


def state_of(job: SchedulerJob) -> str:
    """What a job does now, in a word or two."""
    if job.is_hung:
        return f"HUNG for {job.running_ms / 1000:.0f}s"
    if job.is_running:
        return "RUNNING"
    return "Paused" if job.is_paused else "Waiting" if job.waiting else "Active" if job.next_run_ms else "Off"


def in_words(cron: str) -> str:
    """What a schedule of a common form means; empty for others."""
    if cron == "0 0 * * * *":
        return "hourly"
    if cron == "0 * * * * *":
        return "every minute"
    if (found := re.fullmatch(r"0 \*/([0-9]+) \* \* \* \*", cron)) is not None:
        return f"every {found[1]} min"
    if (found := re.fullmatch(r"[0-9]+ ([0-9]+) ([0-9]+) \* \* (\*|[0-7])", cron)) is not None:
        day = "daily" if found[3] == "*" else f"{DAYS[int(found[3])]}s"
        return f"{day} at {int(found[2]):02}:{int(found[1]):02}"
    return ""


def _last(job: SchedulerJob) -> str:
    if not job.last_run_ms:
        return "SKIPPED" if job.last_result == "skipped" else "never"
    took = f"{job.last_duration_ms / 1000:.2f}".rstrip("0").rstrip(".")
    reason = f": {job.skip_reason}" if job.skip_reason else ""
    return f"{_at(job.last_run_ms)} ({took}s, {job.last_result.upper()}{reason})"


def _at(ms: int) -> str:
    return when(format_us(ms // 1000 * 1_000_000)) if ms else "-"


def paused(report: SchedulerPauseReport, _width: Width) -> str:
    """That it is paused."""
    return f"Job '{neutral(report.job.job_name)}' paused"


def resumed(report: SchedulerResumeReport, _width: Width) -> str:
    """That it is not paused any more."""
    return f"Job '{neutral(report.job.job_name)}' resumed"


def ran(report: SchedulerRunReport, _width: Width) -> str:
    """That it runs, or how its run ended."""
    job = report.job
    if job.is_running:
        return f"Job '{neutral(job.job_name)}' started"
    error = f": {neutral(job.last_error)}" if job.last_result == "failed" and job.last_error else ""
    return f"Job '{neutral(job.job_name)}' ended: {job.last_result.upper()}{error}"


RENDERERS: Mapping[type[Report], Callable[[Any, Width], str]] = {
    SchedulerStatusReport: status,
    SchedulerPauseReport: paused,
    SchedulerResumeReport: resumed,
    SchedulerRunReport: ran,
}
