"""Overview: who answers, what the store holds, what happens, what needs a hand."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from datetime import UTC, datetime
from typing import NamedTuple, cast

from textual.app import ComposeResult
from textual.containers import ItemGrid

from beetle.contracts.codec import to_plain
from beetle.contracts.console import ConsoleOverviewReport, SessionOverview, StorageState
from beetle.contracts.control import HelloReport
from beetle.contracts.errors import BeetleError
from beetle.contracts.event_log import EventLogReadReport
from beetle.contracts.memory import MemoryInspectionReport, PlaneCounts, StoreState
from beetle.contracts.scheduler import SchedulerJob, SchedulerStatusReport
from beetle_tui.activity import MOST_BARS, STEP_SECONDS, Activity, activity_lines, asked_by_others
from beetle_tui.area import AreaScreen, Shared
from beetle_tui.exporting import Pages, json_line
from beetle_tui.keys import plain_key_for
from beetle_tui.panels import Facts, Remarks
from beetle_tui.tally import Tallies, Tally
from beetle_tui.text import count, size

NOT_SHOWN = "(not shown to this caller)"
CHECKED_ROWS = 20
"""How many of the event log's last rows are held against each other with each reading."""
FULL = 0.9
"""The share of a ceiling, or of a disk, from which on somebody should know."""
LOW_DISK_BYTES = 200_000_000
OPEN_STATES = ("leased", "waiting")
"""Of the jobs that are not done."""


class Seen(NamedTuple):
    """What one reading was answered; None where the caller may not ask."""

    told: HelloReport
    overview: ConsoleOverviewReport | None
    inspected: MemoryInspectionReport | None
    log: EventLogReadReport | None
    jobs: tuple[SchedulerJob, ...] = ()


class Remark(NamedTuple):
    """What a person should know or do something about, and where that is done: the name of an area, and a place of it
    as its `open_place` knows it."""

    text: str
    area: str = ""
    place: str = ""


class Overview(AreaScreen):
    """All of it out of `hello`, `console.overview`, `memory.inspect` and the last rows of the event log.

    Recalls raise no event: while it is in sight it also looks by itself, at the pace of its bars, which the daemon has
    measured. It draws the lines of them that are others, and reads the rest once somebody has asked something.
    """

    DEFAULT_CSS = """
    Overview ItemGrid { height: auto; grid-rows: auto; }
    """

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self._since: tuple[int, datetime] | None = None
        self._others: tuple[tuple[str, int], ...] = ()
        self._readable: frozenset[str] = frozenset()
        self._seen: Seen | None = None
        self._remarks: tuple[Remark, ...] = ()

    def compose_area(self) -> ComposeResult:
        """Who answers, and what is in it; what happens, and what needs a hand."""
        with ItemGrid(min_column_width=58):
            yield Facts("Daemon and store", id="runs")
            yield Tallies("Memory", id="memory")
        with ItemGrid(min_column_width=36):
            yield Activity("Activity", id="activity")
            yield Remarks("Needs a hand", id="findings")

    def on_mount(self) -> None:
        """Begin to look by itself."""
        self.look_each(STEP_SECONDS, self._look)

    async def load(self) -> None:
        """See AreaScreen. A caller sees what it may; who may see neither overview nor store is told why."""
        told = cast(HelloReport, await self.link.call("hello"))
        self._readable = frozenset(each.name for each in told.operations if each.visible)
        try:
            seen = await self._gather(told)
        except BeetleError:
            self.query_one("#runs", Facts).show(self._runs(Seen(told, None, None, None)))
            raise
        self._show(seen)

    async def _gather(self, told: HelloReport) -> Seen:
        overview = await self._measure() if "console.overview" in self._readable else None
        inspected = log = None
        # Who may ask for nothing is told why by one of them; else what is hidden is not asked: refusals are logged.
        if "memory.inspect" in self._readable or overview is None:
            inspected = cast(MemoryInspectionReport, await self.link.call("memory.inspect"))
        if "event_log.read" in self._readable:
            asked = {"newest_first": True, "limit": CHECKED_ROWS}
            log = cast(EventLogReadReport, await self.link.call("event_log.read", asked))
        jobs: tuple[SchedulerJob, ...] = ()
        if "scheduler.status" in self._readable:
            jobs = cast(SchedulerStatusReport, await self.link.call("scheduler.status")).jobs
        return Seen(told, overview, inspected, log, jobs)

    async def _measure(self) -> ConsoleOverviewReport:
        return cast(ConsoleOverviewReport, await self.link.call("console.overview", {"steps": MOST_BARS}))

    async def _look(self) -> bool:
        """Show the bars as they are now; whether somebody has asked something since the reading before."""
        if "console.overview" not in self._readable:
            return False
        seen = await self._measure()
        self._show_activity(seen)
        return asked_by_others(seen) != self._others

    def _show(self, seen: Seen) -> None:
        self._seen = seen
        overview, inspected = seen.overview, seen.inspected
        self.query_one("#runs", Facts).show(self._runs(seen))
        if overview is None:
            self.query_one("#activity", Activity).show((), "console.overview is hidden from this caller.")
        else:
            self._others = asked_by_others(overview)
            self._show_activity(overview)
        counts = overview.kernel.counts if overview is not None else inspected.counts if inspected is not None else None
        rows = overview.kernel.event_log.rows if overview is not None else None
        if counts is not None:
            self.query_one("#memory", Tallies).show(
                tallies(counts, rows if inspected is None else inspected.event_log.rows)
            )
        self._remarks = tuple(remarks(seen, self.shared.faults))
        self.query_one("#findings", Remarks).show((self._worded(each) for each in self._remarks), "Nothing.")

    async def exported(self) -> Pages:
        """See AreaScreen: the reports, a line each; of the event log the rows that were looked at."""
        if self._seen is not None:
            yield [
                json_line({"type": type(each).__name__, **to_plain(each)}) for each in self._seen if each is not None
            ]

    def _show_activity(self, seen: ConsoleOverviewReport) -> None:
        absent = "What the daemon does is shown to operators."
        self.query_one("#activity", Activity).show(activity_lines(seen), absent)

    def way_to(self, name: str) -> str:
        """See AreaScreen: the key that a remark names leads to what it is about."""
        return next((each.place for each in self._remarks if each.area == name), "")

    def _worded(self, remark: Remark) -> str:
        area = next((each for each in self.shared.areas if each.name == remark.area), None)
        return (
            remark.text
            if area is None
            else f"{remark.text}: press {plain_key_for(self.app, area.name, area.key)} ({area.title})"
        )

    def _runs(self, seen: Seen) -> Iterator[tuple[str, str]]:
        told, overview, inspected = seen.told, seen.overview, seen.inspected
        if self.link.socket is None:
            yield "Running", f"no daemon: this console ({told.server} {told.version}, pid {told.pid}) holds the store"
        else:
            since = f"{self._start(told):%Y-%m-%d %H:%M:%SZ}"
            yield "Running", f"{told.server} {told.version}, pid {told.pid}, since {since}"
            yield "Socket", self.link.socket
        yield "Profile", told.profile
        yield "Caller", "; ".join((told.principal, *_lines_taken(seen)))
        if inspected is not None:
            store = inspected.store
            yield "Path", _path(store.path, store.backend)
            yield "Size", f"{_of_ceiling(store)}, {store.backend}, schema {store.schema}"
        elif overview is not None:
            yield "Path", _path(overview.storage.path, overview.runtime.backend)
            yield (
                "Size",
                f"{_of_ceiling(overview.storage)}, {overview.runtime.backend}, schema {overview.kernel.schema}",
            )

    def _start(self, told: HelloReport) -> datetime:
        """When the process began, worked out once: the clocks of two readings never agree to the second."""
        if self._since is None or self._since[0] != told.pid:
            self._since = told.pid, datetime.fromtimestamp(time.time() - told.uptime_s, UTC)
        return self._since[1]


def _lines_taken(seen: Seen) -> Iterator[str]:
    refusals = None if seen.inspected is None else seen.inspected.operator.refusals
    if refusals is not None:
        yield f"{count(refusals, 'request')} refused"
    sessions = None if seen.overview is None else seen.overview.sessions
    most = seen.told.limits.get("connections")
    if sessions is not None and most:
        yield f"{_open(sessions)} of {count(most, 'connection')}"


def _open(sessions: SessionOverview) -> int:
    return sum(each.connections for each in sessions.connected)


def _path(path: str | None, backend: str) -> str:
    return path or ("(in memory)" if backend == "in-memory" else NOT_SHOWN)


def _of_ceiling(store: StoreState | StorageState) -> str:
    share = store.bytes / store.ceiling_bytes if store.bytes and store.ceiling_bytes else None
    told = "" if share is None else " (under 1%)" if share < 0.01 else f" ({share:.0%})"
    return f"{size(store.bytes)} of {size(store.ceiling_bytes)}{told}"


def tallies(counts: PlaneCounts, log_rows: int | None) -> Iterator[Tally]:
    """The counts of the caller's space, by plane; the event log is the whole store's for an operator."""
    yield Tally("conversations", f"{counts.conversations:,}")
    yield Tally("turns", f"{counts.turns:,}")
    yield Tally("messages", f"{counts.messages:,}")
    yield Tally("masked, deleted", f"{counts.masked_messages:,}, {counts.deleted_messages:,}")
    yield Tally("runtime skills", f"{counts.runtime_skills:,}")
    yield Tally("their revisions", f"{counts.skill_revisions:,}")
    yield Tally("refs to evidence", f"{counts.derived_refs:,}")
    yield Tally("event log rows", "-" if log_rows is None else f"{log_rows:,}")
    yield Tally("facts", f"{counts.facts:,}")
    yield Tally("stale, superseded", f"{counts.stale_facts:,}, {counts.superseded_facts:,}")
    yield Tally("deleted facts", f"{counts.deleted_facts:,}")
    yield Tally("to be judged", f"{counts.waiting_candidates:,}")


def remarks(seen: Seen, faults: Collection[str] = ()) -> Iterator[Remark]:
    """What a person should know or do something about, as the reports say it; `faults` are a verification's."""
    if faults:
        yield Remark(f"the last verification found {count(len(faults), 'fault')}", "log", "report")
    if seen.log is not None and seen.log.broken:
        rows = ", ".join(f"{each:,}" for each in seen.log.broken)
        yield Remark(f"the event log is broken at row {rows}", "log", f"{seen.log.broken[0]}")
    if seen.inspected is not None:
        yield from _inspected(seen.inspected)
    if seen.overview is not None:
        yield from _machine(seen.overview)
    for job in seen.jobs:
        if job.last_error_key is not None:
            hung = "hangs" if job.is_hung else f"failed: {job.last_error_key}"
            yield Remark(f"the job {job.job_name} {hung}", "memory", "Jobs")


def _inspected(seen: MemoryInspectionReport) -> Iterator[Remark]:
    store = seen.store
    yield from (Remark(each, "log") for each in seen.operator.findings or ())
    if seen.runtime.mode != "normal":
        task = "" if seen.runtime.task is None else f", while {seen.runtime.task} runs"
        yield Remark(f"the runtime is in the mode {seen.runtime.mode}{task}")
    identity = seen.operator.identity
    if identity is not None and identity.state != "usable":
        yield Remark(f"{identity.problem or identity.state}: {identity.advice or 'see beetle doctor'}")
    if store.pending_erasures:
        yield Remark(f"{count(store.pending_erasures, 'erasure')} pending: a reader still holds the old content", "log")
    share = store.bytes / store.ceiling_bytes if store.bytes and store.ceiling_bytes else 0.0
    if share >= 1:
        yield Remark("the store is at its ceiling: it takes nothing more until something is deleted", "transcripts")
    elif share >= FULL:
        yield Remark(f"the store is {share:.0%} full: at its ceiling it takes nothing more", "transcripts")
    if seen.agent_skills.findings:
        yield Remark(f"{count(seen.agent_skills.findings, 'finding')} in the mounted agent skills", "skills", "agent")
    # The report lists no more than the next of them, and counts all.
    jobs = sum(each.count for each in seen.deferred.jobs if each.state in OPEN_STATES)
    if jobs:
        yield Remark(f"{count(jobs, 'job')} deferred", "memory", "Waiting")
    if seen.counts.waiting_candidates:
        waiting = count(seen.counts.waiting_candidates, "candidate waits", "candidates wait")
        yield Remark(f"{waiting} to be judged", "memory", "Waiting")


def _machine(seen: ConsoleOverviewReport) -> Iterator[Remark]:
    storage, system = seen.storage, seen.system
    free, total = storage.disk_free_bytes, storage.disk_total_bytes
    if free is not None and total and (free < LOW_DISK_BYTES or free < (1 - FULL) / 2 * total):
        yield Remark(f"{size(free)} are left on the store's disk, of {size(total)}", "transcripts")
    if system is not None and system.memory_limit_bytes and system.process_rss_bytes is not None:
        share = system.process_rss_bytes / system.memory_limit_bytes
        if share >= FULL:
            yield Remark(f"the daemon takes {share:.0%} of the {size(system.memory_limit_bytes)} that it may have")
