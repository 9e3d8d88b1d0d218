"""The replica's state as text for people."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from beetle.cli.render_lifecycle import after_restore
from beetle.cli.text import count, duration, neutral, pairs, size, when
from beetle.contracts.common import Report
from beetle.contracts.replication import ReplicationForgetReport, ReplicationRestoreReport, ReplicationStatusReport

Width = int | None
STATES: Mapping[str, str] = {
    "off": "no replica is configured",
    "refused": "a replica is configured, and cannot be kept here",
    "starting": "the sidecar has not reached the target yet",
    "replicating": "what is written arrives",
    "behind": "what is written has not arrived for a while",
    "stalled": "the sidecar did not answer and is being replaced",
    "waiting": "the sidecar ended; it is started again",
    "suspended": "too much was waiting on this disk; the target is tried again from time to time",
    "paused": "beetle holds the sidecar for a moment",
    "stopped": "the daemon ends",
}


def status(report: ReplicationStatusReport, _width: Width) -> str:
    """State, why, and the figures that are known."""
    lines = [("State", f"{report.state}: {STATES[report.state]}")]
    if report.since is not None:
        lines.append(("Since", when(report.since)))
    if report.problem is not None:
        lines.append(("Problem", report.problem if report.detail is None else f"{report.problem}: {report.detail}"))
    if report.hint is not None:
        lines.append(("Remedy", report.hint))
    if report.target_kind is not None:
        lines.append(("Target", report.target or report.target_kind))
    if report.lag_s is not None:
        lines.append(("Lag", _lag(report)))
    if report.last_synced_at is not None:
        lines.append(("Last synced", when(report.last_synced_at)))
    if report.replicated_txid is not None:
        lines.append(("Transactions", f"{report.replicated_txid:,} of {report.txid or 0:,} at the target"))
    if report.wal_bytes is not None:
        lines.append(("On this disk", f"{size(report.wal_bytes)} of log, {size(report.staged_bytes)} staged"))
    if report.writer_waits:
        waited = f"{count(report.writer_waits, 'commit')} waited for it, {report.writer_waited_s or 0:.1f} s in all"
        lines.append(("Writes", waited))
    if report.restarts:
        lines.append(("Restarts", str(report.restarts)))
    if report.earlier_targets:
        lines.append(("Still held by", ", ".join(report.earlier_targets)))
    if report.retention_h is not None:
        lines.append(("Kept for", duration(report.retention_h * 3600)))
    return pairs(lines)


def _lag(report: ReplicationStatusReport) -> str:
    if not report.lag_bytes:
        return "none"
    waiting = f"{count(report.lag_transactions or 0, 'transaction')}, {size(report.lag_bytes)}"
    return f"{report.lag_s:.1f} s ({waiting})"


def restore(report: ReplicationRestoreReport, _width: Width) -> str:
    """What is open now, or was written, and where the store is that was there before."""
    behind = count(report.events_behind, "event")
    state = f"transaction {report.txid:,}, {size(report.bytes)}, {count(report.event_log_rows or 0, 'event')}"
    if report.dry_run:
        lines = [f"The replica's state is whole: {state}. A restore would go back by {behind}."]
    elif report.to:
        lines = [f"Wrote {neutral(report.to)}: {state}. The store is as it was."]
    else:
        lines = [f"Restored from the replica: {state}, back by {behind}."]
    lines.append(f"It has states from {when(report.first)} to {when(report.last)}.")
    lines.extend(after_restore(report))
    return "\n".join(lines)


def forget(report: ReplicationForgetReport, _width: Width) -> str:
    """What went, and what is left."""
    if not report.txid:
        return "Nothing is known of that target any more."
    lines = [f"{count(report.removed_files, 'file')} removed from the replica, {size(report.removed_bytes)}."]
    lines.append(f"It has states from transaction {report.txid:,} on, in {count(report.files, 'file')}.")
    if report.replicated_until is None:
        lines.append("It holds nothing that was erased.")
    else:
        lines.append(f"What was erased meanwhile it holds until {when(report.replicated_until)}.")
    return "\n".join(lines)


RENDERERS: Mapping[type[Report], Callable[[Any, Width], str]] = {
    ReplicationStatusReport: status,
    ReplicationRestoreReport: restore,
    ReplicationForgetReport: forget,
}
