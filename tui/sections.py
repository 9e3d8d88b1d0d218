"""The parts of an area that are shown one at a time: a line of their names, the shown one reversed."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content
from textual.widget import Widget

HINT = "left, right: another part "


class Sections(Widget):
    """One line; it takes no keys of its own."""

    DEFAULT_CSS = """
    Sections { height: 1; text-wrap: nowrap; }
    """

    def __init__(self, titles: Sequence[str], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.titles = tuple(titles)
        self.index = 0

    def choose(self, index: int) -> None:
        """Mark another one; behind the last comes the first."""
        self.index = index % len(self.titles)
        self.refresh()

    def render(self) -> Content:
        """The names, and how to go on where there is room."""
        names = Content.assemble(
            *((f" {each} ", "reverse" if number == self.index else "") for number, each in enumerate(self.titles))
        )
        room = self.size.width - names.cell_length - len(HINT)
        return names if room < 1 else Content.assemble(names, " " * room, (HINT, "$label"))
