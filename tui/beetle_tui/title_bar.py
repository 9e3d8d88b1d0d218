"""The first line of every area: the areas with their keys, and how current the figures are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.content import Content
from textual.events import Click
from textual.widget import Widget

from beetle_tui.keys import plain_key_for
from beetle_tui.messages import AreaWanted

if TYPE_CHECKING:
    from beetle_tui.area import Area

STATE_CELLS = 13
"""What the title bar keeps for `live 19:31Z` and the blanks beside it."""
CUTS = (5, 4, 3, 0)
"""Letters of a name where all of them have no room: ten areas have 3 in 80 columns."""


class TitleBar(Widget):
    """The areas with their keys, the shown one reversed; on the right how current the figures are."""

    def __init__(self, areas: Sequence[Area], *, id: str) -> None:
        super().__init__(id=id)
        self._areas = areas
        self._current = ""
        self._states = ("", "", "")
        self._left = ""
        self._shown: Content | None = None

    @property
    def state(self) -> str:
        """How current the figures are, in the long form, whether there is room for it or not."""
        return self._states[0]

    def show(self, current: str, states: tuple[str, str, str]) -> None:
        """`current` is the name of the area that is shown; `states` the same one in ever fewer words."""
        if (current, states) != (self._current, self._states):
            self._current, self._states = current, states
            # The seconds of a reading are shown where there is room for them, and only there.
            shown = self._shown
            if shown is None or not self.render().is_same(shown):
                self.refresh()

    def render(self) -> Content:
        """One line. The areas have their names while those fit beside a short state, whatever the state is now: names
        that came and went with it would be read again each time."""
        width = self.size.width
        forms = (self._in_full(), self._in_short(), *(self._in_others(letters) for letters in CUTS))
        left = next((each for each in forms if each.cell_length + STATE_CELLS <= width), forms[-1])
        self._left = left.plain
        room = width - left.cell_length - 2
        state = next((each for each in self._states if len(each) <= room), self._states[-1])
        left = left.truncate(max(0, width - len(state) - 2), ellipsis=True, pad=True)
        self._shown = Content.assemble(left, f" {state} ")
        return self._shown

    def on_click(self, event: Click) -> None:
        """Go to the area whose key or name is there."""
        clicked = None
        for each in self._areas:
            start = self._left.find(self._named(each))
            start = self._left.find(self._key(each)) if start < 0 else start
            if 0 <= start <= event.x:
                clicked = each
        if clicked is not None and event.x < len(self._left):
            self.post_message(AreaWanted(clicked.name))

    def _in_full(self) -> Content:
        return Content.assemble(
            (" Beetle ", "bold"), *(self._label(f" {self._named(each)} ", each) for each in self._areas)
        )

    def _in_short(self) -> Content:
        return Content(" ").join(Content.assemble(self._label(self._named(each), each)) for each in self._areas)

    def _in_others(self, letters: int) -> Content:
        """Of the areas that are not shown the names have so many letters."""
        named = (
            (self._named(each) if each.name == self._current else f"{self._key(each)} {each.title[:letters]}", each)
            for each in self._areas
        )
        return Content(" ").join(Content.assemble(self._label(text.rstrip(), each)) for text, each in named)

    def _named(self, area: Area) -> str:
        return f"{self._key(area)} {area.title}"

    def _key(self, area: Area) -> str:
        return plain_key_for(self.app, area.name, area.key)

    def _label(self, text: str, area: Area) -> tuple[str, str]:
        return text, "reverse" if area.name == self._current else ""
