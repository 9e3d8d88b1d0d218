"""What is asked of a person on top of an area: yes or no, a line, a choice; and how far long work has come."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Any, ClassVar, TypeVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from beetle.contracts.errors import BeetleError
from beetle_tui.keys import hinted
from beetle_tui.line_input import LineInput, tame
from beetle_tui.text import neutral
from beetle_tui.too_small import TooSmall

Answer = TypeVar("Answer")
NOT_SAVED = "What you have typed is not saved."
Faults = Sequence[str] | None
"""Why what was asked for was not done; None once it was."""


class Editing:
    """A screen that holds what a person has typed: before the console ends, what would be lost is asked about."""

    @property
    @abstractmethod
    def unsaved(self) -> bool:
        """Whether something was typed that is nowhere else."""


class Dialog(ModalScreen[Answer]):
    """A box in the middle: a title, lines, what a subclass has below them, and what its keys do."""

    KEYS: ClassVar[str]
    """What its keys do, as `hinted` takes it."""
    HOLDS: ClassVar[tuple[type[Any], ...]] = ()
    """What may have the keys in it, where that has keys of its own."""
    DEFAULT_CSS = """
    Dialog {
        align: center middle; background: transparent;
        #box {
            width: 80; max-width: 100%; height: auto; max-height: 100%; padding: 0 1; background: $background;
            border: solid $line; border-title-color: $foreground; border-title-style: bold;
            border-subtitle-color: $label; overflow-y: auto;
        }
        #fault { color: $warning; display: none; }
        #fault.-shown { display: block; }
        Input, Input:focus {
            border: none; padding: 0; height: 1; background: $background; background-tint: 0%; margin-top: 1;
        }
    }
    """

    def __init__(self, title: str, lines: Iterable[str] = ()) -> None:
        super().__init__()
        self._title = title
        self._lines = tuple(lines)

    def compose(self) -> ComposeResult:
        """One box."""
        with Vertical(id="box") as box:
            box.border_title = Content(neutral(self._title))
            box.border_subtitle = hinted(self.app, self.KEYS)
            if self._lines:
                yield Static(as_lines(self._lines), markup=False)
            yield from self.compose_below()
        yield self.cover()

    def cover(self) -> TooSmall:
        """What is shown in its place in a terminal that is too small."""
        return TooSmall()

    def compose_below(self) -> ComposeResult:
        """What stands below the lines."""
        yield from ()

    def say(self, *lines: str) -> None:
        """Say what is wrong, or what was done, where a subclass has a place for it: `#fault`. No line says nothing."""
        said = self.query_one("#fault", Static)
        said.update(as_lines(lines))
        said.set_class(bool(lines), "-shown")


def needed(told: str) -> Callable[[str], str | None]:
    """The fault of a text that may not be blank."""
    return lambda text: None if text.strip() else told


def error_lines(error: BeetleError) -> list[str]:
    """An error as it is told, with its hint."""
    return [f"{error.key}: {error.message}", *([f"Hint: {error.hint}"] if error.hint else [])]


def as_lines(lines: Iterable[str]) -> Content:
    """Lines of text as they can be shown: harmless, and no markup."""
    return Content("\n").join(Content(neutral(each)) for each in lines)


class Confirm(Dialog[bool]):
    """Says what an action will do, and does it for `y` alone."""

    KEYS = "{confirm-yes} does it, {confirm-no} or {confirm-close} does not"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "Yes", id="confirm-yes", tooltip="do it"),
        Binding("n", "answer(False)", "No", id="confirm-no", tooltip="leave it as it is"),
        Binding("escape,q", "answer(False)", "Close", id="confirm-close", tooltip="leave it as it is"),
    ]

    def action_answer(self, yes: bool) -> None:
        """Close with the answer."""
        self.dismiss(yes)


class QuitUnsaved(Confirm):
    """Asks before the console ends over what was typed; the keys that always quit do so at once here."""

    KEYS = "{confirm-yes} quits, {confirm-no} or {confirm-close} does not"

    def __init__(self, again: str) -> None:
        """`again` is what those keys are called."""
        super().__init__("Quit?", [NOT_SAVED, f"{again} once more quits too."])

    def cover(self) -> TooSmall:
        """The question, for which there is no room."""
        return TooSmall(NOT_SAVED, " once more")


class Typing(Dialog[Answer | None], Editing):
    """One that a person types into. It closes over what was typed only after a question; and with `run` it stays until
    what was typed has been taken: what is wrong is said in it, a lost daemon too. Answers with None when given up."""

    def __init__(self, title: str, lines: Iterable[str], run: Callable[[Answer], Awaitable[Faults]] | None) -> None:
        """`run` does what the answer is for."""
        super().__init__(title, lines)
        self._does = run
        self._is_taking = False

    def action_leave(self) -> None:
        """Close; what was typed is not lost without a question."""
        if self._is_taking:
            self.say("It is being done: wait for what comes of it.")
        elif self.unsaved:
            self.run_worker(self._leave, group="leave", exclusive=True)
        else:
            self.dismiss(None)

    def take(self, answer: Answer) -> None:
        """Answer, once what it is for was done."""
        if self._does is None:
            self.dismiss(answer)
        elif not self._is_taking:
            self._is_taking = True
            self.run_worker(partial(self._take, self._does, answer), group="take")

    def on_line_input_cut(self, event: LineInput.Cut) -> None:
        """A paste that is too long."""
        self.say(event.told)

    async def _take(self, run: Callable[[Answer], Awaitable[Faults]], answer: Answer) -> None:
        try:
            wrong = await run(answer)
        finally:
            self._is_taking = False
        if wrong is None:
            self.dismiss(answer)
        else:
            # Where a question stood above this dialog, what is said before it is drawn again gets no room.
            self.call_after_refresh(self.say, *wrong)

    async def _leave(self) -> None:
        if await self.app.push_screen_wait(Confirm("Close it?", ["What you have typed here is not kept."])):
            self.dismiss(None)


class Ask(Typing[str]):
    """Asks for one line, and keeps asking while there is a fault in it."""

    KEYS = "enter takes it, {ask-close} closes"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Close", id="ask-close", tooltip="leave it as it is"),
    ]

    def __init__(
        self,
        title: str,
        lines: Iterable[str] = (),
        *,
        value: str = "",
        hint: str = "",
        fault: Callable[[str], str | None] = lambda text: None,
        run: Callable[[str], Awaitable[Faults]] | None = None,
    ) -> None:
        """`fault` says what is wrong with a text, or None; `hint` stands in the empty line. See Typing for `run`."""
        super().__init__(title, lines, run)
        self._value = value
        self._hint = hint
        self._fault = fault

    def compose_below(self) -> ComposeResult:
        """A line to type in."""
        yield LineInput(self._value, hint=self._hint)
        yield Static(id="fault", markup=False)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Take it, or say what is wrong."""
        wrong = self._fault(event.value)
        if wrong is None:
            self.take(event.value)
        else:
            self.say(wrong)

    @property
    def unsaved(self) -> bool:
        """See Editing."""
        typed = self.query_one(LineInput).value if self.is_mounted else ""
        return bool(typed.strip()) and typed != tame(self._value)


class Told(Dialog[None]):
    """Shows lines until a key is pressed: a report, what was found."""

    KEYS = "{told-close} closes"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter", "dismiss", "Close", id="told-close", tooltip="back to the screen"),
    ]


class Working(Dialog[bool]):
    """Says what is being done and how far it is; answers with whether it was done, false when it was called off."""

    KEYS = "{working-stop} calls it off"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(False)", "Call off", id="working-stop", tooltip="call it off"),
    ]
    _done = False

    def compose_below(self) -> ComposeResult:
        """A line."""
        yield Static("…", id="far", markup=False)

    def say(self, *lines: str) -> None:
        """How far it is."""
        if self.is_mounted:
            self.query_one("#far", Static).update(as_lines(lines))

    def end(self) -> None:
        """It is done: close, below another dialog once that has closed."""
        self._done = True
        if self.is_current:
            self.dismiss(True)

    def on_screen_resume(self) -> None:
        """In sight again; what had ended before it was in sight first has gone already."""
        if self._done and self.is_current:
            self.dismiss(True)
