"""A page of any length: its lines are folded to the room there is, and one of them is chosen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip
from textual.visual import Visual

from beetle_tui.line_list import LineList, moving
from beetle_tui.prose import Block
from beetle_tui.text import neutral

UNSEEN_CELLS = 76


class _Row(NamedTuple):
    content: Content
    block: int

    def looks_as(self, other: _Row) -> bool:
        """Whether nothing is to be drawn anew where the other one was."""
        return self.content.is_same(other.content)


class Document(LineList, inherit_bindings=False):
    """Blocks below one another. Enter opens what the chosen line leads to: `Followed` tells it."""

    # The room for the bar is always taken: a page that is folded before the bar comes would lose a cell of each line.
    DEFAULT_CSS = """
    Document {
        height: 1fr; scrollbar-size-vertical: 1; overflow-x: hidden; overflow-y: scroll; padding: 0 1;
        scrollbar-color: $line; scrollbar-background: $background; border-top: solid $line;
        border-title-color: $foreground; border-title-style: bold; border-subtitle-color: $label;
        &:focus { border-top: heavy $foreground; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *moving("line", "line"),
        Binding("n", "next(1)", "Next link", id="line-next-link", tooltip="to the next line that leads somewhere",
                show=False),
        Binding("N,p", "next(-1)", "Link before", id="line-link-before",
                tooltip="to the line before that leads somewhere", show=False),
        Binding("enter", "follow", "Follow", id="line-follow", tooltip="go where the line leads", show=False),
    ]  # fmt: skip

    @dataclass
    class Followed(Message):
        """Enter was pressed on a line that leads to something."""

        document: Document
        target: object

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._subject: object = None
        self._blocks: Sequence[Block] = ()
        self._rows: list[_Row] = []
        self._folded_to = 0
        self._goal: object = None
        self._entitled: Content | None = None

    @property
    def line_count(self) -> int:
        """See LineList."""
        return len(self._rows)

    def open_chosen(self) -> None:
        """See LineList."""
        self.action_follow()

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
        """Every line, as it is folded now; of a page that is not in sight, as most terminals would have it."""
        if self._folded_to:
            return [row.content.plain.rstrip() for row in self._rows]
        return [line.plain.rstrip() for each in self._blocks for line in each.lines(UNSEEN_CELLS)]

    def entitle(self, text: str) -> None:
        """What the line above says; nothing for an empty text."""
        wanted = Content(f" {neutral(text)} " if text else "")
        if self._entitled is None or not self._entitled.is_same(wanted):  # it has all of the page drawn anew
            self._entitled = wanted
            self.border_title = wanted

    def show(self, subject: object, blocks: Iterable[Block]) -> None:
        """Show these blocks; of the same subject as before, where the page stands, else from the top."""
        self._blocks = tuple(blocks)
        if subject != self._subject:
            self._subject = subject
            self._goal = None
            self.index = 0
            self.scroll_to(y=0, animate=False, immediate=True)
        self._fold()

    def go_to(self, target: object) -> None:
        """Choose the first line that leads to something, as soon as there is room for lines."""
        self._goal = None if self._folded_to else target
        found = (at for at, row in enumerate(self._rows) if self._blocks[row.block].target == target)
        self.choose(next(found, self.index))

    def action_next(self, way: int) -> None:
        """The next line that begins a block which leads somewhere, or the one before."""
        at = self.index + way
        while 0 <= at < len(self._rows):
            block = self._rows[at].block
            begins = at == 0 or self._rows[at - 1].block != block
            if begins and self._blocks[block].target is not None:
                self.choose(at)
                return
            at += way

    def action_follow(self) -> None:
        """Tell where the chosen line leads, if it does."""
        if self.target is not None:
            self.post_message(self.Followed(self, self.target))

    def fit(self) -> None:
        """See LineList: the lines are folded to the room there is."""
        if self.scrollable_content_region.width != self._folded_to:
            self._fold()

    def render_line(self, y: int) -> Strip:
        """One line; the chosen one reversed while the keys work here."""
        at = y + int(self.scroll_offset.y)
        width = self.scrollable_content_region.width
        blank = self.visual_style.rich_style  # rich_style is worked out anew from all that is around it
        if at >= len(self._rows):
            return Strip.blank(width, blank)
        content = self._rows[at].content
        if at == self.index and self.has_focus:
            content = content.pad_right(max(0, width - content.cell_length)).stylize("reverse")
        strips = Visual.to_strips(self, content, width, 1, self.visual_style, apply_selection=False)
        return strips[0].adjust_cell_length(width, blank) if strips else Strip.blank(width, blank)

    def _fold(self) -> None:
        """Fold anew, once there is room at all; the chosen line stays in the block that it is of."""
        width = self.scrollable_content_region.width
        if not width:
            # What was folded before is of other blocks: it is folded anew once it is in sight again.
            self._rows, self._folded_to = [], 0
            return
        block = self._rows[self.index].block if self._rows else 0
        within = self.index - next((at for at, row in enumerate(self._rows) if row.block == block), 0)
        self._folded_to = width
        before, chosen = self._rows, self.index
        self._rows = [
            _Row(line, number) for number, each in enumerate(self._blocks) for line in each.lines(max(8, width))
        ]
        first = next((at for at, row in enumerate(self._rows) if row.block == block), 0)
        self.index = min(first + within, max(0, len(self._rows) - 1))
        self.virtual_size = Size(width, len(self._rows))
        self.keep_in_sight()
        self._refresh_changed(before, chosen)
        if self._goal is not None:
            self.go_to(self._goal)

    def _refresh_changed(self, before: Sequence[_Row], chosen: int) -> None:
        """Draw the lines that are in sight and are others than before: on a slow line each one counts."""
        top = int(self.scroll_offset.y)
        for at in range(top, top + self.size.height):
            here, there = (rows[at] if at < len(rows) else None for rows in (self._rows, before))
            same = here is there if here is None or there is None else here.looks_as(there)
            if not same or (chosen != self.index and at in (chosen, self.index)):
                self.refresh_line(at)
