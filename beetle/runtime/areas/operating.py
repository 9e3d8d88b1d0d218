"""admin.health and admin.metrics. `METRICS` is the one table of what is measured: a new metric is an entry there."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property

from beetle.contracts.admin import (
    AdminHealthReport,
    AdminHealthRequest,
    AdminMetricsReport,
    AdminMetricsRequest,
    HealthCheck,
    HealthState,
    Metric,
    MetricKind,
    MetricLabel,
    MetricSample,
)
from beetle.contracts.errors import (
    BeetleError,
    DeadlineExceeded,
    Overloaded,
    StorageFull,
    StoreBudgetExceeded,
    StoreReadOnly,
)
from beetle.contracts.replication import REPLICA_STATES, ReplicationStatusReport
from beetle.named_tuple import NamedTuple
from beetle.runtime.host.machine import disk_bytes, process_rss_bytes
from beetle.runtime.host.modes import RESTING_MODES
from beetle.runtime.host.supervisor import STUCK_S
from beetle.runtime.pipeline.handlers import Handler, Plain
from beetle.runtime.pipeline.invocation import Facilities, Invocation
from beetle.store.engine.store import LOW_SPACE_BYTES

SLOW_S = 10.0
"""For so long a write may stand still before it is told; a card's own pauses are shorter."""
READ_S = 2.0
"""For so long a check waits for a reader that others hold."""
WORST: tuple[HealthState, ...] = ("failing", "degraded", "ok")
SQL = "SELECT 1"


def health(invocation: Invocation, request: AdminHealthRequest) -> AdminHealthReport:
    """What each check finds now."""
    del request
    checks = tuple(each(invocation) for each in CHECKS)
    found = {each.state for each in checks}
    return AdminHealthReport(state=next(each for each in WORST if each in found), checks=checks)


def _writes(invocation: Invocation) -> HealthCheck:
    store = invocation.shared.store
    stalled = store.still_s()
    if store.settings.immutable or store.files.lost is not None:
        says = "the store is on read-only media" if store.settings.immutable else "the store's files were moved"
        return HealthCheck(name="writes", state="failing", says=says, key=StoreReadOnly.key)
    if store.writer.ended:
        return HealthCheck(name="writes", state="failing", says="the writer has ended", key="internal")
    if stalled > SLOW_S:
        state: HealthState = "failing" if stalled > STUCK_S else "degraded"
        says = f"a write has stood still for {stalled:.0f} s"
        return HealthCheck(name="writes", state=state, says=says, key="overloaded")
    return HealthCheck(name="writes", state="ok", says=f"{store.writer.queued} wait")


def _reads(invocation: Invocation) -> HealthCheck:
    until = time.monotonic() + READ_S
    until = until if invocation.deadline is None else min(until, invocation.deadline)
    try:
        with invocation.shared.store.read(until, invocation.is_abandoned, by=invocation.caller.name) as tx:
            tx.value(SQL)
    except (Overloaded, DeadlineExceeded) as error:
        return HealthCheck(name="reads", state="degraded", says="every reader is busy", key=error.key)
    except BeetleError as error:
        return HealthCheck(name="reads", state="failing", says="the store cannot be read", key=error.key)
    return HealthCheck(name="reads", state="ok", says="a read was answered")


def _room(invocation: Invocation) -> HealthCheck:
    store = invocation.shared.store
    free, used = _disk_free(invocation.shared), store.used_bytes()
    if free is not None and free < LOW_SPACE_BYTES:
        says = f"the disk has {free} bytes left"
        return HealthCheck(name="room", state="degraded", says=says, key=StorageFull.key)
    if used >= store.settings.store_bytes * 0.9:
        says = f"the store uses {used} of its {store.settings.store_bytes} bytes"
        return HealthCheck(name="room", state="degraded", says=says, key=StoreBudgetExceeded.key)
    return HealthCheck(name="room", state="ok", says=f"the store uses {used} of its {store.settings.store_bytes} bytes")


def _mode(invocation: Invocation) -> HealthCheck:
    mode = invocation.shared.lifecycle.mode
    return HealthCheck(name="mode", state="degraded" if mode in RESTING_MODES else "ok", says=f"the mode is {mode}")


def _identity(invocation: Invocation) -> HealthCheck:
    identity = invocation.shared.identity
    state = identity.state
    problem = identity.problem(state)
    says = "the device identity can be used" if problem is None else problem[0]
    return HealthCheck(name="identity", state="ok" if problem is None else "degraded", says=says)


def _erasures(invocation: Invocation) -> HealthCheck:
    count = invocation.shared.store.writer.erasures
    says = f"{count} erasures wait for their bytes to go" if count else "none is pending"
    return HealthCheck(name="erasures", state="degraded" if count else "ok", says=says)


def _jobs(invocation: Invocation) -> HealthCheck:
    failed = [each.job_name for each in invocation.shared.scheduler.known() if each.last_error_key or each.is_hung]
    says = f"failed when they ran last: {', '.join(failed)}" if failed else "no job failed when it ran last"
    return HealthCheck(name="jobs", state="degraded" if failed else "ok", says=says)


def _replica(invocation: Invocation) -> HealthCheck:
    found = invocation.shared.replica.status()
    if found.state == "off":
        return HealthCheck(name="replica", state="ok", says="none is configured")
    says = found.state if found.problem is None else f"{found.state}: {found.problem}"
    return HealthCheck(name="replica", state="ok" if found.problem is None else "degraded", says=says)


CHECKS: tuple[Callable[[Invocation], HealthCheck], ...] = (
    _writes, _reads, _room, _mode, _identity, _erasures, _jobs, _replica,
)  # fmt: skip


class Scrape:
    """One reading of every metric: what several of them are figures of is asked for once."""

    def __init__(self, invocation: Invocation) -> None:
        self.invocation = invocation
        self.shared = invocation.shared

    @cached_property
    def replica(self) -> ReplicationStatusReport:
        """How far the replica is, which its sidecar is asked."""
        return self.shared.replica.status()


class Measure(NamedTuple):
    """A metric of the table: what it is called, and where its samples come from."""

    name: str
    kind: MetricKind
    help: str
    samples: Callable[[Scrape], Iterable[MetricSample]]


def metrics(invocation: Invocation, request: AdminMetricsRequest) -> AdminMetricsReport:
    """Every metric of the table that has samples now."""
    del request
    scrape = Scrape(invocation)
    found = [(each, tuple(each.samples(scrape))) for each in METRICS]
    return AdminMetricsReport(
        metrics=tuple(Metric(name=each.name, kind=each.kind, help=each.help, samples=has) for each, has in found if has)
    )


def sample(value: float, suffix: str = "", **labels: str) -> MetricSample:
    """A sample with its labels."""
    shown = tuple(MetricLabel(name=name, value=text) for name, text in labels.items())
    return MetricSample(value=value, labels=shown, suffix=suffix)


def one(read: Callable[[Facilities], float | None]) -> Callable[[Scrape], Iterator[MetricSample]]:
    """The samples of a metric without labels; none where it is not known."""
    return _single(lambda scrape: read(scrape.shared))


def of_replica(name: str) -> Callable[[Scrape], Iterator[MetricSample]]:
    """The samples of a figure of `replication.status`; none where it is not known."""
    return _single(lambda scrape: getattr(scrape.replica, name))


def _single(read: Callable[[Scrape], float | None]) -> Callable[[Scrape], Iterator[MetricSample]]:
    def samples(scrape: Scrape) -> Iterator[MetricSample]:
        if (value := read(scrape)) is not None:
            yield sample(value)

    return samples


def _info(scrape: Scrape) -> Iterator[MetricSample]:
    shared = scrape.shared
    settings = shared.store.settings
    yield sample(
        1,
        version=shared.version,
        profile=shared.profile.name,
        backend=settings.backend,
        schema=str(shared.store.schema),
    )


def _health(scrape: Scrape) -> Iterator[MetricSample]:
    for each in CHECKS:
        found = each(scrape.invocation)
        yield sample(len(WORST) - 1 - WORST.index(found.state), check=found.name)


def _requests(scrape: Scrape) -> Iterator[MetricSample]:
    for each in scrape.shared.metrics.measured():
        yield sample(each.calls, operation=each.operation)


def _errors(scrape: Scrape) -> Iterator[MetricSample]:
    for each in scrape.shared.metrics.measured():
        for key, count in sorted(each.errors.items()):
            yield sample(count, operation=each.operation, error=key)


def _seconds(scrape: Scrape) -> Iterator[MetricSample]:
    for each in scrape.shared.metrics.measured():
        for edge, count in each.within:
            yield sample(count, "_bucket", operation=each.operation, le=repr(edge))
        yield sample(each.calls, "_bucket", operation=each.operation, le="+Inf")
        yield sample(each.total_s, "_sum", operation=each.operation)
        yield sample(each.calls, "_count", operation=each.operation)


def _connections(scrape: Scrape) -> Iterator[MetricSample]:
    counted: dict[str, int] = {}
    for (_, transport), count in scrape.shared.sessions.connections.connected().items():
        counted[transport] = counted.get(transport, 0) + count
    for transport, count in sorted(counted.items()):
        yield sample(count, transport=transport)


def _job_runs(scrape: Scrape) -> Iterator[MetricSample]:
    for each in scrape.shared.scheduler.known():
        yield sample(each.run_count, job=each.job_name, result="success")
        yield sample(each.error_count, job=each.job_name, result="failed")
        yield sample(each.skip_count, job=each.job_name, result="skipped")


def _replica_states(scrape: Scrape) -> Iterator[MetricSample]:
    now = scrape.replica.state
    for each in () if now == "off" else REPLICA_STATES:
        yield sample(float(each == now), state=each)


def _disk_free(shared: Facilities) -> int | None:
    path = shared.store.open_report.path
    return None if path is None else disk_bytes(os.path.dirname(path))[1]


def _open_files(shared: Facilities) -> int | None:
    del shared
    try:
        return len(os.listdir("/proc/self/fd"))
    except OSError:
        return None


METRICS: tuple[Measure, ...] = (
    Measure("beetle_info", "gauge", "What runs; the value is 1.", _info),
    Measure("beetle_uptime_seconds", "gauge", "Seconds since the daemon began.", one(lambda all: all.uptime_s)),
    Measure("beetle_health", "gauge", "By check: 0 ok, 1 degraded, 2 failing.", _health),
    Measure("beetle_requests_total", "counter", "Requests by operation.", _requests),
    Measure("beetle_request_errors_total", "counter", "Requests that were answered with an error.", _errors),
    Measure("beetle_request_seconds", "histogram", "Seconds from a request to its answer.", _seconds),
    Measure("beetle_refusals_total", "counter", "Requests that were not allowed.", one(lambda all: all.refusals())),
    Measure("beetle_connections", "gauge", "Open connections.", _connections),
    Measure("beetle_subscriptions", "gauge", "Open subscriptions.", one(lambda all: all.subscriptions())),
    Measure("beetle_store_bytes", "gauge", "Bytes of the store's file.", one(lambda all: all.store.used_bytes())),
    Measure(
        "beetle_store_limit_bytes", "gauge", "The profile's ceiling of the store.",
        one(lambda all: all.store.settings.store_bytes),
    ),
    Measure("beetle_wal_bytes", "gauge", "Bytes of the write-ahead log.", one(lambda all: all.store.wal_bytes())),
    Measure("beetle_disk_free_bytes", "gauge", "Bytes that the store's disk has left.", one(_disk_free)),
    Measure("beetle_queued_writes", "gauge", "Writes that wait.", one(lambda all: all.store.writer.queued)),
    Measure(
        "beetle_write_stalled_seconds", "gauge", "Seconds for which the write in hand did not move.",
        one(lambda all: all.store.still_s()),
    ),
    Measure("beetle_pending_erasures", "gauge", "Erasures not done.", one(lambda all: all.store.writer.erasures)),
    Measure("beetle_event_log_rows_total", "counter", "Rows of the event log.", one(lambda all: all.store.head.seq)),
    Measure("beetle_job_runs_total", "counter", "Times of a background job, by result.", _job_runs),
    Measure("beetle_replica_state", "gauge", "1 for the state that the replica is in.", _replica_states),
    Measure("beetle_replica_lag_seconds", "gauge", "How long ago it was whole.", of_replica("lag_s")),
    Measure("beetle_replica_lag_bytes", "gauge", "Bytes that it does not have yet.", of_replica("lag_bytes")),
    Measure("beetle_replica_restarts_total", "counter", "Starts of its sidecar again.", of_replica("restarts")),
    Measure("process_resident_memory_bytes", "gauge", "Resident memory.", one(lambda all: process_rss_bytes())),
    Measure("process_open_fds", "gauge", "Open file descriptors.", one(_open_files)),
    Measure("process_cpu_seconds_total", "counter", "CPU time.", one(lambda all: time.process_time())),
)  # fmt: skip

HANDLERS: Mapping[str, Handler] = {"admin.health": Plain(health), "admin.metrics": Plain(metrics)}
