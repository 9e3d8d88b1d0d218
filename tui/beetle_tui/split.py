"""A list and what its chosen row holds: side by side where there is room, else one above the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import dropwhile
from typing import Any

from textual.containers import Container
from textual.content import Content
from textual.events import Resize
from textual.widget import Widget

from beetle_tui.document import Document
from beetle_tui.prose import BLANK, MOST_SHOWN, Block, fact, left_out, plain
from beetle_tui.rows import Rows
from beetle_tui.table import Listing
from beetle_tui.text import neutral

SIDE_BY_SIDE = 110
"""Columns from which on the detail stands beside the list."""
LABEL_CELLS = 12
TAB = 4
STYLES = {"+": "$success", "-": "$error", "@": "$label"}


class Detail(Document):
    """What the chosen row holds, under a line with its title; not to be seen while there is nothing to tell."""

    def __init__(self, title: str, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.title = title
        self.visible = False

    def describe(self, title: str, subject: object, blocks: Iterable[Block]) -> None:
        """Show these under a title; what is the same subject read again stays where it stands."""
        self.title = neutral(title)
        self.entitle(title)
        blocks = tuple(blocks)
        self.visible = bool(blocks) or self.has_focus
        # The title stands above them: no blank line is needed before the first.
        self.show(subject, dropwhile(lambda each: each == BLANK, blocks))


class Split(Container):
    """Two parts: a list, and a Detail. Below SIDE_BY_SIDE columns the detail is below, and takes most of the room
    while it has the keys."""

    DEFAULT_CSS = """
    Split {
        height: 1fr; layout: vertical;
        & > Detail:focus { height: 3fr; }
        &.-wide { layout: horizontal; }
        &.-wide > * { width: 1fr; height: 100%; }
        &.-wide > Detail, &.-wide > Detail:focus { height: 100%; margin-left: 1; }
    }
    """

    def on_resize(self, event: Resize) -> None:
        """Side by side or not."""
        self.set_class(event.size.width >= SIDE_BY_SIDE, "-wide")
        self.on_table_shown()

    def on_table_shown(self) -> None:
        """A list of few rows leaves its room to the detail below it."""
        for listing in self.query(Listing):
            rows = None if self.has_class("-wide") else listing.table.rows
            bound(listing, rows)
            holder = listing.parent
            # What says why a list is empty needs room in what holds it.
            if listing.display and isinstance(holder, Widget) and holder is not self:
                bound(holder, rows if rows is not None and rows.count else None)


def bound(listing: Widget, rows: Rows[Any] | None) -> None:
    """Give a list no more room than it has rows, its head and its foot."""
    most = None if rows is None else max(1, rows.count) + 2
    now = listing.styles.max_height
    if (None if now is None else now.value) != most:
        listing.styles.max_height = most


def value(label: str, text: str, target: object = None) -> Block:
    """A short value behind its label; enter on it goes to its target."""
    return fact(label, text, LABEL_CELLS, target)


def written(text: str) -> Iterator[Block]:
    """A text as somebody wrote it, line by line; of one that is very long the beginning, and how much is left out."""
    yield from (plain(line.removesuffix("\r").expandtabs(TAB)) for line in text[:MOST_SHOWN].split("\n"))
    yield from left_out(text)


def remark(text: str) -> Iterator[Block]:
    """Something that the console says of its own: fainter."""
    yield from (Block(Content.styled(neutral(line), "$label")) for line in text.split("\n"))


def change(diff: str) -> Iterator[Block]:
    """A unified diff: the first character tells what goes and what comes, colour only helps."""
    for line in diff[:MOST_SHOWN].split("\n"):
        yield Block(Content.styled(neutral(line.expandtabs(TAB)), STYLES.get(line[:1], "")), "", "  ")
    yield from left_out(diff)
