"""The command palette: areas and actions, found by typing part of what they are called."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import ClassVar, NamedTuple

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Input

from beetle.contracts.errors import BeetleError
from tui.line import Line
from tui.text import neutral, padded

MOST_LINES = 12
MOST_TYPED = 200


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
            width: 76; max-width: 100%; height: auto; margin-top: 2; padding: 0 1; background: $background;
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
    ]

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

    def compose(self) -> ComposeResult:
        """A line to type in, above what it finds."""
        with Vertical(id="palette") as box:
            box.border_title = f"{self._title} (enter runs, esc closes)"
            yield Line(hint="type part of a name", most=MOST_TYPED)
            yield Choices()

    def on_mount(self) -> None:
        """Everything, before anything is typed."""
        self.query_one(Choices).show(self._entries)
        if self._more is not None:
            self.run_worker(partial(self._ask_more, self._more), name="more", group="more")

    def on_input_changed(self, event: Input.Changed) -> None:
        """Show what holds every word that was typed."""
        self.query_one(Choices).show(found(self._entries, event.value))

    def on_input_submitted(self) -> None:
        """Run the chosen one."""
        chosen = self.query_one(Choices).chosen
        if chosen is not None:
            self.dismiss(chosen.action)

    async def _ask_more(self, more: Callable[[], Awaitable[Sequence[Entry]]]) -> None:
        try:
            found_more = await more()
        except BeetleError as error:
            self.query_one("#palette").border_subtitle = neutral(f"no operations: {error.key}")
            return
        self._entries += tuple(found_more)
        self.query_one(Choices).extend(found(self._entries, self.query_one(Line).value))

    def action_move(self, steps: int) -> None:
        """Choose another."""
        self.query_one(Choices).move(steps)


def found(entries: Sequence[Entry], typed: str) -> list[Entry]:
    """The entries that hold every word that was typed; those with all of them in the title first."""
    words = typed.casefold().split()
    matching = [each for each in entries if all(word in f"{each.title} {each.told}".casefold() for word in words)]
    return sorted(matching, key=lambda each: not all(word in each.title.casefold() for word in words))


class Choices(Widget):
    """A list of entries with one of them chosen: marked and reversed."""

    _entries: Sequence[Entry] = ()
    _index = 0

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

    def move(self, steps: int) -> None:
        """Choose the entry that many lines below; there is no further than the ends."""
        self._index = min(max(0, self._index + steps), max(0, len(self._entries) - 1))
        self.refresh()

    def render(self) -> Content:
        """As many lines as there is room for, the chosen one among them."""
        if not self._entries:
            return Content.styled("Nothing is called that.", "$label")
        width = self.content_size.width
        titles = max(len(each.title) for each in self._entries)
        first = min(max(0, self._index - MOST_LINES // 2), max(0, len(self._entries) - MOST_LINES))
        lines: list[Content] = []
        for index, each in enumerate(self._entries[first : first + MOST_LINES], first):
            title, told = padded(neutral(each.title), titles), neutral(each.told)
            if index == self._index:
                lines.append(Content.styled(padded(f"> {title}  {told}", width), "reverse"))
            else:
                lines.append(Content.assemble(f"  {title}  ", (padded(told, max(0, width - titles - 4)), "$label")))
        return Content("\n").join(lines)
