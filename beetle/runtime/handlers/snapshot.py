"""snapshot.create, list, verify, restore and prune."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, NamedTuple

from beetle.contracts.codec import format_us
from beetle.contracts.common import Lifecycle
from beetle.contracts.errors import Conflict, DeadlineExceeded, IntegrityViolation, InvalidRequest
from beetle.contracts.snapshots import (
    BrokenSnapshot,
    ReplacedStore,
    SnapshotCreateReport,
    SnapshotCreateRequest,
    SnapshotFault,
    SnapshotListReport,
    SnapshotListRequest,
    SnapshotPruneReport,
    SnapshotPruneRequest,
    SnapshotRestoreReport,
    SnapshotRestoreRequest,
    SnapshotVerifyReport,
    SnapshotVerifyRequest,
)
from beetle.runtime import snapshots
from beetle.runtime.cursor import make_cursor, read_cursor
from beetle.runtime.handling import Context, stamped
from beetle.runtime.lifecycle import RESTORED
from beetle.runtime.snapshots import Header, Kept
from beetle.store import devices, exchange, snapshot, transports
from beetle.store.devices import DeviceRow
from beetle.store.snapshot import GoOn
from beetle.store.store import Store
from beetle.store.transports import TransportRow
from beetle.store.writer import WriteTransaction

CHECKING = ("unpack", "pages", "event_log")
"""The steps of looking a snapshot through."""
ELSEWHERE: tuple[SnapshotFault, ...] = ("other_store", "other_device")
"""What `other_store` allows."""


def create(context: Context, request: SnapshotCreateRequest) -> SnapshotCreateReport:
    """A copy of one moment, compressed, under a name of its own once it is whole."""
    _on_disk(context)
    shared = context.shared
    begun = time.monotonic()
    context.progress.plan(("copy", "compress"))
    with shared.lifecycle.alone(context.operation.name):
        making = snapshots.Making(context.new_id("s"), context.now, request.label, shared.version, shared.profile.name)
        header, restarts = snapshots.create(shared.store, making, _go_on(context), context.progress)
        size = os.stat(snapshots.path_of(shared.store, header.snapshot_id)).st_size
    lifecycle = _log(
        context, "snapshot_created", snapshot_id=header.snapshot_id, bytes=size, rows=header.event_log_rows
    )
    return SnapshotCreateReport(
        snapshot=snapshots.info(shared.store, header, size),
        restarts=restarts,
        ms=round((time.monotonic() - begun) * 1000, 3),
        lifecycle=lifecycle,
    )


def list_snapshots(context: Context, request: SnapshotListRequest) -> SnapshotListReport:
    """The newest first; a page continues behind the time and id of its last one."""
    _on_disk(context)
    store = context.shared.store
    bound = context.bound()
    found = snapshots.kept(store)
    whole = [each for each in found if each.header is not None]
    after = (-(2**62), "") if request.cursor is None else tuple(read_cursor(context.key, bound, request.cursor))
    left = [each for each in whole if _place(each) > after]
    shown = left[: request.limit]
    more = len(left) > len(shown)
    first = request.cursor is None
    return SnapshotListReport(
        folder=snapshots.folder_of(store),
        snapshots=tuple(snapshots.info(store, each.header, each.bytes) for each in shown if each.header is not None),
        total=len(whole),
        bytes=sum(each.bytes for each in found),
        broken=tuple(_broken(each) for each in found if each.fault is not None) if first else (),
        replaced=tuple(_replaced(context)) if first else (),
        has_more=more,
        next_cursor=make_cursor(context.key, bound, _place(shown[-1])) if more else None,
    )


def _place(each: Kept) -> tuple[Any, ...]:
    assert each.header is not None
    return (-each.header.created_at, each.snapshot_id)


def _broken(each: Kept) -> BrokenSnapshot:
    assert each.fault is not None
    return BrokenSnapshot(snapshot_id=each.snapshot_id, fault=each.fault, bytes=each.bytes)


def _replaced(context: Context) -> Iterator[ReplacedStore]:
    for each in snapshots.replaced(context.shared.store):
        with suppress(FileNotFoundError):
            found = os.stat(each.path)
            yield ReplacedStore(
                snapshot_id=each.id,
                path=each.path,
                replaced_at=format_us(found.st_ctime_ns // 1000),
                bytes=found.st_size,
            )


class _Unpacked(NamedTuple):
    """An unpacked snapshot, or why there is none to trust."""

    found: Kept
    copy: str
    faults: list[SnapshotFault]
    checked: dict[str, int]


@contextmanager
def _unpacked(context: Context, snapshot_id: str) -> Generator[_Unpacked]:
    """A snapshot as a file beside the store, checked; taken away afterwards unless it has another name by then."""
    _on_disk(context)
    store = context.shared.store
    found = snapshots.find(store, snapshot_id)
    copy = exchange.named(store.settings.path, exchange.UNPACKING, context.new_id("u"))
    try:
        context.progress.step("unpack")
        fault = found.fault or snapshots.unpack(found, copy, _go_on(context))
        if fault is not None or found.header is None:
            yield _Unpacked(found, copy, [fault or "header_broken"], {})
        else:
            device = context.shared.identity.check
            stopped = partial(_must_end, context)
            looked = snapshots.examine(store, device, found.header, copy, stopped, context.progress)
            yield _Unpacked(found, copy, *looked)
    finally:
        snapshots.remove(store, copy)


def verify(context: Context, request: SnapshotVerifyRequest) -> SnapshotVerifyReport:
    """What restoring would check, and nothing changed."""
    context.progress.plan(CHECKING)
    with _unpacked(context, request.snapshot_id) as unpacked:
        header = unpacked.found.header
        return SnapshotVerifyReport(
            snapshot_id=request.snapshot_id,
            valid=not unpacked.faults,
            reasons=tuple(unpacked.faults),
            checked=unpacked.checked,
            snapshot=None if header is None else snapshots.info(context.shared.store, header, unpacked.found.bytes),
        )


def restore(context: Context, request: SnapshotRestoreRequest) -> SnapshotRestoreReport:
    """Check it, set the store aside, put the snapshot in its place, and go on with that."""
    shared = context.shared
    context.progress.plan((*CHECKING, "exchange"))
    with shared.lifecycle.alone(context.operation.name), _unpacked(context, request.snapshot_id) as unpacked:
        header = _trusted(unpacked, request)
        store = shared.store
        info = snapshots.info(store, header, unpacked.found.bytes)
        behind = max(0, store.head.seq - header.event_log_rows)
        keep = exchange.named(store.settings.path, exchange.BEFORE, header.snapshot_id)
        _refuse_kept(keep)
        if request.dry_run:
            return SnapshotRestoreReport(
                snapshot=info, dry_run=True, changed=False, events_behind=behind, identity=shared.identity.state
            )
        context.progress.step("exchange")
        with store.held():
            behind = max(0, store.head.seq - header.event_log_rows)
            rights = _rights(store)
            closed = tuple(each for each in rights.transports if not each.enabled)
            snapshot.shut_doors(unpacked.copy, closed, context.caller.name)
            ready = exchange.named(store.settings.path, exchange.READY, header.snapshot_id)
            _make_ready(unpacked.copy, ready)
            try:
                store.exchange(ready, keep)
            finally:
                snapshots.remove(store, ready)
            shared.identity.recheck(store.identity_check)
        lifecycle = _log(
            context,
            RESTORED,
            lambda tx: _carry(tx, rights, context.caller.name),
            snapshot_id=header.snapshot_id,
            events_behind=behind,
        )
    return SnapshotRestoreReport(
        snapshot=info,
        dry_run=False,
        changed=True,
        events_behind=behind,
        kept_as=keep,
        migrations_applied=store.open_report.migrations_applied,
        identity=shared.identity.state,
        lifecycle=lifecycle,
    )


def _trusted(unpacked: _Unpacked, request: SnapshotRestoreRequest) -> Header:
    """The header of a snapshot that may take the store's place.

    Raises:
        IntegrityViolation: it is not whole.
        Conflict: it is another store's, and that was not allowed.
    """
    wrong = [each for each in unpacked.faults if each not in ELSEWHERE]
    header = unpacked.found.header
    if wrong or header is None:
        raise IntegrityViolation(
            reason=f"the snapshot {request.snapshot_id} is not whole: {', '.join(wrong)}; nothing was changed",
            hint="`beetle snapshot verify` says more; restore another one",
            faults=wrong,
        )
    if unpacked.faults and not request.other_store:
        raise Conflict(
            reason=f"the snapshot {request.snapshot_id} was made of another store or under another device identity",
            hint="give other_store to put it here all the same; its private plane opens with its own key file alone",
            faults=unpacked.faults,
        )
    return header


class _Rights(NamedTuple):
    """Who may speak to the daemon, and over what."""

    devices: tuple[DeviceRow, ...]
    transports: tuple[TransportRow, ...]


def _rights(store: Store) -> _Rights:
    with store.read() as tx:
        return _Rights(tuple(devices.all_devices(tx)), tuple(transports.by_name(tx).values()))


def _carry(tx: WriteTransaction, rights: _Rights, principal: str) -> None:
    """Rights are of today, whatever the snapshot says: a key that was taken back since opens nothing again."""
    for device in rights.devices:
        devices.carry_device(tx, device)
    for transport in rights.transports:
        transports.set_transport(tx, transport, principal)


def _refuse_kept(keep: str) -> None:
    if os.path.lexists(keep):
        raise Conflict(
            reason="the store that an earlier restore of this snapshot has set aside is still there",
            hint="move it away, or remove it: beetle snapshot prune --keep N --replaced",
        )


def _make_ready(copy: str, ready: str) -> None:
    try:
        exchange.make_ready(copy, ready)
    except OSError as error:
        raise exchange.unwritable(ready, error) from error


def prune(context: Context, request: SnapshotPruneRequest) -> SnapshotPruneReport:
    """The newest stay; what is broken goes with the old."""
    _on_disk(context)
    store = context.shared.store
    with context.shared.lifecycle.alone(context.operation.name):
        found = snapshots.kept(store)
        whole = [each for each in found if each.header is not None]
        going = [*whole[request.keep :], *(each for each in found if each.header is None)]
        aside = list(_replaced(context)) if request.replaced else []
        freed = sum(each.bytes for each in (*going, *aside))
        lifecycle: Lifecycle | None = None
        if not request.dry_run and (going or aside):
            for path in (*(each.path for each in going), *(each.path for each in aside)):
                snapshots.remove(store, path or "")
            lifecycle = _log(context, "snapshots_pruned", removed=len(going), replaced=len(aside), bytes=freed)
    return SnapshotPruneReport(
        dry_run=request.dry_run,
        removed=tuple(each.snapshot_id for each in going),
        kept=tuple(each.snapshot_id for each in whole[: request.keep]),
        replaced=len(aside),
        freed_bytes=freed,
        lifecycle=lifecycle,
    )


def _on_disk(context: Context) -> None:
    if context.shared.store.settings.backend == "in-memory":
        raise InvalidRequest(
            reason="a store in memory has no files to copy",
            hint="take its spaces out with `memory.export_space`, or open a store on disk",
        )


def _log(
    context: Context, event: str, also: Callable[[WriteTransaction], None] = lambda tx: None, **subject: Any
) -> Lifecycle:
    """A lifecycle event of the daemon's own, since a snapshot is of every space, and what is written with it."""
    row = context.own_event("lifecycle", event, **subject)

    def write(tx: WriteTransaction) -> Lifecycle:
        also(tx)
        return stamped(context, tx, tx.log(row))

    return context.shared.store.write(write, grows=False)


def _must_end(context: Context) -> bool:
    late = context.deadline is not None and time.monotonic() > context.deadline
    return late or context.shared.lifecycle.stopping


def _go_on(context: Context) -> GoOn:
    """What long work calls between two steps: it ends when the runtime does, or the caller's deadline has passed."""

    def look(done: int, of: int) -> None:
        context.progress.at(done, of)
        context.shared.lifecycle.check()
        if _must_end(context):
            raise DeadlineExceeded(what="the copy was made", deadline_ms="given")

    return look
