"""What the store holds, giving free space back, whether the daemon does its work, and its figures for a monitoring
system."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from beetle.contracts.common import Report
from beetle.contracts.fields import Open, OperatorOnly, Piece, Request
from beetle.contracts.lifecycle import RecoverStep
from beetle.contracts.operation import ADMIN, Operation

HealthState = Literal["ok", "degraded", "failing"]
MetricKind = Literal["counter", "gauge", "histogram"]
Family = Literal["events", "toc", "grips", "outbox"]
"""What the statistics count: messages by time, nodes of the table of contents, grips, days that wait for it."""


class FamilyStats(Piece, frozen=True, kw_only=True):
    """Rows of one kind, and the bytes that their tables and indexes have in the file."""

    name: Open[Literal["events", "toc", "grips", "outbox", "recall index", "everything else"]]
    entries: Open[int | None]
    bytes: Open[int]


class AdminStatsRequest(Request, frozen=True, kw_only=True):
    """Count what the store holds, of every space; reads the whole file."""


class AdminStatsReport(Report, frozen=True, kw_only=True):
    """The whole store, for an operator. `bytes` is the file's, `wal_bytes` its write-ahead log's, `free_bytes` what
    `admin.compact` could give back. The rows of the recall index and of internal tables are not counted."""

    path: OperatorOnly[str | None]
    bytes: OperatorOnly[int | None]
    wal_bytes: OperatorOnly[int | None]
    free_bytes: OperatorOnly[int | None]
    families: OperatorOnly[tuple[FamilyStats, ...] | None]


class AdminCompactRequest(Request, frozen=True, kw_only=True):
    """Merge the recall index, and write the file anew where that pays."""

    cf: (
        Annotated[Family, Meta(description="only what is of this family; the index is merged for `events` alone")]
        | None
    ) = None


class AdminCompactReport(Report, frozen=True, kw_only=True):
    """`steps` says of each step what it did, or why not; see `memory.recover`."""

    steps: Open[tuple[RecoverStep, ...]]
    bytes_before: Open[int]
    bytes_after: Open[int]


class HealthCheck(Piece, frozen=True, kw_only=True):
    """One thing that was looked at. `key` is the error that requests meet while it fails."""

    name: Open[str]
    state: Open[HealthState]
    says: Open[str]
    key: Open[str | None] = None


class AdminHealthRequest(Request, frozen=True, kw_only=True):
    """Look whether reads, writes and jobs are done."""


class AdminHealthReport(Report, frozen=True, kw_only=True):
    """For an operator. `state` is the worst one of `checks`: `degraded` does its work and needs a look, `failing` does
    not do its work."""

    state: OperatorOnly[HealthState | None]
    checks: OperatorOnly[tuple[HealthCheck, ...] | None]


class MetricLabel(Piece, frozen=True, kw_only=True):
    """A label of a sample."""

    name: Open[str]
    value: Open[str]


class MetricSample(Piece, frozen=True, kw_only=True):
    """A value. `suffix` follows the metric's name: `_bucket`, `_sum` and `_count` of a histogram."""

    value: Open[float]
    labels: Open[tuple[MetricLabel, ...]] = ()
    suffix: Open[str] = ""


class Metric(Piece, frozen=True, kw_only=True):
    """A metric by its name in Prometheus, with all of its samples."""

    name: Open[str]
    kind: Open[MetricKind]
    help: Open[str]
    samples: Open[tuple[MetricSample, ...]]


class AdminMetricsRequest(Request, frozen=True, kw_only=True):
    """Read the figures of the daemon and its whole store."""


class AdminMetricsReport(Report, frozen=True, kw_only=True):
    """For an operator. Counters are since the daemon began; times are in seconds, sizes in bytes."""

    metrics: OperatorOnly[tuple[Metric, ...] | None]


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "admin.stats", "admin_stats", AdminStatsRequest, AdminStatsReport, "read", "inspect", ADMIN,
        ("admin", "stats"),
        "count what the store holds, of every space; reads the whole file",
        batch=False, heavy=True, deadline_ms=600_000,
        shell=("beetle admin stats",),
    ),
    Operation(
        "admin.compact", "admin_compact", AdminCompactRequest, AdminCompactReport, "admin", "admin", ADMIN,
        ("admin", "compact"),
        "merge the recall index, and write the file anew where that pays",
        batch=False, grows=False, heavy=True, deadline_ms=3_600_000,
        example={"cf": "events"},
        shell=("beetle admin compact", "beetle admin compact --cf events"),
        progress=True,
    ),
    Operation(
        "admin.health", "admin_health", AdminHealthRequest, AdminHealthReport, "read", "inspect", ADMIN,
        ("admin", "health"),
        "look whether reads, writes and jobs are done",
        batch=False,
        shell=("beetle admin health",),
    ),
    Operation(
        "admin.metrics", "admin_metrics", AdminMetricsRequest, AdminMetricsReport, "read", "inspect", ADMIN,
        ("admin", "metrics"),
        "read the figures of the daemon and its whole store",
        batch=False,
        shell=("beetle admin metrics",),
    ),
)  # fmt: skip
