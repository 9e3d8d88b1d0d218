"""Deferred governance: candidates that wait, jobs that are not done, and what was decided."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar, cast

from textual import work
from textual.binding import Binding, BindingType

from beetle.contracts.common import Report
from beetle.contracts.maintain import GovernanceReport, MemoryMaintainReport
from beetle.contracts.memory import MemoryCapabilityCatalog
from beetle.contracts.waiting import GovernanceDecideReport, GovernanceListReport, WaitingCandidate, WaitingJob
from beetle_tui.area import AreaScreen
from beetle_tui.dialogs import Ask, Faults
from beetle_tui.memory.section import NOT_SHOWN, Section, day, short
from beetle_tui.prose import Block, section
from beetle_tui.rows import Batch, CursorRows
from beetle_tui.split import remark, value, written
from beetle_tui.table import Column
from beetle_tui.text import count, moment

MOST_REASON = 512
NO_CANDIDATE = "no candidate is chosen"
WAITS_FOR = {
    "policy_paused": "a pause to be lifted",
    "soul_handoff": "the soul to take them over",
    "needs_assertion": "somebody else than the assistant to say so",
    "evidence_does_not_bear": "a person: the messages that they cite do not say it",
    "weaker_authority": "a word at least as strong as the fact's own",
}


Row = WaitingCandidate | WaitingJob


class Waiting(Section[Row]):
    """Candidates that wait, the oldest first, then jobs that are not done; the detail shows what else there is."""

    TITLE = "Waiting"
    NOUN = ("entry", "entries")
    EMPTY = "Nothing waits"
    HOW = ""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "accept", "Accept", id="waiting-accept", tooltip="judge the candidate as your own word"),
        Binding("d", "reject", "Reject", id="waiting-reject", tooltip="erase the candidate, with a reason"),
        Binding("R", "retry", "Retry", id="waiting-retry", tooltip="have the job tried again at once"),
        Binding("m", "maintain", "Maintain", id="maintain", tooltip="have the model read what was said since"),
    ]

    def __init__(self, area: AreaScreen) -> None:
        super().__init__(area)
        self._report: GovernanceReport | None = None

    def columns(self) -> Sequence[Column[Row]]:
        """See Section."""
        return (
            Column(
                "Waits for", lambda row: row.reason if isinstance(row, WaitingCandidate) else f"job {row.state}", 22
            ),
            Column("What", _what),
            Column("Whose", lambda row: row.authority if isinstance(row, WaitingCandidate) else row.by, 17, narrow=90),
            Column("Since", lambda row: day(_since(row)), 10, narrow=70),
        )

    def key(self, row: Row) -> object:
        """See Section."""
        return row.waiting_id if isinstance(row, WaitingCandidate) else row.job_id

    async def load(self, catalog: MemoryCapabilityCatalog) -> None:
        """See Section."""
        self._report = cast(GovernanceReport, await self.area.link.call("governance.report"))
        await super().load(catalog)

    async def rows(self) -> CursorRows[Row]:
        """See Section."""
        return CursorRows(self._page)

    async def _page(self, cursor: str | None, most: int) -> Batch[Row]:
        asked = {"view": self.view, "limit": most, "cursor": cursor}
        found = cast(GovernanceListReport, await self.area.link.call("governance.list", asked))
        return Batch((*found.candidates, *found.jobs), found.next_cursor, found.total)

    async def look(self, row: Row) -> tuple[str, Iterable[Block]]:
        """See Section."""
        if isinstance(row, WaitingCandidate):
            return f"Candidate {row.waiting_id}", [*candidate_parts(row), *self.nothing_chosen()]
        return f"Job {row.job_id}", [*job_parts(row), *self.nothing_chosen()]

    def nothing_chosen(self) -> Iterable[Block]:
        """See Section: what is counted is told even where nothing waits."""
        return () if self._report is None else governance_parts(self._report)

    def action_accept(self) -> None:
        """Judge the chosen candidate as the word of who sits here, after telling what that comes to."""
        self.with_chosen(self._accept)

    def action_reject(self) -> None:
        """Erase the chosen candidate, with a reason."""
        self.with_chosen(self._reject)

    def action_retry(self) -> None:
        """Have the chosen job taken up at once."""
        self.with_chosen(self._retry)

    async def _accept(self, row: Row) -> None:
        if not isinstance(row, WaitingCandidate):
            self.area.show_notice(NO_CANDIDATE)
            return
        asked = {"ids": [row.waiting_id], "decision": "accept", "view": self.view}
        foreseen = await self.area.ask("governance.decide", {**asked, "dry_run": True})
        if foreseen is None:
            return
        outcome, *besides = cast(GovernanceDecideReport, foreseen).outcomes
        comes = f"It is judged as your own word now: {outcome.outcome} ({outcome.reason})."
        if gone := sum(each.outcome == "rejected" for each in besides):
            comes += f" {count(gone, 'other')} on its topic would be gone with it."
        if await self.agreed("Accept this candidate?", [*_named(row), "", comes]):
            await self._decide(asked)

    async def _reject(self, row: Row) -> None:
        if not isinstance(row, WaitingCandidate):
            self.area.show_notice(NO_CANDIDATE)
            return

        async def run(reason: str) -> Faults:
            asked = {"ids": [row.waiting_id], "decision": "reject", "reason": reason, "view": self.view}
            return await self.change("governance.decide", asked, self._show_outcome)

        lines = [*_named(row), "", "It is erased, and a weaker word does not bring it back. Give a reason:"]
        await self.app.push_screen_wait(Ask("Reject this candidate?", lines, fault=_reason_fault, run=run))

    async def _retry(self, row: Row) -> None:
        if not isinstance(row, WaitingJob):
            self.area.show_notice("no job is chosen")
        elif await self.agreed("Try this job again now?", [f"{row.kind} of {_conversation(row)}", _error(row)]):
            await self._decide({"ids": [row.job_id], "decision": "retry"})

    async def _decide(self, asked: dict[str, object]) -> None:
        done = await self.changed("governance.decide", asked)
        if done is not None:
            self._show_outcome(done)

    def _show_outcome(self, done: Report) -> None:
        outcome = cast(GovernanceDecideReport, done).outcomes[0]
        why = f": {outcome.reason}" if outcome.reason else ""
        self.area.show_notice(f"{outcome.outcome}{why}" + (f", {outcome.ref}" if outcome.ref else ""))

    @work(group="action", exclusive=True)
    async def action_maintain(self) -> None:
        """Have the model read the current conversation, after asking."""
        lines = ["The configured model reads what the current conversation holds since the last time,",
                 "and what it notes is judged like every candidate."]  # fmt: skip
        if not await self.agreed("Maintain?", lines):
            return
        report = await self.area.ask_long("Maintain", "memory.maintain", {})
        if report is not None:
            self.area.show_notice(maintained(cast(MemoryMaintainReport, report)))
            self.area.read_now()


def candidate_parts(row: WaitingCandidate) -> Iterator[Block]:
    """The detail of a candidate: what it says, why it waits, what it cites."""
    if row.content is None:
        yield from remark(NOT_SHOWN)
    else:
        yield from written(row.content)
    yield from section("It waits")
    yield value("For", f"{WAITS_FOR.get(row.reason, row.reason)} ({row.reason})")
    yield value("Since", f"{moment(row.since)}; dropped after {moment(row.expires_at)}")
    yield from section("Evidence")
    shown = {message.ref: message for message in row.messages}
    for ref in row.evidence_refs:
        message = shown.get(ref)
        yield value("Cites", ref, ref)
        if message is not None:
            yield value(message.role.capitalize(), message.excerpt or NOT_SHOWN)
    if not row.evidence_refs:
        yield from remark("It cites nothing.")
    yield from section("About it")
    yield value("Id", row.waiting_id)
    yield value("Target", f"{row.target}, {row.kind}, {row.privacy}")
    if row.topic:
        yield value("Topic", row.topic)
    yield value("Word of", f"{row.authority}, written by {row.by} in chat {row.chat_id}")


def job_parts(row: WaitingJob) -> Iterator[Block]:
    """The detail of a job: its conversation, its error, when it is tried again."""
    yield value("Job", row.job_id)
    yield value("Kind", row.kind)
    yield value("About", _conversation(row))
    yield value("State", row.state)
    yield value("Error", _error(row))
    yield value("Tries", f"{row.attempts:,}")
    yield value("Made", f"{moment(row.created_at)} by {row.by}")
    yield value("Changed", moment(row.updated_at))
    yield value("Due", "never again, unless it is retried" if row.due_at is None else moment(row.due_at))


def _what(row: Row) -> str:
    return short(row.content) if isinstance(row, WaitingCandidate) else f"{_conversation(row)}: {_error(row)}"


def _why(row: Row) -> str:
    return row.reason if isinstance(row, WaitingCandidate) else f"{row.kind} job {row.state}"


def _since(row: Row) -> str:
    return row.since if isinstance(row, WaitingCandidate) else row.updated_at


def _conversation(row: WaitingJob) -> str:
    where = row.conversation
    return "(not known)" if where is None else f"{where.channel_id}/{where.conversation_id}"


def _error(row: WaitingJob) -> str:
    return row.error or "no error"


def _named(row: WaitingCandidate) -> list[str]:
    """What a dialog says of a candidate."""
    return [short(row.content), f"{row.target}, the word of {row.authority}, written by {row.by}"]


def _reason_fault(text: str) -> str | None:
    if not text.strip():
        return "a reason is needed"
    return f"at most {MOST_REASON} characters" if len(text) > MOST_REASON else None


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
