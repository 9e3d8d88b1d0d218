"""What is asked of a person on top of an area: yes or no, a line, a choice; and how far long work has come."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from typing import ClassVar, TypeVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from tui.keys import hinted
from tui.line import Line
from tui.text import neutral

Answer = TypeVar("Answer")

BOX = """
    {name} {{
        align: center middle; background: transparent;
        #box {{
            width: 80; max-width: 100%; height: auto; max-height: 100%; padding: 0 1; background: $background;
            border: solid $line; border-title-color: $foreground; border-title-style: bold;
            border-subtitle-color: $label; overflow-y: auto;
        }}
        #fault {{ color: $warning; display: none; }}
        #fault.-shown {{ display: block; }}
        Input, Input:focus {{
            border: none; padding: 0; height: 1; background: $background; background-tint: 0%; margin-top: 1;
        }}
    }}
"""
"""The style of every dialog: a box in the middle, a line to type in without a frame."""


class Editing(ModalScreen[Answer]):
    """A dialog that holds what a person has typed: before the console ends, what would be lost is asked about."""

    @property
    @abstractmethod
    def unsaved(self) -> bool:
        """Whether something was typed that is nowhere else."""


class _Lines(ModalScreen[Answer]):
    """A box of lines under a title, with what its keys do below."""

    KEYS: ClassVar[str]
    """What its keys do, as `hinted` takes it."""

    def __init__(self, title: str, lines: Iterable[str]) -> None:
        super().__init__()
        self._title = title
        self._lines = tuple(lines)

    def compose(self) -> ComposeResult:
        """One box."""
        with Vertical(id="box") as box:
            box.border_title = Content(neutral(self._title))
            box.border_subtitle = hinted(self.app, self.KEYS)
            yield Static(Content("\n").join(Content(neutral(each)) for each in self._lines), markup=False)


class Confirm(_Lines[bool]):
    """Says what an action will do, and does it for `y` alone."""

    KEYS = "{confirm-yes} does it, {confirm-no} or {confirm-close} does not"
    DEFAULT_CSS = BOX.format(name="Confirm")
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
        super().__init__("Quit?", ["What you have typed is not saved.", f"{again} once more quits too."])


class Ask(ModalScreen[str | None]):
    """Asks for one line, and keeps asking while there is a fault in it; answers with None when it was given up."""

    DEFAULT_CSS = BOX.format(name="Ask")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "Close", id="ask-close", tooltip="leave it as it is"),
    ]

    def __init__(
        self,
        title: str,
        lines: Iterable[str] = (),
        *,
        value: str = "",
        hint: str = "",
        fault: Callable[[str], str | None] = lambda text: None,
    ) -> None:
        """`fault` says what is wrong with a text, or None; `hint` stands in the empty line."""
        super().__init__()
        self._title = title
        self._lines = tuple(lines)
        self._value = value
        self._hint = hint
        self._fault = fault

    def compose(self) -> ComposeResult:
        """The question above a line."""
        with Vertical(id="box") as box:
            box.border_title = Content(neutral(self._title))
            box.border_subtitle = hinted(self.app, "enter takes it, {ask-close} closes")
            if self._lines:
                yield Static(Content("\n").join(Content(neutral(each)) for each in self._lines), markup=False)
            yield Line(self._value, hint=self._hint)
            yield Static(id="fault", markup=False)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Take it, or say what is wrong."""
        wrong = self._fault(event.value)
        if wrong is None:
            self.dismiss(event.value)
            return
        said = self.query_one("#fault", Static)
        said.update(Content(neutral(wrong)))
        said.set_class(True, "-shown")


class Told(_Lines[None]):
    """Shows lines until a key is pressed: a report, what was found."""

    KEYS = "{told-close} closes"
    DEFAULT_CSS = BOX.format(name="Told")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter", "dismiss", "Close", id="told-close", tooltip="back to the screen"),
    ]


class Working(ModalScreen[bool]):
    """Says what is being done and how far it is; answers with whether it was done, false when it was called off."""

    DEFAULT_CSS = BOX.format(name="Working")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(False)", "Call off", id="working-stop", tooltip="call it off"),
    ]

    def __init__(self, title: str) -> None:
        super().__init__()
        self._title = title

        self._done = False

    def compose(self) -> ComposeResult:
        """A title and a line."""
        with Vertical(id="box") as box:
            box.border_title = Content(neutral(self._title))
            box.border_subtitle = hinted(self.app, "{working-stop} calls it off")
            yield Static("…", id="far", markup=False)

    def say(self, lines: Iterable[str]) -> None:
        """How far it is."""
        if self.is_mounted:
            self.query_one("#far", Static).update(Content("\n".join(neutral(line) for line in lines)))

    def end(self) -> None:
        """It is done: close, below another dialog once that has closed."""
        self._done = True
        if self.is_current:
            self.dismiss(True)

    def on_screen_resume(self) -> None:
        """In sight again."""
        if self._done:
            self.dismiss(True)
