"""A field for a text of several lines. Loaded where one is edited: what it is made of takes a megabyte."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.events import Paste
from textual.message import Message
from textual.widgets import TextArea

from beetle.contracts.errors import BeetleError
from beetle_tui.bounds import TooLongToEdit, bound
from beetle_tui.text import DRIVES_A_TERMINAL

C0_PICTURES = 0x2400
"""Where the pictures of control characters begin: each takes one cell, and does nothing."""


class Plaintext(TextArea):
    """A text of several lines as the console has them: no cursor that blinks, a picture for what drives a terminal."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "ctrl+home", "edge(0)", "Beginning", id="text-start", tooltip="to the beginning of the text", show=False
        ),
        Binding("ctrl+end", "edge(1)", "End", id="text-end", tooltip="to the end of the text", show=False),
    ]

    @dataclass
    class Refused(Message):
        """What was pasted was not taken."""

        error: BeetleError

    def __init__(self, text: str, *, id: str) -> None:
        super().__init__(text, id=id, highlight_cursor_line=False, tab_behavior="focus")
        self.cursor_blink = False

    def get_line(self, line_index: int) -> Text:
        """A line as it is drawn: the document keeps what it is."""
        return Text(DRIVES_A_TERMINAL.sub(_picture, self.document.get_line(line_index)), end="", no_wrap=True)

    def action_edge(self, last: int) -> None:
        """To the beginning of the text, or to its end."""
        self.move_cursor(self.document.end if last else (0, 0))

    async def _on_paste(self, event: Paste) -> None:
        try:
            bound("what was pasted", event.text)
            bound("the text with what was pasted", f"{self.text}\n{event.text}")
        except TooLongToEdit as error:
            event.stop()
            event.prevent_default()
            self.post_message(self.Refused(error))


def _picture(found: re.Match[str]) -> str:
    character = found[0]
    if character == "\t":
        return character
    return chr(C0_PICTURES + ord(character)) if ord(character) < 0x20 else "\ufffd"
