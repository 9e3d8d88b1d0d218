"""Maintenance, finalised turns and the governance report as text for people."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from beetle.cli.text import count, neutral, table, when
from beetle.contracts.common import Report
from beetle.contracts.governance import GovernanceOutcome
from beetle.contracts.maintain import GovernanceReport, MemoryFinalizeTurnReport, MemoryMaintainReport

Width = int | None

NOT_MAINTAINED = {
    "not_asked": "Not maintained: it was not asked for.",
    "not_granted": "Not maintained: this caller may not.",
}
SESSION = {
    "alias_current": "resolves to this conversation, as before",
    "alias_updated": "resolves to this conversation now",
    "alias_untrusted": "resolves to no conversation, because it is ambiguous",
}


def maintained(report: MemoryMaintainReport, width: Width) -> str:
    """What the model was shown, what became of its notes, and how far the conversation is looked through."""
    lines: list[str] = []
    if report.outcomes:
        lines.append(table([_row(each) for each in report.outcomes], ("N", "OUTCOME", "REASON", "RECORD"), width, (0,)))
    if report.turns == 0:
        lines.append("Nothing new was said since the last time.")
        return "\n".join(lines)
    shown = f"{count(report.turns, 'turn')}, {count(report.shown, 'message')} shown, {report.withheld:,} withheld"
    if not report.asked:
        lines.append(f"{shown}: the model was not asked.")
    else:
        accepted = sum(each.outcome == "accepted" for each in report.outcomes)
        dropped = f"{report.unsupported:,} that no message says, {report.refused:,} that hold a secret"
        lines.append(f"{neutral(report.model)} was asked: {shown}")
        lines.append(f"{count(report.items, 'item')}: {accepted:,} accepted; left out: {dropped}")
    more = "; more is left" if report.has_more else ""
    lines.append(f"Looked through up to turn {report.watermark:,}{more}")
    if report.job_id is not None:
        lines.append(f"A job continues with the rest: {neutral(report.job_id)}")
    return "\n".join(lines)


def _row(each: GovernanceOutcome) -> tuple[str, str, str, str]:
    return str(each.index), each.outcome, each.reason, each.ref or ""


def finalized(report: MemoryFinalizeTurnReport, width: Width) -> str:
    """What became of the turn, of the alias and of the maintenance."""
    turn = report.transcript_commit
    lines = [
        f"Turn {neutral(turn.turn_id)} {turn.outcome} as number {turn.sequence:,}",
        f"The chat id {SESSION[report.session_commit]}",
    ]
    if report.maintenance is not None:
        lines.append(maintained(report.maintenance, width))
    elif report.deferred_job_id is not None:
        reason = neutral(report.deferred_reason or "")
        lines.append(f"Maintenance is deferred ({reason}) to job {neutral(report.deferred_job_id)}")
    else:
        lines.append(NOT_MAINTAINED.get(report.maintained, "Maintained already."))
    return "\n".join(lines)


def governance(report: GovernanceReport, width: Width) -> str:
    """What waits, the jobs, the decisions and the policies."""
    parts: list[str] = []
    waiting = [
        (each.reason, f"{each.count:,}", f"{each.within_day:,}", f"{each.within_week:,}", f"{each.longer:,}",
         when(each.oldest_at))
        for each in report.deferred.waiting
    ]  # fmt: skip
    if waiting:
        parts.append(table(waiting, ("WAITING FOR", "ALL", "A DAY", "A WEEK", "LONGER", "OLDEST"), width, (1, 2, 3, 4)))
    else:
        parts.append("No candidate waits.")
    jobs = [(each.kind, each.state, each.reason or "", f"{each.count:,}") for each in report.deferred.jobs]
    if jobs:
        parts.append(table(jobs, ("JOBS", "STATE", "REASON", "COUNT"), width, (3,)))
    left = [
        (each.job_id, each.state, str(each.attempts), when(each.due_at), each.principal)
        for each in report.deferred.open_jobs
    ]
    if left:
        parts.append(table(left, ("JOB", "STATE", "ATTEMPTS", "DUE", "FOR"), width, (2,)))
    decided = [(each.outcome, each.reason, f"{each.count:,}") for each in report.decisions]
    since = when(report.since) + ("" if report.complete else ", as far as the newest events tell")
    if decided:
        parts.append(f"{table(decided, ('DECIDED', 'REASON', 'COUNT'), width, (2,))}\nsince {since}")
    else:
        parts.append(f"Nothing was decided since {since}")
    policies = ", ".join(f"{each.action} {each.kind or 'any kind'} ({each.policy_id})" for each in report.policies)
    parts.append(f"Policies: {policies or 'none'}")
    parts.append(f"Model: {neutral(report.model) if report.model else 'none is configured'}")
    return "\n\n".join(parts)


RENDERERS: Mapping[type[Report], Callable[[Any, Width], str]] = {
    MemoryMaintainReport: maintained,
    MemoryFinalizeTurnReport: finalized,
    GovernanceReport: governance,
}
