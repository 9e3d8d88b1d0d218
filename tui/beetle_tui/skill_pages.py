"""What the console shows of one skill: reports as pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from textual.content import Content

from beetle.contracts.agent_skills import FINDINGS, AgentSkillFinding, AgentSkillMount, AgentSkillSummary
from beetle.contracts.errors import BeetleError
from beetle.contracts.skills import (
    RuntimeSkillDetailReport,
    RuntimeSkillSummary,
    SkillCitation,
    SkillRevision,
)
from beetle_tui.diff import DiffStep
from beetle_tui.prose import BLANK, Block, fact, plain, prose, section
from beetle_tui.text import count, moment, neutral

WITHHELD = "[withheld]"
SHORT_HASH = 16
SHORT_DATE = len("2026-03-02")


class Revised(NamedTuple):
    """A line leads to what a revision changed."""

    revision: int


def state_of(skill: RuntimeSkillSummary | RuntimeSkillDetailReport) -> str:
    """In a word."""
    return "retired" if skill.retired else "on" if skill.enabled else "off"


def skill_page(report: RuntimeSkillDetailReport) -> Iterator[Block]:
    """All of a runtime skill."""
    yield Block(Content.styled(neutral(report.title or WITHHELD), "bold"))
    about = f"{report.topic or WITHHELD}; {state_of(report)}, revision {report.revision} of {moment(report.updated_at)}"
    yield Block(Content.styled(neutral(about), "$label"))
    yield from _text(report.summary)
    yield from section("Procedure")
    yield from _text(report.procedure)
    yield from section(f"Citations ({len(report.citations)})")
    yield from _citations(report.citations)
    if report.derived_refs:
        yield from section(f"Learned from ({len(report.derived_refs)})")
    for each in report.derived_refs:
        revision = each.derived.rpartition("/")[2]
        yield plain(each.evidence, f"r{revision} {each.relation} ", target=each.evidence)
    yield from section(f"Revisions ({len(report.lineage)})")
    yield from (_revision(each) for each in reversed(report.lineage))
    yield from section("Record")
    yield fact("Name", report.name)
    yield fact("Ref", report.ref)
    yield fact("State", _state(report))
    yield fact("Created", moment(report.created_at))


def _state(report: RuntimeSkillDetailReport) -> str:
    if report.retired:
        return "retired: governance has taken it out of use"
    return "on: recall and projection use it" if report.enabled else "off: recall and projection pass it over"


def _text(text: str | None) -> list[Block]:
    return [plain(WITHHELD)] if text is None else prose(text.strip("\n"))


def _citations(citations: Sequence[SkillCitation]) -> Iterator[Block]:
    if not citations:
        yield plain("None: this revision names no evidence.")
    for each in citations:
        text = WITHHELD if each.text is None else each.text
        if each.ref is None:
            yield plain(text, "- ")
        elif each.resolves is False:
            yield plain(f"{text} (no such record here)", "- ", target=each.ref)
        else:
            yield plain(text, "> ", target=each.ref)


def _revision(each: SkillRevision) -> Block:
    reason = f": {each.edit_reason}" if each.edit_reason else ""
    chat = f", chat {each.source_chat_id}" if each.source_chat_id else ""
    text = f"{moment(each.at)} {each.source}{reason}{chat}"
    return plain(text, f"{'> ' if each.revision > 1 else '- '}{each.revision:>3} ", target=Revised(each.revision))


def steps(report: RuntimeSkillDetailReport) -> list[DiffStep]:
    """What each revision changed, the first change first."""
    known = {each.revision: each for each in report.lineage}
    return [
        _step(report.name, known[each.to_revision], each.from_revision, each.diff) for each in report.strategy_diffs
    ]


def _step(name: str, made: SkillRevision, before: int, diff: str | None) -> DiffStep:
    notes = [f"{moment(made.at)}, by {made.source}"]
    if made.edit_reason:
        notes.append(f"Why: {made.edit_reason}")
    if made.source_chat_id:
        notes.append(f"Chat: {made.source_chat_id}")
    return DiffStep(f"{name}: revision {before} to {made.revision}", tuple(notes), diff)


def deletion_lines(report: RuntimeSkillDetailReport) -> list[str]:
    """What goes with a skill, and what stays."""
    return [
        report.title or WITHHELD,
        "",
        "What goes:",
        f"- {count(len(report.lineage), 'revision')}, with all of their text",
        f"- {count(len(report.derived_refs), 'ref')} to evidence",
        "- its place in recall, and proposals about it that are open",
        "What stays:",
        "- the evidence, and that it was deleted (in the event log)",
        "- a signed receipt, which proves it without the content",
        "",
        "This cannot be undone.",
    ]


def agent_page(
    skill: AgentSkillSummary, findings: Sequence[AgentSkillFinding], mounts: Sequence[AgentSkillMount]
) -> Iterator[Block]:
    """All that is known of an Agent Skill, and of the folder that it stands in."""
    yield Block(Content.styled(neutral(skill.name), "bold"))
    yield fact("Ref", skill.ref)
    yield fact("Mount", _mount(skill.mount, mounts))
    yield fact("Files", f"{count(skill.resources, 'file')} beside SKILL.md")
    if skill.fingerprint is None:
        yield fact("Content", "not every file could be read; see the findings")
    else:
        told = {None: "", False: "; as in the scan before", True: "; changed since the scan before"}[skill.changed]
        yield fact("Content", f"fingerprint {skill.fingerprint[:SHORT_HASH]}{told}")
    yield BLANK
    yield from prose(skill.description or WITHHELD)
    yield BLANK
    yield plain("The host mounts it; beetle reads it and never changes it.")
    yield from mounts_page(findings, mounts)


def mounts_page(findings: Sequence[AgentSkillFinding], mounts: Sequence[AgentSkillMount]) -> Iterator[Block]:
    """The mounted folders, and what is wrong in them."""
    yield from section(f"Findings ({len(findings)})")
    if not findings:
        yield plain("None.")
    for each in findings:
        place = f"{each.mount}/{each.path}" if each.path else each.mount
        yield plain(f"{place}: {FINDINGS.get(each.kind, each.kind)}", "! ")
    if mounts:
        yield from section(f"Mounted folders ({len(mounts)})")
        yield from (plain(f"{_mount(each.mount, mounts)}: {count(each.skills, 'skill')}") for each in mounts)


def _mount(name: str, mounts: Sequence[AgentSkillMount]) -> str:
    path = next((each.path for each in mounts if each.mount == name), None)
    return name if path is None else f"{name} at {path}"


def error_page(error: BeetleError) -> Iterator[Block]:
    """Why there is nothing to be seen."""
    yield plain(f"{error.key}: {error.message}", "! ")
    if error.hint:
        yield plain(f"Hint: {error.hint}")
