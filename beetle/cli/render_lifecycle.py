"""Recovery, closing and snapshots as text for people."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from beetle.cli.text import clip, count, neutral, size, table, when
from beetle.contracts.common import Report
from beetle.contracts.forgetting import MemoryForgetReport
from beetle.contracts.lifecycle import MemoryCloseReport, MemoryRecoverReport, RecoverStep
from beetle.contracts.replication import ReplicationRestoreReport
from beetle.contracts.snapshots import (
    SnapshotCreateReport,
    SnapshotInfo,
    SnapshotListReport,
    SnapshotPruneReport,
    SnapshotRestoreReport,
    SnapshotVerifyReport,
)

Width = int | None
SHOWN_REFS = 20


def recover(report: MemoryRecoverReport, width: Width) -> str:
    """What each step did, and whether all is well."""
    rows = [
        (each.step, each.outcome.replace("_", " "), f"{each.count:,}", f"{each.left:,}", _why(each))
        for each in report.steps
    ]
    lines = [table(rows, ("STEP", "OUTCOME", "DONE", "LEFT", "WHY"), width, numbers=(2, 3))]
    lines.append("Recovered." if report.recovered else "Some problems remain; `beetle verify` shows them.")
    return "\n".join(lines)


def _why(step: RecoverStep) -> str:
    words = [each for each in (step.reason, step.error) if each is not None]
    return ": ".join(words).replace("_", " ")


def close(report: MemoryCloseReport, _width: Width) -> str:
    """Whether it closes now, and what is left to the next opening."""
    lines = ["It was closing already." if report.already else "Closed."]
    if report.drained:
        lines.append(f"{count(report.drained, 'write')} finished first.")
    if not report.checkpointed:
        lines.append(f"The write-ahead log keeps {size(report.wal_bytes)}; the next opening folds it in.")
    if report.pending_erasures:
        lines.append(f"{count(report.pending_erasures, 'erasure')} left to the next opening.")
    return "\n".join(lines)


def create(report: SnapshotCreateReport, _width: Width) -> str:
    """The new snapshot's id and size."""
    made = report.snapshot
    return (
        f"{neutral(made.snapshot_id)}: {size(made.bytes)} of {size(made.store_bytes)}, "
        f"up to event {made.event_log_rows:,}, in {report.ms / 1000:.1f} s{_unsigned(made)}"
    )


def _unsigned(made: SnapshotInfo) -> str:
    return "" if made.device else "\nUnsigned: the device identity cannot be used; a restore needs --other-store."


def listing(report: SnapshotListReport, width: Width) -> str:
    """A line for each snapshot; then what is no whole one, and the stores that were set aside."""
    rows = [_row(each) for each in report.snapshots]
    lines = (
        [table(rows, ("SNAPSHOT", "MADE", "SIZE", "EVENTS", "KEPT", "LABEL"), width, numbers=(2, 3))] if rows else []
    )
    lines.extend(f"Broken: {neutral(each.snapshot_id)} ({each.fault})" for each in report.broken)
    lines.extend(
        f"Set aside at {when(each.replaced_at)}: {neutral(each.path or each.snapshot_id)} ({size(each.bytes)})"
        for each in report.replaced
    )
    lines.append(f"{count(report.total, 'snapshot')}, {size(report.bytes)}")
    return "\n".join(lines)


KEPT = {
    "newest": "newest",
    "hourly": "hourly",
    "daily": "daily",
    "weekly": "weekly",
    "hand": "until pruned",
    "other_store": "until pruned",
}
"""Why a snapshot is kept, in a word."""


def _row(each: SnapshotInfo) -> tuple[str, ...]:
    label = neutral(each.label or "") if each.own else f"{neutral(each.label or '')} [of another store]".strip()
    return (
        each.snapshot_id,
        when(each.created_at),
        size(each.bytes),
        "-" if each.event_log_rows is None else f"{each.event_log_rows:,}",
        ", ".join(KEPT[why] for why in each.kept_by) or "until the next run",
        label,
    )


def verify(report: SnapshotVerifyReport, width: Width) -> str:
    """What was checked, and what is wrong."""
    rows = [(name, f"{number:,}") for name, number in (report.checked or {}).items()]
    lines = [table(rows, ("CHECKED", "COUNT"), width, numbers=(1,))] if rows else []
    lines.extend(f"{each.replace('_', ' ').capitalize()}." for each in report.reasons)
    if report.snapshot is not None and report.snapshot.device is not None:
        lines.append(f"It names the device {neutral(report.snapshot.device)}.")
    lines.append("Whole." if report.valid else "Not to be trusted.")
    return "\n".join(lines)


def restore(report: SnapshotRestoreReport, _width: Width) -> str:
    """What is open now, and where the store is that was there before."""
    made = report.snapshot
    behind = count(report.events_behind, "event")
    if report.dry_run:
        lines = [f"The snapshot is whole. A restore would go back by {behind}, to {when(made.created_at)}."]
    else:
        lines = [f"Restored {neutral(made.snapshot_id)}, back by {behind} to {when(made.created_at)}."]
    return "\n".join((*lines, *after_restore(report)))


def after_restore(report: SnapshotRestoreReport | ReplicationRestoreReport) -> Iterable[str]:
    """Where the store is that was there before, and what was done to the one that took its place."""
    if report.kept_as:
        yield f"The store that was there before: {neutral(report.kept_as)}"
    if report.migrations_applied:
        yield f"Migrations applied: {', '.join(report.migrations_applied)}"
    if report.devices_suspended:
        verb = "would be" if report.dry_run else "were"
        yield f"{count(report.devices_suspended, 'device')} {verb} suspended; `beetle device list` shows them."
    if report.erased:
        words = "It holds what was erased since" if report.dry_run else "Erased again"
        words = "Brought back, although it was erased since" if report.kept_erased else words
        told = ", ".join(f"{number:,} {name.replace('_', ' ')}" for name, number in report.erased.items())
        yield f"{words}: {told}."
        yield from (f"  {neutral(each)}" for each in (report.erased_refs or ())[:SHOWN_REFS])
    if report.identity != "usable":
        yield f"The device identity is {report.identity} for it: its private plane stays closed."


def prune(report: SnapshotPruneReport, _width: Width) -> str:
    """What went, and what is left."""
    verb = "would be removed" if report.dry_run else "removed"
    lines = [f"{count(len(report.removed), 'snapshot')} {verb}, {len(report.kept)} kept; {size(report.freed_bytes)}."]
    if report.replaced:
        lines.append(f"{count(report.replaced, 'store')} that a restore had set aside {verb}.")
    return "\n".join(lines)


class Erasing(Protocol):
    """A report of something that may erase."""

    @property
    def erasure(self) -> str | None: ...
    @property
    def replica_horizon(self) -> str | None: ...
    @property
    def replicated_until(self) -> str | None: ...
    @property
    def copies_until(self) -> str | None: ...
    @property
    def receipt(self) -> str | None: ...


STAYS = {
    "cited_elsewhere": "rests on other evidence too",
    "weaker_authority": "is the word of a stronger authority",
    "policy": "is a policy, which `beetle long-term policy` lifts",
    "unreadable": "is sealed and cannot be opened",
}


def forget(report: MemoryForgetReport, width: Width) -> str:
    """What went, or would; what stays, and why."""
    verb = "would go" if report.dry_run else "went"
    rows = [(name.replace("_", " "), f"{number:,}") for name, number in report.counts.items()]
    lines = [table(rows, ("WHAT", verb.upper()), width, numbers=(1,))] if rows else ["Nothing found."]
    for each in report.stays:
        lines.append(f"Stays: {each.count:,} of {each.plane.replace('_', ' ')}, which {STAYS[each.reason]}.")
        lines.extend(clip(f"  {neutral(ref)}", width) for ref in each.refs)
    if report.hidden:
        lines.append(f"{count(report.hidden, 'record')} that you may not see would go too: it is refused.")
    if report.token is not None and rows:
        lines.append(f"To forget it: the same with --token {report.token}")
    lines.extend(erased(report, "it"))
    return "\n".join(lines)


def erased(report: Erasing, what: str) -> Iterable[str]:
    """How far an erasure is, where what was erased may still be, and the receipt."""
    if report.erasure == "done":
        yield f"Erased: no byte of {what} is left in the database or its log."
    elif report.erasure == "pending":
        yield "Erasure pending: a reader holds an older state, or chunks are imported; it is finished when that ends."
    if report.replica_horizon is not None:
        horizon = when(report.replica_horizon)
        removed = (
            f"the job `snapshot` removes the last of them at {when(report.copies_until)}; "
            if report.copies_until
            else ""
        )
        yield f"Copies of the store up to {horizon} may hold it still: {removed}see `beetle snapshot prune`."
    if report.replicated_until is not None:
        yield f"The replica holds it until {when(report.replicated_until)}: `beetle replica forget` removes it now."
    if report.receipt:
        yield f"Receipt: {neutral(report.receipt)}"


RENDERERS: Mapping[type[Report], Callable[[Any, Width], str]] = {
    MemoryForgetReport: forget,
    MemoryRecoverReport: recover,
    MemoryCloseReport: close,
    SnapshotCreateReport: create,
    SnapshotListReport: listing,
    SnapshotVerifyReport: verify,
    SnapshotRestoreReport: restore,
    SnapshotPruneReport: prune,
}
