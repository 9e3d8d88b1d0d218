"""Long-term facts as text for people."""

from __future__ import annotations

from collections.abc import Iterable

from beetle.cli.render_lifecycle import erased
from beetle.cli.text import clip, count, neutral, pairs, when, wrap
from beetle.contracts.long_term import (
    LongTermDetailReport,
    LongTermListReport,
    LongTermMutateReport,
    LongTermRecord,
)

LINES = 4
"""Of a fact in a list."""


def long_term_list(report: LongTermListReport, width: int | None) -> str:
    """Facts, the newest first, each with its ref and whose word it is."""
    lines: list[str] = []
    for each in report.records:
        parts = [each.ref, each.kind, _state(each), each.authority, when(each.updated_at)]
        lines.append(clip(neutral("  ".join(parts)), width))
        lines.extend(_words(each, width, LINES))
    lines.append(count(report.total, "fact") if report.total else "No facts.")
    return "\n".join(lines)


def long_term_detail(report: LongTermDetailReport, width: int | None) -> str:
    """One fact: head, words, revisions, what it came from."""
    record = report.record
    entries = [
        ("Ref", record.ref),
        ("Kind", f"{record.kind} ({record.target})"),
        ("State", _state(record)),
        (
            "Authority",
            record.authority if record.confidence is None else f"{record.authority}, {record.confidence:.2f}",
        ),
        ("Created", when(record.created_at)),
        ("Updated", when(record.updated_at)),
        ("Policy", report.policy),
    ]
    if report.superseded_by is not None:
        entries.append(("Superseded by", report.superseded_by))
    entries.extend(("Supersedes", each) for each in report.supersedes)
    lines = [pairs(entries), *_words(record, width, None), "Revisions:"]
    for each in report.revisions:
        reason = f": {each.reason}" if each.reason else ""
        lines.append(clip(neutral(f"  {each.revision:>3}  {when(each.at)}  {each.action}  {each.by}{reason}"), width))
        if each.content is not None and each.revision != record.revision:
            lines.extend(wrap(each.content.rstrip("\n"), "       ", width))
    if report.derived_refs:
        lines.append("Came from:")
        lines.extend(neutral(f"  {each.relation}  {each.evidence}") for each in report.derived_refs)
    return "\n".join(lines)


def long_term_mutation(report: LongTermMutateReport, _width: int | None) -> str:
    """What became of which facts, and what an erasure still waits for."""
    would = "would be " if report.dry_run else ""
    after = "" if report.ref is None else f": {report.ref}, revision {report.revision}"
    outcome = f"{would}{report.outcome}".replace("_", " ").capitalize()
    lines = [neutral(outcome + after)]
    if report.action == "forget_by_query":
        lines.append(f"{count(report.affected, 'fact')}, {count(report.waiting, 'waiting candidate')}")
        lines.extend(neutral(f"  {each}") for each in report.refs)
        if report.hidden:
            lines.append(f"Not looked through: {count(report.hidden, 'private fact')} that you may not see.")
    if report.confirm_token is not None:
        lines.append(f"To do it: the same again without --dry-run, with --confirm={neutral(report.confirm_token)}")
    lines.extend(erased(report, "it"))
    return "\n".join(lines)


def _state(record: LongTermRecord) -> str:
    apart = "" if record.visibility == "shared" else f" [{record.visibility}]"
    return f"{record.state} (revision {record.revision}){apart}"


def _words(record: LongTermRecord, width: int | None, most: int | None) -> Iterable[str]:
    if record.content is None:
        gone = "[deleted]" if record.state == "deleted" else "[withheld]"
        yield f"    {gone if record.digest is None else f'[digest {record.digest}]'}"
        return
    topic = f"{record.topic}: " if record.topic else ""
    lines = wrap((topic + record.content).rstrip("\n"), "    ", width)
    yield from lines[:most]
    if most is not None and len(lines) > most:
        yield "    …"
    if record.keywords:
        yield clip(neutral(f"    keywords: {', '.join(record.keywords)}"), width)
