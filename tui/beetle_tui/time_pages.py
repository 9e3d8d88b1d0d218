"""What the area Time shows: columns of its lists, pages of nodes and hosts; and the dates that a person types."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, timedelta
from itertools import pairwise
from typing import Any, NamedTuple

from beetle.contracts.capture import HostCoverage, HostCoverageReport, IncompleteSession, IndexRange
from beetle.contracts.codec import UNSET, format_us
from beetle.contracts.events import EventRecord
from beetle.contracts.refs import format_ref
from beetle.contracts.toc import TOC_LEVELS, GripExpandReport, TocLevel, TocNode
from beetle_tui.prose import Block, plain, section
from beetle_tui.split import remark, value
from beetle_tui.table import Column, Listing, Table
from beetle_tui.text import count, moment
from beetle_tui.turns import EXCERPT, read_time

HIDDEN = "(not shown in this view)"
RANGES = 8
"""Ranges of missing turns that are shown of a session."""
NO_BULLET = (
    "No bullet: nothing here may be shown, or the jobs that choose bullets have not run since. "
    "They are in Memory, part Jobs."
)
NO_DATE = "That is not a date: type it as 2026-03-02, 2026-W10, 2026-03 or 2026."
YEAR, MONTH, WEEK = (re.compile(text) for text in (r"\d{4}", r"\d{4}-\d\d", r"\d{4}-W\d\d"))


class Aim(NamedTuple):
    """A period that somebody wants to see: a day in it, and the ids of the nodes that lead there, from the year on."""

    day: date
    path: tuple[str, ...]


class Bullet(NamedTuple):
    """Where the line of a bullet leads to: its grip."""

    grip_id: str


def aim_of(text: str) -> Aim | None:
    """The period that a text names: a day, with a time or without, a week, a month or a year; None when it is none."""
    text = text.strip()
    try:
        if YEAR.fullmatch(text):
            return aim_at(date(int(text), 7, 1), "year")
        if MONTH.fullmatch(text):
            return aim_at(date.fromisoformat(f"{text}-15"), "month")
        if WEEK.fullmatch(text):
            return aim_at(date.fromisoformat(f"{text}-4"), "week")
        at = read_time(text)
        return None if at is None else aim_at(at.astimezone(UTC).date(), "day")
    except (ValueError, OverflowError):
        return None


def aim_at(day: date, level: TocLevel) -> Aim:
    """The ids of the periods of a day down to a level. A week is of the month, and the year, of its Thursday."""
    iso = day.isocalendar()
    thursday = day + timedelta(days=4 - iso.weekday)
    ids = (
        f"toc:year:{thursday.year:04}",
        f"toc:month:{thursday.year:04}-{thursday.month:02}",
        f"toc:week:{iso.year:04}-W{iso.week:02}",
        f"toc:day:{day.isoformat()}",
    )
    return Aim(day, ids[: TOC_LEVELS.index(level) + 1])


def no_date(text: str) -> str | None:
    """What is wrong with a date as it was typed."""
    return NO_DATE if aim_of(text) is None else None


def _moment(ms: int) -> str:
    return moment(format_us(ms * 1000))


def _clock(node: TocNode) -> str:
    return f"{_moment(node.start_time_ms)[11:16]}-{_moment(node.end_time_ms)[11:16]}"


def _keywords(node: TocNode) -> str:
    return HIDDEN if node.keywords is None else ", ".join(node.keywords)


def _below(node: TocNode) -> str:
    return f"{len(node.child_node_ids):,}{'+' if node.has_more_children else ''}"


def _session(node: TocNode) -> str:
    where = node.conversation
    return "" if where is None else f"{where.channel_id}/{where.conversation_id}"


def _share(of_one: float) -> str:
    """A share in percent; only all of it is 100."""
    return "100 %" if of_one >= 1 else f"{min(of_one * 100, 99.9):.1f} %"


SEGMENT_COLUMNS: tuple[Column[TocNode], ...] = (
    Column("Time (UTC)", _clock, 11),
    Column("About", lambda each: each.title or HIDDEN),
    Column("Session", _session, 24, narrow=70),
)
HOST_COLUMNS: tuple[Column[HostCoverage], ...] = (
    Column("Host", lambda each: each.host_kind),
    Column("Sessions", lambda each: f"{each.sessions:,}", 8, right=True, narrow=64),
    Column("Turns", lambda each: f"{each.turns:,}", 9, right=True),
    Column("Gaps", lambda each: f"{each.gaps:,}", 7, right=True),
    Column("Complete", lambda each: _share(each.coverage), 8, right=True),
    Column("Signed", lambda each: _share(each.signed_share), 8, right=True, narrow=56),
    Column("Last", lambda each: each.last_at[:10], 10, narrow=76),
)


def _period_columns(level: TocLevel, below: TocLevel) -> tuple[Column[TocNode], ...]:
    return (
        Column(level.capitalize(), lambda each: each.title or each.node_id, 18),
        Column(f"{below.capitalize()}s", _below, 8, right=True, narrow=50),
        Column("Keywords", _keywords),
    )


def listings() -> tuple[Listing[Any], ...]:
    """A list for each level of the contents, in their order, and one of hosts."""

    def key(node: TocNode) -> str:
        return node.node_id

    columns = [*(_period_columns(level, below) for level, below in pairwise(TOC_LEVELS)), SEGMENT_COLUMNS]
    made: list[Listing[Any]] = []
    for level, each in zip(TOC_LEVELS, columns, strict=True):
        table: Table[Any] = Table(each, id=f"time-{level}s", key=key)
        made.append(Listing(table, noun=(level, f"{level}s"), empty=f"No {level}"))
    hosts = Table(HOST_COLUMNS, id="time-hosts", key=lambda each: each.host_kind)
    return (*made, Listing(hosts, noun=("host", "hosts"), empty="No host"))


def node_page(node: TocNode, sources: Mapping[str, GripExpandReport]) -> Iterator[Block]:
    """A node whole: its bullets, behind some of them the events that they rest on, by grip, and what is known of it."""
    if not node.bullets:
        yield from remark(NO_BULLET)
    for bullet in node.bullets:
        grips = bullet.grip_ids
        yield plain(bullet.text or HIDDEN, "- ", target=Bullet(grips[0]) if grips else None)
        for grip in grips:
            if grip in sources:
                yield from _source(sources[grip])
    yield from section("About it")
    yield value("Keywords", _keywords(node) or "none")
    if node.conversation is not None:
        yield value("Session", _session(node))
    yield value("From", _moment(node.start_time_ms))
    yield value("To", _moment(node.end_time_ms))
    yield value("Id", node.node_id)
    yield value("Version", str(node.version))
    if node.level != TOC_LEVELS[-1]:
        below = count(len(node.child_node_ids), TOC_LEVELS[TOC_LEVELS.index(node.level) + 1])
        yield value("Holds", f"more than {below}" if node.has_more_children else below)


def _source(found: GripExpandReport) -> Iterator[Block]:
    for mark, events in (
        ("    ", found.events_before),
        ("  > ", found.excerpt_events),
        ("    ", found.events_after),
    ):
        for each in events:
            yield plain(f"{_moment(each.timestamp_ms)[:16]} {each.role}: {_said(each)}", mark, target=each.ref)


def _said(event: EventRecord) -> str:
    if event.text is None:
        return f"[{'withheld' if event.redacted is UNSET else event.redacted.reason}]"
    return " ".join(event.text[:EXCERPT].split())


def host_page(host: HostCoverage, report: HostCoverageReport) -> Iterator[Block]:
    """What a host has captured, and what is missing of it."""
    yield value("Turns", f"{host.turns:,} in {count(host.sessions, 'session')}")
    missing = "no gap" if not host.gaps else f"{count(host.gaps, 'turn')} between them never came"
    yield value("Complete", f"{_share(host.coverage)}: {missing}")
    yield value("Signed", f"{_share(host.signed_share)}: {host.signed:,} by a key, {host.self_signed:,} without one")
    yield value("Repeated", f"{count(host.duplicates, 'delivery', 'deliveries')}, "
                            f"{host.content_mismatches:,} of them with another content")  # fmt: skip
    yield value("Roles", ", ".join(f"{role} {number:,}" for role, number in host.roles.items()))
    yield value("Agents", ", ".join(host.agents))
    yield value("First", moment(host.first_at))
    yield value("Last", moment(host.last_at))
    yield from section("Versions")
    for each in host.versions:
        yield value(each.host_version or "(none)", f"{count(each.turns, 'turn')}, {each.signed:,} signed, "
                    f"{each.duplicates:,} repeated, {each.first_at[:10]} to {each.last_at[:10]}")  # fmt: skip
    yield from _gaps([each for each in report.incomplete if each.host_kind == host.host_kind], report.has_more)


def _gaps(sessions: Iterable[IncompleteSession], more: bool) -> Iterator[Block]:
    """The sessions of a host that lack turns; enter goes to the last turn of one."""
    yield from section("Sessions with gaps")
    found = list(sessions)
    for each in found:
        ranges = ", ".join(map(_range, each.missing[:RANGES]))
        rest = ", …" if len(each.missing) > RANGES else ""
        last = format_ref("evidence", each.host_kind, each.host_session_id, f"turn-{each.last_index}")
        told = f"{each.host_session_id}: {each.gaps:,} of {each.last_index + 1:,} missing: {ranges}{rest}"
        yield plain(told, "- ", target=last)
    if more:
        yield from remark("The sessions with the most gaps are listed; there are more of them.")
    elif not found:
        yield from remark("None: no turn is missing.")


def _range(missing: IndexRange) -> str:
    return str(missing.first) if missing.first == missing.last else f"{missing.first}-{missing.last}"
