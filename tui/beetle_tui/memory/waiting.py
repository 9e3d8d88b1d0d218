"""Deferred governance: jobs that are not done, candidates that wait, and what was decided."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar, cast

from textual import work
from textual.binding import Binding, BindingType

from beetle.contracts.maintain import GovernanceReport, MemoryMaintainReport, OpenJob
from beetle.contracts.memory import MemoryCapabilityCatalog
from beetle_tui.area import AreaScreen
from beetle_tui.loaded_rows import LoadedRows
from beetle_tui.memory.section import Section
from beetle_tui.prose import Block, section
from beetle_tui.split import remark, value
from beetle_tui.table import Column
from beetle_tui.text import count, moment

WAITS_FOR = {
    "policy_paused": "a pause to be lifted",
    "soul_handoff": "the soul to take them over",
    "needs_assertion": "somebody else than the assistant to say so",
    "evidence_does_not_bear": "a person: the messages that they cite do not say it",
    "weaker_authority": "a word at least as strong as the fact's own",
}


class Waiting(Section[OpenJob]):
    """The open jobs; the detail shows what else waits."""

    TITLE = "Waiting"
    NOUN = ("open job", "open jobs")
    EMPTY = "No job is open"
    HOW = ""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("m", "maintain", "Maintain", id="maintain", tooltip="have the model read what was said since"),
    ]

    def __init__(self, area: AreaScreen) -> None:
        super().__init__(area)
        self._report: GovernanceReport | None = None

    def columns(self) -> Sequence[Column[OpenJob]]:
        """See Section."""
        return (
            Column("State", lambda row: row.state, 8),
            Column("Kind", lambda row: row.kind, 14),
            Column("Why", lambda row: row.reason or ""),
            Column("Tries", lambda row: f"{row.attempts:,}", 5, right=True),
            Column("Due", lambda row: moment(row.due_at), 20, narrow=70),
        )

    def key(self, row: OpenJob) -> object:
        """See Section."""
        return row.job_id

    async def load(self, catalog: MemoryCapabilityCatalog) -> None:
        """See Section."""
        before = self._report
        self._report = cast(GovernanceReport, await self.area.link.call("governance.report"))
        if before is not None and before.deferred.open_jobs != self._report.deferred.open_jobs:
            self.table.renew(await self.rows())
        await super().load(catalog)
        every = sum(each.count for each in self._report.deferred.jobs if each.state in ("leased", "waiting"))
        listed = len(self._report.deferred.open_jobs)
        self.listing.note(f"the next {listed:,} of {every:,}" if every > listed else "")

    async def rows(self) -> LoadedRows[OpenJob]:
        """See Section."""
        return LoadedRows(self._report.deferred.open_jobs if self._report is not None else ())

    async def look(self, row: OpenJob) -> tuple[str, Iterable[Block]]:
        """See Section."""
        about = [
            value("Job", row.job_id),
            value("Kind", row.kind),
            value("State", row.state + (f": {row.reason}" if row.reason else "")),
            value("Tries", f"{row.attempts:,}"),
            value("Made", f"{moment(row.created_at)} by {row.principal}"),
            value("Due", moment(row.due_at)),
        ]
        return f"Job {row.job_id}", [*about, *self.nothing_chosen()]

    def nothing_chosen(self) -> Iterable[Block]:
        """See Section: what waits is told even where no job is open."""
        return () if self._report is None else governance_parts(self._report)

    @work(group="action", exclusive=True)
    async def action_maintain(self) -> None:
        """Have the model read the current conversation, after asking."""
        lines = ["The configured model reads what the current conversation holds since the last time,",
                 "and what it notes is judged like every candidate."]  # fmt: skip
        if not await self.agreed("Maintain?", lines):
            return
        report = await self.area.ask_long("Maintain", "memory.maintain", {})
        if report is not None:
            self.area.tell(maintained(cast(MemoryMaintainReport, report)))
            self.area.read_now()


def governance_parts(report: GovernanceReport) -> Iterator[Block]:
    """What waits, the jobs, what was decided."""
    yield from section("Candidates that wait")
    for each in report.deferred.waiting:
        ages = f"{each.within_day:,} under a day, {each.within_week:,} under a week, {each.longer:,} longer"
        yield value(f"{each.count:,}", f"for {WAITS_FOR.get(each.reason, each.reason)} ({each.reason})")
        yield value("", f"{ages}; the oldest since {moment(each.oldest_at)}")
    if not report.deferred.waiting:
        yield from remark("None. A candidate waits when governance puts it off: under a pause, or for a better word.")
    yield from section("Jobs")
    for each in report.deferred.jobs:
        yield value(f"{each.count:,}", f"{each.kind}, {each.state}" + (f": {each.reason}" if each.reason else ""))
    if not report.deferred.jobs:
        yield from remark("None. Maintenance that could not run at once leaves one.")
    yield from section(f"Decided since {moment(report.since)}")
    for each in report.decisions:
        yield value(f"{each.count:,}", f"{each.outcome}: {each.reason}")
    if not report.decisions:
        yield from remark("Nothing.")
    if not report.complete:
        yield from remark("The event log was not read back as far as that: there may be more.")
    yield from section("Besides")
    yield value("Model", report.model or "none is configured: nothing is maintained")
    yield value("Policies", f"{len(report.policies):,} in force")


def maintained(report: MemoryMaintainReport) -> str:
    """What came of a maintenance, in a sentence."""
    took = sum(each.outcome == "accepted" for each in report.outcomes)
    if not report.asked:
        return f"{count(report.turns, 'turn')} looked at, and nothing of it may be shown to the model"
    left = "; turns are left" if report.has_more else ""
    return (
        f"{count(report.turns, 'turn')} read by {report.model}: {count(report.items, 'item')}, {took:,} accepted{left}"
    )
