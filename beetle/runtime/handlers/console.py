"""console.overview and console.session: every figure is read at the time of the call."""

from __future__ import annotations

import os
import sys
from collections import Counter
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
    RuntimeShape,
    SessionOverview,
    StorageState,
    SystemState,
)
from beetle.contracts.memory import EventLogState, PlaneCounts
from beetle.runtime.alias import current_conversation
from beetle.runtime.devices import NAME
from beetle.runtime.handlers.device import shown
from beetle.runtime.handling import Context
from beetle.runtime.machine import disk_bytes, read_system
from beetle.store import devices, evidence, state
from beetle.store.connection import PAGE_SIZE
from beetle.store.event_log import read_head
from beetle.store.transaction import Reading
from beetle.store.transports import by_name

SQLITE_SQL = "SELECT sqlite_version()"


def overview(context: Context, request: ConsoleOverviewRequest, tx: Reading) -> ConsoleOverviewReport:
    """The machine, the runtime, what it holds, how it does, who is here."""
    del request
    space = evidence.find_space(tx, context.space_id)
    head = read_head(tx)
    counts = PlaneCounts(**state.plane_counts(tx, space))
    # What the gate would take out is not gathered for who may not see it: it costs files of /proc.
    operator = context.caller.is_operator
    return ConsoleOverviewReport(
        system=_system(context) if operator else None,
        runtime=_runtime(context, tx),
        kernel=KernelSummary(
            counts=counts,
            schema=context.shared.store.schema,
            event_log=EventLogState(rows=head.seq, head=head.hash.hex()),
        ),
        metrics=_metrics(context) if operator else None,
        sessions=_sessions(context, tx) if operator else None,
        memory=_memory(context, tx, space),
        storage=_storage(context, tx),
    )


def session(context: Context, request: ConsoleSessionRequest, tx: Reading) -> ConsoleSessionReport:
    """Who is asking, what it may do, and whose memory it works on."""
    del request
    caller, shared = context.caller, context.shared
    row = devices.find_device(tx, caller.name.removeprefix(NAME)) if caller.kind == "device" else None
    space = evidence.find_space(tx, context.space_id)
    since = state.space_since(tx, space)
    owner = context.scope.owner_id
    usable = shared.catalog.shown_to(caller)
    return ConsoleSessionReport(
        principal=caller.name,
        kind=cast(KnownKind, caller.kind),
        transport=caller.transport,
        agent_id=context.scope.agent_id,
        capabilities=tuple(name for name in CAPABILITY_NAMES if usable[name].visible),
        views=caller.views,
        device=None if row is None else shown(context, row),
        owner=OwnerSummary(
            owner_id=owner,
            memory_space_id=context.space_id,
            since=None if since is None else format_us(since),
            counts=PlaneCounts(**state.plane_counts(tx, space)),
            devices=sum(each.owner_id == owner for each in devices.all_devices(tx)),
        ),
    )


def _system(context: Context) -> SystemState:
    return read_system(Path(_folder(context) or "/"), context.now)


def _runtime(context: Context, tx: Reading) -> RuntimeShape:
    shared = context.shared
    presence = shared.presence
    return RuntimeShape(
        version=shared.version,
        build="frozen" if getattr(sys, "frozen", False) else "source",
        python=".".join(str(part) for part in sys.version_info[:3]),
        sqlite=tx.value(SQLITE_SQL),
        profile=shared.profile.name,
        backend=shared.store.settings.backend,
        mode=shared.lifecycle.mode,
        started_at=format_us(shared.started_at),
        uptime_s=round((context.now - shared.started_at) / 1_000_000, 3),
        pid=os.getpid(),
        transports=presence.transports.entries(presence.lines, by_name(tx)),
    )


def _metrics(context: Context) -> Metrics:
    shared = context.shared
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


def _sessions(context: Context, tx: Reading) -> SessionOverview:
    shared = context.shared
    states = Counter(row.state for row in devices.all_devices(tx))
    return SessionOverview(
        connected=tuple(
            ConnectedPrincipal(principal=principal, transport=transport, connections=count)
            for (principal, transport), count in sorted(shared.presence.lines.connected().items())
        ),
        devices={name: states[name] for name in ("active", "suspended", "revoked")},
        subscriptions=shared.subscriptions(),
    )


def _memory(context: Context, tx: Reading, space: int | None) -> MemoryContext:
    scope = context.scope
    current = current_conversation(context, tx, space, None)
    last = context.shared.metrics.last_projection(context.asker)
    return MemoryContext(
        memory_space_id=context.space_id,
        owner_id=scope.owner_id,
        agent_id=scope.agent_id,
        channel=scope.channel,
        chat_id=scope.chat_id,
        current_conversation=current.ref,
        current_by=current.by,
        last_projection=None if last is None else last.audit,
        last_projection_at=None if last is None else format_us(last.at),
    )


def _storage(context: Context, tx: Reading) -> StorageState:
    store = context.shared.store
    folder = _folder(context)
    total, free = (None, None) if folder is None else disk_bytes(folder)
    return StorageState(
        path=store.open_report.path,
        bytes=tx.value("PRAGMA page_count") * PAGE_SIZE,
        wal_bytes=store.wal_bytes(),
        ceiling_bytes=store.settings.store_bytes,
        disk_total_bytes=total,
        disk_free_bytes=free,
    )


def _folder(context: Context) -> str | None:
    """The folder that the store stands in; None for one in memory."""
    path = context.shared.store.open_report.path
    return None if path is None else os.path.dirname(path)
