"""Devices, transports, overview, session and event log as text for people."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from beetle.cli.text import clip, count, duration, neutral, pairs, size, table, when
from beetle.contracts.codec import pack_json
from beetle.contracts.common import Report
from beetle.contracts.console import ConsoleOverviewReport, ConsoleSessionReport, Metrics, SystemState
from beetle.contracts.devices import (
    Device,
    DeviceKeyReport,
    DeviceListReport,
    DeviceRemovedReport,
    DeviceReport,
    TransportEntry,
    TransportListReport,
    TransportReport,
)
from beetle.contracts.event_log import EventLogReadReport, EventRow
from beetle.contracts.memory import PlaneCounts

Width = int | None
SHOWN_ONCE = "This key is shown once. Keep it where only the device reads it, as the file of --auth-file does."
SHOWN_BEFORE = "No key: it stood in the first answer to this request. `beetle device rotate-key` makes another."
REVOKED_BEFORE = "No key: it stood in the first answer to this request, and the device was revoked or removed since."


def device_list(report: DeviceListReport, width: Width) -> str:
    """A row for each device."""
    if not report.devices:
        return "No devices."
    rows = [
        (each.device_id, each.label, each.state, each.appKeyFingerprint, str(each.connections), when(each.last_seen),
         ", ".join(each.capabilities))
        for each in report.devices
    ]  # fmt: skip
    head = ("DEVICE", "LABEL", "STATE", "KEY", "CONNECTED", "LAST SEEN", "CAPABILITIES")
    return f"{table(rows, head, width, numbers=(4,))}\n{count(report.total, 'device')}"


def device(found: Device) -> str:
    """One device."""
    return pairs(
        [
            ("Device", found.device_id),
            ("Label", found.label),
            ("State", found.state),
            ("Owner", f"{found.owner_id}, agent {found.agent_id}"),
            ("Capabilities", ", ".join(found.capabilities) or "none"),
            ("Fingerprint", found.appKeyFingerprint),
            ("Last seen", when(found.last_seen)),
        ]
    )


def device_key(report: DeviceKeyReport, _width: Width) -> str:
    """The device and its key, the one time that it is there."""
    if report.appKeyOnce is None:
        told = REVOKED_BEFORE if report.device.state == "revoked" else SHOWN_BEFORE
        return f"{device(report.device)}\n{told}"
    return f"{device(report.device)}\nKey:          {report.appKeyOnce}\n{SHOWN_ONCE}"


def device_changed(report: DeviceReport, _width: Width) -> str:
    """The device as it is now."""
    return device(report.device)


def device_removed(report: DeviceRemovedReport, _width: Width) -> str:
    """That it is gone."""
    return f"{neutral(report.device_id)} is removed."


def transport_list(report: TransportListReport, width: Width) -> str:
    """A row for each way in."""
    rows = [
        (
            each.name,
            _state(each),
            "-" if each.connections is None else str(each.connections),
            each.endpoint or "-",
            when(each.updated_at),
        )
        for each in report.transports
    ]
    return table(rows, ("WAY IN", "STATE", "CONNECTED", "LISTENS AT", "CHANGED"), width, numbers=(2,))


def transport(report: TransportReport, _width: Width) -> str:
    """The current state of the transport."""
    return f"{report.transport.name}: {_state(report.transport)}"


def _state(entry: TransportEntry) -> str:
    if not entry.allowed:
        return "not in this profile"
    if not entry.built:
        return "not in this build"
    return "open" if entry.enabled else "closed to all but operators"


def overview(report: ConsoleOverviewReport, width: Width) -> str:
    """The machine, the runtime, what it holds, who is here, and how each operation does."""
    shape, storage, memory = report.runtime, report.storage, report.memory
    free = "" if storage.disk_free_bytes is None else f", {size(storage.disk_free_bytes)} free on its disk"
    conversation = memory.current_conversation
    here = "-" if conversation is None else f"{conversation.channel_id}/{conversation.conversation_id}"
    lines = [*_system(report.system)]
    lines += [
        ("Runtime", f"beetle {shape.version} ({shape.build}), Python {shape.python}, SQLite {shape.sqlite}"),
        ("Profile", f"{shape.profile}, backend {shape.backend}, mode {shape.mode}"),
        ("Up", f"{duration(shape.uptime_s)}, since {when(shape.started_at)}"),
        ("Transports", ", ".join(f"{each.name} {_state(each)}" for each in shape.transports if each.allowed)),
        ("Store", f"{size(storage.bytes)} of {size(storage.ceiling_bytes)}, log {size(storage.wal_bytes)}{free}"),
        ("Holds", _counts(report.kernel.counts)),
        ("Event log", f"{count(report.kernel.event_log.rows, 'row')}, head {report.kernel.event_log.head[:12]}"),
        ("Scope", f"{memory.owner_id}, agent {memory.agent_id}, {memory.channel}/{memory.chat_id}"),
        ("Conversation", f"{here} ({memory.current_by})"),
    ]
    if report.sessions is not None:
        connected = (f"{each.principal or '(silent)'} ({each.connections})" for each in report.sessions.connected)
        lines.append(("Connected", ", ".join(connected) or "nobody"))
        lines.append(("Devices", ", ".join(f"{number} {name}" for name, number in report.sessions.devices.items())))
    text = pairs(lines)
    return text if report.metrics is None else f"{text}\n\n{_metrics(report.metrics, width)}"


def _system(system: SystemState | None) -> list[tuple[str, str]]:
    if system is None:
        return []
    known = [f"{system.cores or '?'} cores", system.machine]
    memory = "-" if system.memory_total_bytes is None else size(system.memory_total_bytes)
    free = "" if system.memory_available_bytes is None else f", {size(system.memory_available_bytes)} available"
    own = "" if system.process_rss_bytes is None else f", {size(system.process_rss_bytes)} of it this process"
    return [
        ("System", f"{system.os}, {system.kernel}"),
        ("CPU", ", ".join([*([system.cpu] if system.cpu else []), *known])),
        ("Memory", f"{memory}{free}{own}"),
    ]


def _counts(counts: PlaneCounts) -> str:
    return (
        f"{count(counts.conversations, 'conversation')}, {count(counts.turns, 'turn')}, "
        f"{count(counts.facts, 'fact')}, {count(counts.runtime_skills, 'skill')}"
    )


def _metrics(metrics: Metrics, width: Width) -> str:
    rows = [
        (each.operation, f"{each.calls:,}", str(sum(each.errors.values())), f"{each.p50_ms:.1f}", f"{each.p99_ms:.1f}",
         f"{each.max_ms:.1f}")
        for each in metrics.operations
    ]  # fmt: skip
    head = ("OPERATION", "CALLS", "ERRORS", "P50 MS", "P99 MS", "MAX MS")
    return table(rows, head, width, numbers=(1, 2, 3, 4, 5))


def session(report: ConsoleSessionReport, _width: Width) -> str:
    """Who is asking."""
    owner = report.owner
    shown = [
        ("Principal", f"{report.principal} ({report.kind}, over {report.transport})"),
        ("Agent", report.agent_id),
        ("Capabilities", ", ".join(report.capabilities) or "none"),
        ("Views", ", ".join(report.views) or "none"),
        ("Owner", f"{owner.owner_id}, since {when(owner.since)}"),
        ("Holds", f"{_counts(owner.counts)}, {count(owner.devices, 'device')}"),
    ]
    if report.device is not None:
        shown.append(
            ("Device", f"{report.device.device_id} {report.device.label}, key {report.device.appKeyFingerprint}")
        )
    return pairs(shown)


def event_log(report: EventLogReadReport, width: Width) -> str:
    """A line for each row, and whether the chain holds."""
    if report.chain is not None:
        lines = [f"{link.seq:>6}  {link.hash}" for link in report.chain] or ["No such rows."]
        lines += [f"Signed head: {report.signed_head}"] if report.signed_head else []
        lines.append("What each hash is made of: with --json.")
    else:
        lines = [event_line(row, width) for row in report.rows] or ["No such rows."]
    if not report.verified:
        lines.append(f"The chain is broken at {', '.join(str(seq) for seq in report.broken)}: run `beetle verify`.")
    return "\n".join(lines)


def event_line(row: EventRow, width: Width) -> str:
    """One row on one line: its number, time, topic and event, who did it by which operation, ids and counts."""
    told = " ".join(f"{name}={_plain(value)}" for name, value in row.subject.items() if value is not None)
    head = f"{row.seq:>6}  {when(row.at)}  {row.topic + ' ' + row.event:<28}  {row.principal}  {row.operation}"
    return clip(neutral(f"{head}  {told}".rstrip()), width)


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else pack_json(value).decode()


RENDERERS: Mapping[type[Report], Callable[[Any, Width], str]] = {
    DeviceListReport: device_list,
    DeviceKeyReport: device_key,
    DeviceReport: device_changed,
    DeviceRemovedReport: device_removed,
    TransportListReport: transport_list,
    TransportReport: transport,
    ConsoleOverviewReport: overview,
    ConsoleSessionReport: session,
    EventLogReadReport: event_log,
}
