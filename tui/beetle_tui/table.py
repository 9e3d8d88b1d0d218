"""A table of any length: it draws the lines that are seen, and has the rows behind them read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from beetle.contracts.errors import BeetleError
from beetle_tui.keys import hinted
from beetle_tui.line_list import LineList, moving
from beetle_tui.rows import Rows
from beetle_tui.text import neutral

T = TypeVar("T")

GAP = 2
AHEAD = 20
"""Rows above and below the seen ones that are read with them."""
WAITING = "…"
_Drawn = tuple[int, bool, Any] | None
"""What a line shows: the number of a row, whether it is the chosen one, and the row once it is read."""


class Column(NamedTuple, Generic[T]):
    """A column: its head, what it shows of a row, and how wide it is in cells; one without a width takes what is left.

    `narrow` leaves it out where the table has fewer cells than that.
    """

    title: str
    show: Callable[[T], str]
    width: int | None = None
    right: bool = False
    narrow: int = 0


class Table(LineList, Generic[T], inherit_bindings=False):
    """The lines of a table; `Listing` puts the head above and the state below."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"table--chosen", "table--dim"}
    DEFAULT_CSS = """
    Table {
        height: 1fr; scrollbar-size-vertical: 1; overflow-x: hidden; overflow-y: scroll;
        scrollbar-color: $line; scrollbar-background: $background;
        .table--chosen { text-style: reverse; }
        .table--dim { color: $label; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *moving("row", "row"),
        Binding("enter", "open", "Open", id="row-open", tooltip="show the row whole", show=False),
    ]

    @dataclass
    class Chosen(Message):
        """Another row is chosen; `row` is None while it is not read or there is none."""

        table: Table[Any]
        row: Any

        def can_replace(self, message: Message) -> bool:
            """Only the last of several choices matters. An opened row is none, and is not to be lost where a
            reading tells of it again."""
            return type(self) is type(message) is Table.Chosen

    class Opened(Chosen):
        """Enter was pressed on a row."""

    class Shown(Message):
        """What the table shows, or what it knows of its length, has changed."""

        def can_replace(self, message: Message) -> bool:
            """See Chosen."""
            return isinstance(message, Table.Shown)

    @dataclass
    class Failed(Message):
        """Rows could not be read."""

        error: BeetleError

    def __init__(
        self,
        columns: Sequence[Column[T]],
        *,
        id: str | None = None,
        dim: Callable[[T], bool] | None = None,
        key: Callable[[T], object] | None = None,
    ) -> None:
        """`dim` says which rows count less: they are drawn fainter. `key` is what stays of a row when it is read again:
        where rows come and go, the chosen one stays chosen, at its place on the screen, as long as it is there."""
        super().__init__(id=id)
        self.columns = tuple(columns)
        self.rows: Rows[T] | None = None
        self._dim = dim
        self._key = key
        self._held: object = None
        """The key of the chosen row, once it was read."""
        self._held_row: T | None = None
        self._reading = False
        self._told: Any = None
        self._drawn: dict[int, _Drawn] = {}

    @property
    def line_count(self) -> int:
        """See LineList."""
        return 0 if self.rows is None else self.rows.count

    def open_chosen(self) -> None:
        """See LineList."""
        self.action_open()

    @property
    def room(self) -> int:
        """Cells beside the scrollbar."""
        return self.scrollable_content_region.width

    @property
    def chosen(self) -> T | None:
        """The row that is chosen, once it is read. While a reading comes page by page, and another row stands in its
        place before it is found again, it is the one that was drawn."""
        row = None if self.rows is None else self.rows.get(self.index)
        if row is not None and self._held is not None and not self._is_held(row):
            return self._held_row
        return row

    def show(self, rows: Rows[T], index: int = 0) -> None:
        """Show another list, from a row on."""
        self._held = None
        self.index = index
        self.scroll_to(y=0, animate=False, immediate=True)
        self.renew(rows)

    def renew(self, rows: Rows[T]) -> None:
        """Show another reading of the list; the chosen row stays the chosen one."""
        self.rows = rows
        self._told = rows  # no row of it: that there is none is told as well
        self._settle()
        self.read()

    def read_again(self) -> None:
        """What is shown may be outdated: read it again; it stays on the screen until then."""
        if self.rows is not None:
            self.rows.forget()
            self.read()

    def read(self, *, scrolled: bool = False) -> None:
        """Read what is seen and not there. Where the mouse has `scrolled`, the chosen row is to follow it, and not to
        bring the list back."""
        if self.rows is None or self._reading or not self.is_attached:
            return
        if self._is_there(self.rows) and not self._is_astray(self.rows):
            if not scrolled:
                self._hold()
                self._settle()
        else:
            self._reading = True
            self.run_worker(self._read, group="rows", name="rows")

    def choose(self, index: int) -> None:
        """See Lines: the row is read, and told of."""
        self._held = None  # what scrolls reads, and would follow the row before
        super().choose(index)
        self.read()
        self._hold_on(self.chosen)
        self._post_chosen()

    def action_open(self) -> None:
        """Tell that the chosen row is to be opened."""
        if self.chosen is not None:
            self.post_message(self.Opened(self, self.chosen))

    def on_mount(self) -> None:
        """Rows that were given before."""
        self.read()

    def fit(self) -> None:
        """See LineList: more rows may be seen."""
        self._settle()
        self.read()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Other rows are seen."""
        super().watch_scroll_y(old_value, new_value)
        self.read(scrolled=True)

    async def _read(self) -> None:
        try:
            while (rows := self.rows) is not None:
                if not self._is_there(rows):
                    await rows.load(*self._seen())
                    if rows is self.rows and rows.missing(self.index, self.index):
                        await rows.load(self.index, self.index)
                if rows is self.rows and self._is_astray(rows):
                    await rows.load(max(0, self.index - rows.size), self.index + rows.size)
                if rows is self.rows:
                    self._hold()
                    self._settle()
                    if not rows.count or self._is_there(rows):
                        break
        except BeetleError as error:
            self.post_message(self.Failed(error))
        finally:
            self._reading = False
        self._settle()

    def _seen(self) -> tuple[int, int]:
        top = int(self.scroll_offset.y)
        return max(0, top - AHEAD), top + max(1, self.size.height) + AHEAD

    def _is_there(self, rows: Rows[T]) -> bool:
        return rows.count > 0 and not rows.missing(*self._seen()) and not rows.missing(self.index, self.index)

    def _is_held(self, row: T) -> bool:
        return self._key is not None and self._key(row) == self._held

    def _is_astray(self, rows: Rows[T]) -> bool:
        """Whether another row stands in the place of the chosen one, and it is nowhere among those that are current."""
        row = rows.get(self.index)
        if self._held is None or not rows.count or (row is not None and self._is_held(row)):
            return False
        return rows.place_of(self._is_held, self.index) is None

    def _hold(self) -> None:
        """Follow the chosen row to where it is now, at the same height of the screen; where it is gone, take to the one
        in its place."""
        if self._key is None or self.rows is None:
            return
        row = self.rows.get(self.index)
        if self._held is not None and (row is None or not self._is_held(row)):
            place = self.rows.place_of(self._is_held, self.index)
            if place is not None:
                top = int(self.scroll_offset.y) + place - self.index
                self.index = place
                self._hold_on(self.rows.get(place))
                self.virtual_size = Size(self.room, self.line_count)
                self.scroll_to(y=max(0, top), animate=False, force=True, immediate=True)
                return
        self._held = None
        self._hold_on(self.rows.get(min(self.index, max(0, self.line_count - 1))))

    def _hold_on(self, row: T | None) -> None:
        """This row is the chosen one, wherever it is read next."""
        if self._key is not None and row is not None:
            self._held, self._held_row = self._key(row), row

    def _settle(self) -> None:
        """Draw the lines that are another now: on a slow line each one counts."""
        self.index = min(self.index, max(0, self.line_count - 1))
        self.virtual_size = Size(self.room, self.line_count)
        self.keep_in_sight()
        top = int(self.scroll_offset.y)
        for y in range(self.size.height):
            if self._drawn.get(y) != self._standing(y):
                self.refresh_line(top + y)
        self.post_message(self.Shown())
        self._post_chosen()

    def _post_chosen(self) -> None:
        """Tell of the chosen row when it is another one, or another reading of it."""
        row = self.chosen
        if row != self._told:
            self._told = row
            self.post_message(self.Chosen(self, row))

    def widths(self, room: int) -> list[tuple[Column[T], int]]:
        """The columns that are shown in so many cells, each with its own."""
        shown = [each for each in self.columns if room >= each.narrow]
        fixed = sum(each.width or 0 for each in shown) + GAP * (len(shown) - 1)
        free = [each for each in shown if each.width is None]
        if not free and fixed > room:  # the last one ends with an ellipsis where it is cut
            return [
                *((each, each.width or 0) for each in shown[:-1]),
                (shown[-1], room - fixed + (shown[-1].width or 0)),
            ]
        share = max(1, (room - fixed) // len(free)) if free else 0
        return [(each, share if each.width is None else each.width) for each in shown]

    def line(self, row: T, room: int) -> str:
        """A row in so many cells."""
        return _joined(
            [(fitted(neutral(each.show(row)), width, each.right)) for each, width in self.widths(room)], room
        )

    def head(self, room: int) -> str:
        """The head in so many cells."""
        return _joined([fitted(each.title, width, each.right) for each, width in self.widths(room)], room)

    def _standing(self, y: int) -> _Drawn:
        index = y + int(self.scroll_offset.y)
        if self.rows is None or index >= self.rows.count:
            return None
        return index, index == self.index, self.chosen if index == self.index else self.rows.get(index)

    def render_line(self, y: int) -> Strip:
        """One line: a mark, and the row."""
        self._drawn[y] = standing = self._standing(y)
        width = self.room
        style = self.visual_style.rich_style  # rich_style is worked out anew from all that is around it
        if standing is None:
            return Strip.blank(width, style)
        _, chosen, row = standing
        text = ("> " if chosen else "  ") + (WAITING if row is None else self.line(row, width - 2))
        if row is None or (self._dim is not None and self._dim(row)):
            style += self.get_component_rich_style("table--dim", partial=True)
        if chosen and self.has_focus:
            style += self.get_component_rich_style("table--chosen", partial=True)
        return Strip([Segment(set_cell_size(text, width), style)], width)


class Listing(Vertical, Generic[T]):
    """A table below its head, and below it a line that says how much of it there is."""

    DEFAULT_CSS = """
    Listing {
        height: 1fr;
        _Head { height: 1; color: $label; text-style: bold; }
        _Foot { height: 1; color: $label; }
    }
    """

    def __init__(self, table: Table[T], *, noun: tuple[str, str], empty: str, id: str | None = None) -> None:
        """`noun` is what a row is called, and several; `empty` is said where there is none, as `hinted` takes it."""
        super().__init__(id=id)
        self.table = table
        self._noun = noun
        self._empty = empty
        self._note = ""

    def compose(self) -> ComposeResult:
        """Head, table, foot."""
        yield _Head(self.table)
        yield self.table
        yield _Foot()

    def on_mount(self) -> None:
        """What was read and noted before."""
        self.on_table_shown()

    def note(self, text: str) -> None:
        """What else the foot says: a filter, a way that is gone."""
        self._note = text
        self.on_table_shown()

    def say_empty(self, text: str) -> None:
        """What is said where there is no row, from now on; as `hinted` takes it."""
        self._empty = text
        self.on_table_shown()

    def describe(self, noun: tuple[str, str], note: str) -> None:
        """Rows of another sort are shown from now on; and see `note`."""
        self._noun = noun
        self.note(note)

    def on_table_shown(self) -> None:
        """Say how much there is."""
        rows = self.table.rows
        if rows is None or not self.is_mounted:
            return
        count = rows.count
        one, many = self._noun
        empty = hinted(self.app, self._empty.removesuffix(".") if self._note else self._empty)
        place = f"{self.table.index + 1:,} of {count:,} {one if count == 1 else many}" if count else empty
        self.query_one(_Foot).say(f"{place}{'; ' if self._note else ''}{self._note}")
        self.query_one(_Head).settle()

    def on_table_chosen(self) -> None:
        """Another place in the list."""
        self.on_table_shown()


class _Head(Widget):
    def __init__(self, table: Table[Any]) -> None:
        super().__init__()
        self._table = table
        self._room = 0

    def settle(self) -> None:
        """The table may have another width now."""
        if self._table.room != self._room:
            self.refresh()

    def render_line(self, y: int) -> Strip:
        self._room = self._table.room
        text = "  " + self._table.head(max(0, self._room - 2))
        return Strip([Segment(set_cell_size(text, self.size.width), self.rich_style)], self.size.width)


class _Foot(Widget):
    _text = ""

    def say(self, text: str) -> None:
        if text != self._text:
            self._text = text
            self.refresh()

    def render_line(self, y: int) -> Strip:
        return Strip([Segment(fitted(self._text, self.size.width), self.rich_style)], self.size.width)


def fitted(text: str, width: int, right: bool = False) -> str:
    """A neutral text in just so many cells; what is longer ends with an ellipsis."""
    long = cell_len(text)
    if long > width:
        part = set_cell_size(text, max(0, width - 1))
        # A wide character that would be cut in two leaves a blank, which goes behind the ellipsis.
        part = part[:-1] if part and part[-1] != text[len(part) - 1] else part
        return set_cell_size(f"{part}…", width) if width else ""
    return " " * (width - long) + text if right else text + " " * (width - long)


def _joined(cells: Sequence[str], room: int) -> str:
    return set_cell_size((" " * GAP).join(cells), room)
