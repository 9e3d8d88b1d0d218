"""Devices and transports, as an operator sees and changes them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast, get_args

from beetle.contracts.capabilities import CAPABILITY_NAMES
from beetle.contracts.codec import replace
from beetle.contracts.devices import (
    Device,
    DeviceAddRequest,
    DeviceKeyReport,
    DeviceListReport,
    DeviceListRequest,
    DeviceRemovedReport,
    DeviceRemoveRequest,
    DeviceReport,
    DeviceRotateKeyRequest,
    DeviceState,
    DeviceUpdateRequest,
    TransportListReport,
    TransportListRequest,
    TransportReport,
    TransportUpdateRequest,
)
from beetle.contracts.errors import Conflict, Forbidden, InvalidRequest, NotFound, nearest
from beetle.contracts.names import TRANSPORT_NAMES
from beetle.runtime.host import jobs
from beetle.runtime.host.devices import GRANTABLE, NAME, new_key
from beetle.runtime.host.transports import TRANSPORT_UPDATED
from beetle.runtime.pipeline.cursor import read_cursor
from beetle.runtime.pipeline.handlers import Apply, Handler, Read, Write
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.pipeline.paging import page
from beetle.store import devices, evidence, idempotency
from beetle.store import jobs as job_store
from beetle.store.damaged_rows import DamagedRow, check_row, known_time, shown_time
from beetle.store.devices import DeviceRow, NewDevice
from beetle.store.engine.transaction import Reading
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.transports import TransportRow, by_name, set_transport

STATES = get_args(DeviceState)
MOST_DEVICES = 1024
"""Every one of them is kept in memory, since every request may come from one."""


def list_devices(invocation: Invocation, request: DeviceListRequest, tx: Reading) -> DeviceListReport:
    """In the order in which they were added; the cursor stands at a device."""
    bound_to = invocation.bound(request.state)
    after = 0 if request.cursor is None else read_cursor(invocation.key, bound_to, request.cursor)
    listed = [row for row in devices.all_devices(tx) if _mine(invocation, row) and request.state in (None, row.state)]
    rows = [row for row in listed if row.device > after]
    found = page(
        invocation,
        rows,
        request.limit,
        lambda row: shown(invocation, row),
        bound_to=bound_to,
        place=lambda row: row.device,
    )
    return DeviceListReport(
        total=len(listed),
        devices=found.entries,
        has_more=found.has_more,
        next_cursor=found.next_cursor,
        profile_budget_applied=found.cut,
    )


def add(invocation: Invocation, request: DeviceAddRequest) -> Apply:
    """A new device with a new key, which stands in this report alone. What its id's last holder was told is not its."""
    names = _granted(invocation, request.capabilities, ())
    owner, agent = _bound(invocation, request.owner_id, request.agent_id)
    device_id = request.device_id or invocation.new_id("d")
    key, digest = new_key()
    new = NewDevice(device_id, request.label, owner, agent, names, digest)

    def apply(tx: WriteTransaction) -> DeviceKeyReport:
        if devices.find_device(tx, device_id) is not None:
            raise Conflict(
                reason=f"the device {device_id!r} exists already",
                hint="leave device_id out, or change that one: `beetle device update`, `beetle device rotate-key`",
            )
        if devices.count_devices(tx) >= MOST_DEVICES:
            raise Conflict(
                reason=f"{MOST_DEVICES} devices are registered, which is the maximum",
                hint="remove those that are used no more: `beetle device remove`",
            )
        devices.add_device(tx, new, tx.now)
        forget_holder(tx, device_id)
        tx.log(invocation.own_event("device", "added", device_id=device_id, owner_id=owner, agent_id=agent))
        return DeviceKeyReport(device=shown(invocation, _known(invocation, tx, device_id)), appKeyOnce=key)

    return apply


def update(invocation: Invocation, request: DeviceUpdateRequest) -> Apply:
    """What is given changes, what is left out stays. A new state ends whatever was proved before it."""

    def apply(tx: WriteTransaction) -> DeviceReport:
        row = _known(invocation, tx, request.device_id)
        names = row.capabilities
        if request.capabilities is not None:
            names = _granted(invocation, request.capabilities, row.capabilities)
        state = request.state or _state(row)
        if row.state == "revoked" and state != "revoked":
            raise _revoked(row)
        changed = row._replace(
            label=row.label if request.label is None else request.label,
            state=state,
            capabilities=names,
            generation=row.generation + (state != row.state),
        )
        if changed != row:
            devices.change_device(tx, changed, tx.now)
            fields = [
                name for name in ("label", "state", "capabilities") if getattr(changed, name) != getattr(row, name)
            ]
            tx.log(invocation.own_event("device", "updated", device_id=row.device_id, state=state, changed=fields))
        return DeviceReport(device=shown(invocation, _known(invocation, tx, row.device_id)))

    return apply


def rotate_key(invocation: Invocation, request: DeviceRotateKeyRequest) -> Apply:
    """Another key, which stands in this report alone; the state stays as it is."""
    key, digest = new_key()

    def apply(tx: WriteTransaction) -> DeviceKeyReport:
        row = _known(invocation, tx, request.device_id)
        if row.state == "revoked":
            raise _revoked(row)
        devices.replace_key(tx, row.device, digest, tx.now)
        tx.log(invocation.own_event("device", "key_rotated", device_id=row.device_id, fingerprint=digest.fingerprint))
        return DeviceKeyReport(device=shown(invocation, _known(invocation, tx, row.device_id)), appKeyOnce=key)

    return apply


def forget_holder(tx: WriteTransaction, device_id: str) -> None:
    """Drop what is kept under a device's name: its answers, its last conversations, the jobs that it left.

    Whoever has that name from now on is another.
    """
    name = NAME + device_id
    idempotency.forget(tx, name)
    evidence.forget_conversations(tx, name)
    for job in job_store.left_by(tx, name):
        jobs.drop(tx, job, "principal_gone")


def remove(invocation: Invocation, request: DeviceRemoveRequest) -> Apply:
    """The device and what is kept of its key go; its events and what it wrote stay."""

    def apply(tx: WriteTransaction) -> DeviceRemovedReport:
        row = _known(invocation, tx, request.device_id)
        devices.remove_device(tx, row.device)
        forget_holder(tx, row.device_id)
        tx.log(invocation.own_event("device", "removed", device_id=row.device_id))
        return DeviceRemovedReport(device_id=row.device_id)

    return apply


def again(
    invocation: Invocation, request: Any, tx: Reading, first: DeviceReport | DeviceKeyReport
) -> DeviceReport | DeviceKeyReport:
    """A first report with its device as it is now. One that was removed opens nothing, whoever has its id by now."""
    del request
    was = first.device
    row = devices.find_device(tx, was.device_id)
    if row is None or _created(row) != was.created_at:
        return replace(first, device=replace(was, state="revoked", connections=0))
    return replace(first, device=shown(invocation, row)) if _mine(invocation, row) else first


def shown(invocation: Invocation, row: DeviceRow) -> Device:
    """A device as a report has it.

    Raises:
        DamagedRow: its row holds what no device has.
    """
    known = invocation.shared.sessions.devices
    texts = (row.device_id, row.label, row.owner_id, row.agent_id, row.digest.fingerprint)
    check_row("device", row.device_id, texts=texts)
    return Device(
        device_id=row.device_id,
        label=row.label,
        state=_state(row),
        owner_id=row.owner_id,
        agent_id=row.agent_id,
        capabilities=row.capabilities,
        appKeyFingerprint=row.digest.fingerprint,
        created_at=_created(row),
        updated_at=shown_time(row.updated_at, "device", row.device_id),
        last_seen=known_time(known.last_seen(row)),
        connections=known.connections(row),
    )


def _state(row: DeviceRow) -> DeviceState:
    if row.state not in STATES:
        raise DamagedRow("device", row.device_id)
    return cast(DeviceState, row.state)


def _created(row: DeviceRow) -> str:
    return shown_time(row.created_at, "device", row.device_id)


def _mine(invocation: Invocation, row: DeviceRow) -> bool:
    everywhere = invocation.caller.is_operator and invocation.caller.owner_id is None
    return everywhere or row.owner_id == invocation.scope.owner_id


def _known(invocation: Invocation, tx: Reading, device_id: str) -> DeviceRow:
    row = devices.find_device(tx, device_id)
    if row is None or not _mine(invocation, row):
        raise NotFound(kind="device", name=device_id, listing="`beetle device list` lists the devices")
    return row


def _bound(invocation: Invocation, owner: str | None, agent: str | None) -> tuple[str, str]:
    """Whose memory a device is to work on: the scope's, unless a caller that is bound to no other names another."""
    caller, scope = invocation.caller, invocation.scope
    for kind, bound, asked in (("owner", caller.owner_id, owner), ("agent", caller.agent_id, agent)):
        if bound is not None and asked is not None and asked != bound:
            raise Forbidden(
                reason=f"{caller.name} is bound to {kind} {bound!r}, and can add no device for {asked!r}",
                hint=f"leave {kind}_id out, or ask as an operator that is bound to none",
            )
    return owner or scope.owner_id, agent or scope.agent_id


def _granted(invocation: Invocation, wanted: tuple[str, ...], has: tuple[str, ...]) -> tuple[str, ...]:
    """The capabilities in the catalog's order, each once.

    Raises:
        InvalidRequest: there is no such name.
        Forbidden: no device may have it, or the caller has it not itself.
    """
    for index, name in enumerate(wanted):
        if name not in CAPABILITY_NAMES:
            raise InvalidRequest(
                reason=f"the capability {name!r} does not exist",
                hint=nearest(name, sorted(GRANTABLE)),
                path=f"$.args.capabilities[{index}]",
            )
        if name not in GRANTABLE:
            raise Forbidden(
                reason=f"no device may have the capability {name!r}",
                hint="grant it to a principal, in [principals.NAME] of the configuration",
                capability=name,
            )
        if name not in has and name not in invocation.caller.capabilities:
            raise Forbidden(
                reason=f"{invocation.caller.name} does not have the capability {name!r}, and cannot grant it",
                hint="leave it out, or ask as an operator that has it",
                capability=name,
            )
    return tuple(name for name in CAPABILITY_NAMES if name in wanted)


def _revoked(row: DeviceRow) -> Conflict:
    return Conflict(
        reason=f"the device {row.device_id!r} was revoked, which is for good",
        hint="remove it and add it anew: `beetle device remove`, `beetle device add`",
    )


HOST_PORT = re.compile(r"(?:\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9.-]{1,253}):([0-9]{1,5})")


def list_transports(invocation: Invocation, request: TransportListRequest, tx: Reading) -> TransportListReport:
    """Every transport."""
    del request
    sessions = invocation.shared.sessions
    return TransportListReport(transports=sessions.transports.entries(sessions.connections, by_name(tx)))


def update_transport(invocation: Invocation, request: TransportUpdateRequest) -> Apply:
    """Open or close a transport; holds from the next request on, also of connections that are open."""
    sessions = invocation.shared.sessions
    sessions.transports.may_change(request.name, request.enabled, request.endpoint)
    found = HOST_PORT.fullmatch(request.endpoint or "")
    if request.endpoint is not None and (found is None or not 0 < int(found[1]) < 65536):
        reason = f"{request.endpoint!r} is not a valid address to listen on"
        raise InvalidRequest(reason=reason, hint="write HOST:PORT", path="$.args.endpoint")

    def apply(tx: WriteTransaction) -> TransportReport:
        rows = by_name(tx)
        before = rows.get(request.name) or TransportRow(request.name, True, None, tx.now)
        after = TransportRow(
            request.name,
            before.enabled if request.enabled is None else request.enabled,
            request.endpoint or before.endpoint,
            tx.now,
        )
        if after[:3] != before[:3]:
            set_transport(tx, after, invocation.caller.name)
            tx.log(invocation.own_event("lifecycle", TRANSPORT_UPDATED, transport=request.name, enabled=after.enabled))
            rows[request.name] = after
        entry = sessions.transports.entries(sessions.connections, rows)[TRANSPORT_NAMES.index(request.name)]
        return TransportReport(transport=entry)

    return apply


HANDLERS: Mapping[str, Handler] = {
    "device.list": Read(list_devices),
    "device.add": Write(add, again=again),
    "device.update": Write(update, again=again),
    "device.rotate_key": Write(rotate_key, again=again),
    "device.remove": Write(remove),
    "transport.list": Read(list_transports),
    "transport.update": Write(update_transport),
}
