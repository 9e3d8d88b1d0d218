"""Lines of which one is chosen, by keys or with the mouse: what tables, pages and reports have in common."""

from __future__ import annotations

from abc import abstractmethod

from textual.events import Click
from textual.geometry import Region
from textual.scroll_view import ScrollView


class Lines(ScrollView, can_focus=True, inherit_bindings=False):
    """A subclass draws its lines, binds keys to `move`, `page` and `edge`, and says how many there are."""

    index = 0
    """The chosen line."""

    @property
    @abstractmethod
    def line_count(self) -> int:
        """How many lines there are."""

    @abstractmethod
    def open_chosen(self) -> None:
        """What enter does to the chosen line, and a double click."""

    def choose(self, index: int) -> None:
        """Choose a line by its number, or the nearest that there is, and bring it into sight."""
        before, self.index = self.index, min(max(0, index), max(0, self.line_count - 1))
        # What scrolls is drawn whole, and that comes later; where it stays, two lines are another.
        self.scroll_to_region(Region(0, self.index, 1, 1), animate=False, force=True)
        self.refresh_line(before)
        self.refresh_line(self.index)

    def action_move(self, steps: int) -> None:
        """Some lines on."""
        self.choose(self.index + steps)

    def action_page(self, pages: int) -> None:
        """Some pages on."""
        self.choose(self.index + pages * max(1, self.size.height - 1))

    def action_edge(self, last: int) -> None:
        """The first line, or the last."""
        self.choose(self.line_count - 1 if last else 0)

    def on_click(self, event: Click) -> None:
        """Choose the line under the mouse; the second click in a row opens it."""
        place = event.get_content_offset(self)
        at = self.line_count if place is None else place.y + int(self.scroll_offset.y)
        if at < self.line_count:
            # The first click may have given this the keys, and room that moves its lines: then it opens another one.
            again = event.chain == 2 and at == self.index
            self.choose(at)
            if again:
                self.open_chosen()

    def on_focus(self) -> None:
        """The chosen line is drawn otherwise."""
        self.refresh()

    def on_blur(self) -> None:
        """See on_focus."""
        self.refresh()
