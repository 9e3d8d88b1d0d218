"""A line to type in that takes no more than it can hold, whatever is pasted, and nothing that drives a terminal."""

from __future__ import annotations

from dataclasses import dataclass

from textual.events import Paste
from textual.message import Message
from textual.widgets import Input

from beetle_tui.text import DRIVES_A_TERMINAL, count

MOST = 20_000
"""Characters of a line that nothing else bounds: a pasted megabyte would be laid out again at every key."""


class LineInput(Input):
    """An Input as the console has them everywhere: the cursor does not blink, and what is pasted is bounded."""

    @dataclass
    class Cut(Message):
        """What was pasted did not fit, and its end was left out."""

        left_out: int

        @property
        def told(self) -> str:
            """In a sentence."""
            return f"This line has no room for the last {count(self.left_out, 'character')} of what was pasted."

    def __init__(
        self, value: str = "", *, hint: str = "", most: int = MOST, secret: bool = False, id: str | None = None
    ) -> None:
        """`hint` stands in the empty line; `most` is in characters; a `secret` is shown as dots."""
        super().__init__(tame(value)[:most], placeholder=hint, password=secret, max_length=most, id=id)
        self.cursor_blink = False

    def _on_paste(self, event: Paste) -> None:
        event.stop()
        event.prevent_default()  # Textual's own would insert it once more
        start, end = sorted(self.selection)
        room = MOST if self.max_length is None else self.max_length
        room -= len(self.value) - (end - start)
        # Cut first: what is longer is not even looked at.
        text = tame(event.text[: max(0, room)])
        if text:
            self.replace(text, start, end)
        if len(event.text) > room:
            self.post_message(self.Cut(len(event.text) - max(0, room)))


def tame(text: str) -> str:
    """The text on one line; what could drive the terminal is a blank."""
    return text if text.isascii() and text.isprintable() else DRIVES_A_TERMINAL.sub(" ", text)
