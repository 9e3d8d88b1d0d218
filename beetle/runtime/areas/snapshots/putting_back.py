"""Puts an unpacked copy of a store, of a snapshot or a replica, in the store's place."""

from __future__ import annotations

import os
from functools import partial
from typing import Any

from beetle.contracts.common import Lifecycle
from beetle.contracts.errors import Conflict, IntegrityViolation
from beetle.contracts.snapshots import SnapshotFault, SnapshotRestoreReport, SnapshotRestoreRequest
from beetle.named_tuple import NamedTuple
from beetle.runtime.areas.devices import forget_holder
from beetle.runtime.areas.erasure import again
from beetle.runtime.areas.snapshots import kept, store_snapshots
from beetle.runtime.areas.snapshots.file_form import Header, SnapshotFile
from beetle.runtime.host import sealing
from beetle.runtime.host.identity import Identity
from beetle.runtime.host.modes import RESTORED
from beetle.runtime.pipeline.invocation import Facilities, Invocation, log_apart
from beetle.store import devices, replica_marks, restores, snapshot_file, transports
from beetle.store.devices import DeviceRow
from beetle.store.engine import erasing, exchange
from beetle.store.engine.store import Store
from beetle.store.engine.write_transaction import Sealing, WriteTransaction
from beetle.store.transports import TransportRow

STEPS = ("erase_again", "exchange")
"""The steps of putting it in the store's place."""
REFS_SHOWN = 1000
ELSEWHERE: tuple[SnapshotFault, ...] = ("unsigned", "other_store", "other_device", "former_device")
"""What `other_store` allows."""


class Unpacked(NamedTuple):
    """An unpacked snapshot, or why there is none to trust."""

    found: SnapshotFile
    copy: str
    faults: list[SnapshotFault]
    checked: dict[str, int]
    signer: str | None = None


def put_back(
    invocation: Invocation, request: SnapshotRestoreRequest, unpacked: Unpacked, what: str = "snapshot"
) -> SnapshotRestoreReport:
    """Put an unpacked copy in the store's place: the steps `erase_again` and `exchange`.

    Args:
        what: what the copy is of, for errors.

    Raises:
        IntegrityViolation: it is not whole.
        Conflict: it is another store's or device's, and that was not allowed; an earlier restore is in the way.
    """
    shared = invocation.shared
    header = trusted(invocation, unpacked, request, what)
    store = shared.store
    info = kept.info(shared, header, unpacked.found.bytes)
    behind = max(0, store.head.seq - header.event_log_rows)
    keep = exchange.named(store.settings.path, exchange.BEFORE, header.snapshot_id)
    _check_is_free(keep)
    active = snapshot_file.active_devices(unpacked.copy)
    prepared = erase_again(invocation, request, unpacked)
    if request.dry_run:
        return SnapshotRestoreReport(
            snapshot=info,
            dry_run=True,
            changed=False,
            events_behind=behind,
            identity=shared.identity.state,
            devices_suspended=_suspended(_rights(store), active),
            **prepared.fields,
        )
    rights, behind, lifecycle = _put(invocation, request, unpacked, header, prepared, keep)
    return SnapshotRestoreReport(
        snapshot=info,
        dry_run=False,
        changed=True,
        kept_erased=request.keep_erased,
        events_behind=behind,
        kept_as=keep,
        migrations_applied=prepared.applied or store.open_report.migrations_applied,
        **prepared.fields,
        identity=shared.identity.state,
        devices_suspended=_suspended(rights, active),
        lifecycle=lifecycle,
    )


def _put(
    invocation: Invocation,
    request: SnapshotRestoreRequest,
    unpacked: Unpacked,
    header: Header,
    prepared: Prepared,
    keep: str,
) -> tuple[_Rights, int, Lifecycle]:
    """The step `exchange`; the rights that hold on, and by how many events the copy is behind."""
    shared, store = invocation.shared, invocation.shared.store
    invocation.progress.step("exchange")
    shared.heads.sign()
    with store.read() as tx:
        kept_until, targets = erasing.kept_until(tx), replica_marks.targets(tx)
    with store.held():
        behind = max(0, store.head.seq - header.event_log_rows)
        rights = _rights(store)
        closed = tuple(each for each in rights.transports if not each.enabled)
        erase_again(invocation, request, unpacked, last=True)
        snapshot_file.revoke_access(unpacked.copy, closed, invocation.caller.name)
        _exchange(shared, unpacked.copy, header.snapshot_id, keep)
    restored = invocation.own_event(
        "lifecycle",
        RESTORED,
        snapshot_id=header.snapshot_id,
        events_behind=behind,
        event_log_rows=header.event_log_rows,
        kept_erased=request.keep_erased,
        erased_again=sum(prepared.counts.values()),
    )

    def carry(tx: WriteTransaction) -> None:
        _carry(tx, rights, invocation.caller.name)
        restores.mark_logged(tx, header.event_log_rows)
        erasing.keep_until(tx, kept_until)
        replica_marks.keep_targets(tx, targets)

    return rights, behind, log_apart(invocation, restored, carry)


class Prepared(NamedTuple):
    """What was erased again in an unpacked snapshot, or would be; and the migrations that it took."""

    counts: dict[str, int]
    refs: tuple[str, ...] = ()
    applied: tuple[str, ...] = ()
    cut: bool = False

    @property
    def fields(self) -> dict[str, Any]:
        """As fields of the report."""
        return {"erased": self.counts, "erased_refs": self.refs, "profile_budget_applied": self.cut}


def erase_again(
    invocation: Invocation, request: SnapshotRestoreRequest, unpacked: Unpacked, *, last: bool = False
) -> Prepared:
    """Erase in an unpacked snapshot what was erased from the store since; in a dry run only look for it.

    `last`: nobody writes any more, and the event log is carried over too.
    """
    header = unpacked.found.header
    if header is None or header.store_id != invocation.shared.store.store_id:
        if not request.dry_run and not last:
            invocation.progress.step("erase_again")
        return Prepared({})
    with again.opened(invocation, unpacked.copy, header.event_log_rows, bytes.fromhex(header.event_log_head)) as copy:
        found = copy.look()
        if not request.dry_run and not request.keep_erased:
            copy.erase(found, told=not last)
        elif not request.dry_run and not last:
            invocation.progress.step("erase_again")
        if last:
            copy.carry_events()
        refs = found.refs
        return Prepared(found.counts, tuple(refs[:REFS_SHOWN]), copy.applied, len(refs) > REFS_SHOWN)


def trusted(
    invocation: Invocation, unpacked: Unpacked, request: SnapshotRestoreRequest, what: str = "snapshot"
) -> Header:
    """The header of a copy that may take the store's place.

    Raises:
        IntegrityViolation: it is not whole.
        Conflict: it is another store's or device's, or nobody's, and that was not allowed.
    """
    wrong = [each for each in unpacked.faults if each not in ELSEWHERE]
    header = unpacked.found.header
    named = f"the {what} {request.snapshot_id}" if what == "snapshot" else f"the {what}"
    if wrong or header is None:
        raise IntegrityViolation(
            reason=f"{named} is not whole: {', '.join(wrong)}; nothing was changed",
            hint="`beetle snapshot verify` says more; restore another one"
            if what == "snapshot"
            else "restore an earlier time with --at, or a snapshot",
            faults=wrong,
        )
    if unpacked.faults and not request.other_store:
        own = invocation.shared.identity.fingerprint or "unknown: its identity cannot be used"
        told = {
            "unsigned": "no device has signed it",
            "other_store": f"it is of the store {header.store_id}, this one is {invocation.shared.store.store_id}",
            "other_device": f"it is of the device {unpacked.signer or 'that made it'}, this one is {own}",
            "former_device": f"it is of a former identity of this store, {unpacked.signer or 'unsigned'}, "
            f"today's is {own}",
        }
        raise Conflict(
            reason=f"{named}: {'; '.join(told[each] for each in unpacked.faults)}",
            hint="give other_store if you trust its source; its private plane opens with its own key file alone",
            faults=unpacked.faults,
            device=unpacked.signer,
        )
    return header


class _Rights(NamedTuple):
    """Who may speak to the daemon, and over what."""

    devices: tuple[DeviceRow, ...]
    transports: tuple[TransportRow, ...]


def _sealed_anew(store: Store, identity: Identity) -> Sealing:
    """What seals the copy that has become the store: by its own key, and by the identity that it knows."""
    identity.recheck(store.identity_check)
    return sealing.sealing_of(store, identity, restored=True)


def _rights(store: Store) -> _Rights:
    with store.read() as tx:
        return _Rights(tuple(devices.all_devices(tx)), tuple(transports.by_name(tx).values()))


def _suspended(rights: _Rights, active: set[str]) -> int:
    """How many devices that are active in a snapshot are suspended when the rights of today hold in it."""
    today = {each.device_id: each.state for each in rights.devices}
    return sum(today.get(each, "suspended") == "suspended" for each in active)


def _carry(tx: WriteTransaction, rights: _Rights, principal: str) -> None:
    """Rights are of today, whatever the snapshot says: a key that was taken back since opens nothing again."""
    for device in rights.devices:
        before = devices.find_device(tx, device.device_id)
        if before is None or before.created_at != device.created_at:
            # The snapshot remembers what another device of that id was answered, and what it left.
            forget_holder(tx, device.device_id)
        devices.carry_device(tx, device)
    for transport in rights.transports:
        transports.set_transport(tx, transport, principal)


def _check_is_free(keep: str) -> None:
    """Raises Conflict when an earlier restore has left its store under the name."""
    if os.path.lexists(keep):
        raise Conflict(
            reason="the store replaced by an earlier restore of this snapshot still exists",
            hint="move it away, or remove it: beetle snapshot prune --keep N --replaced",
        )


def _exchange(shared: Facilities, copy: str, snapshot_id: str, keep: str) -> None:
    """Put an unpacked snapshot in the place of the store, which is held; the store is kept under another name."""
    store = shared.store
    ready = exchange.named(store.settings.path, exchange.READY, snapshot_id)
    try:
        exchange.make_ready(copy, ready)
    except OSError as error:
        raise exchange.unwritable(ready, error) from error
    known = shared.identity.check
    shared.mirrors.withdraw_every()
    try:
        store.exchange(ready, keep, partial(_sealed_anew, store, shared.identity))
    except BaseException:
        shared.identity.recheck(known)
        raise
    finally:
        store_snapshots.remove(store, ready)
    sealing.begin(store, shared.identity, restored=True)
