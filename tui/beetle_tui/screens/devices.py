"""Devices: who may speak to the daemon with a key of its own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, cast

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from beetle.contracts.capabilities import CAPABILITIES
from beetle.contracts.common import Report
from beetle.contracts.control import HelloReport
from beetle.contracts.devices import (
    Device,
    DeviceKeyReport,
    DeviceListReport,
    DeviceRemovedReport,
    DeviceReport,
)
from beetle.contracts.errors import BeetleError
from beetle.contracts.memory import MemoryCapabilityCatalog
from beetle_tui.area import AreaScreen, Shared
from beetle_tui.device_dialogs import Checklist, Credentials, KeyShown
from beetle_tui.dialogs import Ask, Confirm, Faults, error_lines, needed
from beetle_tui.exporting import Pages, lines_of
from beetle_tui.filter import FilterBar
from beetle_tui.form import Field, Form
from beetle_tui.keys import hinted, key_for
from beetle_tui.loaded_rows import LoadedRows
from beetle_tui.prose import Block, section
from beetle_tui.rows import PAGE
from beetle_tui.split import Detail, Split, remark, value
from beetle_tui.table import Column, Listing, Table
from beetle_tui.text import count, moment

NEVER = "never"
LOOK_SECONDS = 5.0
ORDERS: tuple[tuple[str, Callable[[Device], Any], bool], ...] = (
    ("added", lambda each: 0, False),
    ("label", lambda each: each.label.casefold(), False),
    ("last seen", lambda each: each.last_seen or "", True),
    ("state", lambda each: each.state, False),
)
"""What `s` goes through: its name, what rows are ordered by, and whether the highest stands first."""
NEEDS: Mapping[str, str] = {
    "add": "device.add", "rename": "device.update", "grant": "device.update", "suspend": "device.update",
    "rotate": "device.rotate_key", "revoke": "device.update", "remove": "device.remove",
}  # fmt: skip
"""What each key asks the daemon: who may not ask has no such key."""
HOW = (
    "A device speaks to the daemon with a key of its own, and may do what it was granted, no more.\n\n"
    "`{device-add}` asks what it is called and what it may do, and shows its key once, as text and as a QR code."
)
"""In the place of a device, where there is none."""


class Devices(AreaScreen):
    """The devices of the daemon, or of the caller's owner. A daemon knows 1,024 at most, so all of them are read.

    That a device connects raises no event: while it is in sight it also looks by itself, and draws only what is other.
    """

    AUTO_FOCUS: ClassVar[str | None] = "Table"
    SCROLLS: ClassVar[bool] = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "add", "Add", id="device-add", tooltip="add a device; its key is shown once"),
        Binding("n", "rename", "Name", id="device-rename", tooltip="call the device otherwise", show=False),
        Binding("c", "grant", "Grant", id="device-grant", tooltip="choose what the device may do"),
        Binding("u", "suspend", "Suspend", id="device-suspend", tooltip="suspend the device, or let it in again"),
        Binding("o", "rotate", "Key", id="device-rotate", tooltip="give the device another key; the old one is void"),
        Binding("x", "revoke", "Revoke", id="device-revoke", tooltip="shut the device out for good"),
        Binding("d,delete", "remove", "Remove", id="device-remove", tooltip="forget the device; what it wrote stays",
                show=False),
        Binding("s", "sort", "Sort", id="device-sort", tooltip="order by when added, label, last seen or state",
                show=False),
        Binding("escape", "back", "Back", id="device-back", tooltip="from the detail back to the list", show=False),
    ]  # fmt: skip

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self._table: Table[Device] = Table(
            COLUMNS, id="device-table", dim=lambda each: each.state != "active", key=lambda each: each.device_id
        )
        self._detail = Detail("Device", id="device-detail")
        self._all: tuple[Device, ...] = ()
        self._rows: LoadedRows[Device] = LoadedRows()
        self._order = 0
        self._words: tuple[str, ...] = ()
        self._allowed: frozenset[str] = frozenset()
        self._wanted: str | None = None

    def compose_area(self) -> ComposeResult:
        """The list, the chosen device, the filter."""
        with Split():
            yield Listing(
                self._table,
                noun=("device", "devices"),
                empty="No device: {device-add} adds one, and shows its key once.",
            )
            yield self._detail
        yield FilterBar("part of an id, label, state, owner or capability")

    def on_mount(self) -> None:
        """Begin to look by itself."""
        self.look_each(LOOK_SECONDS, self._look)

    async def _look(self) -> bool:
        """Whether a reading says something else than what is shown."""
        return self.filled and self.link.socket is not None and await self._read_all() != self._all

    async def load(self) -> None:
        """See AreaScreen."""
        told = cast(HelloReport, await self.link.call("hello"))
        allowed = frozenset(each.name for each in told.operations if each.visible)
        if allowed != self._allowed:
            self._allowed = allowed
            self.refresh_bindings()
        self._all = await self._read_all()
        self._arrange()

    async def _read_all(self) -> tuple[Device, ...]:
        found: list[Device] = []
        cursor: str | None = None
        while True:
            asked = {"limit": PAGE, "cursor": cursor}
            page = cast(DeviceListReport, await self.link.call("device.list", asked))
            found += page.devices
            cursor = page.next_cursor
            if cursor is None:
                return tuple(found)

    def _arrange(self) -> None:
        """Filter and order what was read; the chosen device stays the chosen one, but for one that was just added."""
        name, key, falling = ORDERS[self._order]
        shown = [each for each in self._all if all(word in _found_by(each) for word in self._words)]
        shown.sort(key=key, reverse=falling)
        self._rows.hold(shown)
        if self._table.rows is None:  # before it was read nobody knows whether there is any
            self._table.show(self._rows)
        self._table.read()
        place = next((n for n, each in enumerate(shown) if each.device_id == self._wanted), None)
        if place is not None:
            self._wanted = None
            self._table.choose(place)
        if not shown:
            self._show_none()
        hidden = len(self._all) - len(shown)
        notes = (f"by {name}" if self._order else "", f"{hidden} hidden by the filter" if hidden else "")
        self.query_one(Listing).note("; ".join(each for each in notes if each))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """No key for what the caller may not do, nor for a device where there is none."""
        needed = NEEDS.get(action)
        if needed is not None:
            return needed in self._allowed
        return super().check_action(action, parameters)

    def on_table_chosen(self, event: Table.Chosen) -> None:
        """Show the device whole."""
        device: Device | None = event.row
        if device is None:
            self._show_none()
        else:
            self._detail.describe(
                device.label, device.device_id, device_blocks(device, key_for(self.app, "device-suspend"))
            )

    def _show_none(self) -> None:
        self._detail.describe("Device", None, () if self._all else remark(hinted(self.app, HOW)))

    def on_table_opened(self) -> None:
        """The keys go to the detail."""
        self._detail.focus()

    def action_back(self) -> None:
        """The keys go to the list, and what was told goes."""
        self.hide_notice()
        self._table.focus()

    def action_sort(self) -> None:
        """The next order."""
        self._order = (self._order + 1) % len(ORDERS)
        self._arrange()

    def on_filter_bar_filtered(self, event: FilterBar.Filtered) -> None:
        """Show the devices that hold every word."""
        self._words = tuple(event.text.casefold().split())
        self._arrange()

    def action_add(self) -> None:
        """Ask for what there is to say, then for what it may do; show its key."""
        self._begin(self._add)

    def action_rename(self) -> None:
        """Ask for another label."""
        self._with_chosen(self._rename)

    def action_grant(self) -> None:
        """Choose its capabilities."""
        self._with_chosen(self._grant)

    def action_suspend(self) -> None:
        """Suspend it, or let it in again."""
        self._with_chosen(self._suspend, revoked=False)

    def action_rotate(self) -> None:
        """Give it another key."""
        self._with_chosen(self._rotate, revoked=False)

    def action_revoke(self) -> None:
        """Shut it out for good."""
        self._with_chosen(self._revoke, revoked=False)

    def action_remove(self) -> None:
        """Forget it."""
        self._with_chosen(self._remove)

    def _with_chosen(self, step: Callable[[Device], Awaitable[None]], revoked: bool = True) -> None:
        """Take a step with the chosen device; `revoked` says whether there is such a step for one that is revoked."""
        device = self._table.chosen
        if device is None:
            self.show_notice(hinted(self.app, "no device is chosen: {device-add} adds one"))
            return
        if device.state == "revoked" and not revoked:
            told = "is revoked, which is for good: {device-remove} removes it, {device-add} adds it anew"
            self.show_notice(f"{device.label} ({device.device_id}) {hinted(self.app, told)}")
            return
        self._begin(partial(step, device))

    def _begin(self, step: Callable[[], Awaitable[None]]) -> None:
        self.hide_notice()
        self.run_worker(step, group="device", name="device", exclusive=True)

    async def _add(self) -> None:
        """What was filled in stays there until the daemon has taken it."""
        names: tuple[str, ...] = ()
        added: list[DeviceKeyReport] = []

        async def run(values: Mapping[str, str]) -> Faults:
            nonlocal names
            given = {name: text.strip() for name, text in values.items() if text.strip()}
            try:
                chosen = await self._choose(f"What {given['label']} may do", names)
                if chosen is None:
                    return []
                names = chosen
                report = await self.link.call("device.add", {**given, "capabilities": names})
            except BeetleError as error:
                return error_lines(error)
            added.append(cast(DeviceKeyReport, report))
            return None

        await self.app.push_screen_wait(Form("Add a device", FIELDS, run=run))
        if added:
            await self._show_key("Added: its key, this once", added[0])

    async def _choose(self, title: str, ticked: Sequence[str]) -> tuple[str, ...] | None:
        """Have capabilities ticked; None when that was given up.

        Raises:
            BeetleError: it is not known which there are.
        """
        catalog = cast(MemoryCapabilityCatalog, await self.link.call("memory.capabilities"))
        known = catalog.capabilities
        # The daemon lets nobody grant what he has not himself; what the device has already may stay.
        entries = [
            each for each in CAPABILITIES if each.name in ticked or (each.name in known and known[each.name].visible)
        ]
        return await self.app.push_screen_wait(Checklist(title, entries, ticked))

    async def _show_key(self, title: str, report: DeviceKeyReport) -> None:
        device = report.device
        self._wanted = device.device_id
        self.outdate()
        if report.appKeyOnce is None:
            rotate = key_for(self.app, "device-rotate")
            told = "its key was told in an earlier answer"
            more = "it was revoked or removed since" if device.state == "revoked" else f"{rotate} gives it another"
            self.show_notice(f"{device.device_id}: {told}; {more}")
            return
        credentials = Credentials(device.device_id, report.appKeyOnce)
        shown = KeyShown(title, device.label, credentials, device.appKeyFingerprint, self.shared.charset)
        await self.app.push_screen_wait(shown)
        self.show_notice(f"{device.label} ({device.device_id}) has the key {device.appKeyFingerprint}")

    async def _rename(self, device: Device) -> None:
        async def run(label: str) -> Faults:
            if label.strip() == device.label:
                return None
            try:
                if (other := await self._other(device)) is not None:
                    return [other]
                await self.link.call("device.update", {"device_id": device.device_id, "label": label.strip()})
            except BeetleError as error:
                return error_lines(error)
            self.show_notice(f"{device.device_id} is called {label.strip()}")
            self.outdate()
            return None

        fault = needed("give it a label")
        lines = [f"Id {device.device_id}"]
        await self.app.push_screen_wait(Ask("Rename the device", lines, value=device.label, fault=fault, run=run))

    async def _grant(self, device: Device) -> None:
        try:
            names = await self._choose(f"What {device.label} ({device.device_id}) may do", device.capabilities)
        except BeetleError as error:
            self.show_notice(error)
            return
        if names is not None and set(names) != set(device.capabilities):
            may = ", ".join(names) or "nothing"
            await self._change(device, f"{device.label} may from its next request on: {may}", capabilities=names)

    async def _suspend(self, device: Device) -> None:
        if device.state == "suspended":
            await self._change(device, f"{device.label} is active again; it proves itself anew", state="active")
            return
        lines = [
            f"{device.label} ({device.device_id}) is refused until it is active again.",
            _connections_end(device),
            hinted(self.app, "Its key stays. {device-suspend} lets it in again."),
        ]
        if await self.app.push_screen_wait(Confirm("Suspend the device?", lines)):
            await self._change(device, f"{device.label} is suspended", state="suspended")

    async def _rotate(self, device: Device) -> None:
        lines = [
            f"{device.label} ({device.device_id}) gets another key, which is shown once.",
            f"The key {device.appKeyFingerprint} is void at once. {_connections_end(device)}",
        ]
        if not await self.app.push_screen_wait(Confirm("Give it another key?", lines)):
            return
        report = cast("DeviceKeyReport | None", await self._ask_of(device, "device.rotate_key"))
        if report is not None:
            await self._show_key("Another key, this once", report)

    async def _revoke(self, device: Device) -> None:
        lines = [
            f"{device.label} ({device.device_id}) is refused for good: no key and no state brings it back.",
            _connections_end(device),
            "What it wrote stays, under its name.",
            hinted(self.app, "{device-suspend} suspends a device so that it can come back."),
        ]
        if await self.app.push_screen_wait(Confirm("Revoke the device?", lines)):
            await self._change(device, f"{device.label} is revoked", state="revoked")

    async def _remove(self, device: Device) -> None:
        lines = [
            f"{device.label} ({device.device_id}) is no longer known; its key is void at once.",
            _connections_end(device),
            f"What it wrote stays, under the name device:{device.device_id}, and so do its rows of the log.",
        ]
        if not await self.app.push_screen_wait(Confirm("Remove the device?", lines)):
            return
        report = cast("DeviceRemovedReport | None", await self._ask_of(device, "device.remove"))
        if report is not None:
            self.show_notice(f"{device.label} ({report.device_id}) is removed")
            self.outdate()

    async def _change(self, device: Device, done: str, **changes: Any) -> None:
        report = cast("DeviceReport | None", await self._ask_of(device, "device.update", **changes))
        if report is not None:
            self.show_notice(done)
            self.outdate()

    async def _ask_of(self, device: Device, operation: str, **arguments: Any) -> Report | None:
        """Run an operation on a device as it was when the key was pressed: its report, or None, which is told."""
        try:
            other = await self._other(device)
        except BeetleError as error:
            self.show_notice(error)
            return None
        if other is None:
            return await self.ask(operation, {"device_id": device.device_id, **arguments})
        self.show_notice(other)
        return None

    async def _other(self, device: Device) -> str | None:
        """What to say where a device is another one than when the key was pressed; None where it is the same.

        Raises:
            BeetleError: the devices cannot be read.
        """
        now = next((each for each in await self._read_all() if each.device_id == device.device_id), None)
        if now is None:
            return f"{device.label} ({device.device_id}) was removed meanwhile, and nothing was done"
        if _settings(now) != _settings(device):
            return f"{device.label} ({device.device_id}) was changed meanwhile, and nothing was done"
        return None

    def copied(self) -> str | None:
        """The chosen device's id."""
        device = self._table.chosen
        return None if device is None else device.device_id

    def exported(self) -> Pages:
        """The devices that are listed. Keys are in none."""
        return lines_of(self._rows, as_plain)


def as_plain(device: Device) -> dict[str, Any]:
    """A device as `beetle device list --json` has it."""
    return {name: getattr(device, name) for name in device.__struct_fields__}


def _settings(device: Device) -> dict[str, Any]:
    """All of it but what comes and goes as it connects."""
    return {name: held for name, held in as_plain(device).items() if name not in ("connections", "last_seen")}


def device_blocks(device: Device, suspend: str) -> Iterator[Block]:
    """A device whole; `suspend` is the key that lets one in again."""
    yield value("Id", device.device_id)
    suspended = f"SUSPENDED: {suspend} lets it in again"
    yield value("State", {"active": "active", "suspended": suspended}.get(device.state, "REVOKED"))
    yield value("Last seen", moment(device.last_seen) or NEVER)
    yield value("Connections", f"{device.connections} open now")
    yield value("Owner", f"{device.owner_id}, agent {device.agent_id}")
    yield value("Key", f"{device.appKeyFingerprint} (fingerprint)")
    yield value("Added", moment(device.created_at))
    yield value("Changed", moment(device.updated_at))
    yield from section("May" if device.capabilities else "May nothing")
    meanings = {each.name: each.meaning for each in CAPABILITIES}
    yield from (value(name, meanings.get(name, "")) for name in device.capabilities)


FIELDS = (
    Field("label", "Label: what people call it", hint="Kitchen display", fault=needed("give it a label")),
    Field("device_id", "Id", hint="made up when left empty"),
    Field("owner_id", "Owner: whose memory it works on", hint="this console's owner when left empty"),
    Field("agent_id", "Agent: which agent it is", hint="this console's agent when left empty"),
)


def _connections_end(device: Device) -> str:
    if not device.connections:
        return "It has no connection open now."
    open_now = count(device.connections, "open connection")
    return f"{open_now} of it {'is' if device.connections == 1 else 'are'} refused from the next request on."


def _found_by(device: Device) -> str:
    words = (device.device_id, device.label, device.state, device.owner_id, device.agent_id, *device.capabilities)
    return " ".join(words).casefold()


COLUMNS = (
    Column[Device]("Device", lambda each: each.device_id, 14),
    Column[Device]("Label", lambda each: each.label),
    Column[Device]("State", lambda each: each.state, 9),
    Column[Device]("Open", lambda each: str(each.connections), 4, right=True),
    Column[Device]("Last seen (UTC)", lambda each: (moment(each.last_seen) or NEVER)[:16], 16, narrow=60),
)
