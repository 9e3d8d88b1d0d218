"""device.list, device.add, device.update, device.rotate_key, device.remove.

Devices are the daemon's own rows. An operator that is bound to no owner sees all of them; for everybody else there are
those of the scope's owner and no others.
"""

from __future__ import annotations

from beetle.contracts.capabilities import CAPABILITY_NAMES
from beetle.contracts.codec import format_us, from_plain
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
    DeviceUpdateRequest,
)
from beetle.contracts.errors import Conflict, Forbidden, InvalidRequest, NotFound
from beetle.runtime.cursor import make_cursor, read_cursor
from beetle.runtime.devices import GRANTABLE, new_key
from beetle.runtime.handling import Apply, Context
from beetle.runtime.profile import nearest
from beetle.store import devices
from beetle.store.devices import DeviceRow, NewDevice
from beetle.store.transaction import Reading
from beetle.store.writer import WriteTransaction

MOST_DEVICES = 1024
"""Every one of them is kept in memory, since every request may come from one."""


def list_devices(context: Context, request: DeviceListRequest, tx: Reading) -> DeviceListReport:
    """In the order in which they were added; the cursor stands at a device."""
    bound_to = context.bound(request.state)
    after = 0 if request.cursor is None else read_cursor(context.key, bound_to, request.cursor)
    listed = [row for row in devices.all_devices(tx) if _mine(context, row) and request.state in (None, row.state)]
    rows = [row for row in listed if row.device > after]
    more = len(rows) > request.limit
    rows = rows[: request.limit]
    return DeviceListReport(
        total=len(listed),
        devices=tuple(shown(context, row) for row in rows),
        has_more=more,
        next_cursor=make_cursor(context.key, bound_to, rows[-1].device) if more else None,
    )


def add(context: Context, request: DeviceAddRequest) -> Apply:
    """A new device with a new key, which stands in this report alone."""
    names = _granted(context, request.capabilities, ())
    owner, agent = _bound(context, request.owner_id, request.agent_id)
    device_id = request.device_id or context.new_id("d")
    key, digest = new_key()
    new = NewDevice(device_id, request.label, owner, agent, names, digest)

    def apply(tx: WriteTransaction) -> DeviceKeyReport:
        if devices.find_device(tx, device_id) is not None:
            raise Conflict(
                reason=f"there is a device {device_id!r} already",
                hint="leave device_id out, or change that one: `beetle device update`, `beetle device rotate-key`",
            )
        if devices.count_devices(tx) >= MOST_DEVICES:
            raise Conflict(
                reason=f"{MOST_DEVICES} devices are known, and there are to be no more",
                hint="remove those that are used no more: `beetle device remove`",
            )
        devices.add_device(tx, new, tx.now)
        tx.log(context.own_event("device", "added", device_id=device_id, owner_id=owner, agent_id=agent))
        return DeviceKeyReport(device=shown(context, _known(context, tx, device_id)), appKeyOnce=key)

    return apply


def update(context: Context, request: DeviceUpdateRequest) -> Apply:
    """What is given changes, what is left out stays. A new state ends whatever was proved before it."""

    def apply(tx: WriteTransaction) -> DeviceReport:
        row = _known(context, tx, request.device_id)
        names = row.capabilities
        if request.capabilities is not None:
            names = _granted(context, request.capabilities, row.capabilities)
        state = request.state or row.state
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
            tx.log(context.own_event("device", "updated", device_id=row.device_id, state=state, changed=fields))
        return DeviceReport(device=shown(context, _known(context, tx, row.device_id)))

    return apply


def rotate_key(context: Context, request: DeviceRotateKeyRequest) -> Apply:
    """Another key, which stands in this report alone; the state stays as it is."""
    key, digest = new_key()

    def apply(tx: WriteTransaction) -> DeviceKeyReport:
        row = _known(context, tx, request.device_id)
        if row.state == "revoked":
            raise _revoked(row)
        devices.replace_key(tx, row.device, digest, tx.now)
        tx.log(context.own_event("device", "key_rotated", device_id=row.device_id, fingerprint=digest.fingerprint))
        return DeviceKeyReport(device=shown(context, _known(context, tx, row.device_id)), appKeyOnce=key)

    return apply


def remove(context: Context, request: DeviceRemoveRequest) -> Apply:
    """The device and what is kept of its key go; its events and what it wrote stay."""

    def apply(tx: WriteTransaction) -> DeviceRemovedReport:
        row = _known(context, tx, request.device_id)
        devices.remove_device(tx, row.device)
        tx.log(context.own_event("device", "removed", device_id=row.device_id))
        return DeviceRemovedReport(device_id=row.device_id)

    return apply


def shown(context: Context, row: DeviceRow) -> Device:
    """A device as a report has it."""
    known = context.shared.presence.devices
    seen = known.last_seen(row)
    return from_plain(
        {
            "device_id": row.device_id,
            "label": row.label,
            "state": row.state,
            "owner_id": row.owner_id,
            "agent_id": row.agent_id,
            "capabilities": row.capabilities,
            "appKeyFingerprint": row.digest.fingerprint,
            "created_at": format_us(row.created_at),
            "updated_at": format_us(row.updated_at),
            "last_seen": None if seen is None else format_us(seen),
            "connections": known.connections(row),
        },
        Device,
    )


def _mine(context: Context, row: DeviceRow) -> bool:
    everywhere = context.caller.is_operator and context.caller.owner_id is None
    return everywhere or row.owner_id == context.scope.owner_id


def _known(context: Context, tx: Reading, device_id: str) -> DeviceRow:
    row = devices.find_device(tx, device_id)
    if row is None or not _mine(context, row):
        raise NotFound(kind="device", name=device_id, listing="`beetle device list` shows what is there")
    return row


def _bound(context: Context, owner: str | None, agent: str | None) -> tuple[str, str]:
    """Whose memory a device is to work on: the scope's, unless a caller that is bound to no other names another."""
    caller, scope = context.caller, context.scope
    for kind, bound, asked in (("owner", caller.owner_id, owner), ("agent", caller.agent_id, agent)):
        if bound is not None and asked is not None and asked != bound:
            raise Forbidden(
                reason=f"{caller.name} is bound to {kind} {bound!r}, and can add no device for {asked!r}",
                hint=f"leave {kind}_id out, or ask as an operator that is bound to none",
            )
    return owner or scope.owner_id, agent or scope.agent_id


def _granted(context: Context, wanted: tuple[str, ...], has: tuple[str, ...]) -> tuple[str, ...]:
    """The capabilities in the catalog's order, each once.

    Raises:
        InvalidRequest: there is no such name.
        Forbidden: no device may have it, or the caller has it not itself.
    """
    for index, name in enumerate(wanted):
        if name not in CAPABILITY_NAMES:
            raise InvalidRequest(
                reason=f"there is no capability {name!r}",
                hint=nearest(name, sorted(GRANTABLE)),
                path=f"$.args.capabilities[{index}]",
            )
        if name not in GRANTABLE:
            raise Forbidden(
                reason=f"no device may have the capability {name!r}",
                hint="grant it to a principal, in [principals.NAME] of the configuration",
                capability=name,
            )
        if name not in has and name not in context.caller.capabilities:
            raise Forbidden(
                reason=f"{context.caller.name} does not have the capability {name!r}, and can give it to nobody",
                hint="leave it out, or ask as an operator that has it",
                capability=name,
            )
    return tuple(name for name in CAPABILITY_NAMES if name in wanted)


def _revoked(row: DeviceRow) -> Conflict:
    return Conflict(
        reason=f"the device {row.device_id!r} was revoked, which is for good",
        hint="remove it and add it anew: `beetle device remove`, `beetle device add`",
    )
