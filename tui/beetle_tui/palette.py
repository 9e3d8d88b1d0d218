"""The command palette: areas and actions, found by typing part of what they are called."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import ClassVar, NamedTuple

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.events import Click
from textual.message import Message
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Input

from beetle.contracts.errors import BeetleError
from beetle_tui.keys import hinted
from beetle_tui.line_input import LineInput
from beetle_tui.table import fitted
from beetle_tui.text import neutral
from beetle_tui.too_small import TooSmall

MOST_LINES = 12
AROUND_LINES = 7
"""Lines of the screen that are not the list's: the frame, what is typed, and what stands above and below."""
TITLE_SHARE = 0.5
"""Of the width, the most that titles take from what explains them."""
MOST_TYPED = 200
PARTS = re.compile(r"[\W_]+")
"""What stands between the words of a title."""


class Entry(NamedTuple):
    """One line of the palette: its title, the app's action that it runs, and what that does."""

    title: str
    action: str
    told: str


class Palette(ModalScreen[str | None]):
    """Answers with the action that was chosen, or with None."""

    DEFAULT_CSS = """
    Palette {
        align: center top;
        background: transparent;
        #palette {
            width: 80; max-width: 100%; height: auto; margin-top: 2; padding: 0 1; background: $background;
            border: solid $line; border-title-color: $foreground; border-title-style: bold;
            border-subtitle-color: $label;
        }
        Input, Input:focus { border: none; padding: 0; height: 1; background: $background; background-tint: 0%; }
        Choices { height: auto; margin-top: 1; text-wrap: nowrap; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,ctrl+p", "dismiss(None)", "Close", id="palette-close", tooltip="back to the screen"),
        Binding("up", "move(-1)", "Up", id="palette-up", tooltip="the command above", show=False),
        Binding("down", "move(1)", "Down", id="palette-down", tooltip="the command below", show=False),
        Binding("pageup", "page(-1)", "Page up", id="palette-page-up", tooltip="a page of commands up", show=False),
        Binding("pagedown", "page(1)", "Page down", id="palette-page-down", tooltip="a page of commands down",
                show=False),
    ]  # fmt: skip

    def __init__(
        self,
        entries: Sequence[Entry],
        more: Callable[[], Awaitable[Sequence[Entry]]] | None = None,
        *,
        title: str = "Commands",
    ) -> None:
        """`more` answers further entries, which are shown once they are there, or raises BeetleError."""
        super().__init__()
        self._entries = tuple(entries)
        self._more = more
        self._title = title
        self._fault = ""
        # Kept: further entries may come while the palette is being closed, when nothing can be looked up in it.
        self._typed = LineInput(hint="type part of a name", most=MOST_TYPED)
        self._choices = Choices()
        self._box = Vertical(self._typed, self._choices, id="palette")

    def compose(self) -> ComposeResult:
        """A line to type in, above what it finds."""
        self._box.border_title = f"{self._title} {hinted(self.app, '(enter runs, {palette-close} closes)')}"
        yield self._box
        yield TooSmall()

    def on_mount(self) -> None:
        """Everything, before anything is typed."""
        # At once: a screen finds its focus a little later, and what is typed or pasted until then would be lost.
        self.set_focus(self._typed)
        self._show(self._entries)
        if self._more is not None:
            self.run_worker(partial(self._ask_more, self._more), name="more", group="more")

    def on_input_changed(self, event: Input.Changed) -> None:
        """Show what holds every word that was typed."""
        self._show(found(self._entries, event.value))

    def on_input_submitted(self) -> None:
        """Run the chosen one."""
        self._run()

    def on_choices_picked(self) -> None:
        """Run the one that was clicked."""
        self._run()

    def _run(self) -> None:
        chosen = self._choices.chosen
        if chosen is not None:
            self.dismiss(chosen.action)

    async def _ask_more(self, more: Callable[[], Awaitable[Sequence[Entry]]]) -> None:
        try:
            found_more = await more()
        except BeetleError as error:
            self._fault = f"no operations: {error.key}"
        else:
            self._entries += tuple(found_more)
            self._choices.extend(found(self._entries, self._typed.value))
        self._show_place()

    def action_move(self, steps: int) -> None:
        """Choose another."""
        self._choices.move(steps)
        self._show_place()

    def action_page(self, pages: int) -> None:
        """Choose one that is a page away."""
        self.action_move(pages * self._choices.most)

    def on_mouse_scroll_down(self) -> None:
        """The entry below."""
        self.action_move(1)

    def on_mouse_scroll_up(self) -> None:
        """The entry above."""
        self.action_move(-1)

    def on_resize(self) -> None:
        """There may be room for more."""
        self._show_place()

    def _show(self, entries: Sequence[Entry]) -> None:
        self._choices.show(entries)
        self._show_place()

    def _show_place(self) -> None:
        self._box.border_subtitle = neutral(self._fault or self._choices.place)


def found(entries: Sequence[Entry], typed: str) -> list[Entry]:
    """The entries that hold every word that was typed, the likeliest first; of those alike, in the order given."""
    words = typed.casefold().split()
    matching = [each for each in entries if all(word in f"{each.title} {each.told}".casefold() for word in words)]
    return sorted(matching, key=lambda each: _distance(each, words))


def _distance(entry: Entry, words: Sequence[str]) -> int:
    """How far an entry is from what was typed: called just that; begins so; words of its title begin so; they are in
    its title; words of what explains it begin so; they are somewhere."""
    title, told = entry.title.casefold(), entry.told.casefold()
    text = " ".join(words)
    if title == text:
        return 0
    if title.startswith(text):
        return 1
    where, distance = (title, 2) if all(word in title for word in words) else (f"{title} {told}", 4)
    parts = PARTS.split(where)
    return distance + (not all(any(part.startswith(word) for part in parts) for word in words))


class Choices(Widget):
    """A list of entries with one of them chosen: marked and reversed."""

    class Picked(Message):
        """An entry was clicked; it is the chosen one."""

    _entries: Sequence[Entry] = ()
    _index = 0
    _first = 0

    @property
    def chosen(self) -> Entry | None:
        """None where there is nothing to choose."""
        return self._entries[self._index] if self._entries else None

    def show(self, entries: Sequence[Entry]) -> None:
        """Show these, and choose the first."""
        self._entries, self._index = entries, 0
        self.refresh(layout=True)

    def extend(self, entries: Sequence[Entry]) -> None:
        """Show these, and keep the chosen one where it is among them."""
        chosen = self.chosen
        self._entries = entries
        self._index = entries.index(chosen) if chosen is not None and chosen in entries else 0
        self.refresh(layout=True)

    @property
    def place(self) -> str:
        """Which one is chosen, of how many; nothing where all of them are seen."""
        return f"{self._index + 1} of {len(self._entries)}" if len(self._entries) > self.most else ""

    @property
    def most(self) -> int:
        """Lines that there is room for."""
        return max(1, min(MOST_LINES, self.app.size.height - AROUND_LINES))

    def move(self, steps: int) -> None:
        """Choose the entry that many lines below; there is no further than the ends."""
        self._index = min(max(0, self._index + steps), max(0, len(self._entries) - 1))
        self.refresh()

    def on_click(self, event: Click) -> None:
        """Run what is under the mouse."""
        at = self._first + event.y
        if 0 <= at < len(self._entries):
            self._index = at
            self.post_message(self.Picked())

    def render(self) -> Content:
        """As many lines as there is room for, the chosen one among them."""
        if not self._entries:
            return Content.styled("Nothing is called that.", "$label")
        width, most = self.content_size.width, self.most
        titles = min(max(cell_len(neutral(each.title)) for each in self._entries), int(width * TITLE_SHARE))
        self._first = min(max(0, self._index - most // 2), max(0, len(self._entries) - most))
        lines: list[Content] = []
        for index, each in enumerate(self._entries[self._first : self._first + most], self._first):
            title = fitted(neutral(each.title), titles)
            told = fitted(neutral(each.told), max(0, width - titles - 4))
            if index == self._index:
                lines.append(Content.styled(f"> {title}  {told}", "reverse"))
            else:
                lines.append(Content.assemble(f"  {title}  ", (told, "$label")))
        return Content("\n").join(lines)
