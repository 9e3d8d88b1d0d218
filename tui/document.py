"""A page of any length: its lines are folded to the room there is, and one of them is chosen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar, NamedTuple

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.visual import Visual

from tui.prose import Block
from tui.text import neutral


def title(text: str) -> Content:
    """A text as the title of a page: set off from the line that it stands in."""
    return Content(f" {neutral(text)} ")


class _Row(NamedTuple):
    content: Content
    block: int


class Document(ScrollView, can_focus=True, inherit_bindings=False):
    """Blocks below one another. Enter opens what the chosen line leads to: `Followed` tells it."""

    DEFAULT_CSS = """
    Document {
        height: 1fr; scrollbar-size-vertical: 1; overflow-x: hidden; overflow-y: scroll; padding: 0 1;
        scrollbar-color: $line; scrollbar-background: $background; border-top: solid $line;
        border-title-color: $foreground; border-title-style: bold; border-subtitle-color: $label;
        &:focus { border-top: heavy $foreground; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "Up", id="line-up", tooltip="the line above", show=False),
        Binding("down,j", "move(1)", "Down", id="line-down", tooltip="the line below", show=False),
        Binding("pageup", "page(-1)", "Page up", id="line-page-up", tooltip="a page of lines up", show=False),
        Binding("pagedown", "page(1)", "Page down", id="line-page-down", tooltip="a page of lines down", show=False),
        Binding("home,g", "edge(0)", "First", id="line-first", tooltip="to the first line", show=False),
        Binding("end,G", "edge(1)", "Last", id="line-last", tooltip="to the last line", show=False),
        Binding("n", "next(1)", "Next link", id="line-next-link", tooltip="to the next line that leads somewhere",
                show=False),
        Binding("N,p", "next(-1)", "Link before", id="line-link-before",
                tooltip="to the line before that leads somewhere", show=False),
        Binding("enter", "follow", "Follow", id="line-follow", tooltip="go where the line leads", show=False),
    ]  # fmt: skip

    class Followed(Message):
        """Enter was pressed on a line that leads to something."""

        def __init__(self, document: Document, target: object) -> None:
            super().__init__()
            self.document = document
            self.target = target

        @property
        def control(self) -> Document:
            """The page."""
            return self.document

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.index = 0
        self._subject: object = None
        self._blocks: Sequence[Block] = ()
        self._rows: list[_Row] = []
        self._folded_to = 0

    @property
    def target(self) -> object:
        """What the chosen line leads to; None for nothing."""
        return self._blocks[self._rows[self.index].block].target if self._rows else None

    @property
    def chosen_text(self) -> str:
        """The whole block that the chosen line is of."""
        return self._blocks[self._rows[self.index].block].text.plain if self._rows else ""

    @property
    def texts(self) -> list[str]:
        """Every line, as it is folded now."""
        return [row.content.plain.rstrip() for row in self._rows]

    def show(self, subject: object, blocks: Iterable[Block]) -> None:
        """Show these blocks; of the same subject as before, where the page stands, else from the top."""
        self._blocks = tuple(blocks)
        if subject != self._subject:
            self._subject = subject
            self.index = 0
            self.scroll_to(y=0, animate=False)
        self._fold()

    def go_to(self, target: object) -> None:
        """Choose the first line that leads to something."""
        found = (at for at, row in enumerate(self._rows) if self._blocks[row.block].target == target)
        self._choose(next(found, self.index))

    def action_move(self, steps: int) -> None:
        """Some lines on."""
        self._choose(self.index + steps)

    def action_page(self, pages: int) -> None:
        """Some pages on."""
        self._choose(self.index + pages * max(1, self.size.height - 1))

    def action_edge(self, last: int) -> None:
        """The first line, or the last."""
        self._choose(len(self._rows) - 1 if last else 0)

    def action_next(self, way: int) -> None:
        """The next line that begins a block which leads somewhere, or the one before."""
        at = self.index + way
        while 0 <= at < len(self._rows):
            block = self._rows[at].block
            begins = at == 0 or self._rows[at - 1].block != block
            if begins and self._blocks[block].target is not None:
                self._choose(at)
                return
            at += way

    def action_follow(self) -> None:
        """Tell where the chosen line leads, if it does."""
        if self.target is not None:
            self.post_message(self.Followed(self, self.target))

    def on_resize(self) -> None:
        """The lines are folded to the room there is."""
        if self.scrollable_content_region.width != self._folded_to:
            self._fold()

    def on_focus(self) -> None:
        """The chosen line is drawn otherwise."""
        self.refresh()

    def on_blur(self) -> None:
        """See on_focus."""
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """One line; the chosen one reversed while the keys work here."""
        at = y + int(self.scroll_offset.y)
        width = self.scrollable_content_region.width
        if at >= len(self._rows):
            return Strip.blank(width, self.rich_style)
        content = self._rows[at].content
        if at == self.index and self.has_focus:
            content = content.pad_right(max(0, width - content.cell_length)).stylize("reverse")
        strips = Visual.to_strips(self, content, width, 1, self.visual_style, apply_selection=False)
        return strips[0].adjust_cell_length(width, self.rich_style) if strips else Strip.blank(width, self.rich_style)

    def _choose(self, index: int) -> None:
        self.index = min(max(0, index), max(0, len(self._rows) - 1))
        self.scroll_to_region(Region(0, self.index, 1, 1), animate=False, force=True)
        self.refresh()

    def _fold(self) -> None:
        """Fold anew, once there is room at all; the chosen line stays in the block that it is of."""
        width = self.scrollable_content_region.width
        if not width:
            return
        block = self._rows[self.index].block if self._rows else 0
        within = self.index - next((at for at, row in enumerate(self._rows) if row.block == block), 0)
        self._folded_to = width
        self._rows = [
            _Row(line, number) for number, each in enumerate(self._blocks) for line in each.lines(max(8, width))
        ]
        first = next((at for at, row in enumerate(self._rows) if row.block == block), 0)
        self.index = min(first + within, max(0, len(self._rows) - 1))
        self.virtual_size = Size(width, len(self._rows))
        self.refresh()
