"""Recall: a bench to try a query on, with the ranked hits, their signals, and the block that a model would get."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import ClassVar, cast

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Horizontal, Vertical
from textual.events import Resize
from textual.widgets import Input, Static

from beetle.contracts.codec import to_plain
from beetle.contracts.errors import BeetleError
from beetle.contracts.memory import (
    MemoryCapabilityCatalog,
    MemoryProjectionReport,
    MemoryRecallReport,
    RecallHit,
)
from beetle.contracts.names import PLANE_NAMES, PlaneName
from beetle_tui.area import AreaScreen, Shared
from beetle_tui.bench.settings import (
    MOST_HITS,
    MOST_LENGTH,
    Settings,
    Switches,
    number_fault,
    read_time,
    time_fault,
    time_text,
)
from beetle_tui.bench.shown import Tried, block_blocks, foot, hit_blocks, search_blocks
from beetle_tui.dialogs import Ask
from beetle_tui.exporting import Pages, json_line
from beetle_tui.keys import hinted
from beetle_tui.line_input import LineInput
from beetle_tui.loaded_rows import LoadedRows
from beetle_tui.memory.section import NOT_SHOWN, day
from beetle_tui.sections import Sections
from beetle_tui.split import SIDE_BY_SIDE, Detail, bound, remark
from beetle_tui.table import Column, Listing, Table
from beetle_tui.theme import is_plain

MOST_QUERY = 8_192
HOW = (
    "{recall-query} types a query. It is answered as an agent's would be: the hits in their order, with what ranked "
    "them, and the block that memory.project makes of it for a model.\n\nThe switches above choose planes, time, sizes "
    "and pressure: {recall-switches} goes there, {switch-change} changes one."
)
PARTS = ("Hits", "Block")


class Recall(AreaScreen):
    """Asks memory.recall and memory.project. It never runs a query by itself: a change is told, and `r` runs it."""

    AUTO_FOCUS = "Table"
    SCROLLS = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "query", "Query", id="recall-query", tooltip="type what is asked", key_display="/"),
        Binding("x", "switches", "Switches", id="recall-switches", tooltip="to planes, time, sizes and pressure"),
        Binding("a", "as_of", "As of", id="recall-as-of", tooltip="memory as it stood at a time"),
        Binding("b", "length", "Block", id="recall-length", tooltip="how many characters the block may have"),
        Binding("u", "pressure", "Pressure", id="recall-pressure", tooltip="how tight the model's window is"),
        Binding("left,h", "part(-1)", "Part before", id="recall-previous", tooltip="hits or block", show=False),
        Binding("right,l", "part(1)", "Next part", id="recall-next", tooltip="block or hits", show=False),
        Binding("escape", "back", "Back", id="recall-back", tooltip="back to the hits", show=False),
    ]
    DEFAULT_CSS = """
    Recall {
        #asked {
            height: 1; background: $bar; color: $bar-text;
            #query-mark { width: auto; padding: 0 1; }
            LineInput, LineInput:focus {
                border: none; padding: 0; height: 1; width: 1fr; background: $bar; color: $bar-text;
                background-tint: 0%;
            }
        }
        #bench { height: 1fr; layout: vertical; }
        #found { height: 1fr; }
        #found Detail:focus { height: 3fr; }
        #bench.-wide {
            layout: horizontal;
            & > * { width: 1fr; height: 100%; }
            & > #block { margin-left: 1; }
        }
    }
    """

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self.settings = Settings()
        self.query_text = ""
        self.tried: Tried | None = None
        self._outdated = False
        self.switches = Switches()
        self.sections = Sections(PARTS, "{recall-previous}, {recall-next}: another part")
        self.table: Table[RecallHit] = Table(
            [
                Column("Score", lambda hit: f"{hit.score:.3f}", 5, right=True),
                Column("Plane", lambda hit: hit.plane, 11),
                Column("Why", lambda hit: ", ".join(hit.why), 26, narrow=110),
                Column("At", lambda hit: "" if hit.at is None else day(hit.at), 10, narrow=70),
                Column("Hit", _line),
            ],
            key=lambda hit: hit.ref,
        )
        self.hits: Listing[RecallHit] = Listing(self.table, noun=("hit", "hits"), empty="No hit")
        self.detail = Detail("Hit", id="hit")
        self.block = Detail("Block", id="block")

    def compose_area(self) -> ComposeResult:
        """The query, the switches, and what came of it."""
        with Horizontal(id="asked"):
            yield Static("Query", id="query-mark", markup=False)
            yield LineInput(
                hint=hinted(self.app, "press {recall-query} and type a question"), most=MOST_QUERY, id="query"
            )
        yield self.switches
        yield self.sections
        with Container(id="bench"):
            with Vertical(id="found"):
                yield self.hits
                yield self.detail
            yield self.block

    def on_mount(self) -> None:
        """Nothing has been asked yet."""
        self.detail.describe("Hit", None, remark(hinted(self.app, HOW)))
        self.block.describe("Block", None, remark("The block of a query is shown here."))
        self._arrange()

    def on_resize(self, event: Resize) -> None:
        """Both parts side by side where there is room; else one of them, and a line that names them."""
        del event
        self._arrange()

    async def load(self) -> None:
        """See AreaScreen: without a query, whether one may be asked; else the query once more."""
        if not self.query_text:
            catalog = cast(MemoryCapabilityCatalog, await self.link.call("memory.capabilities"))
            recall = catalog.capabilities.get("recall")
            if recall is not None and not recall.visible:
                told = f"Recall is not there for this caller: {recall.reason or 'it is not granted'}."
                self.detail.describe("Hit", None, remark(told))
            return
        query, settings = self.query_text, self.settings
        began = time.monotonic()
        found = cast(MemoryRecallReport, await self.link.call("memory.recall", settings.recall(query)))
        answered = time.monotonic()
        block: MemoryProjectionReport | BeetleError
        try:
            block = cast(MemoryProjectionReport, await self.link.call("memory.project", settings.project(query)))
        except BeetleError as error:
            block = error
        ended = time.monotonic()
        self._outdated = False
        self.show(Tried(query, found, block, ((answered - began) * 1000, (ended - answered) * 1000)))

    def show(self, tried: Tried) -> None:
        """Show what came of a query."""
        same = self.tried is not None and self.tried.query == tried.query
        self.tried = tried
        hits = tried.found.hits
        if same:
            self.table.renew(LoadedRows(hits))
        else:
            self.table.show(LoadedRows(hits))
        self.hits.note(foot(tried))
        self.block.describe(self._block_title(tried), tried.query, block_blocks(tried, is_plain(self.app)))
        self._look(self.table.chosen)

    def outdate(self) -> None:
        """See AreaScreen. A query that was answered is not run again by itself: what is read would move."""
        if self.tried is None or not self.filled:
            super().outdate()
        elif not self._outdated:
            self._outdated = True
            self.hits.note(hinted(self.app, "memory has changed since: {refresh} runs it again"))

    def ask_for(self, query: str) -> None:
        """Run a query, or nothing for a blank one."""
        self.query_text = query.strip()
        if self.query_text:
            self.read_now()

    def try_with(self, settings: Settings) -> None:
        """Other settings: what was asked is asked again with them."""
        if settings != self.settings:
            self.settings = settings
            self.switches.show(settings)
            if self.query_text:
                self.read_now()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Run it, and give the keys to the hits."""
        self.hide_notice()
        self._show_part(0)
        self.ask_for(event.value)

    def on_table_chosen(self, event: Table.Chosen) -> None:
        """Show the hit."""
        if event.table is self.table:
            self._look(event.row)

    def on_table_shown(self) -> None:
        """Few hits leave their room to the one that is shown."""
        bound(self.hits, self.table.rows)

    def on_table_opened(self) -> None:
        """The keys go to the hit."""
        self.detail.focus()

    def on_switches_left(self) -> None:
        """The keys go to what is shown."""
        self.action_back()

    def on_switches_changed(self, event: Switches.Changed) -> None:
        """Change one."""
        match event.name:
            case "as_of":
                self.action_as_of()
            case "limit":
                self.action_limit()
            case "length":
                self.action_length()
            case "pressure":
                self.action_pressure()
            case _:
                self._switch(cast(PlaneName, event.name))

    def on_sections_picked(self, event: Sections.Picked) -> None:
        """The hits, or the block."""
        self._show_part(event.index)

    def action_query(self) -> None:
        """Type."""
        self.query_one("#query", LineInput).focus()

    def action_switches(self) -> None:
        """To the switches."""
        self.switches.focus()

    def action_back(self) -> None:
        """To the hits, or to the block where that is shown."""
        (self.table if self.query_one("#found").display else self.block).focus()

    def action_part(self, steps: int) -> None:
        """The hits, or the block."""
        if self._wide:
            (self.table if self.block.has_focus else self.block).focus()
        else:
            self._show_part((self.sections.index + steps) % len(PARTS))

    def action_pressure(self) -> None:
        """The next pressure."""
        self.try_with(self.settings.pressed())

    @work(group="setting", exclusive=True)
    async def action_as_of(self) -> None:
        """Ask for a time."""
        at = self.settings.as_of
        text = await self.app.push_screen_wait(
            Ask("As of", ["Memory as it stood at a time (UTC); nothing is now."], value="" if at is None else
                time_text(at), hint="2026-03-02 08:12", fault=time_fault)
        )  # fmt: skip
        if text is not None:
            self.try_with(self.settings._replace(as_of=read_time(text)))

    @work(group="setting", exclusive=True)
    async def action_length(self) -> None:
        """Ask how long the block may be."""
        length = await self._number("The block's length", "Characters that the block may have.", self.settings.length,
                                    lambda text: number_fault(text, 0, MOST_LENGTH))  # fmt: skip
        if length is not None:
            self.try_with(self.settings._replace(length=length))

    @work(group="setting", exclusive=True)
    async def action_limit(self) -> None:
        """Ask for how many hits."""
        limit = await self._number("Hits", "At most so many; the profile may have fewer.", self.settings.limit,
                                   lambda text: number_fault(text, 1, MOST_HITS))  # fmt: skip
        if limit is not None:
            self.try_with(self.settings._replace(limit=limit))

    def copied(self) -> str | None:
        """See AreaScreen: a line of the hit, the whole block, or the ref of the hit."""
        if self.detail.has_focus:
            return self.detail.chosen_text or None
        if self.block.has_focus and self.tried is not None and not isinstance(self.tried.block, BeetleError):
            return self.tried.block.system_memory_block or None
        hit = self.table.chosen
        return None if hit is None else hit.ref

    async def exported(self) -> Pages:
        """See AreaScreen: what was found, with every hit, and the block or why there is none; a line each."""
        if self.tried is not None:
            block = self.tried.block
            built = (
                {"error": block.key, "message": block.message} if isinstance(block, BeetleError) else to_plain(block)
            )
            yield [json_line({"query": self.tried.query, **to_plain(self.tried.found)}), json_line(built)]

    @property
    def _wide(self) -> bool:
        return self.size.width >= SIDE_BY_SIDE

    def _look(self, hit: RecallHit | None) -> None:
        if hit is not None:
            self.detail.describe(f"Hit {self.table.index + 1}", hit.ref, hit_blocks(hit, is_plain(self.app)))
        elif self.tried is not None:
            self.detail.describe("No hit", None, search_blocks(self.tried))

    def _block_title(self, tried: Tried) -> str:
        if isinstance(tried.block, BeetleError):
            return "Block"
        return f"Block: {tried.block.audit.characters:,} of {tried.block.audit.budget:,} characters"

    def _switch(self, plane: PlaneName) -> None:
        switched = self.settings.switched(plane)
        if switched == self.settings:
            self.show_notice(f"one plane at least is searched, of {', '.join(PLANE_NAMES)}")
        else:
            self.hide_notice()
            self.try_with(switched)

    def _show_part(self, index: int) -> None:
        self.sections.choose(index)
        self._arrange()
        self.action_back() if not self._wide else self.table.focus()

    def _arrange(self) -> None:
        wide = self._wide
        self.query_one("#bench").set_class(wide, "-wide")
        self.sections.display = not wide
        self.query_one("#found").display = wide or self.sections.index == 0
        self.block.display = wide or self.sections.index == 1

    async def _number(self, title: str, told: str, now: int, fault: Callable[[str], str | None]) -> int | None:
        text = await self.app.push_screen_wait(Ask(title, [told], value=str(now), fault=fault))
        return None if text is None else int(text.strip().replace(",", ""))


def _line(hit: RecallHit) -> str:
    text = NOT_SHOWN if hit.excerpt is None else hit.excerpt
    return f"{hit.title}: {text}" if hit.title else text
