"""What was judged, and the policies, as text for people."""

from __future__ import annotations

from beetle.cli.text import count, neutral, table, when
from beetle.contracts.governance import GovernanceOutcome, LongTermPolicyReport, PolicyView
from beetle.contracts.memory import MemoryWriteReport
from beetle.contracts.remembering import REASONS, MemoryRememberReport


def outcomes(report: MemoryWriteReport, width: int | None) -> str:
    """What became of each candidate, and how many were accepted."""
    rows = [
        (str(each.index), each.candidate_id or "", each.outcome, each.reason, _where(each)) for each in report.outcomes
    ]
    accepted = f"{report.accepted} accepted"
    if not rows:
        return accepted
    return f"{table(rows, ('N', 'CANDIDATE', 'OUTCOME', 'REASON', 'RECORD'), width, numbers=(0,))}\n{accepted}"


def _where(each: GovernanceOutcome) -> str:
    return each.ref or each.record_id or ""


def remembered(report: MemoryRememberReport, width: int | None) -> str:
    """One line: what became of the fact, and why."""
    why = f"{REASONS[report.reason]} ({report.reason})"
    if report.outcome == "accepted":
        said = "Known already" if report.reason == "unchanged" else "Remembered"
        instead = f", in place of {neutral(report.superseded_ref)}" if report.superseded_ref else ""
        return f"{said}: {neutral(report.ref or report.evidence_ref)}{instead}"
    if report.outcome == "waiting":
        name = f" as {neutral(report.waiting_id)}" if report.waiting_id else ""
        return f"Waiting{name}: {why}. Recall finds the words."
    return f"Not remembered: {why}. Recall finds the words."


def policy(report: LongTermPolicyReport, width: int | None) -> str:
    """The policies that hold, and what the request did."""
    lines: list[str] = []
    if report.policies:
        rows = [(each.action, _over(each), each.by, when(each.at), each.reason or "") for each in report.policies]
        lines.append(table(rows, ("POLICY", "OVER", "BY", "SINCE", "REASON"), width))
    else:
        lines.append("No policies: whatever the rules accept is remembered.")
    if report.rejudged:
        lines.append(f"{count(report.rejudged, 'waiting candidate')} judged again")
    if report.receipt:
        lines.append(f"Receipt: {neutral(report.receipt)}")
    return "\n".join(lines)


def _over(each: PolicyView) -> str:
    named = (("kind", each.kind), ("topic", each.topic), ("chat", each.chat_id))
    return ", ".join(f"{name} {value}" for name, value in named if value is not None) or "everything"
