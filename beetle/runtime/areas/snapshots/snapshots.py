"""snapshot.create, list, verify, restore and prune."""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, NamedTuple

from beetle.contracts.codec import format_us, replace
from beetle.contracts.common import Lifecycle
from beetle.contracts.errors import Conflict, DeadlineExceeded, IntegrityViolation, InvalidRequest
from beetle.contracts.snapshots import (
    BrokenSnapshot,
    KeptBy,
    ReplacedStore,
    SnapshotCreateReport,
    SnapshotCreateRequest,
    SnapshotFault,
    SnapshotInfo,
    SnapshotListReport,
    SnapshotListRequest,
    SnapshotPruneReport,
    SnapshotPruneRequest,
    SnapshotRestoreReport,
    SnapshotRestoreRequest,
    SnapshotVerifyReport,
    SnapshotVerifyRequest,
)
from beetle.runtime.areas.devices import forget_holder
from beetle.runtime.areas.erasure import again
from beetle.runtime.areas.snapshots import kept, store_snapshots
from beetle.runtime.areas.snapshots.file_form import Header, SnapshotFile
from beetle.runtime.host import sealing
from beetle.runtime.host.identity import Identity
from beetle.runtime.host.modes import RESTORED
from beetle.runtime.pipeline.cursor import read_cursor
from beetle.runtime.pipeline.handlers import Handler, Plain
from beetle.runtime.pipeline.invocation import Facilities, Invocation, log_apart
from beetle.runtime.pipeline.paging import page
from beetle.store import devices, replica_marks, restores, snapshot_file, transports
from beetle.store.devices import DeviceRow
from beetle.store.engine import erasing, exchange
from beetle.store.engine.store import Store
from beetle.store.engine.write_transaction import Sealing, WriteTransaction
from beetle.store.snapshot_file import CheckContinue
from beetle.store.transports import TransportRow

CHECKING = ("unpack", "pages", "event_log")
"""The steps of looking a snapshot through."""
PUTTING_BACK = ("erase_again", "exchange")
"""The steps of putting it in the store's place."""
REFS_SHOWN = 1000
ELSEWHERE: tuple[SnapshotFault, ...] = ("unsigned", "other_store", "other_device", "former_device")
"""What `other_store` allows."""


def create(invocation: Invocation, request: SnapshotCreateRequest) -> SnapshotCreateReport:
    """A copy of one moment, compressed, under a name of its own once it is whole."""
    with invocation.heavy_turn():
        return _make(invocation, request.label)


def _make(invocation: Invocation, label: str | None) -> SnapshotCreateReport:
    on_disk(invocation)
    shared = invocation.shared
    begun = time.monotonic()
    invocation.progress.plan(("copy", "compress"))
    with shared.lifecycle.alone(invocation.operation.name):
        header, restarts = store_snapshots.create(invocation, label, _check_continue(invocation))
        size = os.stat(store_snapshots.path_of(shared.store, header.snapshot_id)).st_size
    told = {"snapshot_id": header.snapshot_id, "bytes": size, "rows": header.event_log_rows}
    lifecycle = log_apart(invocation, invocation.own_event("lifecycle", "snapshot_created", **told))
    return SnapshotCreateReport(
        snapshot=_info(shared, header, size),
        restarts=restarts,
        ms=round((time.monotonic() - begun) * 1000, 3),
        lifecycle=lifecycle,
    )


def list_snapshots(invocation: Invocation, request: SnapshotListRequest) -> SnapshotListReport:
    """The last one made first; a page continues behind the place of its last one."""
    on_disk(invocation)
    store = invocation.shared.store
    bound = invocation.bound()
    found = store_snapshots.snapshot_files(store)
    whole = [each for each in found if each.header is not None]
    after = () if request.cursor is None else tuple(read_cursor(invocation.key, bound, request.cursor))
    left = [each for each in whole if store_snapshots.place(each) > after]
    why = kept.kept_by(invocation.shared, whole)
    shown = page(
        invocation,
        left,
        request.limit,
        lambda each: _listed(store, each, why),
        bound_to=bound,
        place=store_snapshots.place,
    )
    first = request.cursor is None
    return SnapshotListReport(
        folder=store_snapshots.folder_of(store),
        snapshots=shown.entries,
        total=len(whole),
        bytes=sum(each.bytes for each in found),
        keep=invocation.shared.scheduler.keep_snapshots._asdict(),
        broken=tuple(
            BrokenSnapshot(snapshot_id=each.snapshot_id, fault=each.fault, bytes=each.bytes)
            for each in found
            if first and each.fault is not None
        ),
        replaced=tuple(_replaced(invocation)) if first else (),
        has_more=shown.has_more,
        next_cursor=shown.next_cursor,
        profile_budget_applied=shown.cut,
    )


def _listed(store: Store, file: SnapshotFile, why: Mapping[str, tuple[KeptBy, ...]]) -> SnapshotInfo:
    assert file.header is not None, "what has none is told apart, as broken"
    return replace(store_snapshots.info(store, file.header, file.bytes), kept_by=why[file.snapshot_id])


def _info(shared: Facilities, header: Header, size: int) -> SnapshotInfo:
    why = kept.kept_by(shared, store_snapshots.snapshot_files(shared.store))
    return replace(store_snapshots.info(shared.store, header, size), kept_by=why.get(header.snapshot_id, ()))


def _replaced(invocation: Invocation) -> Iterator[ReplacedStore]:
    for each in store_snapshots.replaced(invocation.shared.store):
        with suppress(FileNotFoundError):
            found = os.stat(each.path)
            yield ReplacedStore(
                snapshot_id=each.id,
                path=each.path,
                replaced_at=format_us(found.st_ctime_ns // 1000),
                bytes=found.st_size,
            )


class Unpacked(NamedTuple):
    """An unpacked snapshot, or why there is none to trust."""

    found: SnapshotFile
    copy: str
    faults: list[SnapshotFault]
    checked: dict[str, int]
    signer: str | None = None


@contextmanager
def _unpacked(invocation: Invocation, snapshot_id: str) -> Generator[Unpacked]:
    """A snapshot as a file beside the store, checked; taken away afterwards unless it has another name by then."""
    on_disk(invocation)
    store = invocation.shared.store
    found = store_snapshots.find(store, snapshot_id)
    copy = exchange.named(store.settings.path, exchange.UNPACKING, invocation.new_id("u"))
    try:
        invocation.progress.step("unpack")
        yield _look_through(invocation, found, copy)
    finally:
        store_snapshots.remove(store, copy)


def _look_through(invocation: Invocation, found: SnapshotFile, copy: str) -> Unpacked:
    """Unpack a snapshot and look at all of it; whose signature does not hold is not even unpacked."""
    header = found.header
    if header is None:
        return Unpacked(found, copy, [found.fault or "header_broken"], {})
    signer = store_snapshots.signer_of(invocation, header)
    fault: SnapshotFault | None = "wrong_signature" if signer.fault == "wrong_signature" else None
    fault = fault or store_snapshots.unpack(found, copy, _check_continue(invocation))
    if fault is not None:
        return Unpacked(found, copy, [fault], {})
    device, stopped = store_snapshots.recorded(invocation.shared), partial(must_end, invocation)
    faults, checked = store_snapshots.examine(
        invocation.shared.store, device, header, copy, stopped, invocation.progress
    )
    if signer.fault is not None and signer.fault not in faults:
        faults.append(signer.fault)
    return Unpacked(found, copy, faults, checked, signer.device)


def verify(invocation: Invocation, request: SnapshotVerifyRequest) -> SnapshotVerifyReport:
    """What restoring would check, and nothing changed."""
    invocation.progress.plan(CHECKING)
    with _unpacked(invocation, request.snapshot_id) as unpacked:
        header = unpacked.found.header
        return SnapshotVerifyReport(
            snapshot_id=request.snapshot_id,
            valid=not unpacked.faults,
            reasons=tuple(unpacked.faults),
            checked=unpacked.checked,
            snapshot=None if header is None else _info(invocation.shared, header, unpacked.found.bytes),
        )


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


def restore(invocation: Invocation, request: SnapshotRestoreRequest) -> SnapshotRestoreReport:
    """Check it, set the store aside, put the snapshot in its place, and go on with that."""
    invocation.progress.plan(CHECKING if request.dry_run else (*CHECKING, *PUTTING_BACK))
    alone = invocation.shared.lifecycle.alone(invocation.operation.name)
    with alone, invocation.heavy_turn(), _unpacked(invocation, request.snapshot_id) as unpacked:
        return put_back(invocation, request, unpacked)


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
    info = _info(shared, header, unpacked.found.bytes)
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
            **prepared.told,
        )
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
    told = {
        "snapshot_id": header.snapshot_id,
        "events_behind": behind,
        "event_log_rows": header.event_log_rows,
        "erased_again": sum(prepared.counts.values()),
    }
    restored = invocation.own_event("lifecycle", RESTORED, **told)

    def carry(tx: WriteTransaction) -> None:
        _carry(tx, rights, invocation.caller.name)
        restores.told(tx, header.event_log_rows)
        erasing.keep_until(tx, kept_until)
        replica_marks.keep_targets(tx, targets)

    lifecycle = log_apart(invocation, restored, carry)
    return SnapshotRestoreReport(
        snapshot=info,
        dry_run=False,
        changed=True,
        kept_erased=request.keep_erased,
        events_behind=behind,
        kept_as=keep,
        migrations_applied=prepared.applied or store.open_report.migrations_applied,
        **prepared.told,
        identity=shared.identity.state,
        devices_suspended=_suspended(rights, active),
        lifecycle=lifecycle,
    )


class Prepared(NamedTuple):
    """What was erased again in an unpacked snapshot, or would be; and the migrations that it took."""

    counts: dict[str, int]
    refs: tuple[str, ...] = ()
    applied: tuple[str, ...] = ()
    cut: bool = False

    @property
    def told(self) -> dict[str, Any]:
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


def prune(invocation: Invocation, request: SnapshotPruneRequest) -> SnapshotPruneReport:
    """The last ones made stay; what is broken goes with the others."""
    on_disk(invocation)
    store = invocation.shared.store
    with invocation.shared.lifecycle.alone(invocation.operation.name):
        invocation.check("the snapshots were removed")
        found = store_snapshots.snapshot_files(store)
        whole = [each for each in found if each.header is not None]
        going = [*whole[request.keep :], *(each for each in found if each.header is None)]
        aside = list(_replaced(invocation)) if request.replaced else []
        freed = sum(each.bytes or 0 for each in (*going, *aside))
        lifecycle: Lifecycle | None = None
        if not request.dry_run and (going or aside):
            for path in (*(each.path for each in going), *(each.path for each in aside)):
                store_snapshots.remove(store, path or "")
            told = {"removed": len(going), "replaced": len(aside), "bytes": freed}
            lifecycle = log_apart(invocation, invocation.own_event("lifecycle", "snapshots_pruned", **told))
    return SnapshotPruneReport(
        dry_run=request.dry_run,
        removed=tuple(each.snapshot_id for each in going),
        kept=tuple(each.snapshot_id for each in whole[: request.keep]),
        replaced=len(aside),
        freed_bytes=freed,
        lifecycle=lifecycle,
    )


def make_scheduled(invocation: Invocation) -> int:
    """Make a snapshot by the clock, and remove those of its kind that the policy has no reason for; how many files that
    were.

    Raises:
        IntegrityViolation: the disk does not give back what was written to it; then nothing is removed.
    """
    # No turn among what looks through the store: it rests most of the time, and others would wait for it.
    made = _make(invocation, kept.SCHEDULED).snapshot
    shared, store = invocation.shared, invocation.shared.store
    with shared.lifecycle.alone(invocation.operation.name):
        fault = store_snapshots.read_back(store_snapshots.find(store, made.snapshot_id), _check_continue(invocation))
        if fault is not None:
            raise IntegrityViolation(
                reason=f"the snapshot {made.snapshot_id} is not on the disk as it was written ({fault}): none is gone",
                hint="check the disk; `beetle snapshot verify` tells which of the earlier ones are whole",
                faults=[fault],
            )
        found = [each for each in store_snapshots.snapshot_files(store) if kept.is_scheduled(store, each)]
        why = kept.kept_by(shared, found)
        going = [each for each in found if not why[each.snapshot_id]]
        freed = sum(each.bytes for each in going)
        for each in going:
            store_snapshots.remove(store, each.path)
        if going:
            told = {"removed": len(going), "replaced": 0, "bytes": freed}
            log_apart(invocation, invocation.own_event("lifecycle", "snapshots_pruned", **told))
    return 1 + len(going)


def on_disk(invocation: Invocation) -> None:
    """Raises InvalidRequest for a store in memory."""
    if invocation.shared.store.settings.backend == "in-memory":
        raise InvalidRequest(
            reason="a store in memory has no files to copy",
            hint="export its spaces with `memory.export_space`, or open a store on disk",
        )


def must_end(invocation: Invocation) -> bool:
    """Whether long work is to end: the caller waits no more, or the runtime closes."""
    return invocation.must_end or invocation.shared.lifecycle.stopping


def _check_continue(invocation: Invocation) -> CheckContinue:
    """What long work calls between two steps: it ends when the runtime does, or the caller's deadline has passed."""

    def look(done: int, of: int) -> None:
        invocation.progress.at(done, of)
        invocation.shared.lifecycle.check()
        if must_end(invocation):
            raise DeadlineExceeded.before("the copy was made")
        invocation.work.breathe()
        if not _log_is_long(invocation.shared.store):
            invocation.work.rest()

    return look


def _log_is_long(store: Store) -> bool:
    """A copy that is being made keeps the write-ahead log from being cut: beyond its budget it is soon done instead."""
    with suppress(OSError):
        return os.stat(store.settings.path + "-wal").st_size > store.settings.wal_bytes
    return False


HANDLERS: Mapping[str, Handler] = {
    "snapshot.create": Plain(create),
    "snapshot.list": Plain(list_snapshots),
    "snapshot.verify": Plain(verify),
    "snapshot.restore": Plain(restore),
    "snapshot.prune": Plain(prune),
}
