"""Time: the table of contents from years down to segments, the events behind its bullets, and what hosts captured."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from functools import partial
from typing import Any, ClassVar, cast

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from beetle.contracts.capture import HostCoverage, HostCoverageReport
from beetle.contracts.codec import to_plain
from beetle.contracts.errors import BeetleError
from beetle.contracts.refs import parse_ref
from beetle.contracts.toc import (
    TOC_LEVELS,
    GripExpandReport,
    TocBrowseReport,
    TocNode,
    TocNodeReport,
    TocRootReport,
)
from beetle_tui.area import AreaScreen, Shared
from beetle_tui.dialogs import Ask
from beetle_tui.document import Document
from beetle_tui.exporting import Pages, lines_of, one_line
from beetle_tui.keys import hinted
from beetle_tui.loaded_rows import LoadedRows
from beetle_tui.messages import RefFollowed
from beetle_tui.rows import Batch, CursorRows, Rows
from beetle_tui.sections import Sections
from beetle_tui.split import Detail, Split, remark
from beetle_tui.table import Listing, Table
from beetle_tui.time_pages import HIDDEN, Aim, Bullet, aim_at, aim_of, host_page, listings, no_date, node_page

TITLES = ("Contents", "Hosts")
CONTENTS, HOSTS = range(2)
SECONDS_BETWEEN_LOOKS = 30.0
"""The jobs that build the contents leave no event; the first of them runs each minute."""
SECONDS_BETWEEN_COUNTS = 10.0
"""Every captured turn is counted each time: too much work to do it for each one that comes."""
AROUND = 2
"""Events before and after those of a bullet."""
NOTHING_SAID = (
    "Nothing stands here yet. The contents build themselves from what is said, within the hour: "
    "`beetle scheduler run outbox-processor` begins at once."
)
NO_HOST = (
    "No host has captured a turn yet. Hosts deliver theirs with `turn.capture`, or a file of them with "
    "`beetle capture`: see `beetle help capture`."
)


class Time(AreaScreen):
    """One list is shown at a time, and what its chosen row holds. Enter goes down a level of the contents, esc up."""

    AUTO_FOCUS: ClassVar[str | None] = "Listing.-shown Table"
    SCROLLS: ClassVar[bool] = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,h", "part(-1)", "Part before", id="time-previous", tooltip="to the part before", show=False),
        Binding("right,l", "part(1)", "Next part", id="time-next", tooltip="to the next part", show=False),
        Binding("d", "date", "Date", id="time-date", tooltip="to a day, week, month or year"),
        Binding("o", "source", "Source", id="time-source", tooltip="the events behind a bullet; enter goes to a turn"),
        Binding("escape", "back", "Back", id="time-back", tooltip="to the list, or a level up", show=False),
    ]
    DEFAULT_CSS = """
    Time Listing { display: none; }
    Time Listing.-shown { display: block; }
    """

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self._part = CONTENTS
        self._way: tuple[TocNode, ...] = ()
        """The nodes that lead to the list that is shown, from the year on."""
        self._aim: str | None = None
        """Id of the node that is to be the chosen one of the list, once it is read."""
        self._sources: dict[str, GripExpandReport] = {}
        """The events behind bullets of the page, by grip."""
        self._coverage: HostCoverageReport | None = None
        self._counts = False
        self.sections = Sections(TITLES, "{time-previous}, {time-next}: another part")
        self.detail = Detail(TITLES[CONTENTS], id="time-page")
        self.listings = listings()

    @property
    def listing(self) -> Listing[Any]:
        """The list that is shown."""
        return self.listings[len(self._way) if self._part == CONTENTS else -1]

    @property
    def table(self) -> Table[Any]:
        """The table of the list that is shown."""
        return self.listing.table

    def compose_area(self) -> ComposeResult:
        """The names of the parts, their lists, and what is chosen."""
        yield self.sections
        with Split():
            yield from self.listings
            yield self.detail

    def on_mount(self) -> None:
        """The years are seen first; what is built meanwhile comes by itself."""
        super().on_mount()
        self.listing.add_class("-shown")
        self.look_each(SECONDS_BETWEEN_LOOKS, self._look_for_more)

    async def _look_for_more(self) -> bool:
        return self._part == CONTENTS

    def outdate(self) -> None:
        """See AreaScreen: what is dear to count is counted again after a while."""
        if self._part == HOSTS and self.is_current:
            if not self._counts:
                self._counts = True
                self.set_timer(SECONDS_BETWEEN_COUNTS, self._count_again)
        else:
            super().outdate()

    def _count_again(self) -> None:
        self._counts = False
        super().outdate()

    async def load(self) -> None:
        """See AreaScreen. Only the list that is seen is asked for."""
        table, aim = self.table, self._aim
        rows = await self._rows()
        at = None if aim is None else await _place(rows, aim)
        index = (table.index if table.rows is not None else 0) if at is None else at
        await rows.load(index, index)
        if table is not self.table or aim != self._aim:
            return
        self._aim = None
        if table.rows is None or at is not None:
            table.show(rows, index)
        else:
            table.renew(rows)
        self.listing.note(self._note())
        self._look_again()

    async def _rows(self) -> Rows[Any]:
        """The list that is shown, from its beginning."""
        if self._part == HOSTS:
            self._coverage = cast(HostCoverageReport, await self.link.call("host.coverage"))
            return LoadedRows(self._coverage.hosts)
        return CursorRows(self._fetch())

    def _fetch(self) -> Any:
        return partial(self._children, self._way[-1].node_id) if self._way else self._years

    async def _years(self, cursor: str | None, limit: int) -> Batch[TocNode]:
        found = cast(TocRootReport, await self.link.call("toc.root", {"limit": limit, "cursor": cursor}))
        return Batch(found.nodes, found.next_cursor)

    async def _children(self, parent: str, token: str | None, limit: int) -> Batch[TocNode]:
        """A whole page: an answer may have no room for so many nodes."""
        found: list[TocNode] = []
        while True:
            asked = {"parent_id": parent, "limit": limit - len(found), "continuation_token": token}
            page = cast(TocBrowseReport, await self.link.call("toc.browse", asked))
            found += page.children
            token = page.continuation_token
            if token is None or len(found) >= limit:
                return Batch(tuple(found), token)

    def _note(self) -> str:
        """The way to the list, in as few words as tell it."""
        if self._part == HOSTS or not self._way:
            return ""
        year = self._way[0].title or ""
        below = ((each.title or each.node_id).removesuffix(year).rstrip(", ") for each in self._way[1:])
        return " > ".join((year, *below))

    def on_table_chosen(self, event: Table.Chosen) -> None:
        """Show what it holds."""
        if event.table is self.table:
            self._sources.clear()
            self._look_again()

    def on_table_opened(self, event: Table.Opened) -> None:
        """A level down; the page of a segment or a host."""
        event.stop()
        if isinstance(event.row, TocNode) and event.row.level != TOC_LEVELS[-1]:
            self._show_list(CONTENTS, (*self._way, event.row))
        else:
            self.detail.focus()

    def on_document_followed(self, event: Document.Followed) -> None:
        """From a bullet to the turn that it is of, and to what a ref names."""
        if isinstance(event.target, Bullet):
            self.run_worker(partial(self._open_turn, event.target.grip_id), name="open", group="open", exclusive=True)
        else:
            super().on_document_followed(event)

    async def _open_turn(self, grip_id: str) -> None:
        found = await self._expanded(grip_id)
        if found is not None and found.excerpt_events:
            self.post_message(RefFollowed(found.excerpt_events[0].ref))

    async def _expanded(self, grip_id: str) -> GripExpandReport | None:
        """What a bullet rests on; None where that is not to be had, which is told then."""
        asked = {"grip_id": grip_id, "events_before": AROUND, "events_after": AROUND}
        found = cast("GripExpandReport | None", await self.ask("grip.expand", asked))
        if found is not None and not found.excerpt_events:
            self.show_notice("The events behind this bullet are no longer there, or may not be shown.")
        return found

    def action_source(self) -> None:
        """Show the events behind the bullet that is chosen on the page, or behind the first one."""
        row: TocNode | None = self.table.chosen
        target = self.detail.target
        grips = [] if row is None else [grip for bullet in row.bullets for grip in bullet.grip_ids]
        if row is None or not grips:
            self.show_notice("It has no bullet whose events could be shown.")
            return
        chosen = target.grip_id if isinstance(target, Bullet) and self.detail.has_focus else grips[0]
        self.run_worker(partial(self._show_source, row, chosen), name="source", group="links", exclusive=True)

    async def _show_source(self, row: TocNode, grip_id: str) -> None:
        found = await self._expanded(grip_id)
        if found is None or not found.excerpt_events or row != self.table.chosen:
            return
        self._sources[grip_id] = found
        self._look_again()
        self.detail.focus()
        self.detail.go_to(found.excerpt_events[0].ref)

    @work(group="ask", exclusive=True)
    async def action_date(self) -> None:
        """Ask for a period, and go to its node."""
        lines = ["A day, week, month or year, in UTC."]
        text = await self.app.push_screen_wait(Ask("Go to a date", lines, hint="2026-03-02", fault=no_date))
        aim = None if text is None else aim_of(text)
        if aim is None:
            return
        self.hide_notice()
        try:
            await self._go_to(aim, text or "")
        except BeetleError as error:
            self.show_notice(error)

    async def _go_to(self, aim: Aim, text: str) -> None:
        """To the node of a period; where nothing was said then, to the one nearest to it."""
        way = await self._lead(aim.path)
        if len(way) == len(aim.path):
            self._show_list(CONTENTS, way[:-1], aim.path[-1])
            return
        nearest = await self._nearest(way, aim.day)
        if nearest is None:
            self.show_notice("Nothing was said yet, or the contents are not built yet.")
            return
        self._show_list(CONTENTS, way, nearest)
        self.show_notice(f"Nothing was said in {text.strip()}: this is the nearest {TOC_LEVELS[len(way)]}.")

    async def _lead(self, path: Sequence[str]) -> tuple[TocNode, ...]:
        """The nodes of these ids, as far as there are some."""
        found: list[TocNode] = []
        for node_id in path:
            node = cast(TocNodeReport, await self.link.call("toc.node", {"node_id": node_id})).node
            if node is None:
                break
            found.append(node)
        return tuple(found)

    async def _nearest(self, way: Sequence[TocNode], day: date) -> str | None:
        at = (day - date(1970, 1, 1)) // timedelta(milliseconds=1)
        found: list[tuple[int, str]] = []
        fetch = partial(self._children, way[-1].node_id) if way else self._years
        async for page in CursorRows(fetch).pages():
            found += [(min(abs(each.start_time_ms - at), abs(each.end_time_ms - at)), each.node_id) for each in page]
        return min(found, default=(0, None))[1]

    def open_ref(self, ref: str) -> None:
        """See AreaScreen: a node."""
        named = parse_ref(ref)
        node_id = ref if named is None or not named.segments[0].startswith("toc:") else named.segments[0]
        self.run_worker(partial(self._open_node, node_id), name="open", group="open", exclusive=True)

    async def _open_node(self, node_id: str) -> None:
        found = cast("TocNodeReport | None", await self.ask("toc.node", {"node_id": node_id}))
        if found is None:
            return
        if found.node is None:
            self.show_notice(f"There is no node {node_id}.")
            return
        day = date(1970, 1, 1) + timedelta(milliseconds=found.node.start_time_ms)
        depth = TOC_LEVELS.index(found.node.level)
        middle = timedelta(days=(20, 15, 3, 0, 0)[depth])  # in a month or year the first days may be of another one
        self._show_list(CONTENTS, await self._lead(aim_at(day + middle, "day").path[:depth]), node_id)

    def action_part(self, steps: int) -> None:
        """The next part, or the one before."""
        self._show_list((self._part + steps) % len(TITLES), self._way)

    def on_sections_picked(self, event: Sections.Picked) -> None:
        """That part."""
        self._show_list(event.index, self._way)

    def action_back(self) -> None:
        """From the page to the list, from a list to the one above."""
        if self.detail.has_focus:
            self.table.focus()
        elif self._part == CONTENTS and self._way:
            self._show_list(CONTENTS, self._way[:-1], self._way[-1].node_id)

    def _show_list(self, part: int, way: tuple[TocNode, ...], aim: str | None = None) -> None:
        """Show a list, and in it the node of an id; another list of the level that was shown before is read anew."""
        self.listing.remove_class("-shown")
        before, ids = self._part, [each.node_id for each in self._way]
        self._part, self._way, self._aim = part, way, aim
        if [each.node_id for each in way] != ids:
            for each in self.listings[len(way) : -1]:
                each.table.rows = None
        self.listing.add_class("-shown")
        self.sections.choose(part)
        if part != before:
            self.hide_notice()
        self._sources.clear()
        self.table.focus()
        self.refresh_bindings()
        self.read_now()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Hosts have no dates and no bullets."""
        if action in ("date", "source"):
            return self._part == CONTENTS
        return super().check_action(action, parameters)

    def copied(self) -> str | None:
        """See AreaScreen."""
        if self.detail.has_focus:
            return self.detail.chosen_text or None
        row = self.table.chosen
        return None if row is None else _name(row)

    def exported(self) -> Pages:
        """See AreaScreen."""
        row, rows = self.table.chosen, self.table.rows
        if row is not None and self.detail.has_focus:
            return one_line(to_plain(row))
        return lines_of(LoadedRows[Any]() if rows is None else rows)

    def _look_again(self) -> None:
        """Show the page of the chosen row, as it is now."""
        row, rows = self.table.chosen, self.table.rows
        title = TITLES[self._part]
        if isinstance(row, TocNode):
            self.detail.describe(row.title or HIDDEN, row.node_id, node_page(row, self._sources))
        elif isinstance(row, HostCoverage) and self._coverage is not None:
            self.detail.describe(row.host_kind, row.host_kind, host_page(row, self._coverage))
        else:
            nothing = NO_HOST if self._part == HOSTS else NOTHING_SAID
            empty = rows is not None and not rows.count
            self.detail.describe(title, None, remark(hinted(self.app, nothing)) if empty else ())


def _name(row: Any) -> str:
    return row.node_id if isinstance(row, TocNode) else cast(HostCoverage, row).host_kind


async def _place(rows: Rows[Any], node_id: str) -> int | None:
    """Where a node stands in its list."""
    at = 0
    async for page in rows.pages():
        for each in page:
            if each.node_id == node_id:
                return at
            at += 1
    return None
