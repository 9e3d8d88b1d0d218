"""The frame of every area: title bar, banner, the area itself, keys; and when it reads."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, ClassVar, NamedTuple

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.message import Message
from textual.screen import Screen
from textual.timer import Timer
from textual.widgets import Static

from beetle.contracts.common import Report
from beetle.contracts.errors import BeetleError
from beetle_tui.dialogs import Faults, as_lines, error_lines
from beetle_tui.document import Document
from beetle_tui.exporting import Pages, ask_where, copy
from beetle_tui.filter import FilterBar
from beetle_tui.footer import Footer
from beetle_tui.keys import plain_key_for
from beetle_tui.line_input import LineInput
from beetle_tui.link import Cancelled, Joined, Joining, Link, Lost
from beetle_tui.messages import RefFollowed
from beetle_tui.table import Table
from beetle_tui.title_bar import TitleBar
from beetle_tui.too_small import TooSmall
from beetle_tui.working import long_below, pages_below

SECONDS_BETWEEN_READS = 1.0
SECONDS_UNTIL_SLOW = 1.0
SHORT_MARKS = {"waiting for an answer": "waiting", "DAEMON LOST": "LOST", "connecting": "joining"}
"""What a state is called where there is little room."""


class Area(NamedTuple):
    """One area: its name in actions, its key, its title, what it shows in a few words, and its screen."""

    name: str
    key: str
    title: str
    summary: str
    screen: type[AreaScreen]


@dataclass
class Shared:
    """What the areas of one console have in common; the console alone changes it."""

    link: Link
    areas: tuple[Area, ...]
    charset: str
    """What the terminal can show."""
    faults: tuple[str, ...] = ()
    """What the last walk over the whole store found."""


class Body(VerticalScroll, inherit_bindings=False):
    """What the keys scroll."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "scroll_up", "Up", id="up", tooltip="a line up", show=False),
        Binding("down", "scroll_down", "Down", id="down", tooltip="a line down", show=False),
        Binding("pageup", "page_up", "Page up", id="page-up", tooltip="a page up", show=False),
        Binding("pagedown", "page_down", "Page down", id="page-down", tooltip="a page down", show=False),
        Binding("home", "scroll_home", "Top", id="top", tooltip="to the top", show=False),
        Binding("end", "scroll_end", "Bottom", id="bottom", tooltip="to the bottom", show=False),
    ]


class AreaScreen(Screen[None], inherit_bindings=False):
    """One area of the console.

    A subclass composes its widgets in `compose_area`, and asks and shows in `load`. The frame calls `load` when the
    area is first shown, on `r`, and soon after something has changed, at most once a second; not while it is hidden.
    One with a list of its own sets `SCROLLS` to false, and AUTO_FOCUS to the list.
    """

    AUTO_FOCUS: ClassVar[str | None] = "#body"
    SCROLLS: ClassVar[bool] = True
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "app.focus_next", "Next", id="next", tooltip="to the next part of the screen", show=False),
        Binding("shift+tab", "app.focus_previous", "Previous", id="previous", tooltip="to the part before", show=False),
        Binding("slash", "filter", "Filter", id="filter", tooltip="show only the rows that hold a text",
                key_display="/"),
        Binding("y", "copy", "Copy", id="copy", tooltip="copy what is chosen, by way of the terminal", show=False),
        Binding("e", "export", "Export", id="export", tooltip="write what is shown to a file", show=False),
    ]  # fmt: skip
    DEFAULT_CSS = """
    AreaScreen {
        overflow: hidden;
        #title { height: 1; background: $bar; color: $bar-text; text-wrap: nowrap; }
        #banner { height: auto; padding: 0 1; background: $alarm; color: $alarm-text; display: none; }
        #banner.-shown { display: block; }
        #banner.-note { background: $bar; color: $bar-text; }
        #notice { height: auto; padding: 0 1; background: $bar; color: $bar-text; display: none; }
        #notice.-shown { display: block; }
        #notice.-alarm { background: $alarm; color: $alarm-text; }
        #body { scrollbar-size-vertical: 1; scrollbar-color: $line; scrollbar-background: $background; }
    }
    """

    @dataclass
    class Opened(Message):
        """It is there from now on, and outdated by what changes."""

        area: AreaScreen

    def __init__(self, shared: Shared) -> None:
        super().__init__()
        self.shared = shared
        self.read_at: datetime | None = None
        """When the last reading that was answered came."""
        self._failed: BeetleError | None = None
        self._reading = False
        self._looking = False
        self._slow = False
        self._again = True
        self._earliest = 0.0
        self._timer: Timer | None = None
        self._told: tuple[list[str], bool] = ([], False)

    @property
    def link(self) -> Link:
        """Where operations run."""
        return self.shared.link

    @property
    def filled(self) -> bool:
        """Whether the last reading was answered."""
        return self.read_at is not None and self._failed is None

    def compose_area(self) -> ComposeResult:
        """The area's own widgets."""
        raise NotImplementedError

    async def load(self) -> None:
        """Ask, and show what was answered.

        Raises:
            BeetleError: shown in the banner; what was shown before stays.
        """
        raise NotImplementedError

    def compose(self) -> ComposeResult:
        """The frame around the area."""
        yield TitleBar(self.shared.areas, id="title")
        yield Static(id="banner", markup=False)
        with Body(id="body") if self.SCROLLS else Vertical(id="body"):
            yield from self.compose_area()
        yield TooSmall()
        yield Static(id="notice", markup=False)
        yield Footer()

    def on_mount(self) -> None:
        """From now on it is told of changes."""
        self.post_message(self.Opened(self))

    def on_screen_resume(self) -> None:
        """Shown (again): read what has changed meanwhile."""
        self.show_state()
        if self._again and isinstance(self.link.state, Joined):
            self.read_soon()

    def show_notice(self, told: BeetleError | str) -> None:
        """Say what came of an action: an error with its hint, or a sentence. It stays until the next action."""
        lines = error_lines(told) if isinstance(told, BeetleError) else [told]
        notice = self.query_one("#notice", Static)
        notice.set_class(True, "-shown")
        notice.set_class(isinstance(told, BeetleError), "-alarm")
        notice.update(as_lines(lines))

    def hide_notice(self) -> None:
        """Nothing is to be said any more."""
        self.query_one("#notice", Static).set_class(False, "-shown")

    async def ask(self, operation: str, arguments: Any = None) -> Report | None:
        """Run an operation for an action: its report, or None when it was refused, which is told then."""
        self.hide_notice()
        try:
            return await self.link.call(operation, arguments)
        except BeetleError as error:
            self._show_unless_lost(error)
            return None

    async def ask_long(self, title: str, operation: str, arguments: Any = None) -> Report | None:
        """Run what takes long below a dialog that calls it off: its report, or None when it was refused or called
        off, which is told then. For workers: the keys would wait for a handler."""
        self.hide_notice()
        try:
            return await long_below(self.app, self.link, title, operation, arguments)
        except Cancelled:
            self.show_notice(f"{title}: called off. What the store had begun by then it may still finish")
        except BeetleError as error:
            self.show_notice(error)
        return None

    def on_table_failed(self, event: Table.Failed) -> None:
        """Rows could not be read, and what was read stays."""
        self._show_unless_lost(event.error)

    def on_line_input_cut(self, event: LineInput.Cut) -> None:
        """A paste that is too long."""
        self.show_notice(event.told)

    def on_document_followed(self, event: Document.Followed) -> None:
        """Go to what the line names."""
        if isinstance(event.target, str):
            self.post_message(RefFollowed(event.target))

    def _show_unless_lost(self, error: BeetleError) -> None:
        """Of a lost daemon the banner tells, which goes when it is found again."""
        if not isinstance(self.link.state, Lost):
            self.show_notice(error)

    def open_ref(self, ref: str) -> None:
        """Show what a ref names, when it is of this area: `Console.go` has switched to it."""
        raise NotImplementedError

    def open_place(self, place: str) -> None:
        """Show a part of this area, by the name that `way_to` of another has for it."""
        raise NotImplementedError

    def way_to(self, name: str) -> str:
        """What the key of another area leads to from here: a place of it for `open_place`, or nothing special."""
        del name
        return ""

    def copied(self) -> str | None:
        """What `y` copies: what is chosen, whole; None where nothing is."""
        return None

    def exported(self) -> Pages:
        """What `e` exports: every row of the list that has the keys, or all of the page; lines of JSON."""
        raise NotImplementedError

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """There is a filter where there is a line for it."""
        del parameters
        return bool(self.query(FilterBar)) if action == "filter" else True

    def action_filter(self) -> None:
        """Type what the rows must hold."""
        self.query(FilterBar).first().open()

    def action_copy(self) -> None:
        """Hand what is chosen to the terminal's clipboard."""
        text = self.copied()
        self.show_notice("nothing is chosen that could be copied" if text is None else copy(self.app, text))

    @work(group="export", exclusive=True)
    async def action_export(self) -> None:
        """Ask for a file, and write to it all that is listed, or the page that has the keys."""
        self.hide_notice()
        await self.app.push_screen_wait(ask_where(self._export))

    async def _export(self, path: str) -> Faults:
        try:
            self.show_notice(await pages_below(self.app, path, self.exported()))
        except Cancelled:
            return ["It was called off, and the file removed."]
        except BeetleError as error:
            return error_lines(error)
        return None

    def outdate(self) -> None:
        """What is shown may be outdated; a hidden area reads once it is shown."""
        self._again = True
        if self.is_current:
            self.read_soon()

    def read_first(self) -> None:
        """Read, where nothing was read yet and nobody has begun to."""
        if self.read_at is None and not self._reading and isinstance(self.link.state, Joined) and self.is_current:
            self.read_soon()

    def read_soon(self) -> None:
        """Read, as soon as a second has passed since the reading before; several calls become one."""
        if self._reading:
            self._again = True
        elif self._timer is None:
            wait = self._earliest - time.monotonic()
            if wait > 0:
                self._timer = self.set_timer(wait, self.read_now)
            else:
                self.read_now()

    def read_now(self) -> None:
        """Read, unless that is being done."""
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        if self._reading:
            self._again = True
        else:
            self._reading = True
            self.run_worker(self._read, name="read", group="read")

    def look_each(self, seconds: float, look: Callable[[], Awaitable[bool]]) -> None:
        """Have `look` run so often while the area is in sight and its source answers, and a reading follow where that
        says yes or raises BeetleError: for what changes without an event. No key waits for it."""
        self.set_interval(seconds, partial(self._begin_to_look, look))

    def _begin_to_look(self, look: Callable[[], Awaitable[bool]]) -> None:
        if self.is_current and not self._looking and isinstance(self.link.state, Joined):
            self._looking = True
            self.run_worker(partial(self._look_once, look), name="look", group="look-each")

    async def _look_once(self, look: Callable[[], Awaitable[bool]]) -> None:
        slow = self.set_timer(SECONDS_UNTIL_SLOW, self._note_slow)
        try:
            wanted = await look()
        except BeetleError:
            wanted = True  # the reading that follows tells why
        finally:
            slow.stop()
            self._looking = False
        if self._slow and not self._reading:
            self._slow = False
            self.show_state()
        if wanted and self.is_current:
            self.read_soon()

    async def _read(self) -> None:
        self._again = False
        self._earliest = time.monotonic() + SECONDS_BETWEEN_READS
        self.link.taken()
        slow = self.set_timer(SECONDS_UNTIL_SLOW, self._note_slow)
        try:
            await self.load()
        except BeetleError as error:
            self._failed = error
        else:
            self._failed = None
            self.read_at = datetime.now(UTC)
        finally:
            slow.stop()
            self._reading = self._slow = False
        self.show_state()
        if self._again and self.is_current and isinstance(self.link.state, Joined):
            self.read_soon()

    def _note_slow(self) -> None:
        self._slow = True
        self.show_state()

    def show_state(self) -> None:
        """Say how current the area is: the link, or what was read, is in another state."""
        read = "nothing read yet" if self.read_at is None else f"read {self.read_at:%H:%M:%SZ}"
        clock = "" if self.read_at is None else f" {self.read_at:%H:%MZ}"
        mark = self._mark()
        short = SHORT_MARKS.get(mark, mark)
        self.query_one(TitleBar).show(self._own_name, (f"{mark}, {read}", f"{short}{clock}", short))
        lines, alarm = self._banner(read)
        if (lines, alarm) != self._told:
            self._told = lines, alarm
            banner = self.query_one("#banner", Static)
            banner.set_class(bool(lines), "-shown")
            banner.set_class(not alarm, "-note")
            banner.update(as_lines(lines))

    @property
    def _own_name(self) -> str:
        return next((each.name for each in self.shared.areas if isinstance(self, each.screen)), "")

    def _mark(self) -> str:
        if self._slow:
            return "waiting for an answer"
        match self.link.state:
            case Joining():
                return "connecting"
            case Lost():
                return "DAEMON LOST"
            case Joined(live=True):
                return "live"
            case Joined():
                return "no daemon" if self.link.socket is None else "not live"

    def _banner(self, read: str) -> tuple[list[str], bool]:
        """The banner's lines, and whether it is an alarm."""
        state = self.link.state
        key = plain_key_for(self.app, "refresh", "r")
        if isinstance(state, Lost):
            turn = f"Trying again in {state.pause_s} s; {key} tries now." if state.pause_s else "Trying again now."
            shown = "" if self.read_at is None else f" What is shown was {read}."
            return _lines("The daemon is lost", state.error, turn + shown), True
        if self._failed is not None:
            return _lines("Could not read", self._failed, f"{key} tries again."), True
        if isinstance(state, Joined) and state.error is not None:
            return _lines("Changes are not shown by themselves", state.error, f"{key} reads again."), False
        return [], False


def _lines(what: str, error: BeetleError, then: str) -> list[str]:
    first, *hint = error_lines(error)
    return [f"{what}: {first}", *hint, then]
