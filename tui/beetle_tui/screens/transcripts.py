"""Transcripts: what was said, as each view may see it; where it led to; and the steps that put it away."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar, cast

from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from beetle.contracts.common import Conversation, DerivedMemoryRef
from beetle.contracts.errors import BeetleError
from beetle.contracts.memory import MemoryCapabilityCatalog
from beetle.contracts.names import ViewName
from beetle.contracts.refs import evidence_named
from beetle.contracts.transcript import (
    ConversationSummary,
    MemoryTranscriptConversationsRequest,
    SearchHit,
    TimelineAnchor,
    TranscriptRedactionReportItem,
    TranscriptTurn,
)
from beetle.contracts.transcript_repair import (
    MemoryTranscriptRepairReport,
    TranscriptRepairIssue,
)
from beetle_tui.area import AreaScreen, Shared
from beetle_tui.dialogs import Ask, needed
from beetle_tui.evidence import (
    SEARCHED,
    Search,
    conversation,
    conversation_rows,
    hit_rows,
    name_of,
    plain_turn,
    timeline,
    turn_lines,
    turn_rows,
)
from beetle_tui.exporting import Pages, lines_of, one_line
from beetle_tui.filter import FilterBar
from beetle_tui.keys import key_for
from beetle_tui.link import Lost
from beetle_tui.loaded_rows import LoadedRows
from beetle_tui.rows import NumberedRows
from beetle_tui.split import Detail, Split, remark
from beetle_tui.steps import (
    Action,
    Target,
    ask_before,
    derived_from,
    find_broken,
    findings_words,
    place_words,
    take_repair,
    take_step,
)
from beetle_tui.table import Table
from beetle_tui.text import neutral
from beetle_tui.transcript_lists import (
    ACTIONS,
    KEYS,
    LEVELS,
    Level,
    listings,
    name_of_row,
    no_time,
    nothing_there,
    place_of,
)
from beetle_tui.turns import GAP, VIEWS, TurnRow, line_of_hit, read_time, turn_blocks


class Transcripts(AreaScreen):
    """Four lists, one of them shown: conversations; what a search found; the turns of one; what is broken.

    Enter goes deeper and esc back. What is shown of a turn is what the view allows: the daemon withholds the rest, and
    says what and why.
    """

    SCROLLS: ClassVar[bool] = False
    AUTO_FOCUS: ClassVar[str | None] = "Table.-current"
    DEFAULT_CSS = """
    Transcripts {
        #where { height: 1; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; text-style: bold; }
        #lists { height: 1fr; }
        Listing { display: none; }
        Listing.-current { display: block; }
        #nothing { display: none; height: auto; padding: 1; color: $label; }
        #nothing.-shown { display: block; }
        Detail { display: none; }
        .-turns > Detail { display: block; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = KEYS

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self.view: ViewName = "host_ui"
        self.trail: tuple[Level, ...] = ("conversations",)
        """The lists on the way here; the last one is shown."""
        self._views: tuple[ViewName, ...] = ()
        self._where: Conversation | None = None
        self._search: Search | None = None
        self._issues: MemoryTranscriptRepairReport | None = None
        self._looked_through: Conversation | None = None
        self._turn: TranscriptTurn | None = None
        self._redactions: tuple[TranscriptRedactionReportItem, ...] = ()
        self._derived: tuple[DerivedMemoryRef, ...] | None = None
        self._states: tuple[str, ...] = ()

    def compose_area(self) -> ComposeResult:
        """Where it is, the lists with the turn, the filter."""
        yield Static(id="where", markup=False)
        with Split(id="split"):
            with Vertical(id="lists"):
                yield from listings()
                yield Static(id="nothing", markup=False)
            yield Detail("Turn", id="transcripts-turn")
        yield FilterBar("part of a conversation's or channel's id")

    def on_mount(self) -> None:
        """The conversations first."""
        self._show_level()

    @property
    def level(self) -> Level:
        """The list that is shown."""
        return self.trail[-1]

    def table(self, level: Level) -> Table[Any]:
        """The table of a list."""
        return self.query_one(f"#{level}-table", Table)

    async def load(self) -> None:
        """See AreaScreen."""
        await self._learn_views()
        if self.level == "turns" and self._where is not None:
            await self._read_turns(self._where)
        else:
            # What is refused is told by this reading; the tables read what they show by themselves.
            await self.link.call("transcript.conversations", MemoryTranscriptConversationsRequest(limit=1))
        self._read_list()
        self._show_where()

    def _read_list(self) -> None:
        table = self.table(self.level)
        if table.rows is None and self.level == "conversations":
            table.show(conversation_rows(self.link, self.query_one(FilterBar).text))
        else:
            table.read_again()

    async def _learn_views(self) -> None:
        catalog = cast(MemoryCapabilityCatalog, await self.link.call("memory.capabilities"))
        self._views = tuple(view for view in VIEWS if view in catalog.views)
        if self._views and self.view not in self._views:
            self._use_view(self._views[0])

    async def _read_turns(self, where: Conversation) -> None:
        """Turns may have been added; the one that is shown may be another one now."""
        latest = await timeline(self.link, where, self.view, None, 1)
        rows = self.table("turns").rows
        if isinstance(rows, NumberedRows) and latest.turns:
            rows.grow(latest.turns[-1].sequence)
        if self._turn is not None:
            self._show_turn(self._turn.sequence)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """See AreaScreen: what makes no sense here is not offered."""
        if action in ACTIONS and self.level not in ACTIONS[action]:
            return False
        if action == "step" and self.level == "turns":
            row: TurnRow | None = self.table("turns").chosen
            states = ("live",) if row is None else row.states
            if parameters == ("mask",):
                return "live" in states
            if parameters == ("unmask",):
                return "masked" in states
        return super().check_action(action, parameters)

    def _go_to(self, level: Level) -> None:
        """Go on to a list; one that was on the way here is left out of it."""
        self.trail = (*(each for each in self.trail if each != level), level)
        self._show_level()

    def _show_level(self) -> None:
        """Show the list that the trail ends at."""
        for level in LEVELS:
            for each in (self.query_one(f"#{level}-list"), self.table(level)):
                each.set_class(level == self.level, "-current")
        self.query_one(Split).set_class(self.level == "turns", "-turns")
        bar = self.query_one(FilterBar)
        bar.set_class(self.level == "conversations" and bool(bar.text), "-shown")
        self.table(self.level).focus()
        self._show_where()
        self.on_table_shown()
        self.call_after_refresh(self.query_one(Split).on_table_shown)  # another list, another length
        self.refresh_bindings()

    def _show_where(self) -> None:
        self.query_one("#where", Static).update(Content(neutral(self._where_words())))

    def _where_words(self) -> str:
        match self.level:
            case "hits" if self._search is not None:
                place = "everywhere" if self._search.where is None else f"in {name_of(self._search.where)}"
                return f"“{self._search.query}” {place}, as {self._search.view} finds it"
            case "turns" if self._where is not None:
                return f"{name_of(self._where)}, view {self.view}: {VIEWS[self.view]}"
            case "issues" if self._issues is not None:
                return findings_words(self._issues, self._looked_through)
            case _:
                return f"Conversations, view {self.view}: {VIEWS[self.view]}"

    def on_table_shown(self) -> None:
        """In the place of an empty list, how it comes to hold something."""
        rows = self.table(self.level).rows
        empty = rows is not None and rows.count == 0 and self.filled
        search = key_for(self.app, "transcripts-search")
        words = nothing_there(self.level, self.query_one(FilterBar).text, search) if empty else ""
        nothing = self.query_one("#nothing", Static)
        if nothing.content != words:  # an update has all of the screen laid out anew
            nothing.set_class(bool(words), "-shown")
            nothing.update(words)

    def on_table_chosen(self, event: Table.Chosen) -> None:
        """Show the turn, and what can be done with it."""
        if self.level == "turns" and event.table is self.table("turns") and isinstance(event.row, TurnRow):
            self._show_turn(event.row.sequence)
            if event.row.states != self._states:  # the keys that there are depend on it
                self._states = event.row.states
                self.refresh_bindings()

    def on_table_opened(self, event: Table.Opened) -> None:
        """Go deeper."""
        match event.row:
            case ConversationSummary():
                self.open_turns(conversation(event.row))
            case SearchHit():
                self.open_turns(conversation(event.row.conversation), event.row.turn_id)
            case TurnRow():
                self.query_one(Detail).focus()
            case TranscriptRepairIssue():
                self._open_issue(event.row)

    def on_filter_bar_filtered(self, event: FilterBar.Filtered) -> None:
        """Other conversations."""
        self.table("conversations").show(conversation_rows(self.link, event.text))

    def open_ref(self, ref: str) -> None:
        """See AreaScreen."""
        found = evidence_named(ref)
        if found is None:
            self.show_notice(f"{ref} names no turn.")
            return
        self.open_turns(Conversation(channel_id=found.channel_id, conversation_id=found.conversation_id), found.turn_id)

    @work(group="open", exclusive=True)
    async def open_turns(self, where: Conversation, turn_id: str | None = None) -> None:
        """Show a conversation, from its latest turn or a certain one on."""
        self.hide_notice()
        try:
            if not self._views:
                await self._learn_views()
            latest = await timeline(self.link, where, self.view, None, 1)
            place = latest
            if turn_id is not None:
                place = await timeline(self.link, where, self.view, TimelineAnchor(turn=turn_id), 1)
        except BeetleError as error:
            self.show_notice(error)
            return
        last = latest.turns[-1].sequence if latest.turns else 0
        index = place.turns[0].sequence - 1 if place.turns else 0
        self._where = where
        self._turn = self._derived = None
        self.table("turns").show(turn_rows(self.link, where, self.view, last), index)
        self._go_to("turns")
        self.call_after_refresh(self.table("turns").choose, index)

    @work(group="turn", exclusive=True)
    async def _show_turn(self, sequence: int) -> None:
        """Read a turn whole: the list keeps only a line of it."""
        if self._where is None:
            return
        detail = self.query_one(Detail)
        try:
            page = await timeline(self.link, self._where, self.view, TimelineAnchor(around=sequence), 1)
        except BeetleError as error:
            if not isinstance(self.link.state, Lost):  # else what was shown stays, and the banner tells
                self._turn = None
                detail.describe(f"Turn {sequence}", error, remark(f"{error.key}: {error.message}"))
            return
        if not page.turns or page.turns[0].sequence != sequence:
            self._turn = None
            detail.describe(f"Turn {sequence}", sequence, remark(GAP))
            return
        if self._turn is None or self._turn.turn_id != page.turns[0].turn_id:
            self._derived = None
        self._turn, self._redactions = page.turns[0], page.redactions
        self._paint_turn(self._turn)

    def _paint_turn(self, turn: TranscriptTurn) -> None:
        blocks = turn_blocks(turn, self._redactions, self._derived, key_for(self.app, "transcripts-links"))
        self.query_one(Detail).describe(f"Turn {turn.turn_id}", (self._where, turn.turn_id), blocks)

    def action_back(self) -> None:
        """From the turn to the list, from a list to the one before; from the first, to all of it."""
        if self.level == "turns" and self.query_one(Detail).has_focus:
            self.table("turns").focus()
        elif len(self.trail) > 1:
            self.trail = self.trail[:-1]
            self._show_level()
            self._read_list()
        else:
            self.query_one(FilterBar).set_text("")

    def action_view(self) -> None:
        """Through the next view that the caller is allowed."""
        if not self._views:
            self.show_notice("None of the views is allowed to this caller.")
            return
        at = self._views.index(self.view) if self.view in self._views else -1
        self._use_view(self._views[(at + 1) % len(self._views)])

    def _use_view(self, view: ViewName) -> None:
        self.view = view
        table = self.table("turns")
        if self._where is not None and table.rows is not None:
            # Nothing of the view before may stand below the name of this one.
            table.rows = turn_rows(self.link, self._where, self.view, table.rows.count)
            table.refresh()
            table.read()
            self.query_one(Detail).describe("Turn", None, remark("…"))
            self._show_turn(table.index + 1)
        if self._search is not None:
            self._search = self._search._replace(view=self._searched_view())
            self.table("hits").show(hit_rows(self.link, self._search))
        self._show_where()

    def _searched_view(self) -> ViewName:
        """The view, or the first that the daemon searches through: it refuses one that reads no content."""
        allowed: tuple[ViewName, ...] = tuple(each for each in SEARCHED if each in self._views)
        return self.view if self.view in allowed or not allowed else allowed[0]

    @work(group="ask", exclusive=True)
    async def action_date(self) -> None:
        """Ask for a time, and go to the first turn since."""
        where = self._where
        text = await self.app.push_screen_wait(
            Ask("Go to a date", ["The first turn at or after it, in UTC."], hint="2026-03-02 08:12", fault=no_time)
        )
        if where is None or text is None:
            return
        self.hide_notice()
        try:
            page = await timeline(self.link, where, self.view, TimelineAnchor(at=read_time(text)), 1)
        except BeetleError as error:
            self.show_notice(error)
            return
        if page.turns:
            self.table("turns").choose(page.turns[0].sequence - 1)
        else:
            self.show_notice(f"No turn of {name_of(where)} is at or after {text}.")

    def action_filter(self) -> None:
        """Of conversations, by a part of an id; of turns and messages, by their words."""
        if self.level == "conversations":
            super().action_filter()
        else:
            self.action_search()

    @work(group="ask", exclusive=True)
    async def action_search(self) -> None:
        """Ask for words, and show the messages that hold them: of a conversation, or of all."""
        where = self._where if self.level == "turns" else None
        if self.level == "hits" and self._search is not None:
            where = self._search.where
        before = self._search.query if self._search is not None else ""
        title = "Search messages" if where is None else f"Search messages in {name_of(where)}"
        query = await self.app.push_screen_wait(
            Ask(title, value=before, hint="words to look for", fault=needed("Type a word."))
        )
        if query is None:
            return
        self.hide_notice()
        self._search = Search(query.strip(), where, self._searched_view())
        self.table("hits").show(hit_rows(self.link, self._search))
        self._go_to("hits")

    def action_links(self) -> None:
        """Show what was derived from the turn. Asked for here alone: a review is the dry run of a write."""
        row = self.table("turns").chosen
        if self._where is not None and isinstance(row, TurnRow) and not row.is_gap:
            self.run_worker(partial(self._show_links, self._where, row.turn_id), group="links", exclusive=True)

    async def _show_links(self, where: Conversation, turn_id: str) -> None:
        found = await derived_from(self, where, turn_id)
        if found is None or self._turn is None or self._turn.turn_id != turn_id:
            return
        self._derived = found
        self._paint_turn(self._turn)
        if found:
            self.query_one(Detail).focus()
            self.query_one(Detail).go_to(found[0].derived)
        else:
            self.show_notice(f"Nothing was derived from turn {turn_id}.")

    def _target(self) -> Target | None:
        """The turn that is highlighted."""
        row = self.table(self.level).chosen
        match row:
            case SearchHit():
                return Target(conversation(row.conversation), (row.turn_id,), says=line_of_hit(row))
            case TurnRow() if self._where is not None and not row.is_gap:
                return Target(self._where, (row.turn_id,), says=f"{row.who}: {row.text}")
            case _:
                self.show_notice("No turn is chosen.")
                return None

    def action_step(self, action: Action) -> None:
        """Take a step on the turn that is highlighted as the key is pressed."""
        target = self._target()
        if target is not None:
            self.run_worker(partial(self._step, action, target), group="ask", exclusive=True)

    async def _step(self, action: Action, target: Target) -> None:
        if await take_step(self, action, target):
            self.read_soon()

    def action_step_before(self, action: Action) -> None:
        """Take a step on the turns of the highlighted conversation that are older than a time."""
        row: ConversationSummary | None = self.table("conversations").chosen
        if row is not None:
            self.run_worker(partial(self._step_before, action, conversation(row)), group="ask", exclusive=True)

    async def _step_before(self, action: Action, where: Conversation) -> None:
        target = await ask_before(self, action, where)
        if target is not None:
            await self._step(action, target)

    @work(group="ask", exclusive=True)
    async def action_repair(self) -> None:
        """Look everything through for what is broken, and list it."""
        await self._repair(None)

    @work(group="ask", exclusive=True)
    async def action_repair_here(self) -> None:
        """As action_repair, in the conversation alone."""
        await self._repair(self._where)

    @work(group="ask", exclusive=True)
    async def action_mend(self) -> None:
        """Mend what loses nothing, and look again."""
        if await take_repair(self, self._looked_through):
            await self._repair(self._looked_through)

    async def _repair(self, where: Conversation | None) -> None:
        report = await find_broken(self, where)
        if report is None:
            return
        self._issues, self._looked_through = report, where
        self.table("issues").show(LoadedRows(report.issues))
        if not report.clean:
            self._go_to("issues")
            return
        if self.level == "issues":
            self.action_back()
        self.show_notice(f"Nothing of {place_words(where)} is broken.")

    def _open_issue(self, issue: TranscriptRepairIssue) -> None:
        if issue.conversation is None or issue.turn_id is None or issue.problem == "turn_gone":
            words = (issue.problem.replace("_", " "), issue.ref or place_of(issue), issue.derived)
            self.show_notice(" ".join(each for each in words if each))
            return
        self.open_turns(conversation(issue.conversation), issue.turn_id)

    def copied(self) -> str | None:
        """See AreaScreen: the turn's text while it has the keys, else what the row is called."""
        if self.level == "turns" and self.query_one(Detail).has_focus:
            return "\n".join(self.query_one(Detail).texts)
        return name_of_row(self.table(self.level).chosen, self._where)

    def exported(self) -> Pages:
        """See AreaScreen: every row of the list, of a conversation every turn; the turn alone while it has the keys."""
        rows = self.table(self.level).rows
        if self.level == "turns" and self._where is not None:
            if self._turn is not None and self.query_one(Detail).has_focus:
                return one_line(plain_turn(self._turn, self._redactions))
            return turn_lines(self.link, self._where, self.view)
        return lines_of(LoadedRows() if rows is None else rows)
