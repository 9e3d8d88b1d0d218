"""What a console shows first: the machine, the runtime, what it holds, who is here. Every figure is read."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from beetle.contracts.common import ConversationRef, Report
from beetle.contracts.devices import Device, TransportEntry
from beetle.contracts.fields import Open, OperatorOnly, Piece, Request
from beetle.contracts.lifecycle import Mode
from beetle.contracts.memory import CurrentBy, EventLogState, PlaneCounts, ProjectionAudit
from beetle.contracts.operation import CONSOLE, Operation

KnownKind = Literal["operator", "principal", "device", "embedded"]


class ConsoleOverviewRequest(Request, frozen=True, kw_only=True):
    """Show the machine, the runtime, its memory, metrics and sessions."""

    steps: Annotated[
        int, Meta(ge=0, le=240, description="steps of recent activity to report, of 5 seconds each, for an operator")
    ] = 0


class SystemState(Piece, frozen=True, kw_only=True):
    """The machine. A figure that could not be read is null. `load` is the system's of 1, 5 and 15 minutes.

    The limits are those of the process's control group; `process_rss_bytes` is what the runtime's process takes.
    """

    os: Open[str]
    kernel: Open[str]
    machine: Open[str]
    cpu: Open[str | None]
    cores: Open[int | None]
    cpu_limit: Open[float | None]
    load: Open[tuple[float, ...]]
    memory_total_bytes: Open[int | None]
    memory_available_bytes: Open[int | None]
    memory_limit_bytes: Open[int | None]
    process_rss_bytes: Open[int | None]
    up_s: Open[float | None]
    at: Open[str]


class RuntimeShape(Piece, frozen=True, kw_only=True):
    """The runtime. `build` is `frozen` for the one file, else `source`."""

    version: Open[str]
    build: Open[Literal["frozen", "source"]]
    python: Open[str]
    sqlite: Open[str]
    profile: Open[str]
    backend: Open[str]
    mode: Open[Mode]
    started_at: Open[str]
    uptime_s: Open[float]
    pid: OperatorOnly[int | None]
    transports: Open[tuple[TransportEntry, ...]]


class KernelSummary(Piece, frozen=True, kw_only=True):
    """What the caller's space holds, by plane; the schema is the whole store's, and for an operator the
    event log.
    """

    counts: Open[PlaneCounts]
    schema: Open[int]
    event_log: Open[EventLogState]


class OperationMetrics(Piece, frozen=True, kw_only=True):
    """One operation since the runtime started: how often it was asked, how often refused (by error key), how long it
    took in milliseconds. A quantile is the upper edge of its bucket, at most a quarter above the true one.
    """

    operation: Open[str]
    calls: Open[int]
    errors: Open[dict[str, int]]
    p50_ms: Open[float]
    p90_ms: Open[float]
    p99_ms: Open[float]
    max_ms: Open[float]


class Metrics(Piece, frozen=True, kw_only=True):
    """Of the whole runtime, by operation; what came in a batch counts as the batch."""

    since: Open[str]
    calls: Open[int]
    errors: Open[int]
    refusals: Open[int]
    queued_writes: Open[int]
    operations: Open[tuple[OperationMetrics, ...]]


class RecentActivity(Piece, frozen=True, kw_only=True):
    """What the runtime did lately, in steps of `step_s` seconds, oldest first; the last one has run for `running_s`.

    Steps from before the runtime began are not there. `slowest_ms` is the slowest answer of a step, null without one;
    requests that only watch (`hello`, `console.*`) are not counted. Memory, write-ahead log and free disk are read in
    steps in which something was asked, and null in others.
    """

    step_s: Open[float]
    running_s: Open[float]
    writes: Open[tuple[int, ...]]
    recalls: Open[tuple[int, ...]]
    slowest_ms: Open[tuple[float | None, ...]]
    rss_bytes: Open[tuple[int | None, ...]]
    wal_bytes: Open[tuple[int | None, ...]]
    disk_free_bytes: Open[tuple[int | None, ...]]


class ConnectedPrincipal(Piece, frozen=True, kw_only=True):
    """A principal or a device with open connections. `principal` is empty for those that have asked nothing yet."""

    principal: Open[str]
    transport: Open[str]
    connections: Open[int]


class SessionOverview(Piece, frozen=True, kw_only=True):
    """Who is connected, and the devices that are known, by state."""

    connected: Open[tuple[ConnectedPrincipal, ...]]
    devices: Open[dict[str, int]]
    subscriptions: Open[int]


class MemoryContext(Piece, frozen=True, kw_only=True):
    """Where this request works, which conversation its chat id refers to, and what went into this caller's last
    projection here."""

    memory_space_id: Open[str]
    owner_id: Open[str]
    agent_id: Open[str]
    channel: Open[str]
    chat_id: Open[str]
    current_conversation: Open[ConversationRef | None]
    current_by: Open[CurrentBy]
    last_projection: Open[ProjectionAudit | None] = None
    last_projection_at: Open[str | None] = None


class StorageState(Piece, frozen=True, kw_only=True):
    """The store's files and their disk; null for a store in memory."""

    path: OperatorOnly[str | None]
    bytes: OperatorOnly[int | None]
    wal_bytes: OperatorOnly[int | None]
    ceiling_bytes: Open[int]
    disk_total_bytes: OperatorOnly[int | None]
    disk_free_bytes: OperatorOnly[int | None]


class ConsoleOverviewReport(Report, frozen=True, kw_only=True):
    """`system`, `metrics`, `sessions` and `activity` describe the whole daemon; only operators see them. `activity` is
    null unless `steps` of it were asked for.
    """

    system: OperatorOnly[SystemState | None]
    runtime: Open[RuntimeShape]
    kernel: Open[KernelSummary]
    metrics: OperatorOnly[Metrics | None]
    sessions: OperatorOnly[SessionOverview | None]
    memory: Open[MemoryContext]
    storage: Open[StorageState]
    activity: OperatorOnly[RecentActivity | None] = None


class ConsoleSessionRequest(Request, frozen=True, kw_only=True):
    """Show the caller, its capabilities, and the owner of the memory it uses."""


class OwnerSummary(Piece, frozen=True, kw_only=True):
    """An owner's memory in figures. `since` is when it was first written to, null when it never was."""

    owner_id: Open[str]
    memory_space_id: Open[str]
    since: Open[str | None]
    counts: Open[PlaneCounts]
    devices: Open[int]


class ConsoleSessionReport(Report, frozen=True, kw_only=True):
    """`device` is present if the caller is one. `capabilities` are those that it may use here and now."""

    principal: Open[str]
    kind: Open[KnownKind]
    transport: Open[str]
    agent_id: Open[str]
    capabilities: Open[tuple[str, ...]]
    views: Open[tuple[str, ...]]
    device: Open[Device | None]
    owner: Open[OwnerSummary]


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "console.overview", "console_overview", ConsoleOverviewRequest, ConsoleOverviewReport, "read", "console",
        CONSOLE, ("console", "overview"),
        "show the machine, the runtime, its memory, metrics and sessions",
    ),
    Operation(
        "console.session", "console_session", ConsoleSessionRequest, ConsoleSessionReport, "read", "console", CONSOLE,
        ("console", "session"),
        "show the caller, its capabilities, and the owner of the memory it uses",
    ),
)  # fmt: skip
