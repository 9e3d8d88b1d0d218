"""A lifecycle step on turns, as a person takes it: what it would touch, why, yes, and the receipt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, cast

from textual.binding import Binding, BindingType

from beetle.contracts.common import Conversation, DerivedMemoryRef, Report
from beetle.contracts.errors import BeetleError
from beetle.contracts.transcript import MemoryTranscriptLifecycleReport, MemoryTranscriptLifecycleRequest
from beetle.contracts.transcript_repair import (
    MemoryTranscriptRepairReport,
    MemoryTranscriptRepairRequest,
    MemoryTranscriptRepairSafeReport,
    MemoryTranscriptRepairSafeRequest,
)
from beetle_tui.dialogs import Ask, Confirm, Faults, Told, error_lines
from beetle_tui.erased import copies_lines
from beetle_tui.evidence import name_of
from beetle_tui.exporting import copy
from beetle_tui.keys import hinted
from beetle_tui.link import Cancelled
from beetle_tui.text import count
from beetle_tui.transcript_lists import no_bound
from beetle_tui.turns import read_time
from beetle_tui.working import long_below

if TYPE_CHECKING:
    from beetle_tui.area import AreaScreen

Action = Literal["archive", "mask", "unmask", "delete_raw"]
LIFECYCLE = "transcript.lifecycle"
REPAIR_SAFE = "transcript.repair_safe"
DRY_REASON = "to see what it would touch"
SHOWN_IDS = 6
MOST_REASON = 512
ISSUES_READ = 1000
LATEST = datetime.max.replace(tzinfo=UTC)
"""Before this is every turn."""

TOLD: Mapping[Action, tuple[str, str]] = {
    "archive": ("Archive", "Archived turns stay readable; this cannot be undone."),
    "mask": ("Mask", "No view but the owner's shows masked content, and recall no longer finds it; unmask undoes it."),
    "unmask": ("Unmask", "Every view shows what its visibility allows again, and recall finds it."),
    "delete_raw": ("Delete for good", "The content is erased from every file of the store. Nothing brings it back."),
}
"""The title of each action, and what it means."""
FOR_GOOD: tuple[Action, ...] = ("archive", "delete_raw")


class Target(NamedTuple):
    """Turns of a conversation: these, or every one that is older than `before`. `says` is what is shown of them."""

    where: Conversation
    turn_ids: tuple[str, ...] | None = None
    before: datetime | None = None
    says: str = ""

    def __str__(self) -> str:
        if self.turn_ids is not None:
            return f"turn {', '.join(self.turn_ids)} of {name_of(self.where)}"
        assert self.before is not None
        older = "" if self.before.year == datetime.max.year else f" before {self.before:%Y-%m-%d %H:%M} UTC"
        return f"every turn of {name_of(self.where)}{older}"


async def take_step(screen: AreaScreen, action: Action, target: Target) -> bool:
    """Ask, confirm and carry out; answers with whether anything may have changed. For workers."""
    title = TOLD[action][0]
    dry = _request(action, target, DRY_REASON, True)
    first = await _carry_out(screen, title, dry, long=target.turn_ids is None)
    if first is None:
        return False
    step = _RehearsedStep(screen, action, target, cast(MemoryTranscriptLifecycleReport, first))
    if not step.foreseen.affected_turns:
        screen.show_notice(f"There is no {target}.")
        return False
    asked = Ask(title, step.lines, hint="why? kept with the record of it", fault=_no_reason, run=step.run)
    await screen.app.push_screen_wait(asked)
    if step.done is None:
        return False
    shown = tuple(outcome_lines(step.done))
    await screen.app.push_screen_wait(Receipt(f"{title}: done", shown, step.done.receipt))
    return True


class _RehearsedStep:
    """A step that was rehearsed. It is done as it was shown, or not at all: what changed meanwhile is shown again."""

    def __init__(
        self, screen: AreaScreen, action: Action, target: Target, foreseen: MemoryTranscriptLifecycleReport
    ) -> None:
        self._screen = screen
        self._action: Action = action
        self._target = target
        self.foreseen = foreseen
        self.done: MemoryTranscriptLifecycleReport | None = None

    @property
    def lines(self) -> list[str]:
        """What it would touch, and what that means."""
        words = str(self._target)
        says = [self._target.says] if self._target.says else []
        return [words[0].upper() + words[1:], *says, *impact_lines(self.foreseen), "", TOLD[self._action][1]]

    async def run(self, reason: str) -> Faults:
        """Carry it out, unless it would do something else now. See Typing."""
        title = TOLD[self._action][0]
        if self._action in FOR_GOOD and not await self._screen.app.push_screen_wait(Confirm(f"{title}?", self.lines)):
            return ["Nothing was done."]
        try:
            now = await self._ask(DRY_REASON, True)
            if _impact(now) != _impact(self.foreseen):
                self.foreseen = now
                return ["It changed meanwhile, and nothing was done. Now it would be:", *impact_lines(now)]
            done = await self._ask(reason.strip(), False)
        except BeetleError as error:
            return error_lines(error)
        except Cancelled:
            return ["It was called off. What the store had begun by then it may still finish."]
        if not done.changed:
            return ["Nothing was left to do."]
        self.done = done
        return None

    async def _ask(self, reason: str, dry_run: bool) -> MemoryTranscriptLifecycleReport:
        request = _request(self._action, self._target, reason, dry_run)
        link, title = self._screen.link, TOLD[self._action][0]
        if self._target.turn_ids is None or (self._action == "delete_raw" and not dry_run):
            report = await long_below(self._screen.app, link, title, LIFECYCLE, request)
        else:
            report = await link.call(LIFECYCLE, request)
        return cast(MemoryTranscriptLifecycleReport, report)


def _impact(report: MemoryTranscriptLifecycleReport) -> tuple[object, ...]:
    return report.affected_turns, report.message_ids, report.derived_refs


async def derived_from(screen: AreaScreen, where: Conversation, turn_id: str) -> tuple[DerivedMemoryRef, ...] | None:
    """What was derived from a turn; None when that was refused, which is told then."""
    request = MemoryTranscriptLifecycleRequest(
        conversation=where, action="review", turn_ids=(turn_id,), reason=DRY_REASON, dry_run=True
    )
    report = cast("MemoryTranscriptLifecycleReport | None", await screen.ask(LIFECYCLE, request))
    return None if report is None else report.derived_refs


async def find_broken(screen: AreaScreen, where: Conversation | None) -> MemoryTranscriptRepairReport | None:
    """Look a conversation through, or all of them: what is broken, or None when that was called off or refused."""
    request = MemoryTranscriptRepairRequest(conversation=where, limit=ISSUES_READ)
    found = await screen.ask_long("Looking for broken records", "transcript.repair", request)
    return cast("MemoryTranscriptRepairReport | None", found)


def place_words(where: Conversation | None) -> str:
    """A conversation, or all of them, behind a preposition."""
    return "all conversations" if where is None else name_of(where)


def findings_words(report: MemoryTranscriptRepairReport, where: Conversation | None) -> str:
    """How much is broken, and how much of it can be mended."""
    shown, found = len(report.issues), sum(report.counts.values())
    first = f"the first {shown:,} of " if shown < found else ""
    return f"Repair of {place_words(where)}: {first}{count(found, 'finding')}, {report.repairable:,} can be mended"


async def ask_before(screen: AreaScreen, action: Action, where: Conversation) -> Target | None:
    """Ask for the turns of a conversation that are older than a time."""
    lines = [f"Of {name_of(where)}: the turns before this time, in UTC; with `all`, every turn."]
    asked = Ask(f"{TOLD[action][0]}: which turns?", lines, hint="2026-03-02 08:12, or all", fault=no_bound)
    text = await screen.app.push_screen_wait(asked)
    if text is None:
        return None
    return Target(where, before=LATEST if text.strip() == "all" else read_time(text))


async def take_repair(screen: AreaScreen, where: Conversation | None) -> bool:
    """As take_step, for what can be mended without loss."""
    title = "Mend"
    dry = MemoryTranscriptRepairSafeRequest(conversation=where, dry_run=True)
    first = await screen.ask_long("What can be mended", REPAIR_SAFE, dry)
    if first is None:
        return False
    found = cast(MemoryTranscriptRepairSafeReport, first)
    if not found.mended:
        screen.show_notice("Nothing can be mended without losing something.")
        return False
    lines = [f"{name}: {number:,}" for name, number in found.counts.items() if number]
    lines += [f"left as it is: {name}: {number:,}" for name, number in found.left.items() if number]
    if not await screen.app.push_screen_wait(Confirm("Mend what loses nothing?", lines)):
        return False
    done = await screen.ask_long(title, REPAIR_SAFE, MemoryTranscriptRepairSafeRequest(conversation=where))
    if done is None:
        return False
    report = cast(MemoryTranscriptRepairSafeReport, done)
    lines = [f"{name}: {number:,}" for name, number in report.counts.items() if number] or ["Nothing was left to do."]
    more = ["There is more: ask again."] if report.has_more else []
    event = [] if report.audit_event_id is None else [f"Row of the event log: {report.audit_event_id}"]
    await screen.app.push_screen_wait(Receipt(f"{title}: done", (*lines, *more, *event), report.receipt))
    return report.changed


async def _carry_out(screen: AreaScreen, title: str, request: Any, *, long: bool) -> Report | None:
    return await (screen.ask_long(title, LIFECYCLE, request) if long else screen.ask(LIFECYCLE, request))


def _request(action: Action, target: Target, reason: str, dry_run: bool) -> MemoryTranscriptLifecycleRequest:
    return MemoryTranscriptLifecycleRequest(
        conversation=target.where,
        action=action,
        turn_ids=target.turn_ids,
        before=target.before,
        reason=reason,
        dry_run=dry_run,
    )


def _no_reason(text: str) -> str | None:
    if not text.strip():
        return "Say why: a step on evidence is kept with its reason."
    return f"{MOST_REASON} characters are the most." if len(text) > MOST_REASON else None


def impact_lines(report: MemoryTranscriptLifecycleReport) -> Iterator[str]:
    """What a dry run says that a step would touch."""
    yield _touched(report)
    hidden = sum(each.field == "host_ref" for each in report.redactions)
    if report.host_refs or hidden:
        unseen = f" ({hidden:,} of them not for this view)" if hidden else ""
        yield f"{count(len(report.host_refs) + hidden, 'object of the host', 'objects of the host')}{unseen}"
    derived = list(dict.fromkeys(each.derived for each in report.derived_refs))
    if derived:
        yield f"{_least(report)}{count(len(derived), 'derived record')} came from it:"
        yield from (f"  {each}" for each in derived[:SHOWN_IDS])
        if len(derived) > SHOWN_IDS:
            yield f"  … and {len(derived) - SHOWN_IDS:,} more"
    else:
        yield "No derived record came from it."
    if report.profile_budget_applied:
        yield "There is more of it than this profile lists."


def _touched(report: MemoryTranscriptLifecycleReport) -> str:
    return f"{count(report.affected_turns, 'turn')}, {count(report.affected_messages, 'message')}"


def _least(report: MemoryTranscriptLifecycleReport) -> str:
    """The report counts turns and messages; derived records it lists, and not without end."""
    return "at least " if report.profile_budget_applied else ""


def outcome_lines(report: MemoryTranscriptLifecycleReport) -> Iterator[str]:
    """What a step has done."""
    yield _touched(report)
    match report.erasure:
        case "done":
            yield "Erased: no byte of the content is left in the store."
        case "pending":
            yield "Erasure pending: a reader still holds the old content; it is finished once it lets go."
        case None:
            pass
    yield from copies_lines(report)
    if report.audit_event_id is not None:
        yield f"Row of the event log: {report.audit_event_id}"


class Receipt(Told):
    """What was done, with the receipt that proves it without the content."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "copy_receipt", "Copy", id="receipt-copy", tooltip="copy the receipt, by way of the terminal"),
    ]

    def __init__(self, title: str, lines: Sequence[str], receipt: str | None) -> None:
        shown = () if receipt is None else ("", "Receipt, which `beetle verify --receipt` checks:", receipt)
        super().__init__(title, (*lines, *shown))
        self.receipt = receipt

    def action_copy_receipt(self) -> None:
        """Hand the receipt to the terminal's clipboard."""
        if self.receipt is not None:
            self.query_one("#box").border_subtitle = copy(self.app, self.receipt)

    def on_mount(self) -> None:
        """Say how it is copied."""
        if self.receipt is not None:
            self.query_one("#box").border_subtitle = hinted(
                self.app, "{receipt-copy} copies the receipt, {told-close} closes"
            )
