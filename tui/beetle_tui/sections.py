"""The parts of an area that are shown one at a time: a line of their names, the shown one reversed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from textual.content import Content
from textual.events import Click
from textual.message import Message
from textual.widget import Widget

from beetle_tui.keys import hinted


class Sections(Widget):
    """One line; it takes no keys of its own. What shows the parts answers `Picked` with another one."""

    DEFAULT_CSS = """
    Sections { height: 1; text-wrap: nowrap; }
    """

    @dataclass
    class Picked(Message):
        """A name was clicked: that part is wanted."""

        index: int

    def __init__(self, titles: Sequence[str], keys: str) -> None:
        """`keys` says how to go on, as `hinted` takes it."""
        super().__init__()
        self.titles = tuple(titles)
        self._keys = keys
        self.index = 0

    def choose(self, index: int) -> None:
        """Mark another one; behind the last comes the first."""
        self.index = index % len(self.titles)
        self.refresh()

    def on_click(self, event: Click) -> None:
        """Tell which name is under the mouse."""
        end = 0
        for index, each in enumerate(self.titles):
            end += cell_len(each) + 2
            if event.x < end:
                self.post_message(self.Picked(index))
                return

    def render(self) -> Content:
        """The names, and how to go on where there is room."""
        names = Content.assemble(
            *((f" {each} ", "reverse" if number == self.index else "") for number, each in enumerate(self.titles))
        )
        hint = f"{hinted(self.app, self._keys)} "
        room = self.size.width - names.cell_length - len(hint)
        return names if room < 1 else Content.assemble(names, " " * room, (hint, "$label"))
