"""What is shown in a terminal that is too small for the console, over every screen."""

from __future__ import annotations

from typing import ClassVar

from textual.content import Content
from textual.geometry import Size
from textual.widget import Widget

from beetle_tui.keys import plain_key_for

SMALLEST = (60, 16)
"""Columns and rows that the console needs."""
NARROW = [(0, "-narrow"), (SMALLEST[0], "-wide-enough")]
LOW = [(0, "-low"), (SMALLEST[1], "-high-enough")]
"""Classes that every screen has by its columns and by its rows."""


def too_small(size: Size) -> bool:
    """Whether a terminal has too few columns or rows."""
    return size.width < SMALLEST[0] or size.height < SMALLEST[1]


class TooSmall(Widget):
    """Covers the screen that it stands in while the terminal is too small; what is below keeps its focus and text."""

    SCOPED_CSS: ClassVar[bool] = False
    DEFAULT_CSS = """
    Screen { layers: base above; }
    TooSmall {
        display: none; layer: above; width: 100%; height: 100%; background: $background;
        content-align: center middle; text-align: center;
    }
    Screen.-narrow > TooSmall, Screen.-low > TooSmall { display: block; }
    """

    def __init__(self, said: str = "", again: str = "") -> None:
        """`said` stands above what is to be done, `again` behind the key that quits."""
        super().__init__()
        self._said = said
        self._again = again

    def render(self) -> Content:
        """How large the terminal is, how large it should be, and the key that still works."""
        columns, rows = self.app.size
        key = plain_key_for(self.app, "quit", "q")
        lines = (
            f"This terminal has {columns} x {rows}.",
            f"The console needs {SMALLEST[0]} x {SMALLEST[1]}.",
            *([self._said] if self._said else []),
            f"Enlarge it, or press {key}{self._again} to quit.",
        )
        return Content("\n".join(lines))
