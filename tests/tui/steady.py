"""A daemon's answers for pictures: what the machine, the process and the clock say is the same in every run."""

from __future__ import annotations

import re
import threading
import time
from datetime import UTC, datetime
from math import sin
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from beetle.contracts.common import Report
from beetle.contracts.console import (
    ConnectedPrincipal,
    ConsoleOverviewReport,
    Metrics,
    OperationMetrics,
    RecentActivity,
)
from beetle.contracts.control import HelloReport
from beetle.contracts.devices import DeviceKeyReport
from beetle.contracts.event_log import EventLogReadReport, EventRow
from beetle.contracts.memory import MemoryInspectionReport, MemoryRecallReport, RecallTimings
from beetle.contracts.progress import OnProgress, ProgressStep
from beetle.contracts.replication import ReplicationStatusReport
from beetle.contracts.snapshots import SnapshotListReport
from beetle_tui.activity import MOST_BARS
from beetle_tui.source import DaemonSource

NOW = datetime(2026, 3, 9, 14, 5, 36, 250_000, tzinfo=UTC)
"""When all that this run has done was done."""
PAST = datetime(2026, 3, 7, tzinfo=UTC)
"""Before this is what the seeded world says of itself; times after it are the clock's."""
TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z")
DATE = re.compile(r"\b20\d\d-\d\d-\d\d\b")
PID = 4021
STORE = {"bytes": 417_792, "wal_bytes": 86_520}
SNAPSHOT = {"bytes": 120_400, "store_bytes": 417_792, "version": "0.1.0", "device": "0123456789abcdef"}
MACHINE = {"disk_total_bytes": 64_000_000_000, "disk_free_bytes": 41_500_000_000}
RSS_BYTES = 43_800_000
OPERATOR = ConnectedPrincipal(principal="operator", transport="socket", connections=2)
CALLS = {"memory.recall": 3_100, "memory.write": 1_260}
TIMINGS = RecallTimings(search=1.3, load=0.5, rank=0.3, total=2.1)
KEY = "beetle-workshop-key-that-opens-nothing-0123"
RECEIPT = "beetle-receipt-1."
RECEIPT_TEXT = RECEIPT + "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_" * 6


class Steady(DaemonSource):
    """A daemon's answers, with the same figures each time for what the machine, the process and the clock say."""

    def call(self, operation: str, arguments: Any = None, on_progress: OnProgress | None = None) -> Report:
        """See Source."""
        return cast(Report, fixed(_steady(super().call(operation, arguments, on_progress))))

    def another(self) -> Steady:
        """See Source."""
        return Steady(super().another()._client)


class Held(Steady):
    """Its long work comes to a point, and never ends by itself."""

    def __init__(self, client: Any) -> None:
        super().__init__(client)
        self._closed = threading.Event()

    def another(self) -> Held:
        """See Source."""
        return Held(super().another()._client)

    def call(self, operation: str, arguments: Any = None, on_progress: OnProgress | None = None) -> Report:
        """See Source."""
        if operation == "store.verify":
            assert on_progress is not None
            on_progress(ProgressStep("recall_index", 7, 9, 410_000, 1_000_000))
            self._closed.wait()
        return super().call(operation, arguments, on_progress)

    def close(self) -> None:
        """See Source."""
        self._closed.set()
        super().close()


class Replicated(Steady):
    """A daemon with a replica, which the clock does not change."""

    def another(self) -> Replicated:
        """See Source."""
        return Replicated(super().another()._client)

    def call(self, operation: str, arguments: Any = None, on_progress: OnProgress | None = None) -> Report:
        """See Source."""
        report = super().call(operation, arguments, on_progress)
        if isinstance(report, MemoryInspectionReport):
            return replace(report, runtime=replace(report.runtime, replicated_until="2026-03-16T14:05:36.000000Z"))
        if operation != "replication.status":
            return report
        return ReplicationStatusReport(
            state="replicating", since=f"{NOW:%Y-%m-%dT%H:%M:%S.%fZ}", target_kind="sftp",
            target="sftp://backup@nas/beetle", lag_s=0.04, lag_bytes=8_272, lag_transactions=1, txid=412,
            replicated_txid=411, last_synced_at=f"{NOW:%Y-%m-%dT%H:%M:%S.%fZ}", wal_bytes=86_520, staged_bytes=4_116,
            restarts=0, writer_waits=3, writer_waited_s=0.02, pid=PID, retention_h=168,
        )  # fmt: skip


def fixed(value: Any) -> Any:
    """A report without what the clock and the dice of this run have put into it; what is asked with stays."""
    match value:
        case datetime():
            return NOW if value > PAST else value
        case str():
            if TIME.fullmatch(value) and value > f"{PAST:%Y-%m-%d}":
                return f"{NOW:%Y-%m-%dT%H:%M:%S.%fZ}"
            if value.startswith(RECEIPT):
                return RECEIPT_TEXT
            return DATE.sub(lambda it: f"{NOW:%Y-%m-%d}" if it[0] > f"{PAST:%Y-%m-%d}" else it[0], value)
        case Struct():
            return replace(value, **{each: fixed(getattr(value, each)) for each in value.__struct_fields__})
        case tuple() | list():
            return type(value)(map(fixed, value))
        case dict():
            return {key: fixed(each) for key, each in value.items()}
        case _:
            return value


def _steady(report: Report) -> Report:
    match report:
        case HelloReport():
            return replace(report, pid=PID, version="0.1.0", uptime_s=time.time() - NOW.timestamp())
        case ConsoleOverviewReport(system=system, sessions=sessions, metrics=metrics):
            known: dict[str, Any] = {
                "system": system and replace(system, process_rss_bytes=RSS_BYTES, memory_limit_bytes=None),
                "sessions": sessions and replace(sessions, connected=(OPERATOR,)),
                "metrics": metrics and _asked(metrics),
                "activity": report.activity and past(MOST_BARS),
            }
            return replace(report, storage=replace(report.storage, **STORE, **MACHINE), **known)
        case SnapshotListReport():
            return replace(report, snapshots=tuple(replace(each, **SNAPSHOT) for each in report.snapshots))
        case MemoryInspectionReport():
            return replace(report, store=replace(report.store, pages=102, **STORE))
        case EventLogReadReport():
            return replace(report, rows=tuple(_of_pid(each) for each in report.rows))
        case MemoryRecallReport():
            return replace(report, timings_ms=TIMINGS)
        case DeviceKeyReport():
            return replace(report, appKeyOnce=KEY)
        case _:
            return report


def _asked(metrics: Metrics) -> Metrics:
    asked = [OperationMetrics(operation=name, calls=number, errors={}, p50_ms=2.1, p90_ms=3.4, p99_ms=5.2, max_ms=6.0)
             for name, number in CALLS.items()]  # fmt: skip
    return replace(metrics, operations=tuple(asked))


def _of_pid(row: EventRow) -> EventRow:
    return replace(row, subject={**row.subject, "pid": PID}) if "pid" in row.subject else row


def past(most: int) -> RecentActivity:
    """A morning's work, as many steps of it as are asked for."""
    lefts = range(most - 1, -1, -1)
    return RecentActivity(
        step_s=5.0,
        running_s=2.5,
        writes=tuple(round(7 + 3 * sin(left / 9)) for left in lefts),
        recalls=tuple(round(20 - left / 6 + 3 * sin(left / 6)) for left in lefts),
        slowest_ms=tuple(None if left == 4 else 4.2 + 3 * abs(sin(left / 4)) for left in lefts),
        rss_bytes=tuple(RSS_BYTES - 250_000 * left for left in lefts),
        wal_bytes=tuple(STORE["wal_bytes"] - 9_000 * (left % 9) for left in lefts),
        disk_free_bytes=tuple(MACHINE["disk_free_bytes"] + 40_000_000 * left for left in lefts),
    )
