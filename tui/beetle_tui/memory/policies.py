"""Policies over what may be remembered: which hold, new ones, and lifting them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import ClassVar, cast, get_args

from textual.binding import Binding, BindingType

from beetle.contracts.common import Report
from beetle.contracts.errors import Forbidden
from beetle.contracts.governance import FactKind, LongTermPolicyReport, PolicyView
from beetle.contracts.maintain import GovernanceReport
from beetle.contracts.memory import MemoryCapabilityCatalog
from beetle_tui.area import AreaScreen
from beetle_tui.dialogs import Faults
from beetle_tui.form import Field, Form
from beetle_tui.loaded_rows import LoadedRows
from beetle_tui.memory.section import NOT_SHOWN, Section, day
from beetle_tui.prose import Block
from beetle_tui.split import remark, value
from beetle_tui.table import Column
from beetle_tui.text import count, moment

DOES = {
    "pause": "What is written of it waits until the pause is lifted, and is judged then.",
    "suppress": "What is written of it is refused.",
}
KINDS: tuple[str, ...] = get_args(FactKind)
MOST_LABEL = 256


class Policies(Section[PolicyView]):
    """The policies that hold. Listing them is a write to the operation, so it is asked only when others hold."""

    TITLE = "Policies"
    NOUN = ("policy", "policies")
    EMPTY = "No policy holds"
    HOW = (
        "A policy acts on what is asked to be remembered from now on: {policy-pause} puts off, {policy-suppress} "
        "refuses. It can name a kind, a topic, a chat, or all of them. Existing facts stay."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "make('pause')", "Pause", id="policy-pause", tooltip="put off what may be remembered"),
        Binding("x", "make('suppress')", "Suppress", id="policy-suppress", tooltip="refuse a kind or a topic"),
        Binding("d", "lift", "Lift", id="policy-lift", tooltip="lift the chosen policy"),
    ]

    def __init__(self, area: AreaScreen) -> None:
        super().__init__(area)
        self._hold: tuple[int, ...] | None = None
        self._policies: tuple[PolicyView, ...] = ()

    def columns(self) -> Sequence[Column[PolicyView]]:
        """See Section."""
        return (
            Column("Does", lambda row: row.action, 8),
            Column("Kind", lambda row: row.kind or "any", 12),
            Column("Topic", topic_of),
            Column("Chat", lambda row: row.chat_id or "every chat", 16),
            Column("Since", lambda row: day(row.at), 10, narrow=70),
        )

    def key(self, row: PolicyView) -> object:
        """See Section."""
        return row.policy_id

    def named(self, row: PolicyView) -> str:
        """See Section."""
        return words_of(row)

    async def load(self, catalog: MemoryCapabilityCatalog) -> None:
        """See Section."""
        hold = await self._in_force()
        if hold is None or hold != self._hold:
            self._take(cast(LongTermPolicyReport, await self.area.link.call("long_term.policy", {"action": "list"})))
            self._hold = hold
        await super().load(catalog)

    async def rows(self) -> LoadedRows[PolicyView]:
        """See Section."""
        return LoadedRows(self._policies)

    async def look(self, row: PolicyView) -> tuple[str, Iterable[Block]]:
        """See Section."""
        return f"{row.action} {row.kind or topic_of(row)}", [
            *remark(DOES[row.action]),
            value("Kind", row.kind or "any"),
            value("Topic", topic_of(row)),
            value("Chat", row.chat_id or "every chat"),
            value("Why", row.reason or "(no reason was given)"),
            value("Since", moment(row.at)),
            value("By", row.by),
            value("Id", str(row.policy_id)),
        ]

    async def _in_force(self) -> tuple[int, ...] | None:
        """The ids of what holds; None where this caller may not ask."""
        try:
            report = cast(GovernanceReport, await self.area.link.call("governance.report"))
        except Forbidden:
            return None
        return tuple(each.policy_id for each in report.policies)

    def _take(self, report: LongTermPolicyReport) -> None:
        if report.policies != self._policies:
            self._policies = report.policies
            if self.table.rows is not None:
                self.table.renew(LoadedRows(self._policies))

    def action_make(self, action: str) -> None:
        """Make a policy."""
        self.begin(partial(self._make, action))

    async def _make(self, action: str) -> None:
        async def run(values: Mapping[str, str]) -> Faults:
            given = {name: value.strip() for name, value in values.items() if value.strip()}
            return await self.change(
                "long_term.policy", {"action": action, **given}, partial(self._show_outcome, action)
            )

        await self.app.push_screen_wait(
            Form(
                "Pause what may be remembered" if action == "pause" else "Suppress what may be remembered",
                [
                    Field("kind", f"Kind ({', '.join(KINDS)})", hint="any", fault=_kind_fault),
                    Field("topic", "Topic", hint="any", fault=_label_fault),
                    Field("chat_id", "Chat", hint="every chat", fault=_label_fault),
                    Field("reason", "Why (shown in the list)", fault=_label_fault),
                ],
                [DOES[action]],
                check=lambda given: _nothing_named(action, given),
                run=run,
            )
        )

    def action_lift(self) -> None:
        """Lift the chosen policy, once it was said what is lifted with it."""
        self.with_chosen(self._lift)

    async def _lift(self, row: PolicyView) -> None:
        if row.topic is None and topic_of(row) == NOT_SHOWN:
            self.area.show_notice("the topic of this policy is not shown in this view, so it cannot be named")
            return
        alike = [each for each in self._policies if _named(each) == _named(row)]
        lines = [words_of(each) for each in alike]
        lines.append("What waited for a pause to end is judged then.")
        if not await self.agreed("Lift (resume)?", lines):
            return
        now = await self.area.ask("long_term.policy", {"action": "list"})
        if now is None:
            return
        self._take(cast(LongTermPolicyReport, now))
        if [each for each in self._policies if _named(each) == _named(row)] != alike:
            self.area.show_notice(f"{words_of(row)}: it was changed or lifted meanwhile, and nothing was done")
            return
        named = {name: value for name, value in _named(row).items() if value is not None}
        done = await self.changed("long_term.policy", {"action": "resume", **named})
        if done is not None:
            self._show_outcome("resume", done)

    def _show_outcome(self, action: str, done: Report) -> None:
        report = cast(LongTermPolicyReport, done)
        self._take(report)
        judged = f"; {count(report.rejudged, 'candidate')} judged again" if report.rejudged else ""
        self.area.show_notice(f"{action}: {'done' if report.changed else 'nothing changed, it holds already'}{judged}")


def topic_of(row: PolicyView) -> str:
    """The topic that a policy names; not every view is told it."""
    if row.topic is not None:
        return row.topic
    return NOT_SHOWN if row.action == "suppress" and row.kind is None else "any"


def words_of(row: PolicyView) -> str:
    """A policy in a line."""
    return f"{row.action}: {row.kind or 'any kind'}, topic {topic_of(row)}, {row.chat_id or 'every chat'}"


def _named(row: PolicyView) -> dict[str, str | None]:
    return {"kind": row.kind, "topic": row.topic, "chat_id": row.chat_id}


def _kind_fault(text: str) -> str | None:
    return None if not text.strip() or text.strip() in KINDS else f"one of {', '.join(KINDS)}, or nothing"


def _label_fault(text: str) -> str | None:
    return f"at most {MOST_LABEL} characters" if len(text.strip()) > MOST_LABEL else None


def _nothing_named(action: str, given: Mapping[str, str]) -> str | None:
    if action == "suppress" and not given["kind"].strip() and not given["topic"].strip():
        return "give a kind or a topic: what is to be suppressed"
    return None
