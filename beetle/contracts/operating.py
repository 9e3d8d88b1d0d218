"""admin.health and admin.metrics: whether the daemon does its work, and its figures for a monitoring system."""

from __future__ import annotations

from typing import Literal

from beetle.contracts.common import Report
from beetle.contracts.fields import Open, OperatorOnly, Piece, Request
from beetle.contracts.operation import ADMIN, Operation

HealthState = Literal["ok", "degraded", "failing"]
MetricKind = Literal["counter", "gauge", "histogram"]


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
    """A value. `suffix` stands behind the metric's name: `_bucket`, `_sum` and `_count` of a histogram."""

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
