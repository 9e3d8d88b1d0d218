"""What is asked and told about a device: what it may do, and its key, which is shown this once."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import ClassVar, NamedTuple

from rich.segment import Segment
from rich.style import Style
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical
from textual.content import Content
from textual.events import Resize
from textual.geometry import Size
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Static

from beetle.contracts.capabilities import CatalogEntry
from beetle.contracts.errors import BeetleError
from beetle_tui.charset import UTF_8
from beetle_tui.dialogs import Ask, Dialog, Faults, error_lines, needed
from beetle_tui.exporting import copy, write_lines
from beetle_tui.keys import hinted
from beetle_tui.loaded_rows import LoadedRows
from beetle_tui.panels import Facts
from beetle_tui.table import Column, Table
from beetle_tui.text import count, neutral

QUIET = 2
"""Modules of nothing around a code: what a camera needs to find it."""
BESIDE = 33
"""Columns that the text needs beside the code."""
IN_ONE_LINE = 46
"""Columns in which a key stands on one line."""
FRAME = 6
"""Columns of a dialog's border and padding, and between its parts."""
WITHOUT_CODE = 64
"""Columns of the dialog that has no code."""
MOST_ENTRIES = 16
"""Lines of a checklist; what is longer scrolls."""
AROUND_ENTRIES = 4
"""Lines of its dialog beside them."""


class Checklist(Dialog[tuple[str, ...] | None]):
    """Has names ticked; answers with those that are, in their order, or with None when it was given up."""

    HOLDS = (Table,)
    KEYS = "{checklist-tick} ticks, {checklist-all} all, {row-open} takes it, {checklist-close} closes"
    DEFAULT_CSS = "Checklist Table { height: auto; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "tick", "Tick", id="checklist-tick", tooltip="tick the row, or not"),
        Binding("a", "tick_all", "All", id="checklist-all", tooltip="tick every row, or none"),
        Binding("escape,q", "dismiss(None)", "Close", id="checklist-close", tooltip="leave it as it is"),
    ]

    def __init__(self, title: str, entries: Sequence[CatalogEntry], ticked: Iterable[str]) -> None:
        super().__init__(title)
        self._entries = tuple(entries)
        self._ticked = set(ticked)

    def compose_below(self) -> ComposeResult:
        """The rows."""
        columns: list[Column[CatalogEntry]] = [
            Column("", lambda each: "[x]" if each.name in self._ticked else "[ ]", 3),
            Column("", lambda each: each.name, max((len(each.name) for each in self._entries), default=1)),
            Column("", lambda each: each.meaning),
        ]
        yield Table(columns)
        yield Static(id="ticked", markup=False)

    def on_mount(self) -> None:
        """Show them."""
        table = self.query_one(Table)
        table.show(LoadedRows(self._entries))
        table.focus()
        self._show_count()

    def on_resize(self, event: Resize) -> None:
        """As many rows as there is room for."""
        room = max(1, event.size.height - AROUND_ENTRIES)
        self.query_one(Table).styles.height = min(len(self._entries), MOST_ENTRIES, room)

    def action_tick(self) -> None:
        """The chosen row, and on to the next."""
        table = self.query_one(Table)
        entry: CatalogEntry | None = table.chosen
        if entry is not None:
            self._ticked ^= {entry.name}
            table.choose(table.index + 1)
            self._show_count()

    def action_tick_all(self) -> None:
        """All of them, or none where all are ticked."""
        names = {each.name for each in self._entries}
        self._ticked = set() if names <= self._ticked else names
        self.query_one(Table).refresh()
        self._show_count()

    def on_table_opened(self, event: Table.Opened) -> None:
        """Answer."""
        event.stop()
        self.dismiss(tuple(each.name for each in self._entries if each.name in self._ticked))

    def _show_count(self) -> None:
        self.query_one("#ticked", Static).update(
            Content.styled(
                f"{len(self._ticked)} of {count(len(self._entries), 'capability', 'capabilities')}", "$label"
            )
        )


class Credentials(NamedTuple):
    """A device, and the key that it proves itself with."""

    device_id: str
    key: str

    @property
    def text(self) -> str:
        """As a credentials file holds them."""
        return json.dumps({"device_id": self.device_id, "app_key": self.key}, separators=(",", ":"))


class KeyShown(Dialog[None]):
    """A key, to be read, copied, scanned or written to a file; once it is closed, nobody can show it again."""

    KEYS = "{key-close} closes; it is not shown again"
    DEFAULT_CSS = """
    KeyShown {
        #parts { layout: vertical; width: 100%; height: auto; }
        #words { width: 100%; height: auto; }
        #words Static { width: 100%; }
        #key { text-style: bold; }
        &.-wide #parts { layout: horizontal; }
        &.-wide #words { width: 1fr; margin-left: 2; }
        Facts { border: none; padding: 0; }
        Code { display: none; }
        Code.-shown { display: block; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("c,y", "copy", "Copy", id="key-copy", tooltip="hand the key to the terminal's clipboard"),
        Binding("w", "write", "Write", id="key-write", tooltip="write a credentials file that only you may read"),
        Binding("escape", "dismiss", "Close", id="key-close", tooltip="close; the key is not shown again"),
    ]

    def __init__(self, title: str, label: str, credentials: Credentials, fingerprint: str, charset: str) -> None:
        """`charset` is what the terminal can show."""
        super().__init__(title)
        self._charset = charset
        self._label = label
        self._credentials = credentials
        self._fingerprint = fingerprint

    def compose_below(self) -> ComposeResult:
        """The code, and what it says in letters."""
        with Container(id="parts"):
            yield Code(id="code")
            with Vertical(id="words"):
                yield Facts("", id="named")
                yield Static(id="key", markup=False)
                yield Static(id="what", markup=False)
                yield Static(id="fault", markup=False)

    def on_mount(self) -> None:
        """Fill it."""
        named = (("Device", self._credentials.device_id), ("Label", self._label), ("Fingerprint", self._fingerprint))
        self.query_one(Facts).show(named)
        self.query_one("#key", Static).update(Content(f"\n{neutral(self._credentials.key)}\n"))

    def on_resize(self, event: Resize) -> None:
        """The largest code that there is room for, if any."""
        self._lay_out(event.size)

    def _lay_out(self, room: Size) -> None:
        chosen: list[str] = []
        both, alone = self._credentials.text, self._credentials.key
        texts = ((both, "The code is a credentials file."), (alone, "The code is the key alone."))
        told = "The code needs a larger terminal."
        if self._charset != UTF_8:
            texts, told = (), "The code needs a terminal that has UTF-8."
        try:
            for text, what in texts:
                lines = code_lines(text)
                if len(lines) + 2 <= room.height and len(lines[0]) + BESIDE + FRAME <= room.width:
                    chosen, told = lines, what
                    break
        except ModuleNotFoundError as error:
            told = f"No code: this installation has no Python package {error.name}."
        code = self.query_one(Code)
        code.set_class(bool(chosen), "-shown")
        code.show(chosen)
        self.set_class(bool(chosen), "-wide")
        columns = WITHOUT_CODE
        if chosen:
            around = len(chosen[0]) + FRAME
            columns = around + (IN_ONE_LINE if around + IN_ONE_LINE <= room.width else BESIDE)
        # Of the dialog, not of the text in it: where a scrollbar comes, it is the text that is folded anew.
        self.query_one("#box").styles.width = columns
        self._say_what(told)

    def _say_what(self, told: str) -> None:
        keys = ("{key-copy} copies the key,", "{key-write} writes a credentials file.")
        lines = (told, "", *(hinted(self.app, each) for each in keys), "Lost keys are replaced, not found.")
        self.query_one("#what", Static).update(Content("\n").join(Content.styled(each, "$label") for each in lines))

    def action_copy(self) -> None:
        """To the terminal's clipboard."""
        self.say("", f"The key: {copy(self.app, self._credentials.key)}.")

    @work(group="key", exclusive=True)
    async def action_write(self) -> None:
        """To a file, as `--auth-file` reads it."""

        async def run(path: str) -> Faults:
            try:
                self.say("", await write_lines(path, [self._credentials.text]))
            except BeetleError as error:
                return error_lines(error)
            return None

        ask = Ask(
            "Credentials file",
            ["A new file of mode 0600, for `beetle --auth-file`."],
            hint="a path, such as ~/kitchen.json",
            fault=needed("name a file"),
            run=run,
        )
        await self.app.push_screen_wait(ask)


class Code(Widget):
    """A QR code out of half blocks: light where the terminal is dark, and on colours of its own where it has any."""

    DEFAULT_CSS = "Code { width: auto; height: auto; }"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._lines: tuple[str, ...] = ()

    def show(self, lines: Iterable[str]) -> None:
        """Show these."""
        self._lines = tuple(lines)
        self.refresh(layout=True)

    def get_content_width(self, container: Size, viewport: Size) -> int:
        """As wide as its lines."""
        del container, viewport
        return max(map(len, self._lines), default=0)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """As high as its lines."""
        del container, viewport, width
        return len(self._lines)

    def render_line(self, y: int) -> Strip:
        """One line: two rows of modules."""
        text = self._lines[y] if y < len(self._lines) else ""
        return Strip([Segment(text, self._colours)]).adjust_cell_length(self.size.width)

    @property
    def _colours(self) -> Style:
        theme = self.app.current_theme
        if not theme.ansi:
            return Style(color="#ffffff", bgcolor="#000000")
        # Where even the colours of text are the terminal's own there is none to choose.
        return Style() if theme.primary == theme.foreground else Style(color="bright_white", bgcolor="black")


def code_lines(text: str) -> list[str]:
    """A text as the lines of a QR code; every character stands for two modules, and what is light is drawn.

    Raises:
        ModuleNotFoundError: the library that makes codes was left out of this installation.
    """
    # Only here: it loads 2.6 MB, and few sessions add a device.
    import segno

    code = segno.make(text, error="l", micro=False, boost_error=True)
    rows = [[not dark for dark in row] for row in code.matrix_iter(border=QUIET)]
    if len(rows) % 2:
        rows.append([True] * len(rows[0]))
    pairs = zip(rows[::2], rows[1::2], strict=True)
    return ["".join(" ▄▀█"[2 * upper + lower] for upper, lower in zip(*pair, strict=True)) for pair in pairs]
