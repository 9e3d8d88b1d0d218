"""Proposals of the evolution sandbox: what someone would have changed, and the decision over it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, ClassVar, Literal, cast, get_args

from textual.binding import Binding, BindingType

from beetle.contracts.codec import to_plain
from beetle.contracts.evolve import (
    EvolveListReport,
    EvolvePreviewReport,
    EvolveSubmitReport,
    ProposalState,
    ProposalSummary,
)
from beetle.contracts.refs import format_ref, parse_ref
from beetle_tui.memory.section import NOT_SHOWN, StateSection, day, short
from beetle_tui.prose import Block, section
from beetle_tui.rows import Batch, CursorRows
from beetle_tui.split import change, remark, value, written
from beetle_tui.table import Column
from beetle_tui.text import moment

FORESEEN = {
    "changes": "Submitting it now makes the change",
    "unchanged": "Submitting it now changes nothing",
    "deferred": "Submitting it now puts it off",
    "rejected": "Governance would reject it now",
    "refused": "Submitting it now is refused",
}


class Proposals(StateSection[ProposalSummary]):
    """Proposals, the newest first."""

    TITLE = "Proposals"
    NOUN = ("proposal", "proposals")
    STATES = (*get_args(ProposalState), "all")
    EMPTY = "No such proposal"
    HOW = (
        "An agent proposes changes to skills and facts (evolve.propose). Nothing of it happens before somebody who may "
        "submits it: {proposal-submit} submits, {proposal-withdraw} withdraws. {proposal-state} "
        "shows those that are decided."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("b", "decide('submit')", "Submit", id="proposal-submit", tooltip="make the proposed change"),
        Binding("w", "decide('withdraw')", "Withdraw", id="proposal-withdraw", tooltip="close the proposal unchanged"),
        Binding("v", "state", "State", id="proposal-state", tooltip="open, submitted, refused, dropped, or all"),
    ]

    def columns(self) -> Sequence[Column[ProposalSummary]]:
        """See Section."""
        return (
            Column("State", lambda row: row.state, 9),
            Column("Kind", lambda row: row.kind, 13),
            Column("Target", lambda row: row.target or "(a new fact)", 24, narrow=100),
            Column("Why", lambda row: row.rationale or (row.outcome or "")),
            Column("By", lambda row: row.by, 14, narrow=120),
            Column("Made", lambda row: day(row.created_at), 10, narrow=70),
        )

    def key(self, row: ProposalSummary) -> object:
        """See Section."""
        return row.proposal_id

    async def rows(self) -> CursorRows[ProposalSummary]:
        """See Section."""
        self.listing.note("" if self.state == "open" else self.state)
        return CursorRows(self._page)

    async def look(self, row: ProposalSummary) -> tuple[str, Iterable[Block]]:
        """See Section."""
        asked = {"proposal_id": row.proposal_id, "view": self.view}
        seen = cast(EvolvePreviewReport, await self.area.link.call("evolve.preview", asked))
        return f"{row.kind} ({seen.proposal.state})", list(proposal_parts(seen))

    async def whole(self, row: ProposalSummary) -> Any:
        """See Section."""
        asked = {"proposal_id": row.proposal_id, "view": self.view}
        return to_plain(await self.area.link.call("evolve.preview", asked))

    async def _page(self, cursor: str | None, most: int) -> Batch[ProposalSummary]:
        asked = {"state": self.state, "view": self.view, "limit": most, "cursor": cursor}
        found = cast(EvolveListReport, await self.area.link.call("evolve.list", asked))
        return Batch(found.proposals, found.next_cursor, found.total)

    def action_decide(self, decision: Literal["submit", "withdraw"]) -> None:
        """Carry the proposal out, or close it; asked first, with what it comes to."""
        self.with_chosen(partial(self._decide, decision))

    async def _decide(self, decision: Literal["submit", "withdraw"], row: ProposalSummary) -> None:
        if row.state != "open":
            self.area.show_notice(f"this proposal is {row.state}, not open")
            return
        asked = {"proposal_id": row.proposal_id, "view": self.view}
        preview = await self.area.ask("evolve.preview", asked)
        if preview is None:
            return
        seen = cast(EvolvePreviewReport, preview)
        about = f"{row.kind} {row.target or ''}: {short(row.rationale)}"
        comes = verdict_of(seen) if decision == "submit" else "It is closed without a change, and its text erased."
        if not await self.agreed(f"{decision.capitalize()} the proposal?", [about, f"({row.proposal_id})", comes]):
            return
        again = await self.area.ask("evolve.preview", asked)
        if again is None:
            return
        now = cast(EvolvePreviewReport, again)
        if (now.proposal, verdict_of(now), now.diffs) != (seen.proposal, verdict_of(seen), seen.diffs):
            self.area.show_notice(f"{about}: it was changed or decided meanwhile, and nothing was done")
            return
        done = await self.changed(
            "evolve.submit", {"proposal_ids": [row.proposal_id], "decision": decision, "view": self.view}
        )
        if done is not None:
            outcome = cast(EvolveSubmitReport, done).outcomes[0]
            lines = [f"{outcome.kind}: {outcome.state}, {outcome.outcome}."]
            lines += [f"Ref: {outcome.ref}"] if outcome.ref else []
            lines += [f"Revision: {outcome.revision}"] if outcome.revision is not None else []
            lines += ["", "Receipt (beetle verify --receipt checks it):", outcome.receipt] if outcome.receipt else []
            await self.show_lines("Decided", lines)


def proposal_parts(seen: EvolvePreviewReport) -> Iterator[Block]:
    """The detail of a proposal: what it comes to, what it changes, what it rests on."""
    row = seen.proposal
    if row.rationale is not None:
        yield from written(row.rationale)
    else:
        yield from remark(NOT_SHOWN if row.state == "open" else "(the text of a closed proposal is erased)")
    yield from section("It comes to")
    yield value("Verdict", verdict_of(seen))
    if row.outcome is not None:
        yield value("Outcome", row.outcome)
    if row.result is not None:
        yield value("Result", row.result, row.result)
    for each in seen.diffs:
        yield from section(each.field)
        if each.diff is None:
            yield from remark(NOT_SHOWN)
        else:
            yield from change(each.diff.rstrip("\n"))
    yield from section("About it")
    yield value("Id", row.proposal_id)
    yield value("Target", row.target or "(a new fact)", target_ref(row))
    if row.base_revision is not None:
        yield value("Made for", f"revision {row.base_revision}; now {seen.current_revision or 'gone'}")
    yield value("By", f"{row.by}, chat {row.chat_id}")
    yield value("Made", moment(row.created_at))
    for each in seen.evidence_refs:
        yield value("Rests on", each, each)


def verdict_of(seen: EvolvePreviewReport) -> str:
    """What submitting comes to, in a sentence."""
    if seen.moved:
        return "Its target has changed since it was made: submitting it is a conflict."
    if seen.verdict is None:
        return f"It is {seen.proposal.state}: there is nothing to decide."
    replaced = f"; it replaces {seen.verdict.superseded_ref}" if seen.verdict.superseded_ref else ""
    return f"{FORESEEN[seen.verdict.outcome]}: {seen.verdict.reason}{replaced}."


def target_ref(row: ProposalSummary) -> str | None:
    """The ref of what a proposal is about: of a skill it names just the name."""
    if row.target is None or parse_ref(row.target) is not None:
        return row.target
    return format_ref("procedural", row.target)
