"""Editing a skill in place. What is wrong is what the operation itself says; nothing is saved over another's work."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import ClassVar, NamedTuple, cast

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Static

from beetle.contracts.common import Report
from beetle.contracts.errors import BeetleError, Conflict
from beetle.contracts.skills import RuntimeSkillDetailReport, RuntimeSkillMutationReport
from beetle_tui.dialogs import Confirm, Editing, as_lines
from beetle_tui.diff import diff_of
from beetle_tui.keys import hinted
from beetle_tui.line_input import LineInput
from beetle_tui.plaintext import Plaintext
from beetle_tui.text import count, neutral
from beetle_tui.too_small import TooSmall

MOST_DIFF_LINES = 12
WORDS = {
    "title": "The title", "topic": "The topic", "summary": "The summary", "procedure": "The procedure",
    "edit_reason": "The reason",
}  # fmt: skip
"""What each field is called, by its id, which is also its name in the request."""

Asking = Callable[[str, dict[str, object]], Awaitable[Report]]


class Draft(NamedTuple):
    """The texts of a skill."""

    title: str
    topic: str
    summary: str
    procedure: str


class SkillEditor(ModalScreen[RuntimeSkillMutationReport | None], Editing):
    """Answers with what was saved, or with None when it was left."""

    DEFAULT_CSS = """
    SkillEditor {
        background: transparent; align: center middle;
        #edit {
            width: 100%; height: 100%; background: $background; border: solid $line; border-title-color: $foreground;
            border-title-style: bold; border-subtitle-color: $label; padding: 0 1;
        }
        Horizontal { height: 1; }
        .label { width: 10; color: $label; }
        .-here .label { color: $foreground; text-style: bold; }
        LineInput, LineInput:focus {
            border: none; padding: 0; height: 1; width: 1fr; background: $panel; background-tint: 0%;
        }
        Plaintext, Plaintext:focus {
            border: none; padding: 0; width: 1fr; background: $panel; background-tint: 0%;
            scrollbar-size-vertical: 1; scrollbar-color: $line; scrollbar-background: $background;
        }
        #summary-row { height: 3; }
        #procedure-row { height: 1fr; }
        #fault { height: auto; color: $warning; display: none; }
        #fault.-shown { display: block; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "save", "Save", id="edit-save", tooltip="save it as a new revision"),
        Binding("escape", "leave", "Leave", id="edit-leave", tooltip="back without saving"),
    ]

    def __init__(self, skill: RuntimeSkillDetailReport, draft: Draft, ask: Asking) -> None:
        """`draft` holds the texts of `skill`, none of them withheld; `ask` runs an operation, or raises BeetleError."""
        super().__init__()
        self._skill = skill
        self._draft = draft
        self._ask = ask
        self._expected = skill.revision
        self._shown = draft
        self._saving = False

    def compose(self) -> ComposeResult:
        """Fields below each other; the procedure takes what room there is."""
        with Vertical(id="edit") as box:
            box.border_title = neutral(f"Edit {self._skill.name}, revision {self._expected}")
            box.border_subtitle = hinted(self.app, "{edit-save} saves, tab to the next field, {edit-leave} leaves")
            for name, value, most in (("title", self._draft.title, 256), ("topic", self._draft.topic, 256)):
                with Horizontal():
                    yield Static(name.title(), classes="label")
                    yield LineInput(value, most=most, id=name)
            for name, value in (("summary", self._draft.summary), ("procedure", self._draft.procedure)):
                with Horizontal(id=f"{name}-row"):
                    yield Static(name.title(), classes="label")
                    yield Plaintext(value, id=name)
            with Horizontal():
                yield Static("Why", classes="label")
                yield LineInput(hint="why it is edited: the revision keeps it", most=512, id="edit_reason")
            yield Static(id="fault", markup=False)
        yield TooSmall()

    def on_mount(self) -> None:
        """What the fields made of the texts is what a change is told by."""
        self._shown = self._entered()
        if (self._draft.summary, self._draft.procedure) != (self._shown.summary, self._shown.procedure):
            self._say("There are line ends of several kinds: in a text that is edited they become all of one kind.")
        self.query_one("#procedure").focus()

    @property
    def unsaved(self) -> bool:
        """See Editing."""
        return self.is_mounted and bool(self._changes())

    def on_descendant_focus(self) -> None:
        """The label of the field that is typed in stands out."""
        for row in self.query(Horizontal):
            row.set_class(row.has_focus_within, "-here")

    def on_plaintext_refused(self, event: Plaintext.Refused) -> None:
        """A paste that is too long."""
        self._say_error(event.error)

    def action_save(self) -> None:
        """Ask for it to be saved."""
        if not self._saving:
            self._saving = True
            self.run_worker(self._save, group="save", exclusive=True)

    def action_leave(self) -> None:
        """Close; what was changed is not lost without a question."""
        self.run_worker(self._leave, group="leave", exclusive=True)

    async def _leave(self) -> None:
        lines = ["What you changed is not saved."]
        if not self._changes() or await self.app.push_screen_wait(Confirm("Leave without saving?", lines)):
            self.workers.cancel_group(self, "save")
            self.dismiss(None)

    async def _save(self) -> None:
        try:
            changes = self._changes()
            if not changes:
                self._say("Nothing is changed.")
                return
            given = {**changes, "edit_reason": self.query_one("#edit_reason", LineInput).value}
            if (empty := next((name for name, text in given.items() if not text.strip()), None)) is not None:
                self._say_of(empty, f"{WORDS[empty]} must not be empty.")
                return
            report = await self._sent(changes)
            if report is not None:
                self.dismiss(report)
        except BeetleError as error:
            self._say_error(error)
        finally:
            self._saving = False

    async def _sent(self, changes: dict[str, str]) -> RuntimeSkillMutationReport | None:
        """What was saved, or None when it was better not."""
        reason = self.query_one("#edit_reason", LineInput).value
        while True:
            asked = {
                "name": self._skill.name,
                "expected_revision": self._expected,
                "edit_reason": reason,
                **changes,
            }
            try:
                return cast(RuntimeSkillMutationReport, await self._ask("skill.edit", asked))
            except Conflict as error:
                self._say_error(error)
                now = cast(RuntimeSkillDetailReport, await self._ask("skill.detail", {"name": self._skill.name}))
                lines = conflict_lines(self._skill, now, sorted(changes))
                if not await self.app.push_screen_wait(Confirm("It was changed meanwhile", lines)):
                    return None
                self._expected = now.revision
                self._skill = now
                self.query_one("#edit").border_title = neutral(f"Edit {now.name}, revision {now.revision}")

    def _entered(self) -> Draft:
        return Draft(
            self.query_one("#title", LineInput).value,
            self.query_one("#topic", LineInput).value,
            self.query_one("#summary", Plaintext).text,
            self.query_one("#procedure", Plaintext).text,
        )

    def _changes(self) -> dict[str, str]:
        now, before = self._entered()._asdict(), self._shown._asdict()
        return {name: text for name, text in now.items() if text != before[name]}

    def _say_error(self, error: BeetleError) -> None:
        # `$.args.title` names the field of the same id.
        field = str(error.details.get("path", "")).removeprefix("$.args.")
        told = f"{error.key}: {error.message}"
        if field in WORDS:
            self._say_of(field, told, error.hint)
        else:
            self._say(told, error.hint)

    def _say_of(self, field: str, told: str, hint: str = "") -> None:
        """Say what is wrong with a field below that field, and go there."""
        self._say(told, hint)
        wrong = self.query_one(f"#{field}").focus()
        row = next(each for each in self.query("#edit > Horizontal") if wrong in each.children)
        self.query_one("#edit").move_child(self.query_one("#fault"), after=row)

    def _say(self, told: str, hint: str = "") -> None:
        lines = [told, *([f"Hint: {hint}"] if hint else [])]
        fault = self.query_one("#fault", Static)
        box = self.query_one("#edit")
        if box.children[-1] is not fault:
            box.move_child(fault, after=-1)
        fault.set_class(True, "-shown")
        fault.update(as_lines(lines))


def conflict_lines(before: RuntimeSkillDetailReport, now: RuntimeSkillDetailReport, fields: list[str]) -> list[str]:
    """What was done to a skill since it was read, and what saving over it would mean."""
    lines = [f"It is at revision {now.revision}; you began with {before.revision}."]
    later = (each for each in now.lineage if each.revision > before.revision)
    lines += [
        f"Revision {each.revision}, by {each.source}: {each.edit_reason or 'no reason is given'}" for each in later
    ]
    diff = diff_of(before.procedure or "", now.procedure or "", ("yours began with", "it has now")).split("\n")
    lines += [line[:200] for line in diff[:MOST_DIFF_LINES]]
    if len(diff) > MOST_DIFF_LINES:
        lines.append(f"… {count(len(diff) - MOST_DIFF_LINES, 'line')} more")
    lines += ["", f"Save your {', '.join(fields)} over that? What you did not change stays as it is now."]
    return lines
