"""Log: the event log, the newest rows first, with what it proves of itself."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Any, ClassVar, cast

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from beetle.contracts.codec import to_plain
from beetle.contracts.control import StoreVerifyReport
from beetle.contracts.errors import BeetleError
from beetle.contracts.event_log import EventRow
from beetle_tui.area import AreaScreen, Shared
from beetle_tui.exporting import Pages, lines_of, one_line
from beetle_tui.filter import FilterBar
from beetle_tui.json_view import ReportView
from beetle_tui.keys import hinted, key_for
from beetle_tui.loaded_rows import LoadedRows
from beetle_tui.log_filter import LogFilter, read_filter
from beetle_tui.log_rows import Entry, LogRows, read_log
from beetle_tui.messages import StoreVerified
from beetle_tui.prose import Block, section
from beetle_tui.split import Detail, Split, remark, value
from beetle_tui.table import Column, Listing, Table
from beetle_tui.text import count

COMMON = frozenset({"owner_id", "agent_id", "channel_id"})
"""What nearly every subject holds: it stands last."""
FIRST_ROWS = 40
FAULTS_TOLD = 3
NEWER = 100
"""Newer rows that are counted; more are told as more."""


class Log(AreaScreen):
    """Rows never change, so what was read stays as it is: the list ends at the row that was the last when it began.

    While its first row is chosen, newer rows come by themselves; else their number is told, and `n` shows them.
    """

    AUTO_FOCUS: ClassVar[str | None] = "Table"
    SCROLLS: ClassVar[bool] = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n", "newest", "Newest", id="log-newest", tooltip="to the newest row, and what came meanwhile",
                show=False),
        Binding("s", "sort", "Order", id="log-sort", tooltip="the newest rows first, or the oldest"),
        Binding("v", "verify", "Verify", id="log-verify", tooltip="walk the whole chain and the store; may take long"),
        Binding("f", "report", "Faults", id="log-report", tooltip="all that the last verification found", show=False),
        Binding("escape", "back", "Back", id="log-back", tooltip="from the detail back to the list", show=False),
    ]  # fmt: skip

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self._table: Table[Entry] = Table(COLUMNS, id="log-table", key=lambda each: each.row.seq)
        self._detail = Detail("Row", id="log-detail")
        self._verified: StoreVerifyReport | None = None
        self._verified_at = ""
        self._rows: LogRows | None = None
        self._goal: int | None = None
        """The row that the next reading is to show."""
        self._newer = ""

    def compose_area(self) -> ComposeResult:
        """The list, the chosen row, the filter."""
        with Split():
            yield Listing(
                self._table,
                noun=("row", "rows"),
                empty="No row: each change and each refusal leaves one; {filter} filters them.",
            )
            yield self._detail
        yield FilterBar("topic:device op:device.add by:operator since:2h until:2026-11-21T10:00Z")

    async def load(self) -> None:
        """See AreaScreen."""
        goal, self._goal = self._goal, None
        if goal is not None:
            await self._go_to_row(goal)
            return
        rows = self._rows
        if rows is None:
            await self._begin(LogFilter(), True)
            return
        newer = await rows.newer(NEWER)
        if rows is not self._rows:
            return
        self._newer = ""
        if newer.rows or newer.has_more:
            if rows.newest_first and self._table.index == 0:
                await self._begin(rows.wanted, True, instead_of=rows)
                return
            self._newer = (
                f"{'over ' if newer.has_more else ''}{len(newer.rows):,} newer: {key_for(self.app, 'log-newest')}"
            )
        self._show_state(rows)

    async def _begin(
        self, wanted: LogFilter, newest_first: bool, instead_of: LogRows | None = None, end: int | None = None
    ) -> None:
        """A list that ends with the log as it is now, or at the row `end`; on the screen the one before stays until
        this one is read.

        With `instead_of` it is only shown when that one is still there: a person may have asked for another meanwhile.

        Raises:
            BeetleError: it cannot be read, and the one before stays.
        """
        if end is None:
            end = (await read_log(self.link, wanted, newest_first=True, limit=1)).head
        rows = LogRows(self.link, wanted, newest_first, end)
        rows.on_progress = lambda: self._show_state(rows)
        await rows.load(0, FIRST_ROWS)
        if instead_of is not None and instead_of is not self._rows:
            return
        if self._rows is not None:
            self._rows.dropped = True
        self._rows, self._newer = rows, ""
        self._table.show(rows)
        self._show_state(rows)

    def _show_state(self, rows: LogRows) -> None:
        """What the foot says beside the place: what is newer, whether what was read follows."""
        self.query_one(Listing).note("; ".join(each for each in (self._newer, rows.state, self._verdict()) if each))

    def _verdict(self) -> str:
        """What the last verification came to, in few words."""
        if self._verified is None:
            return ""
        if self._verified.clean:
            return f"verified {self._verified_at}, clean"
        return f"NOT CLEAN {self._verified_at}: {key_for(self.app, 'log-report')}"

    def on_table_chosen(self, event: Table.Chosen) -> None:
        """Show the row whole."""
        entry: Entry | None = event.row
        if entry is None:
            if self._rows is not None and not self._rows.count:
                self._detail.describe("Row", None, ())
        else:
            self._detail.describe(f"Row {entry.row.seq:,}", entry.row.seq, row_blocks(entry))
        if self._newer and event.table.index == 0 and self._rows is not None and self._rows.newest_first:
            self.read_soon()

    def on_table_opened(self) -> None:
        """The keys go to the detail."""
        self._detail.focus()

    def action_back(self) -> None:
        """The keys go to the list, and what was told goes."""
        self.hide_notice()
        self._table.focus()

    def action_newest(self) -> None:
        """Begin again at the newest row."""
        self._begin_anew(newest_first=True)

    def action_sort(self) -> None:
        """Read it from the other end."""
        self._begin_anew(newest_first=self._rows is not None and not self._rows.newest_first)

    def on_filter_bar_filtered(self, event: FilterBar.Filtered) -> None:
        """Other rows; what is not understood is told, and filters nothing new."""
        try:
            wanted = read_filter(event.text)
        except BeetleError as error:
            self.show_notice(error)
        else:
            self._begin_anew(wanted=wanted)

    def _begin_anew(self, wanted: LogFilter | None = None, newest_first: bool | None = None) -> None:
        """Another list; what is not given is as in the one that is shown."""
        before = self._rows
        wanted = wanted if wanted is not None else before.wanted if before is not None else LogFilter()
        newest_first = newest_first if newest_first is not None else before is None or before.newest_first
        self.run_worker(
            partial(self._begin_or_show_error, wanted, newest_first), group="log", name="log", exclusive=True
        )

    async def _begin_or_show_error(self, wanted: LogFilter, newest_first: bool) -> None:
        self.hide_notice()
        try:
            await self._begin(wanted, newest_first)
        except BeetleError as error:
            self.show_notice(error)

    def action_verify(self) -> None:
        """Walk all of it, below a dialog that calls it off."""
        self.run_worker(self._verify, group="verify", name="verify", exclusive=True)

    async def _verify(self) -> None:
        report = cast("StoreVerifyReport | None", await self.ask_long("Verify the store", "store.verify"))
        if report is None:
            return
        self._verified, self._verified_at = report, f"{datetime.now(UTC):%H:%MZ}"
        if self._rows is not None:
            self._show_state(self._rows)
        faults = tuple(f"{each.check} {each.subject}: {each.problem}" for each in report.findings)
        self.post_message(StoreVerified(faults))
        looked = ", ".join(f"{name} {number:,}" for name, number in sorted(report.checked.items()))
        if report.clean:
            self.show_notice(f"Verified, and clean: {looked}")
        else:
            more = f"; {key_for(self.app, 'log-report')} shows all" if len(faults) > FAULTS_TOLD else ""
            found = "; ".join(faults[:FAULTS_TOLD])
            self.show_notice(f"NOT CLEAN: {count(len(faults), 'fault')}: {found}{more}. Looked at: {looked}")

    def action_report(self) -> None:
        """All that the last verification found, to be read, copied and written to a file."""
        if self._verified is None:
            self.show_notice(hinted(self.app, "nothing was verified yet in this console: {log-verify} does"))
        else:
            self.app.push_screen(ReportView("store.verify", to_plain(self._verified)))

    def open_place(self, place: str) -> None:
        """See AreaScreen: `report`, or the number of a row."""
        if place == "report":
            self.action_report()
        else:
            self._goal = int(place)
            self.read_now()

    async def _go_to_row(self, seq: int) -> None:
        """Show the list from the row behind it on, and choose it.

        Raises:
            BeetleError: it cannot be read.
        """
        await self._begin(LogFilter() if self._rows is None else self._rows.wanted, True, end=seq + 1)
        rows = self._rows
        assert rows is not None
        places = range(min(rows.count, FIRST_ROWS))
        at = next((at for at in places if (entry := rows.get(at)) is not None and entry.row.seq == seq), None)
        if at is None:
            self.show_notice(f"row {seq:,} is not shown to this caller, or not by this filter")
        else:
            self._table.choose(at)

    def copied(self) -> str | None:
        """The chosen row as JSON."""
        entry = self._table.chosen
        return None if entry is None else json.dumps(as_plain(entry.row), ensure_ascii=False)

    def exported(self) -> Pages:
        """See AreaScreen: every row that the filter lets through, as far as the list goes; of the detail its row."""
        entry, rows = self._table.chosen, self._rows
        if entry is not None and self._detail.has_focus:
            return one_line(as_plain(entry.row))
        if rows is None:
            return lines_of(LoadedRows[Entry]())
        # Another list: what is read for the file is no news of the one that is shown.
        return lines_of(LogRows(self.link, rows.wanted, rows.newest_first, rows.end), lambda each: as_plain(each.row))


def as_plain(row: EventRow) -> dict[str, Any]:
    """A row as `beetle log --json` prints it."""
    return {name: getattr(row, name) for name in row.__struct_fields__}


def subject_text(row: EventRow) -> str:
    """What a row is about, on one line: what it names first; what there is none of is left out."""
    told = sorted(row.subject.items(), key=lambda each: (each[0] in COMMON, not each[0].endswith("_id"), each[0]))
    return " ".join(f"{name}={_short(held)}" for name, held in told if held is not None)


def _short(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def row_blocks(entry: Entry) -> Iterator[Block]:
    """A row whole."""
    row = entry.row
    yield value("At", row.at)
    yield value("Event", f"{row.topic} {row.event}")
    yield value("Operation", row.operation or "-")
    yield value("Principal", row.principal or "-")
    yield value("Of", "the daemon itself" if row.daemon else "this memory space")
    yield value("Hash", row.hash)
    yield value("Chain", "BROKEN: it does not follow from the row before it" if entry.broken else "follows, ok")
    yield from section("Subject")
    if not row.subject:
        yield from remark("Nothing more is kept of it.")
    yield from (value(name, _short(held)) for name, held in sorted(row.subject.items()))


def _when(entry: Entry) -> str:
    """Without the year, which the detail has."""
    return entry.row.at[5:19].replace("T", " ")


COLUMNS = (
    Column[Entry]("Row", lambda each: f"{each.row.seq:,}", 9, right=True),
    Column[Entry]("Chain", lambda each: "BROKEN" if each.broken else "ok", 6),
    Column[Entry]("At (UTC)", _when, 14, narrow=48),
    Column[Entry]("Event", lambda each: f"{each.row.topic} {each.row.event}", 22),
    Column[Entry]("Principal", lambda each: each.row.principal, 14, narrow=90),
    Column[Entry]("Subject", lambda each: subject_text(each.row), narrow=76),
)
