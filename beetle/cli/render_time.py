"""The table of contents, events and grips as text for people."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from beetle.cli.text import clip, count, neutral, size
from beetle.contracts.admin import AdminCompactReport, AdminStatsReport
from beetle.contracts.common import Report
from beetle.contracts.events import EventIngestReport, EventRangeReport, EventRecord
from beetle.contracts.toc import (
    AdminRebuildTocReport,
    GripExpandReport,
    TocBrowseReport,
    TocMatch,
    TocNode,
    TocNodeReport,
    TocRootReport,
    TocSearchChildrenReport,
    TocSearchNodeReport,
)

Width = int | None
WITHHELD = "[withheld]"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MARGIN = "    "


def time_of(milliseconds: int) -> str:
    """`2026-01-30 10:00:00`, UTC."""
    return (EPOCH + timedelta(milliseconds=milliseconds)).strftime("%Y-%m-%d %H:%M:%S")


def date_of(milliseconds: int) -> str:
    """`2026-01-30`, UTC."""
    return time_of(milliseconds)[:10]


def _text(text: str | None) -> str:
    return WITHHELD if text is None else neutral(" ".join(text.split()))


def _quoted(text: str | None) -> str:
    return WITHHELD if text is None else f'"{_text(text)}"'


def roots(report: TocRootReport, width: Width) -> str:
    """The years, each with the number of its children."""
    if not report.nodes:
        return "The table of contents is empty."
    lines = ["TOC Root Nodes:"]
    lines += [
        clip(f"  - {neutral(each.node_id)} {_quoted(each.title)} ({_children(each)})", width) for each in report.nodes
    ]
    return "\n".join(lines)


def _children(node: TocNode) -> str:
    number = len(node.child_node_ids)
    return f"{number}+ children" if node.has_more_children else count(number, "child", "children")


def node(report: TocNodeReport, width: Width) -> str:
    """One node with its bullets and what each rests on."""
    found = report.node
    if found is None:
        return "There is no such node."
    title = f"{date_of(found.start_time_ms)} to {date_of(found.end_time_ms)}"
    keywords = WITHHELD if found.keywords is None else ", ".join(neutral(each) for each in found.keywords)
    number = len(found.child_node_ids)
    lines = [
        f"Node: {neutral(found.node_id)}",
        f"  Title: {_text(found.title)}",
        f"  Level: {found.level.capitalize()}",
    ]
    if found.summary is not None or found.bullets:
        lines.append(f"  Summary: {_text(found.summary)}")
    if found.bullets:
        lines.append("  Bullets:")
        for bullet in found.bullets:
            lines.append(clip(f"    - {_text(bullet.text)}", width))
            lines += [f"      {neutral(each)}" for each in bullet.grip_ids]
    if keywords:
        lines.append(f"  Keywords: {keywords}")
    lines.append(f"  Children: {number}{'+' if found.has_more_children else ''}")
    lines += [f"  Time Range: {title}", f"  Version: {found.version}"]
    return "\n".join(lines)


def browse(report: TocBrowseReport, width: Width) -> str:
    """A page of children in order of time, and the token of the next."""
    if not report.children:
        return "No children."
    lines = ["Children:"]
    lines += [
        clip(f"  {number}. {neutral(each.node_id)} {_quoted(each.title)}", width)
        for number, each in enumerate(report.children, 1)
    ]
    more = f'true, next_token: "{neutral(report.continuation_token or "")}"' if report.has_more else "false"
    lines += ["", f"{count(len(report.children), 'child', 'children')} (has_more: {more})"]
    return "\n".join(lines)


def events(report: EventRangeReport, width: Width) -> str:
    """Events by time, each with its role and its text."""
    lines = ["Events:"] if report.events else []
    for number, each in enumerate(report.events, 1):
        lines.append(
            clip(f"  {number}. {neutral(each.event_id)} [{each.role.upper()}] {time_of(each.timestamp_ms)}", width)
        )
        lines.append(clip(f"     {_quoted(each.text)}", width))
    more = "true" if report.has_more else "false"
    lines += [*([""] if lines else []), f"Total: {count(len(report.events), 'event')} (has_more: {more})"]
    return "\n".join(lines)


def grip(report: GripExpandReport, width: Width) -> str:
    """The excerpt, and the events of its session around it."""
    found = report.grip
    if found is None:
        return "There is no such grip."
    lines = [
        f"Grip: {neutral(found.grip_id)}",
        clip(f"  Excerpt: {_quoted(found.excerpt)}", width),
        f"  Source: {neutral(found.source)}",
        f"  Time: {time_of(found.timestamp_ms)}",
        "",
        "Context:",
    ]
    parts = (("BEFORE", report.events_before), ("EXCERPT", report.excerpt_events), ("AFTER", report.events_after))
    for index, (name, found_events) in enumerate(parts):
        lines += [*([""] if index else []), f"  --- {name} ---", *_said(found_events, width)]
    return "\n".join(lines)


def _said(found: Iterable[EventRecord], width: Width) -> Iterable[str]:
    return (clip(f"  [{each.role.upper()}] {_text(each.text)}", width) for each in found)


def matches(report: TocSearchNodeReport, width: Width) -> str:
    """The texts of a node that match, best first."""
    return "\n".join(_matches(report.matches, "", width)) or "Nothing matches."


def _matches(found: Iterable[TocMatch], indent: str, width: Width) -> Iterable[str]:
    for each in found:
        yield clip(f"{indent}{each.field} {each.score:.3f}  {_text(each.text)}", width)
        yield from (f"{indent}  {neutral(grip_id)}" for grip_id in each.grip_ids)


def found_nodes(report: TocSearchChildrenReport, width: Width) -> str:
    """Nodes, best first, with their bullets that match."""
    lines: list[str] = []
    for number, each in enumerate(report.nodes, 1):
        lines.append(
            clip(f"{number:>2}. {neutral(each.node.node_id)} {_quoted(each.node.title)} {each.score:.3f}", width)
        )
        lines += _matches(each.matches, MARGIN, width)
    return "\n".join(lines) or "Nothing matches."


def ingested(report: EventIngestReport, width: Width) -> str:
    """Whether the event is new."""
    return clip(
        f"{neutral(report.event_id)}: {'kept' if report.created else 'was there already; nothing was written'}", width
    )


def rebuilt(report: AdminRebuildTocReport, width: Width) -> str:
    """What was, or would be, made anew."""
    del width
    if report.dry_run:
        return f"Would rebuild {count(report.days, 'day')} of sessions; nothing was changed."
    changed = f"{report.changed_nodes:,} of them changed"
    return f"Rebuilt {count(report.days, 'day')} of sessions: {count(report.nodes, 'node')}, {changed}."


def stats(report: AdminStatsReport, width: Width) -> str:
    """The file, and its rows and bytes by kind."""
    del width
    if report.families is None:
        return "The statistics of the store are an operator's."
    place = neutral(report.path or "(in memory)")
    lines = ["Database Statistics:", f"  Path: {place}", f"  Size: {size(report.bytes)}", "", "  Column Families:"]
    for each in report.families:
        entries = "" if each.entries is None else f"{count(each.entries, 'entry', 'entries')}, "
        lines.append(f"    {each.name}: {entries}{size(each.bytes)}")
    lines += ["", "  SQLite Info:", f"    Free: {size(report.free_bytes)}", f"    WAL: {size(report.wal_bytes)}"]
    return "\n".join(lines)


def compacted(report: AdminCompactReport, width: Width) -> str:
    """What each step did, and what came of it."""
    del width
    steps = [f"  {each.step}: {each.outcome.replace('_', ' ')}{_why(each.reason)}" for each in report.steps]
    return "\n".join(["Compaction:", *steps, f"  Size: {size(report.bytes_before)} -> {size(report.bytes_after)}"])


def _why(reason: str | None) -> str:
    return f" ({reason.replace('_', ' ')})" if reason else ""


RENDERERS: Mapping[type[Report], Callable[[Any, Width], str]] = {
    TocRootReport: roots,
    TocNodeReport: node,
    TocBrowseReport: browse,
    TocSearchNodeReport: matches,
    TocSearchChildrenReport: found_nodes,
    EventRangeReport: events,
    EventIngestReport: ingested,
    GripExpandReport: grip,
    AdminRebuildTocReport: rebuilt,
    AdminStatsReport: stats,
    AdminCompactReport: compacted,
}
"""Report type to what renders it."""
