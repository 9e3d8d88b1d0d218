"""A part of the area Memory: a list, what its chosen row holds, and what can be done with it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Any, ClassVar, Generic, TypeVar, cast

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical

from beetle.contracts.codec import to_plain
from beetle.contracts.common import Report
from beetle.contracts.errors import BeetleError
from beetle.contracts.memory import MemoryCapabilityCatalog
from beetle.contracts.names import ViewName
from beetle_tui.area import AreaScreen
from beetle_tui.dialogs import Confirm, Faults, Told, error_lines
from beetle_tui.exporting import Pages, json_line, lines_of
from beetle_tui.keys import hinted
from beetle_tui.prose import Block
from beetle_tui.rows import Rows
from beetle_tui.split import Detail, Split, remark
from beetle_tui.table import Column, Listing, Table

T = TypeVar("T")

NOT_SHOWN = "(not shown in this view)"


class Section(Vertical, Generic[T]):
    """One part. A subclass says what its rows are; the area calls `load` while it is shown."""

    TITLE: ClassVar[str]
    NOUN: ClassVar[tuple[str, str]]
    EMPTY: ClassVar[str]
    """Said below a list with nothing in it."""
    HOW: ClassVar[str]
    """What would be there, and how it comes: in the place of a row's detail; as `hinted` takes it."""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "Back", id="section-back", tooltip="from the detail back to the list", show=False),
    ]
    DEFAULT_CSS = """
    Section { height: 1fr; }
    """

    def __init__(self, area: AreaScreen) -> None:
        """`area` is the screen that it is a part of."""
        super().__init__(id=f"part-{self.TITLE.casefold()}")
        self.area = area
        self.table: Table[T] = Table(self.columns(), dim=self.faint, key=self.key)
        self.listing: Listing[T] = Listing(self.table, noun=self.NOUN, empty=self.EMPTY)
        self.detail = Detail(self.TITLE)
        self.view: ViewName | None = None

    @property
    def row(self) -> T | None:
        """The row that is highlighted: what the detail shows, and what a key acts on."""
        return self.table.chosen

    @abstractmethod
    def columns(self) -> Sequence[Column[T]]:
        """The columns of the list."""

    @abstractmethod
    async def rows(self) -> Rows[T]:
        """The list from its beginning; it may have asked for its first page already.

        Raises:
            BeetleError: the list is refused, or cannot be read.
        """

    @abstractmethod
    async def look(self, row: T) -> tuple[str, Iterable[Block]]:
        """Title and parts of a row's detail.

        Raises:
            BeetleError: shown in the place of the detail.
        """

    def nothing_chosen(self) -> Iterable[Block]:
        """In the place of a row's detail, where the list is empty."""
        return remark(hinted(self.app, self.HOW))

    def faint(self, row: T) -> bool:
        """Whether a row counts less than others."""
        del row
        return False

    @abstractmethod
    def key(self, row: T) -> object:
        """What stays the same of a row when it is read again."""

    def copied(self) -> str | None:
        """What `y` copies: the line that is chosen in the detail, or what stands for the row."""
        if self.detail.has_focus:
            return self.detail.chosen_text or None
        return None if self.row is None else self.named(self.row)

    def named(self, row: T) -> str:
        """What stands for a row when it is copied."""
        return str(self.key(row))

    def compose(self) -> ComposeResult:
        """The list and the detail."""
        with Split():
            yield self.listing
            yield self.detail

    def on_mount(self) -> None:
        """Before anything is read."""
        self.detail.describe(self.TITLE, None, self.nothing_chosen())

    async def load(self, catalog: MemoryCapabilityCatalog) -> None:
        """Read the list again where it stands, and the detail.

        Raises:
            BeetleError: the list is refused, or cannot be read.
        """
        self.view = seen_through(catalog)
        rows = self.table.rows
        if rows is None:
            rows = await self.rows()
            await rows.load(0, 0)
            self.table.show(rows)
        else:
            rows.forget()
            await rows.load(self.table.index, self.table.index)
            self.table.read()
        self.look_again()

    def show_anew(self) -> None:
        """Another list: another filter, another state."""
        self.run_worker(self.list_anew, name="anew", group="anew", exclusive=True)

    async def list_anew(self) -> None:
        """See show_anew; for workers."""
        try:
            rows = await self.rows()
            await rows.load(0, 0)
        except BeetleError as error:
            self.area.show_notice(error)
            return
        self.table.show(rows)
        self.look_again()

    def look_again(self) -> None:
        """Show the detail of the chosen row, as it is now."""
        # A coroutine that is replaced before it began would be complained of; a function is just not called.
        self.run_worker(partial(self._look, self.row), name="look", group="look", exclusive=True)

    async def whole(self, row: T) -> Any:
        """All that is known of a row, as builtins, for a file.

        Raises:
            BeetleError: it cannot be read.
        """
        return to_plain(row)

    async def exported(self) -> Pages:
        """Every row of the list, whole; while the detail has the keys, all of the row that it shows."""
        row = self.row
        if row is not None and self.detail.has_focus:
            yield [json_line(await self.whole(row))]
            return
        async for page in lines_of(await self.rows()):
            yield page

    def on_table_chosen(self, event: Table.Chosen) -> None:
        """Show what it holds."""
        if event.table is self.table:
            self.look_again()

    def on_table_opened(self) -> None:
        """The keys go to the detail."""
        self.detail.focus()

    def action_back(self) -> None:
        """To the list."""
        self.table.focus()

    def with_chosen(self, step: Callable[[T], Awaitable[None]]) -> None:
        """Take a step with the row that is highlighted as the key is pressed, whatever becomes of the list then."""
        row = self.row
        if row is None:
            self.area.show_notice(f"no {self.NOUN[0]} is chosen")
        else:
            self.begin(partial(step, row))

    def begin(self, step: Callable[[], Awaitable[None]]) -> None:
        """Take a step in a worker, one at a time."""
        self.run_worker(step, name="action", group="action", exclusive=True)

    async def agreed(self, title: str, lines: Iterable[str]) -> bool:
        """Whether a person wants what is said to be done; for workers."""
        return await self.app.push_screen_wait(Confirm(title, lines))

    async def change(self, operation: str, arguments: Any, then: Callable[[Report], None]) -> Faults:
        """As `changed`, for a dialog that stays until it is done: `then` is handed the report."""
        try:
            report = await self.area.link.call(operation, arguments)
        except BeetleError as error:
            return error_lines(error)
        self.area.read_now()
        then(report)
        return None

    async def changed(self, operation: str, arguments: Any) -> Report | None:
        """Run an operation that changes something, and read again: its report, or None when it was refused."""
        report = await self.area.ask(operation, arguments)
        if report is not None:
            self.area.read_now()
        return report

    async def show_lines(self, title: str, lines: Sequence[str]) -> None:
        """Show lines until they were read; for workers."""
        await self.app.push_screen_wait(Told(title, lines))

    async def _look(self, row: T | None) -> None:
        if row is None:
            nothing = self.table.rows is None or not self.table.rows.count
            self.detail.describe(self.TITLE, None, self.nothing_chosen() if nothing else ())
            return
        try:
            title, blocks = await self.look(row)
        except BeetleError as error:
            title, blocks = self.TITLE, remark(f"{error.key}: {error.message}\n{error.hint or ''}")
        self.detail.describe(title, self.key(row), blocks)


class StateSection(Section[T]):
    """One whose rows are of one state, or of all: then those of another state than the first are faint."""

    STATES: ClassVar[tuple[str, ...]]
    """What `state` goes through; the last one is all of them."""

    def __init__(self, area: AreaScreen) -> None:
        super().__init__(area)
        self.state = self.STATES[0]

    def faint(self, row: Any) -> bool:
        """See Section."""
        return self.state == self.STATES[-1] and row.state != self.STATES[0]

    def action_state(self) -> None:
        """The next state."""
        self.state = self.STATES[(self.STATES.index(self.state) + 1) % len(self.STATES)]
        self.show_anew()


def seen_through(catalog: MemoryCapabilityCatalog) -> ViewName | None:
    """The view to ask for: the caller's first one, but never the owner's own; that is not the console's to ask for."""
    return cast("ViewName | None", next((each for each in catalog.views if each != "raw_owner"), None))


def day(text: str) -> str:
    """The day of a time of a report."""
    return text[:10]


def short(text: str | None, most: int = 160) -> str:
    """The beginning of a text."""
    if text is None:
        return NOT_SHOWN
    return text if len(text) <= most else text[: most - 1] + "…"
