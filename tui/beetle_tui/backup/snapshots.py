"""Snapshots: what there is, why it is kept, whether it is whole; making, restoring and pruning, each shown first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar, cast

from textual.binding import Binding, BindingType

from beetle.contracts.errors import BeetleError
from beetle.contracts.memory import MemoryCapabilityCatalog, RuntimeState
from beetle.contracts.snapshots import (
    BrokenSnapshot,
    ReplacedStore,
    SnapshotCreateReport,
    SnapshotInfo,
    SnapshotListReport,
    SnapshotPruneReport,
    SnapshotRestoreReport,
    SnapshotVerifyReport,
)
from beetle_tui.area import AreaScreen
from beetle_tui.backup.erased import erased_blocks, inspected
from beetle_tui.dialogs import Ask, Faults, error_lines
from beetle_tui.keys import hinted, key_for
from beetle_tui.link import Cancelled
from beetle_tui.loaded_rows import LoadedRows
from beetle_tui.memory.section import Section
from beetle_tui.prose import Block, section
from beetle_tui.split import remark, value
from beetle_tui.table import Column
from beetle_tui.text import count, moment, size
from beetle_tui.working import long_below

Row = SnapshotInfo | BrokenSnapshot | ReplacedStore
SHOWN = 6
"""Snapshots that a question names one by one."""
MOST_KEPT = 100_000
NO_FILES = "A store in memory has no snapshots"
HOW_WITHOUT_FILES = "There are no files of it to copy. `memory.export_space` exports a space of it."
KEPT: Mapping[str, str] = {
    "newest": "one of the last ones made",
    "hourly": "the newest of its hour",
    "daily": "the newest of its day",
    "weekly": "the newest of its week",
    "hand": "made by hand: it stays until it is pruned",
    "other_store": "of another store: it stays until it is pruned",
}
SHORT: Mapping[str, str] = {"hand": "by hand", "other_store": "other store"}


class Snapshots(Section[Row]):
    """Every file of the folder, the last one made first, and the stores that a restore has replaced."""

    TITLE = "Snapshots"
    NOUN = ("copy", "copies")
    EMPTY = "No snapshot: {snapshot-create} makes one"
    HOW = (
        "A snapshot is one file that holds the whole store: {snapshot-create} makes one while the store is in use.\n"
        "The job `snapshot` makes them by the clock: see `beetle help snapshots`."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "create", "Make", id="snapshot-create", tooltip="make a snapshot of the store as it is now"),
        Binding("v", "verify", "Verify", id="snapshot-verify", tooltip="unpack the snapshot and look at all of it"),
        Binding("u", "restore", "Restore", id="snapshot-restore",
                tooltip="see what a restore would do, and put the snapshot in the store's place"),
        Binding("d", "prune", "Prune", id="snapshot-prune", tooltip="see what would go, and remove older copies"),
    ]  # fmt: skip

    def __init__(self, area: AreaScreen) -> None:
        super().__init__(area)
        self._rows: tuple[Row, ...] = ()
        self._state: RuntimeState | None = None
        self._in_memory = False
        """Whether the store has no files, and so no snapshots."""
        self._verdicts: dict[str, str] = {}
        """What looking a snapshot through came to, by its id."""

    def columns(self) -> Sequence[Column[Row]]:
        """See Section."""
        return (
            Column("Made (UTC)", _made, 16),
            Column("Size", lambda row: size(row.bytes), 9, right=True),
            Column("Kept", _kept, 18),
            Column("Events", _events, 9, right=True, narrow=90),
            Column("Label", _label),
        )

    def nothing_chosen(self) -> Iterable[Block]:
        """See Section."""
        return remark(HOW_WITHOUT_FILES) if self._in_memory else super().nothing_chosen()

    def key(self, row: Row) -> object:
        """See Section."""
        return type(row).__name__, row.snapshot_id

    def named(self, row: Row) -> str:
        """See Section."""
        return row.snapshot_id

    def faint(self, row: Row) -> bool:
        """See Section."""
        return not isinstance(row, SnapshotInfo) or not row.kept_by

    async def load(self, catalog: MemoryCapabilityCatalog) -> None:
        """See Section."""
        told = await inspected(self.area.link)
        self._in_memory = told.store.backend == "in-memory"
        found = () if self._in_memory else await self._read()
        self._state = told.runtime
        self._rows = found
        self.listing.say_empty(NO_FILES if self._in_memory else self.EMPTY)
        if self.table.rows is not None:
            self.table.renew(LoadedRows(found))
        await super().load(catalog)

    async def _read(self) -> tuple[Row, ...]:
        snapshots: list[Row] = []
        others: list[Row] = []
        cursor: str | None = None
        keep: dict[str, int] = {}
        while True:
            page = cast(SnapshotListReport, await self.area.link.call("snapshot.list", {"cursor": cursor}))
            snapshots += page.snapshots
            others += (*page.broken, *page.replaced)
            keep = page.keep or keep
            cursor = page.next_cursor
            if cursor is None:
                break
        kept = ", ".join(f"{number} {name}" for name, number in keep.items() if number)
        self.listing.note(f"of the scheduled: {kept}" if snapshots else "")
        return (*snapshots, *others)

    async def rows(self) -> LoadedRows[Row]:
        """See Section."""
        return LoadedRows(self._rows)

    async def look(self, row: Row) -> tuple[str, Iterable[Block]]:
        """See Section."""
        held = held_blocks(row) if isinstance(row, SnapshotInfo) else ()
        return row.snapshot_id, [*self._blocks(row), *erased_blocks(self._state), *held]

    def _blocks(self, row: Row) -> Iterator[Block]:
        if isinstance(row, BrokenSnapshot):
            yield value("State", f"BROKEN: {row.fault.replace('_', ' ')}")
            yield value("Size", size(row.bytes))
            yield from remark(hinted(self.app, "It cannot be restored. {snapshot-prune} removes it with older ones."))
        elif isinstance(row, ReplacedStore):
            yield value("State", "the store that a restore has replaced, as it was then")
            yield value("Replaced", moment(row.replaced_at))
            yield value("Size", size(row.bytes))
            yield value("File", row.path or "(for operators alone)")
            yield from remark(hinted(self.app, "{snapshot-prune} removes it."))
        else:
            yield from snapshot_blocks(row)
            told = f"not looked through in this console: {key_for(self.app, 'snapshot-verify')}"
            yield value("Verified", self._verdicts.get(row.snapshot_id, told))

    def action_create(self) -> None:
        """Make one."""
        if self._in_memory:
            self.area.show_notice(NO_FILES)
        else:
            self.begin(self._create)

    async def _create(self) -> None:
        async def run(label: str) -> Faults:
            given = {"label": label.strip()} if label.strip() else {}
            try:
                report = await long_below(self.app, self.area.link, "Make a snapshot", "snapshot.create", given)
            except BeetleError as error:
                return error_lines(error)
            except Cancelled:
                return ["It was called off. What the store had begun by then it may still finish."]
            made = cast(SnapshotCreateReport, report).snapshot
            self.area.show_notice(f"{made.snapshot_id} is made: {size(made.bytes)}")
            self.area.read_now()
            return None

        lines = ["A copy of the whole store as it is now. Writers do not wait for it."]
        await self.app.push_screen_wait(Ask("Make a snapshot", lines, hint="label, or nothing", run=run))

    def action_verify(self) -> None:
        """Look the chosen one through."""
        self.with_chosen(self._verify)

    async def _verify(self, row: Row) -> None:
        if isinstance(row, ReplacedStore):
            self.area.show_notice("a replaced store is no snapshot: open it with `beetle --store FILE verify`")
            return
        asked = {"snapshot_id": row.snapshot_id}
        report = cast(
            "SnapshotVerifyReport | None", await self.area.ask_long("Verify the snapshot", "snapshot.verify", asked)
        )
        if report is None:
            return
        words = ", ".join(each.replace("_", " ") for each in report.reasons)
        self._verdicts[row.snapshot_id] = f"{datetime.now(UTC):%H:%MZ}, {'whole' if report.valid else words}"
        if report.valid:
            looked = ", ".join(
                f"{name.replace('_', ' ')} {number:,}" for name, number in (report.checked or {}).items()
            )
            self.area.show_notice(f"{row.snapshot_id} is whole{': ' if looked else ''}{looked}")
        else:
            self.area.show_notice(f"{row.snapshot_id} is NOT TO BE TRUSTED: {words}")
        self.look_again()

    def action_restore(self) -> None:
        """Put the chosen one in the store's place."""
        self.with_chosen(self._restore)

    async def _restore(self, row: Row) -> None:
        if not isinstance(row, SnapshotInfo):
            self.area.show_notice(f"{row.snapshot_id} is no whole snapshot, and cannot be restored")
            return
        asked: dict[str, Any] = {"snapshot_id": row.snapshot_id}
        if not row.own or row.device is None:
            whose = "of another store" if not row.own else "signed by no device"
            lines = [f"{row.snapshot_id} is {whose}.", "Go on only if you know where the file comes from."]
            if not await self.agreed("Trust this snapshot?", lines):
                return
            asked["other_store"] = True
        dry = await self.area.ask_long("What a restore would do", "snapshot.restore", {**asked, "dry_run": True})
        if dry is None:
            return
        foreseen = cast(SnapshotRestoreReport, dry)
        if not await self.agreed("Restore this snapshot?", restore_lines(row, foreseen)):
            return
        done = await self.area.ask_long("Restore the snapshot", "snapshot.restore", asked)
        if done is None:
            return
        report = cast(SnapshotRestoreReport, done)
        self._verdicts.clear()
        await self.show_lines("Restored", tuple(done_lines(report)))
        self.area.read_now()

    def action_prune(self) -> None:
        """Remove older ones."""
        self.with_chosen(self._prune_older)

    async def _prune_older(self, row: Row) -> None:
        if isinstance(row, ReplacedStore):
            wrong = await self._prune_shown({"keep": MOST_KEPT, "replaced": True})
            if wrong is not None:
                self.area.show_notice("; ".join(wrong))
            return
        whole = [each for each in self._rows if isinstance(each, SnapshotInfo)]
        place = next((at for at, each in enumerate(whole) if each.snapshot_id == row.snapshot_id), len(whole))
        lines = [
            f"Of {count(len(whole), 'snapshot')} so many stay, the last ones made. Older ones and broken files go.",
            f"With {place:,} the chosen one is the first that goes." if place < len(whole) else "Broken files go.",
            "What would go is shown before anything does.",
        ]

        async def run(text: str) -> Faults:
            return await self._prune_shown({"keep": int(text)})

        asked = Ask("Prune: keep how many?", lines, value=f"{place}", fault=_no_number, run=run)
        await self.app.push_screen_wait(asked)

    async def _prune_shown(self, asked: dict[str, Any]) -> Faults:
        """Show what would go, and remove it where a person agrees."""
        link = self.area.link
        try:
            foreseen = cast(SnapshotPruneReport, await link.call("snapshot.prune", {**asked, "dry_run": True}))
            if not foreseen.removed and not foreseen.replaced:
                return ["Nothing would go."]
            if not await self.agreed("Remove these for good?", self._prune_lines(foreseen)):
                return ["Nothing was removed."]
            now = cast(SnapshotPruneReport, await link.call("snapshot.prune", {**asked, "dry_run": True}))
            if (now.removed, now.replaced) != (foreseen.removed, foreseen.replaced):
                return ["There are others meanwhile, and nothing was removed. Look again."]
            done = cast(SnapshotPruneReport, await link.call("snapshot.prune", asked))
        except BeetleError as error:
            return error_lines(error)
        gone = [
            count(len(done.removed), "snapshot"),
            *([count(done.replaced, "replaced store")] if done.replaced else []),
        ]
        self.area.show_notice(f"removed: {', '.join(gone)}; {size(done.freed_bytes)} freed")
        self.area.read_now()
        return None

    def _prune_lines(self, foreseen: SnapshotPruneReport) -> Iterator[str]:
        known = {each.snapshot_id: each for each in self._rows if not isinstance(each, ReplacedStore)}
        if foreseen.removed:
            yield f"{count(len(foreseen.removed), 'file')} of snapshots:"
        for each in foreseen.removed[:SHOWN]:
            row = known.get(each)
            yield f"  {each}{'' if row is None else f'  {_made(row)}  {_label(row)}'}".rstrip()
        if len(foreseen.removed) > SHOWN:
            yield f"  … and {len(foreseen.removed) - SHOWN:,} more"
        if foreseen.replaced:
            yield f"{count(foreseen.replaced, 'store')} that a restore has replaced, with what was written there alone."
        yield f"{count(len(foreseen.kept), 'snapshot')} {'stays' if len(foreseen.kept) == 1 else 'stay'}."
        yield f"{size(foreseen.freed_bytes)} are freed. They cannot be brought back."


def snapshot_blocks(row: SnapshotInfo) -> Iterator[Block]:
    """A snapshot as its header tells of it."""
    yield value("Made", moment(row.created_at))
    why = ", ".join(KEPT[each] for each in row.kept_by)
    yield value("Kept", why or "only until the next run of the job `snapshot`")
    yield value("Label", row.label or "-")
    yield value("Size", f"{size(row.bytes)}, {size(row.store_bytes)} unpacked")
    if row.event_log_rows is not None:
        yield value("Events", f"{row.event_log_rows:,}")
    yield value("Of", "this store" if row.own else "ANOTHER STORE")
    yield value("Signed by", row.device or "nobody: a restore asks whether you trust it")
    yield value("Made by", f"beetle {row.version}, schema {row.schema}, {row.backend}")


def held_blocks(row: SnapshotInfo) -> Iterator[Block]:
    """How much of what a snapshot holds."""
    if row.counts:
        yield from section("Holds")
        held = [(name, number) for name, number in row.counts.items() if number]
        yield from (value(name.replace("_", " "), f"{number:,}") for name, number in held)


def restore_lines(row: SnapshotInfo, foreseen: SnapshotRestoreReport) -> Iterator[str]:
    """What a dry run says that a restore would do."""
    yield f"{row.snapshot_id} of {moment(row.created_at)} takes the store's place. It is whole."
    yield f"{_undone(foreseen)} undone."
    if foreseen.erased:
        told = ", ".join(f"{number:,} {name.replace('_', ' ')}" for name, number in foreseen.erased.items())
        yield f"What was erased since is erased in it again: {told}."
    if foreseen.devices_suspended:
        yield f"{count(foreseen.devices_suspended, 'device')} in it will be suspended."
    if foreseen.identity != "usable":
        yield f"The device identity is {foreseen.identity} for it: its private plane stays closed."
    yield "The store of now is set aside whole, and stays until it is pruned."


def done_lines(report: SnapshotRestoreReport) -> Iterator[str]:
    """What a restore has done."""
    yield f"{report.snapshot.snapshot_id} of {moment(report.snapshot.created_at)} is the store now."
    yield f"{_undone(report)} undone."
    if report.kept_as:
        yield f"The store that was there before: {report.kept_as}"
    if report.erased:
        yield f"Erased again: {', '.join(f'{number:,} {name}' for name, number in report.erased.items())}"
    if report.devices_suspended:
        yield f"{count(report.devices_suspended, 'device')} suspended."


def _undone(report: SnapshotRestoreReport) -> str:
    return f"{count(report.events_behind, 'event')} since {'is' if report.events_behind == 1 else 'are'}"


def _made(row: Row) -> str:
    if isinstance(row, BrokenSnapshot):
        return "-"
    at = row.created_at if isinstance(row, SnapshotInfo) else row.replaced_at
    return at[:16].replace("T", " ")


def _kept(row: Row) -> str:
    if isinstance(row, BrokenSnapshot):
        return "BROKEN"
    if isinstance(row, ReplacedStore):
        return "replaced store"
    return ", ".join(SHORT.get(each, each) for each in row.kept_by) or "until next run"


def _events(row: Row) -> str:
    return f"{row.event_log_rows:,}" if isinstance(row, SnapshotInfo) and row.event_log_rows is not None else "-"


def _label(row: Row) -> str:
    if isinstance(row, SnapshotInfo):
        return row.label or ""
    return row.fault.replace("_", " ") if isinstance(row, BrokenSnapshot) else f"before {row.snapshot_id}"


def _no_number(text: str) -> str | None:
    given = text.strip()
    fits = given.isascii() and given.isdecimal() and len(given) <= len(str(MOST_KEPT)) and int(given) <= MOST_KEPT
    return None if fits else f"Give a number from 0 to {MOST_KEPT:,}."
