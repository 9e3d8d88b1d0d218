"""Which snapshots are kept and why, and when the policy will have removed the copies that there are."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext

from beetle.contracts.codec import format_us, replace
from beetle.contracts.errors import BeetleError
from beetle.contracts.snapshots import KeptBy, SnapshotInfo
from beetle.domain import retention
from beetle.runtime.areas.snapshots import store_snapshots
from beetle.runtime.areas.snapshots.file_form import Header, SnapshotFile
from beetle.runtime.host.scheduler import Scheduler
from beetle.runtime.pipeline.invocation import Facilities
from beetle.store.engine import exchange
from beetle.store.engine.store import Store
from beetle.store.engine.transaction import Reading

JOB = "snapshot"
SCHEDULED = "scheduled"
"""The label of snapshots that the job `snapshot` makes, and may remove."""


def is_scheduled(store: Store, each: SnapshotFile) -> bool:
    """Whether the job has made it, of this store: no other is removed by itself."""
    header = each.header
    return header is not None and header.label == SCHEDULED and header.store_id == store.store_id


def kept_by(shared: Facilities, found: Sequence[SnapshotFile]) -> dict[str, tuple[KeptBy, ...]]:
    """By the id of each whole snapshot why it is kept; nothing for one that the job's next run removes.

    Args:
        found: every snapshot, the last one made first.
    """
    store, scheduler = shared.store, shared.scheduler
    own = [each for each in found if is_scheduled(store, each)]
    told: dict[str, tuple[KeptBy, ...]] = {
        each.snapshot_id: ("hand",) if each.header.store_id == store.store_id else ("other_store",)
        for each in found
        if each.header is not None
    }
    rules = retention.reasons(_times(own), scheduler.keep_snapshots, scheduler.days_of)
    return told | {each.snapshot_id: why for each, why in zip(own, rules, strict=True)}


def info(shared: Facilities, header: Header, size: int) -> SnapshotInfo:
    """A snapshot as reports show it, with why the job keeps it."""
    why = kept_by(shared, store_snapshots.snapshot_files(shared.store))
    return replace(store_snapshots.info(shared.store, header, size), kept_by=why.get(header.snapshot_id, ()))


def until(shared: Facilities, now: int, tx: Reading | None = None) -> str | None:
    """When the last of the copies that stand beside the store now will have been removed by the schedule and the
    policy; None where none stands there, or where one stays until somebody removes it.

    Args:
        now: microseconds since the epoch.
        tx: a read that has begun, if there is one.
    """
    store, scheduler = shared.store, shared.scheduler
    if store.settings.backend == "in-memory":
        return None
    try:
        found = store_snapshots.snapshot_files(store)
        others = store_snapshots.replaced(store) or exchange.unfinished(
            store.settings.path, store.settings.snapshot_folder
        )
    except (OSError, BeetleError):
        return None
    if others or not found or not all(is_scheduled(store, each) for each in found):
        return None
    at = _gone_at(scheduler, found, now, tx)
    return None if at is None else format_us(at)


def _gone_at(scheduler: Scheduler, found: Sequence[SnapshotFile], now: int, tx: Reading | None) -> int | None:
    scheduler.load(None if tx is None else lambda: nullcontext(tx))
    next_us = scheduler.times(JOB)
    if next_us is None:
        return None
    return retention.gone_at(_times(found), scheduler.keep_snapshots, scheduler.days_of, now, next_us)


def _times(found: Sequence[SnapshotFile]) -> list[int]:
    return [each.header.created_at for each in found if each.header is not None]
