"""A box of many counts in few lines: as many columns as there is room for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from rich.cells import cell_len
from textual.content import Content

from beetle_tui.panels import LABEL, Panel
from beetle_tui.table import fitted

LINE = " │ "
LEAST = 22
"""Cells of a column, at least: a label and a count of millions."""
MOST_COLUMNS = 3


class Tally(NamedTuple):
    """One count, in the letters in which it is shown."""

    label: str
    text: str


class Tallies(Panel):
    """Counts behind their labels, in columns that are read from above."""

    _tallies: tuple[Tally, ...] = ()

    def show(self, tallies: Iterable[Tally]) -> None:
        """Show these."""
        found = tuple(tallies)
        if found != self._tallies:
            self._tallies = found
            self.redraw()

    def lines(self, width: int) -> list[Content]:
        """See Panel."""
        columns = max(1, min(MOST_COLUMNS, (width + len(LINE)) // (LEAST + len(LINE))))
        rows = -(-len(self._tallies) // columns)
        room = (width - len(LINE) * (columns - 1)) // columns
        found: list[Content] = []
        for row in range(rows):
            cells = [self._cell(each, room) for each in self._tallies[row::rows]]
            found.append(Content.styled(LINE, "$line").join(cells))
        return found

    def _cell(self, tally: Tally, room: int) -> Content:
        label = fitted(tally.label, max(0, room - cell_len(tally.text) - 1))
        return Content.assemble((label, LABEL), " ", tally.text)
