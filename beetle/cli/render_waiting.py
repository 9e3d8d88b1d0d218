"""What waits, and decisions over it, as text for people."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from beetle.cli.render_lifecycle import erased
from beetle.cli.text import clip, count, neutral, table, when, wrap
from beetle.contracts.common import Report
from beetle.contracts.private import PrivateDeleteReport
from beetle.contracts.waiting import (
    GovernanceDecideReport,
    GovernanceListReport,
    WaitingCandidate,
    WaitingJob,
)

LINES = 4
"""Of a candidate in a list."""
Width = int | None


def waiting(report: GovernanceListReport, width: Width) -> str:
    """Candidates with their words, evidence and reason, then the jobs."""
    lines: list[str] = []
    for each in report.candidates:
        lines.extend(_candidate(each, width))
    for job in report.jobs:
        lines.extend(_job(job, width))
    lines.append(f"{report.total:,} in all" if report.total else "Nothing waits.")
    return "\n".join(lines)


def _candidate(each: WaitingCandidate, width: Width) -> Iterable[str]:
    apart = "" if each.level == "shared" else f" [{each.level}]"
    head = (each.waiting_id, f"{each.target}{apart}", each.reason, each.authority, f"by {each.by}", when(each.since))
    yield clip(neutral("  ".join(head)), width)
    if each.content is None:
        yield "    [withheld]"
    else:
        topic = f"{each.topic}: " if each.topic else ""
        said = wrap((topic + each.content).rstrip("\n"), "    ", width)
        yield from said[:LINES]
        if len(said) > LINES:
            yield "    …"
    shown = {message.ref: message.excerpt for message in each.messages}
    for ref in each.evidence_refs:
        excerpt = shown.get(ref)
        told = "" if ref in shown and excerpt is None else " (not there)" if excerpt is None else f": {excerpt}"
        yield clip(neutral(f"    cites {ref}{told}"), width)


def _job(each: WaitingJob, width: Width) -> Iterable[str]:
    where = (
        "-"
        if each.conversation is None
        else "/".join((each.conversation.channel_id, each.conversation.conversation_id))
    )
    error = f": {each.error}" if each.error else ""
    due = "" if each.due_at is None else f", due {when(each.due_at)}"
    yield clip(neutral(f"{each.job_id}  {each.kind}  {each.state}{error}  {where}"), width)
    yield clip(
        neutral(f"    {count(each.attempts, 'attempt')}, since {when(each.updated_at)}{due}, by {each.by}"), width
    )


def decided(report: GovernanceDecideReport, width: Width) -> str:
    """What became of each, and what an erasure still waits for."""
    rows = [
        (each.id, each.outcome, each.reason or "-", each.ref or each.record_id or "-", each.superseded_ref or "-")
        for each in report.outcomes
    ]
    would = "would be " if report.dry_run else ""
    lines = [table(rows, ("ID", "OUTCOME", "REASON", "RECORD", "IN PLACE OF"), width)]
    lines.append(f"{report.decided:,} {would}decided")
    lines.extend(erased(report, "what left the queue"))
    return "\n".join(lines)


def private_deleted(report: PrivateDeleteReport, _width: Width) -> str:
    """What went, and what an erasure still waits for."""
    would = "Would delete" if report.dry_run else "Deleted"
    beside = f", with {count(report.waiting, 'waiting candidate')}" if report.waiting else ""
    return "\n".join((neutral(f"{would} {report.record_id} ({report.plane}){beside}"), *erased(report, "it")))


RENDERERS: Mapping[type[Report], Callable[[Any, Width], str]] = {
    GovernanceListReport: waiting,
    GovernanceDecideReport: decided,
    PrivateDeleteReport: private_deleted,
}
