"""snapshot.create, list, verify, restore and prune."""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from beetle.contracts.codec import format_us, replace
from beetle.contracts.common import Lifecycle
from beetle.contracts.errors import DeadlineExceeded, IntegrityViolation, InvalidRequest, NotFound, SnapshotStays
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
from beetle.runtime.areas.snapshots import kept, putting_back, store_snapshots
from beetle.runtime.areas.snapshots.file_form import SnapshotFile
from beetle.runtime.areas.snapshots.putting_back import Unpacked
from beetle.runtime.pipeline.cursor import read_cursor
from beetle.runtime.pipeline.handlers import Handler, Plain
from beetle.runtime.pipeline.invocation import Invocation, log_apart
from beetle.runtime.pipeline.paging import page
from beetle.store.engine import exchange
from beetle.store.engine.store import Store
from beetle.store.engine.transaction import Reading
from beetle.store.snapshot_file import CheckContinue

CHECKING = ("unpack", "pages", "event_log")
"""The steps of looking a snapshot through."""


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
        snapshot=kept.info(shared, header, size),
        restarts=restarts,
        ms=round((time.monotonic() - begun) * 1000, 3),
        lifecycle=lifecycle,
    )


def again(
    invocation: Invocation, request: Any, tx: Reading, first: SnapshotCreateReport | SnapshotRestoreReport
) -> SnapshotCreateReport | SnapshotRestoreReport:
    """A first report with its snapshot as it is now. Nothing keeps one that is gone."""
    del request, tx
    shared, was = invocation.shared, first.snapshot
    with suppress(NotFound):
        found = store_snapshots.find(shared.store, was.snapshot_id)
        now = None if found.header is None else kept.info(shared, found.header, found.bytes)
        if now is not None and (now.created_at, now.event_log_head) == (was.created_at, was.event_log_head):
            return replace(first, snapshot=now)
    return replace(first, snapshot=replace(was, kept_by=()))


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
            snapshot=None if header is None else kept.info(invocation.shared, header, unpacked.found.bytes),
        )


def restore(invocation: Invocation, request: SnapshotRestoreRequest) -> SnapshotRestoreReport:
    """Check it, set the store aside, put the snapshot in its place, and go on with that."""
    invocation.progress.plan(CHECKING if request.dry_run else (*CHECKING, *putting_back.STEPS))
    alone = invocation.shared.lifecycle.alone(invocation.operation.name)
    with alone, invocation.heavy_turn(), _unpacked(invocation, request.snapshot_id) as unpacked:
        return putting_back.put_back(invocation, request, unpacked)


def prune(invocation: Invocation, request: SnapshotPruneRequest) -> SnapshotPruneReport:
    """The last ones made stay; what is broken goes with the others.

    Raises:
        SnapshotStays: one of them could not be removed.
    """
    on_disk(invocation)
    store = invocation.shared.store
    with invocation.shared.lifecycle.alone(invocation.operation.name):
        invocation.check("the snapshots were removed")
        found = store_snapshots.snapshot_files(store)
        whole = [each for each in found if each.header is not None]
        going = [*whole[request.keep :], *(each for each in found if each.header is None)]
        aside = list(_replaced(invocation)) if request.replaced else []
        freed = sum(each.bytes or 0 for each in (*going, *aside))
        lifecycle = None if request.dry_run else _remove(invocation, going, aside)
    return SnapshotPruneReport(
        dry_run=request.dry_run,
        removed=tuple(each.snapshot_id for each in going),
        kept=tuple(each.snapshot_id for each in whole[: request.keep]),
        replaced=len(aside),
        freed_bytes=freed,
        lifecycle=lifecycle,
    )


def _remove(
    invocation: Invocation, going: Sequence[SnapshotFile], aside: Sequence[ReplacedStore] = ()
) -> Lifecycle | None:
    """Remove all that can be, and log what has gone.

    Raises:
        SnapshotStays: one could not be; the others are gone, and the next time goes on with what is left.
    """
    left: dict[str, OSError] = {}

    def is_gone(each: SnapshotFile | ReplacedStore) -> bool:
        path = each.path or ""
        try:
            with suppress(FileNotFoundError):
                os.unlink(path)
        except OSError as error:
            left[path] = error
        return path not in left

    gone, replaced = [each for each in going if is_gone(each)], [each for each in aside if is_gone(each)]
    lifecycle: Lifecycle | None = None
    if gone or replaced:
        freed = sum(each.bytes or 0 for each in (*gone, *replaced))
        told = {"removed": len(gone), "replaced": len(replaced), "bytes": freed}
        lifecycle = log_apart(invocation, invocation.own_event("lifecycle", "snapshots_pruned", **told))
    if left:
        path, error = next(iter(left.items()))
        others = f"; {len(left) - 1} more stay as well" if len(left) > 1 else ""
        hint = f"it is a folder, and no snapshot: move {path} elsewhere, and prune again"
        raise SnapshotStays(
            path=path, reason=f"{error.strerror}{others}", hint=hint if isinstance(error, IsADirectoryError) else None
        ) from error
    return lifecycle


def make_scheduled(invocation: Invocation) -> int:
    """Make a snapshot by the clock, and remove those of its kind that the policy has no reason for; how many files that
    were.

    Raises:
        IntegrityViolation: the disk does not give back what was written to it; then nothing is removed.
        SnapshotStays: one of those that were to go could not be removed.
    """
    # No turn among what looks through the store: it rests most of the time, and others would wait for it.
    made = _make(invocation, kept.SCHEDULED).snapshot
    shared, store = invocation.shared, invocation.shared.store
    with shared.lifecycle.alone(invocation.operation.name):
        fault = store_snapshots.read_back(store_snapshots.find(store, made.snapshot_id), _check_continue(invocation))
        if fault is not None:
            raise IntegrityViolation(
                reason=f"the snapshot {made.snapshot_id} is not on the disk as it was written ({fault}): none is gone",
                hint="check the disk; `beetle snapshot verify` shows which of the earlier ones are whole",
                faults=[fault],
            )
        found = [each for each in store_snapshots.snapshot_files(store) if kept.is_scheduled(store, each)]
        why = kept.kept_by(shared, found)
        going = [each for each in found if not why[each.snapshot_id]]
        _remove(invocation, going)
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
    "snapshot.create": Plain(create, again),
    "snapshot.list": Plain(list_snapshots),
    "snapshot.verify": Plain(verify),
    "snapshot.restore": Plain(restore, again),
    "snapshot.prune": Plain(prune),
}
