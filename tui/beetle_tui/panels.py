"""Boxes of aligned lines. What they are given is text: it is no markup, and cannot drive the terminal."""

from __future__ import annotations

from collections.abc import Iterable

from rich.cells import cell_len, set_cell_size
from textual.content import Content
from textual.geometry import Region, Size
from textual.widget import Widget

from beetle_tui.text import fold, neutral

LABEL = "$label"
GAP = "  "
LABEL_CELLS = 7
"""What a label takes at least, so that the values of one box stand under those of another."""


class Panel(Widget):
    """A box with a title, as high as its lines."""

    DEFAULT_CSS = """
    Panel {
        height: auto;
        padding: 0 1;
        border: solid $line;
        border-title-color: $foreground;
        border-title-style: bold;
        text-wrap: nowrap;
    }
    """

    def __init__(self, title: str, *, id: str) -> None:
        super().__init__(id=id)
        self.border_title = title
        self._drawn: list[Content] = []

    def lines(self, width: int) -> list[Content]:
        """What is shown in `width` cells."""
        raise NotImplementedError

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """The number of lines."""
        del container, viewport
        return len(self.lines(width))

    def render(self) -> Content:
        """The lines as one text."""
        self._drawn = self.lines(self.content_size.width)
        return Content("\n").join(self._drawn)

    def redraw(self) -> None:
        """Draw the lines that have changed; all of the screen is laid out anew where their number is another."""
        width, height = self.content_size
        lines = self.lines(width) if width else []
        if not lines or not len(lines) == len(self._drawn) == height:
            self.refresh(layout=True)
            return
        for y, (line, before) in enumerate(zip(lines, self._drawn, strict=True)):
            if not line.is_same(before):
                self.refresh(Region(0, y, width, 1))


class Facts(Panel):
    """`label  value` lines; a value that is too long goes on below, so that nothing of it is lost."""

    _facts: tuple[tuple[str, str], ...] = ()

    def show(self, facts: Iterable[tuple[str, str]]) -> None:
        """Show these labels and values."""
        found = tuple((label, neutral(value)) for label, value in facts)
        if found != self._facts:
            self._facts = found
            self.redraw()

    def lines(self, width: int) -> list[Content]:
        """See Panel."""
        room = max((cell_len(label) for label, _ in self._facts), default=0)
        room = max(room, LABEL_CELLS)
        return [
            Content.assemble((set_cell_size("" if number else label, room), LABEL), GAP, part)
            for label, value in self._facts
            for number, part in enumerate(fold(value, width - room - len(GAP)))
        ]


class Remarks(Panel):
    """Sentences, each behind a mark; and one that stands there while there are none."""

    def __init__(self, title: str, *, id: str) -> None:
        super().__init__(title, id=id)
        self._remarks: tuple[str, ...] = ()
        self._empty = ""

    def show(self, remarks: Iterable[str], empty: str) -> None:
        """Show these sentences, or `empty`."""
        found = tuple(neutral(each) for each in remarks)
        if (found, empty) != (self._remarks, self._empty):
            self._remarks, self._empty = found, empty
            self.redraw()

    def lines(self, width: int) -> list[Content]:
        """See Panel."""
        if not self._remarks:
            return [Content.styled(part, LABEL) for part in fold(self._empty, width)]
        return [
            Content.assemble(("  " if number else "! ", "$warning bold"), part)
            for each in self._remarks
            for number, part in enumerate(fold(each, width - 2))
        ]
