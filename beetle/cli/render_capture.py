"""Reports of captured turns, their hosts and keys, and of events, as text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from beetle.cli.text import clip, count, neutral, table, when
from beetle.contracts.capture import (
    HostCoverageReport,
    HostKey,
    HostKeyListReport,
    HostKeyReport,
    MemoryCaptureTurnReport,
)
from beetle.contracts.common import Report
from beetle.contracts.events import EventIngestReport, EventRangeReport


def turn(report: MemoryCaptureTurnReport, width: int | None) -> str:
    """Whether the turn is new, and its ref."""
    state = "already there" if report.dedup_hit else "captured"
    if report.memory_deleted:
        state = "already there, and deleted"
    elif report.content_mismatch:
        state = "already there, with other content"
    return clip(f"{state} ({report.attest_level}): {neutral(report.memory_id)}", width)


def coverage(report: HostCoverageReport, width: int | None) -> str:
    """A row a host and version, then the sessions with gaps."""
    if not report.hosts:
        return "Nothing was captured."
    rows: list[tuple[str, ...]] = []
    for host in report.hosts:
        kind, gaps = neutral(host.host_kind), f"{host.gaps:,}"
        figures = (f"{host.sessions:,}", f"{host.turns:,}", gaps, f"{host.coverage:.1%}", f"{host.signed_share:.1%}")
        rows.append((kind, *figures, f"{host.duplicates:,}", when(host.last_at)))
        for each in host.versions:
            version = f"  {neutral(each.host_version or 'no version')}"
            share = f"{each.signed / each.turns:.1%}"
            rows.append((version, "", f"{each.turns:,}", "", "", share, f"{each.duplicates:,}", when(each.last_at)))
    header = ("HOST", "SESSIONS", "TURNS", "GAPS", "COVERAGE", "SIGNED", "DUPLICATES", "LAST")
    lines = [table(rows, header, width, numbers=(1, 2, 3, 4, 5, 6))]
    for each in report.incomplete:
        missing = ", ".join(f"{r.first:,}" if r.first == r.last else f"{r.first:,}-{r.last:,}" for r in each.missing)
        name = f"{neutral(each.host_kind)}/{neutral(each.host_session_id)}"
        lines.append(clip(f"{name}: {count(each.gaps, 'turn')} missing: {missing}", width))
    return "\n".join([*lines, *(["…"] if report.has_more else [])])


def key(report: HostKeyReport, width: int | None) -> str:
    """One key."""
    return clip("  ".join(_key(report.host_key)), width)


def keys(report: HostKeyListReport, width: int | None) -> str:
    """A row a key."""
    if not report.host_keys:
        return "No keys."
    header = ("FINGERPRINT", "HOST", "STATE", "LABEL")
    return "\n".join([table(map(_key, report.host_keys), header, width), *(["…"] if report.has_more else [])])


def _key(each: HostKey) -> tuple[str, str, str, str]:
    state = f"since {when(each.added_at)}" if each.revoked_at is None else f"revoked {when(each.revoked_at)}"
    return each.fingerprint, neutral(each.host_kind or "any"), state, neutral(each.label)


def ingested(report: EventIngestReport, width: int | None) -> str:
    """Whether the event is new."""
    return clip(f"{neutral(report.event_id)} {'ingested' if report.created else 'was there already'}", width)


def events(report: EventRangeReport, width: int | None) -> str:
    """Two lines an event: its id, role and time, and its text."""
    lines: list[str] = []
    for number, each in enumerate(report.events, 1):
        lines.append(clip(f"  {number}. {neutral(each.event_id)} [{each.role.upper()}] {each.timestamp_ms}", width))
        said = neutral(each.text) if each.text is not None else "withheld"
        lines.append(clip(f'     "{said}"', width))
    lines.append(f"Total: {count(len(report.events), 'event')} (has_more: {'true' if report.has_more else 'false'})")
    return "\n".join(lines)


RENDERERS: Mapping[type[Report], Callable[[Any, int | None], str]] = {
    MemoryCaptureTurnReport: turn,
    HostCoverageReport: coverage,
    HostKeyReport: key,
    HostKeyListReport: keys,
    EventIngestReport: ingested,
    EventRangeReport: events,
}
