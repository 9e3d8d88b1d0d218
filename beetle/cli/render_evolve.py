"""Proposals and the harness as text for people."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from beetle.cli.text import clip, count, neutral, pairs, table, when
from beetle.contracts.common import Report
from beetle.contracts.evolve import (
    EvolveListReport,
    EvolvePreviewReport,
    EvolveProposeReport,
    EvolveSubmitReport,
    ProposalVerdict,
)
from beetle.contracts.harness import HarnessRunReport

FAILURES_SHOWN = 20
"""Of each list; --json tells all."""


def proposed(report: EvolveProposeReport, width: int | None) -> str:
    """What was taken."""
    rows = [
        (each.proposal_id, each.kind, each.target or "-", _number(each.base_revision), each.outcome)
        for each in report.proposals
    ]
    text = table(rows, ("PROPOSAL", "KIND", "TARGET", "REVISION", "OUTCOME"), width)
    return f"{text}\n{count(report.expired, 'old proposal')} dropped" if report.expired else text


def proposals(report: EvolveListReport, width: int | None) -> str:
    """The newest first, each with why."""
    lines: list[str] = []
    for each in report.proposals:
        head = [each.proposal_id, each.kind, each.target or "-", each.outcome or each.state, each.by]
        lines.append(clip(neutral("  ".join((*head, when(each.created_at)))), width))
        if each.rationale:
            lines.append(clip(neutral(f"    {each.rationale}"), width))
    lines.append(count(report.total, "proposal") if report.total else "No proposals.")
    return "\n".join(lines)


def preview(report: EvolvePreviewReport, width: int | None) -> str:
    """Head, what the rules say, and the diffs."""
    each = report.proposal
    entries = [
        ("Proposal", each.proposal_id),
        ("Kind", each.kind),
        ("Target", each.target or "-"),
        ("State", each.state if each.outcome is None else f"{each.state}: {each.outcome}"),
        ("By", f"{each.by}, {when(each.created_at)}"),
        ("Made for", f"revision {each.base_revision}" if each.base_revision is not None else "-"),
        ("Submitting", _verdict(report.verdict)),
    ]
    if report.moved:
        entries.append(("Moved", f"the target is at revision {_number(report.current_revision)} now"))
    if each.rationale:
        entries.append(("Why", each.rationale))
    entries.extend(("Evidence", ref) for ref in report.evidence_refs)
    lines = [pairs(entries)]
    for one in report.diffs:
        lines.append(f"{one.field}:")
        lines.extend(clip(neutral(f"  {line}"), width) for line in (one.diff or "[withheld]").split("\n"))
    return "\n".join(lines)


def _verdict(verdict: ProposalVerdict | None) -> str:
    if verdict is None:
        return "it is closed"
    beside = f", in the place of {verdict.superseded_ref}" if verdict.superseded_ref else ""
    return f"{verdict.outcome} ({verdict.reason}{beside})"


def submitted(report: EvolveSubmitReport, width: int | None) -> str:
    """What became of each."""
    rows = [
        (each.proposal_id, each.kind, each.state, each.outcome, each.ref or "-", _number(each.revision))
        for each in report.outcomes
    ]
    return table(rows, ("PROPOSAL", "KIND", "STATE", "OUTCOME", "REF", "REVISION"), width)


def _number(value: int | None) -> str:
    return "-" if value is None else str(value)


def harness(report: HarnessRunReport, width: int | None) -> str:
    """Gate by gate, and what did not hold."""
    lines = [_gate(gate.name, gate.passed, gate.reason) for gate in report.gates]
    if report.subjects:
        rows = [(each.subject, str(each.runs), str(each.passed)) for each in report.subjects]
        lines.append(table(rows, ("SUBJECT", "RUNS", "PASSED"), width, numbers=(1, 2)))
    if report.benchmarks:
        measured = [
            (each.name, each.backend, f"{each.hit_at_1:.2f}", f"{each.hit_at_5:.2f}", f"{each.mrr:.2f}",
             f"{each.raw_mrr:.2f}", f"{each.ratio:.1f}")
            for each in report.benchmarks
        ]  # fmt: skip
        head = ("BENCHMARK", "BACKEND", "HIT@1", "HIT@5", "MRR", "PLAIN MRR", "RATIO")
        lines.append(table(measured, head, width, numbers=(2, 3, 4, 5, 6)))
    lines.extend(clip(neutral(each), width) for each in _failures(report))
    lines.append("Every gate passed." if report.passed else "Not every gate passed.")
    return "\n".join(lines)


def _gate(name: str, passed: bool, reason: str | None) -> str:
    return neutral(f"{'passed' if passed else 'FAILED'}  {name}" + (f": {reason}" if reason else ""))


def _failures(report: HarnessRunReport) -> Iterable[str]:
    failures = [(run, each) for run in report.fixtures for each in run.failures]
    for run, each in failures[:FAILURES_SHOWN]:
        yield f"{run.name} on {run.backend}, {each.op} at {each.path}:"
        yield f"    expected {each.expected}"
        yield f"    found    {each.found}"
    differences = [(replay, each) for replay in report.replays for each in replay.differences]
    for replay, each in differences[:FAILURES_SHOWN]:
        step = "the state fingerprint" if each.step is None else f"step {each.step}, {each.path}"
        yield f"{replay.name} on {each.backend}, {step}: {each.found} instead of {each.expected}"
    left = max(0, len(failures) - FAILURES_SHOWN) + max(0, len(differences) - FAILURES_SHOWN)
    if left:
        yield f"and {left} more; --json tells all"


RENDERERS: Mapping[type[Report], Callable[[Any, int | None], str]] = {
    EvolveProposeReport: proposed,
    EvolveListReport: proposals,
    EvolvePreviewReport: preview,
    EvolveSubmitReport: submitted,
    HarnessRunReport: harness,
}
