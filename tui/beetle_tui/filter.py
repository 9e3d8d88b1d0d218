"""The filter of a list: a line below it that takes what its rows must hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input, Static

from beetle_tui.line_input import LineInput

FILTER_CHARACTERS = 1000


class FilterBar(Horizontal, inherit_bindings=False):
    """Hidden until `open`. Enter applies what was typed, esc clears it and closes; while it filters, it stays in sight.

    An area composes one below its list, and answers `Filtered` with another reading.
    """

    DEFAULT_CSS = """
    FilterBar {
        height: 1; display: none; background: $bar; color: $bar-text;
        &.-shown { display: block; }
        #filter-mark { width: auto; padding: 0 1; }
        LineInput, LineInput:focus {
            border: none; padding: 0; height: 1; width: 1fr; background: $bar; color: $bar-text; background-tint: 0%;
        }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "clear", "Clear", id="filter-clear", tooltip="show every row again"),
    ]

    @dataclass
    class Filtered(Message):
        """Another text filters; the empty one filters nothing."""

        text: str

    def __init__(self, hint: str) -> None:
        """`hint` stands in the empty line."""
        super().__init__()
        self._hint = hint
        self._before: Widget | None = None
        self.text = ""
        """What filters now."""

    def compose(self) -> ComposeResult:
        """A mark, and the line."""
        yield Static("/", id="filter-mark", markup=False)
        yield LineInput(hint=self._hint, most=FILTER_CHARACTERS)

    @property
    def shown(self) -> bool:
        """Whether it is in sight."""
        return self.has_class("-shown")

    def open(self) -> None:
        """Show it, and type into it."""
        self._before = self.screen.focused
        self.set_class(True, "-shown")
        self.query_one(LineInput).focus()

    def set_text(self, text: str) -> None:
        """Filter by this, as if it had been typed."""
        self.query_one(LineInput).value = text
        self._apply(text)

    def action_clear(self) -> None:
        """Filter nothing, and go."""
        self.set_text("")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Filter by what was typed."""
        event.stop()
        self._apply(event.value)

    def on_input_changed(self, event: Input.Changed) -> None:
        """What is typed is nobody's business before enter."""
        event.stop()

    def _apply(self, text: str) -> None:
        text = text.strip()
        self.set_class(bool(text), "-shown")
        if self.query_one(LineInput).has_focus:
            before = self._before
            if before is None or not before.is_attached or not before.display:
                before = self.screen.query_one("#body")
            before.focus()
        if text != self.text:
            self.text = text
            self.post_message(self.Filtered(text))
