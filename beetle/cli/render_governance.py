"""What was judged, and the policies, as text for people."""

from __future__ import annotations

from beetle.cli.text import count, neutral, table, when
from beetle.contracts.governance import GovernanceOutcome, LongTermPolicyReport, PolicyView
from beetle.contracts.memory import MemoryWriteReport


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
