"""Lines of which one is chosen, by keys or with the mouse: what tables, pages and reports have in common.

The chosen line is always in sight: what a key acts on is what a person sees.
"""

from __future__ import annotations

from abc import abstractmethod

from textual.binding import Binding, BindingType
from textual.events import Click
from textual.geometry import Size
from textual.scroll_view import ScrollView


def moving(part: str, noun: str) -> list[BindingType]:
    """The keys that go through lines: `part` begins their ids, `noun` is what a line is called."""
    return [
        Binding("up,k", "move(-1)", "Up", id=f"{part}-up", tooltip=f"the {noun} above", show=False),
        Binding("down,j", "move(1)", "Down", id=f"{part}-down", tooltip=f"the {noun} below", show=False),
        Binding("pageup", "page(-1)", "Page up", id=f"{part}-page-up", tooltip=f"a page of {noun}s up", show=False),
        Binding(
            "pagedown", "page(1)", "Page down", id=f"{part}-page-down", tooltip=f"a page of {noun}s down", show=False
        ),
        Binding("home,g", "edge(0)", "First", id=f"{part}-first", tooltip=f"to the first {noun}", show=False),
        Binding("end,G", "edge(1)", "Last", id=f"{part}-last", tooltip=f"to the last {noun}", show=False),
    ]


class LineList(ScrollView, can_focus=True, inherit_bindings=False):
    """A subclass draws its lines, binds keys to `move`, `page` and `edge`, and says how many there are."""

    index = 0
    """The chosen line."""
    _fitted: Size | None = None

    @property
    @abstractmethod
    def line_count(self) -> int:
        """How many lines there are."""

    @abstractmethod
    def open_chosen(self) -> None:
        """What enter does to the chosen line, and a double click."""

    @abstractmethod
    def fit(self) -> None:
        """There may be other room than before."""

    def on_mount(self) -> None:
        """Look after each layout: where a place on the screen is asked for between a change of style and the layout
        that follows from it, Textual compares that layout with itself, and sends no Resize."""
        self.screen.screen_layout_refresh_signal.subscribe(self, self._look_at_room)

    def on_resize(self) -> None:
        """See fit."""
        self._fitted = self.size
        self.fit()
        self.keep_in_sight()

    def _look_at_room(self, _: object) -> None:
        if self.size != self._fitted:
            self.on_resize()
        else:
            self.keep_in_sight()

    def keep_in_sight(self) -> None:
        """Scroll no further than is needed to see the chosen line."""
        top, height = int(self.scroll_offset.y), self.scrollable_content_region.height
        if height > 0 and not top <= self.index < top + height:
            to = self.index if self.index < top else self.index - height + 1
            self.scroll_to(y=to, animate=False, force=True, immediate=True)

    def _follow_sight(self) -> None:
        """Choose the nearest of the lines in sight: the mouse has scrolled."""
        top, height = int(self.scroll_offset.y), self.scrollable_content_region.height
        nearest = min(max(self.index, top), top + height - 1)
        if height > 0 and nearest != self.index:
            self.choose(nearest)

    def choose(self, index: int) -> None:
        """Choose a line by its number, or the nearest that there is, and bring it into sight."""
        before, self.index = self.index, min(max(0, index), max(0, self.line_count - 1))
        # What scrolls is drawn whole, and that comes later; where it stays, two lines are another.
        self.keep_in_sight()
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

    def on_mouse_scroll_down(self) -> None:
        """What a person sees is what keys act on: after the wheel too."""
        self.call_later(self._follow_sight)

    def on_mouse_scroll_up(self) -> None:
        """See on_mouse_scroll_down."""
        self.call_later(self._follow_sight)

    def on_scroll_to(self) -> None:
        """See on_mouse_scroll_down: the bar was dragged."""
        self.call_later(self._follow_sight)

    def on_focus(self) -> None:
        """The chosen line is drawn otherwise."""
        self.refresh()

    def on_blur(self) -> None:
        """See on_focus."""
        self.refresh()
