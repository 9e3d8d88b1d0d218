"""What the console shows of the runtime: overview and session."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from beetle.contracts.capabilities import CAPABILITY_NAMES
from beetle.contracts.codec import format_us
from beetle.contracts.console import (
    ConnectedPrincipal,
    ConsoleOverviewReport,
    ConsoleOverviewRequest,
    ConsoleSessionReport,
    ConsoleSessionRequest,
    KernelSummary,
    KnownKind,
    MemoryContext,
    Metrics,
    OperationMetrics,
    OwnerSummary,
    RecentActivity,
    RuntimeShape,
    SessionOverview,
    StorageState,
)
from beetle.runtime.areas import event_log
from beetle.runtime.areas.devices import shown
from beetle.runtime.areas.evidence.alias import current_conversation
from beetle.runtime.host.devices import NAME
from beetle.runtime.host.history import STEP_S
from beetle.runtime.host.machine import disk_bytes, read_system
from beetle.runtime.pipeline.handlers import Handler, Read
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.planes import table
from beetle.store import devices, evidence
from beetle.store.damaged_rows import known_time
from beetle.store.engine import state
from beetle.store.engine.connection import PAGE_SIZE
from beetle.store.engine.transaction import Reading
from beetle.store.transports import by_name

SQLITE_SQL = "SELECT sqlite_version()"


def overview(invocation: Invocation, request: ConsoleOverviewRequest, tx: Reading) -> ConsoleOverviewReport:
    """The machine, the runtime, its memory, metrics and sessions."""
    space = evidence.find_space(tx, invocation.space_id)
    counts = table.counts(invocation, tx, space)
    # What the gate would take out is not gathered for who may not see it: it costs files of /proc.
    operator = invocation.caller.is_operator
    with invocation.work.aside():
        system = read_system(Path(_folder(invocation) or "/"), invocation.now) if operator else None
    return ConsoleOverviewReport(
        system=system,
        runtime=_runtime(invocation, tx),
        kernel=KernelSummary(
            counts=counts,
            schema=invocation.shared.store.schema,
            event_log=event_log.log_state(invocation, tx),
        ),
        metrics=_metrics(invocation) if operator else None,
        sessions=_sessions(invocation, tx) if operator else None,
        memory=_memory(invocation, tx, space),
        storage=_storage(invocation, tx),
        activity=_activity(invocation, request.steps) if operator and request.steps else None,
    )


def session(invocation: Invocation, request: ConsoleSessionRequest, tx: Reading) -> ConsoleSessionReport:
    """Who is asking, what it may do, and whose memory it works on."""
    del request
    caller, shared = invocation.caller, invocation.shared
    row = devices.find_device(tx, caller.name.removeprefix(NAME)) if caller.kind == "device" else None
    space = evidence.find_space(tx, invocation.space_id)
    since = state.space_since(tx, space)
    owner = invocation.scope.owner_id
    usable = shared.catalog.shown_to(caller)
    return ConsoleSessionReport(
        principal=caller.name,
        kind=cast(KnownKind, caller.kind),
        transport=caller.transport,
        agent_id=invocation.scope.agent_id,
        capabilities=tuple(name for name in CAPABILITY_NAMES if usable[name].visible),
        views=caller.views,
        device=None if row is None else shown(invocation, row),
        owner=OwnerSummary(
            owner_id=owner,
            memory_space_id=invocation.space_id,
            since=known_time(since),
            counts=table.counts(invocation, tx, space),
            devices=sum(each.owner_id == owner for each in devices.all_devices(tx)),
        ),
    )


def _runtime(invocation: Invocation, tx: Reading) -> RuntimeShape:
    shared = invocation.shared
    sessions = shared.sessions
    return RuntimeShape(
        version=shared.version,
        build="frozen" if getattr(sys, "frozen", False) else "source",
        python=".".join(str(part) for part in sys.version_info[:3]),
        sqlite=tx.value(SQLITE_SQL),
        profile=shared.profile.name,
        backend=shared.store.settings.backend,
        mode=shared.lifecycle.mode,
        started_at=format_us(shared.started_at),
        uptime_s=shared.uptime_s,
        pid=os.getpid(),
        transports=sessions.transports.entries(sessions.connections, by_name(tx)),
    )


def _metrics(invocation: Invocation) -> Metrics:
    shared = invocation.shared
    measured = shared.metrics.measured()
    return Metrics(
        since=format_us(shared.started_at),
        calls=sum(each.calls for each in measured),
        errors=sum(sum(each.errors.values()) for each in measured),
        refusals=shared.refusals(),
        queued_writes=shared.store.writer.queued,
        operations=tuple(
            OperationMetrics(
                operation=each.operation,
                calls=each.calls,
                errors=each.errors,
                p50_ms=each.quantiles[0],
                p90_ms=each.quantiles[1],
                p99_ms=each.quantiles[2],
                max_ms=each.longest,
            )
            for each in measured
        ),
    )


def _activity(invocation: Invocation, most: int) -> RecentActivity:
    steps, running_s = invocation.shared.history.last(most)
    return RecentActivity(
        step_s=STEP_S,
        running_s=round(running_s, 3),
        writes=tuple(each.writes for each in steps),
        recalls=tuple(each.recalls for each in steps),
        slowest_ms=tuple(each.slowest_ms for each in steps),
        rss_bytes=tuple(each.gauges.rss for each in steps),
        wal_bytes=tuple(each.gauges.wal for each in steps),
        disk_free_bytes=tuple(each.gauges.disk_free for each in steps),
    )


def _sessions(invocation: Invocation, tx: Reading) -> SessionOverview:
    shared = invocation.shared
    states = Counter(row.state for row in devices.all_devices(tx))
    return SessionOverview(
        connected=tuple(
            ConnectedPrincipal(principal=principal, transport=transport, connections=count)
            for (principal, transport), count in sorted(shared.sessions.connections.connected().items())
        ),
        devices={name: states[name] for name in ("active", "suspended", "revoked")},
        subscriptions=shared.subscriptions(),
    )


def _memory(invocation: Invocation, tx: Reading, space: int | None) -> MemoryContext:
    scope = invocation.scope
    current = current_conversation(invocation, tx, space, None)
    last = invocation.shared.metrics.last_projection(invocation.asker)
    return MemoryContext(
        memory_space_id=invocation.space_id,
        owner_id=scope.owner_id,
        agent_id=scope.agent_id,
        channel=scope.channel,
        chat_id=scope.chat_id,
        current_conversation=current.ref,
        current_by=current.by,
        last_projection=None if last is None else last.audit,
        last_projection_at=None if last is None else format_us(last.at),
    )


def _storage(invocation: Invocation, tx: Reading) -> StorageState:
    store = invocation.shared.store
    folder = _folder(invocation)
    total, free = (None, None) if folder is None else disk_bytes(folder)
    return StorageState(
        path=store.open_report.path,
        bytes=tx.value("PRAGMA page_count") * PAGE_SIZE,
        wal_bytes=store.wal_bytes(),
        ceiling_bytes=store.settings.store_bytes,
        disk_total_bytes=total,
        disk_free_bytes=free,
    )


def _folder(invocation: Invocation) -> str | None:
    """The folder that the store stands in; None for one in memory."""
    path = invocation.shared.store.open_report.path
    return None if path is None else os.path.dirname(path)


HANDLERS: Mapping[str, Handler] = {
    "console.overview": Read(overview),
    "console.session": Read(session),
}
