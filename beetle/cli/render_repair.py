"""store.repair, transcript.repair and transcript.repair_safe as text for people."""

from __future__ import annotations

from beetle.cli.text import count, neutral, table
from beetle.contracts.repairing import StoreRepairReport
from beetle.contracts.transcript_repair import (
    MemoryTranscriptRepairReport,
    MemoryTranscriptRepairSafeReport,
    TranscriptRepairIssue,
)

Width = int | None
PAGES_SHOWN = 20


def repair(report: MemoryTranscriptRepairReport, width: Width) -> str:
    """Issues with their ids, and how many there are of each kind."""
    if report.clean:
        return "Nothing is broken."
    rows = [(*_issue(each), "safe" if each.repairable else "") for each in report.issues]
    counts = ", ".join(f"{neutral(kind)} {number:,}" for kind, number in report.counts.items() if number)
    lines = [table(rows, ("KIND", "PROBLEM", "RECORD", "MEND"), width), f"All together: {counts}"]
    if report.repairable:
        lines.append(f"To repair without losing data ({report.repairable:,}): beetle transcript repair-safe")
    return "\n".join(lines)


def repair_safe(report: MemoryTranscriptRepairSafeReport, width: Width) -> str:
    """What was done about which issue, and what is left."""
    rows = [(neutral(each.outcome), *_issue(each.issue)) for each in report.mended]
    lines = [table(rows, ("DONE", "KIND", "PROBLEM", "RECORD"), width)] if rows else []
    verb = "would be repaired" if report.dry_run else "repaired"
    lines.append(f"{count(len(rows), 'issue')} {verb}." if rows else "Nothing to repair.")
    left = ", ".join(f"{neutral(kind)} {number:,}" for kind, number in report.left.items() if number)
    if left:
        lines.append(f"Left: {left}")
    if report.receipt:
        lines.append(f"Receipt: {neutral(report.receipt)}")
    return "\n".join(lines)


def salvaged(report: StoreRepairReport, width: Width) -> str:
    """What was saved and what is gone, table by table; then what a verification still names."""
    verb = "can be saved" if report.dry_run else "saved"
    lines = [f"{count(report.saved, 'row')} {verb} of {count(report.pages, 'page')}."]
    if report.tables:
        rows = [
            (each.table, f"{each.saved:,}", f"{each.lost:,}", "and perhaps more" if each.incomplete else "")
            for each in report.tables
        ]
        lines += ["", table(rows, ("TABLE", "SAVED", "GONE", ""), width, numbers=(1, 2)), ""]
    if report.damaged_pages:
        shown = ", ".join(f"{page:,}" for page in report.damaged_pages[:PAGES_SHOWN])
        lines.append(f"Damaged pages: {shown}{', …' if len(report.damaged_pages) > PAGES_SHOWN else ''}")
    if report.unclear_pages:
        lines.append(f"{count(report.unclear_pages, 'page')} of rows whose table nobody can tell: they are gone.")
    lines += [f"{each[:1].upper()}{each[1:]}." for each in report.notes]
    lines += [f"{each.check}: {neutral(each.subject)}: {neutral(each.problem)}" for each in report.findings]
    lines.append("Every row of every table was read." if report.whole else "Some rows are gone.")
    if report.kept_as:
        lines.append(f"The damaged file is kept: {neutral(report.kept_as)}")
    if report.clean:
        lines.append("The new store verifies clean.")
    elif report.clean is not None:
        lines.append("The new store works; what is named above stays gone. `beetle verify` goes on naming it.")
    return "\n".join(lines)


def _issue(issue: TranscriptRepairIssue) -> tuple[str, str, str]:
    where = issue.conversation
    place = None if where is None else f"{neutral(where.channel_id)}/{neutral(where.conversation_id)}"
    record = " → ".join(neutral(each) for each in (issue.derived, issue.ref) if each is not None)
    return issue.kind, issue.problem, record or place or "-"
