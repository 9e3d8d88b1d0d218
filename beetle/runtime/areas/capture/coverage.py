"""host.coverage: what hosts have captured, and what is missing of it."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import groupby
from operator import itemgetter

from beetle.contracts.capture import (
    HostCoverage,
    HostCoverageReport,
    HostCoverageRequest,
    HostVersionCoverage,
    IncompleteSession,
    IndexRange,
)
from beetle.contracts.codec import format_us
from beetle.runtime.pipeline.handlers import Handler, Read
from beetle.runtime.pipeline.invocation import Invocation
from beetle.store import captures, evidence
from beetle.store.captures import Session
from beetle.store.engine.transaction import Reading, Row

MOST = 2**63 - 1
"""The largest number that is told: one session's highest index may be that already."""
RANGES = 16
AGENTS = 64
SIGNED = "signed_by_peer"


def coverage(invocation: Invocation, request: HostCoverageRequest, tx: Reading) -> HostCoverageReport:
    """Counted from the captured turns; a session counts for the host of its lowest turn."""
    space = evidence.find_space(tx, invocation.space_id)
    if space is None:
        return HostCoverageReport(hosts=(), incomplete=())
    counted: Counter[str] = Counter()
    gaps: Counter[str] = Counter()
    worst: list[tuple[int, str, Session]] = []
    more = False
    for each in captures.sessions(tx, space, request.host_session_id):
        if request.host_kind not in (None, each.host_kind):
            continue
        counted[each.host_kind] += 1
        gaps[each.host_kind] += each.gaps
        if each.gaps:
            heapq.heappush(worst, (each.gaps, each.host_session_id, each))
            if len(worst) > request.limit:
                heapq.heappop(worst)
                more = True
    rows = sorted(captures.groups(tx, space, request.host_kind, request.host_session_id), key=itemgetter(0))
    hosts = tuple(_host(kind, list(group), counted[kind], gaps[kind]) for kind, group in groupby(rows, itemgetter(0)))
    incomplete = tuple(_incomplete(tx, space, each) for *_, each in sorted(worst, key=lambda w: (-w[0], w[1])))
    return HostCoverageReport(hosts=hosts, incomplete=incomplete, has_more=more)


def _host(kind: str, rows: list[Row], sessions: int, gaps: int) -> HostCoverage:
    turns, signed = _turns(rows), _turns(row for row in rows if row[4] == SIGNED)
    roles: Counter[str] = Counter()
    for row in rows:
        roles[row[2]] += row[5]
    by_version = sorted(rows, key=lambda row: row[1] or "")
    return HostCoverage(
        host_kind=kind,
        sessions=sessions,
        turns=turns,
        gaps=min(gaps, MOST),
        coverage=round(turns / (turns + gaps), 6),
        signed=signed,
        self_signed=turns - signed,
        signed_share=round(signed / turns, 6),
        duplicates=sum(row[6] for row in rows),
        content_mismatches=sum(row[7] for row in rows),
        roles=dict(sorted(roles.items())),
        agents=tuple(sorted({row[3] for row in rows})[:AGENTS]),
        first_at=format_us(min(row[8] for row in rows)),
        last_at=format_us(max(row[9] for row in rows)),
        versions=tuple(_version(name, list(group)) for name, group in groupby(by_version, itemgetter(1))),
    )


def _version(name: str | None, rows: list[Row]) -> HostVersionCoverage:
    return HostVersionCoverage(
        host_version=name,
        turns=_turns(rows),
        signed=_turns(row for row in rows if row[4] == SIGNED),
        duplicates=sum(row[6] for row in rows),
        first_at=format_us(min(row[8] for row in rows)),
        last_at=format_us(max(row[9] for row in rows)),
    )


def _turns(rows: Iterable[Row]) -> int:
    return sum(row[5] for row in rows)


def _incomplete(tx: Reading, space: int, session: Session) -> IncompleteSession:
    return IncompleteSession(
        host_session_id=session.host_session_id,
        host_kind=session.host_kind,
        turns=session.turns,
        last_index=session.last_index,
        gaps=session.gaps,
        missing=tuple(
            IndexRange(first=first, last=last)
            for first, last in captures.missing(tx, space, session.host_session_id, RANGES)
        ),
    )


HANDLERS: Mapping[str, Handler] = {"host.coverage": Read(coverage)}
