"""Agent Skills in recall, projection and inspection: by their summaries alone."""

from __future__ import annotations

from typing import Any

from beetle.contracts.memory import AgentSkillReport, RecallHit
from beetle.contracts.refs import format_ref
from beetle.memory.lexical import ParsedQuery
from beetle.memory.ranking import WORD_FLOOR, Candidate, Ranked, excerpt
from beetle.runtime.handling import Context
from beetle.runtime.skill_folder import SkillFolder

PLANE = "agent_skill"
MOST = 32
"""Skills that a query is ranked with: of a large collection most share some word with it."""


def mounted(context: Context) -> bool:
    """Whether the host has mounted any folder, and the profile lets them be seen."""
    return bool(context.shared.agent_skills.mounts) and context.shared.catalog.hidden(PLANE) is None


def admitted(context: Context, request: Any) -> bool:
    """Whether the runtime's mode and the one that a request asks for let skills in: the safe one keeps to the store."""
    return context.shared.lifecycle.mode_for(request) != "safe"


def candidates(
    context: Context, query: str, parsed: ParsedQuery, best: float
) -> tuple[list[Candidate], dict[str, SkillFolder]]:
    """Skills whose summary shares a word with the query, and each by its candidate's id.

    They are in no index, so their score is put on the index's scale: one that holds every word of the query counts as
    much as the best index hit, whose BM25 is `best`.
    """
    scan = context.shared.agent_skills.present()
    scale = max(best, WORD_FLOOR * len(parsed.terms))
    found: dict[str, SkillFolder] = {}
    made: list[Candidate] = []
    fitting = sorted(scan.words.match(query), key=lambda each: -each[1])
    for place, relevance in fitting[:MOST]:
        skill = scan.skills[place]
        ref = format_ref(PLANE, skill.mount, skill.name)
        found[ref] = skill
        made.append(
            Candidate(
                plane=PLANE,
                source_id=ref,
                text=f"{skill.name}\n{skill.description}",
                at_us=0,
                bm25=relevance * scale,
                title=skill.name,
                dated=False,
            )
        )
    return made, found


def hit(ranked: Ranked, skill: SkillFolder, parsed: ParsedQuery) -> RecallHit:
    """A skill among the hits: its summary, and nothing of its files."""
    return RecallHit(
        plane=PLANE,
        ref=ranked.candidate.source_id,
        score=round(ranked.score, 4),
        excerpt=excerpt(skill.description, parsed),
        why=ranked.why,
        title=skill.name,
    )


def summary(context: Context, ref: str) -> str | None:
    """The line that stands for a skill in a projection, whole; None when it is gone."""
    for skill in context.shared.agent_skills.present().skills:
        if format_ref(PLANE, skill.mount, skill.name) == ref:
            return f"{skill.name}: {skill.description}"
    return None


def report(context: Context) -> AgentSkillReport:
    """What an inspection says of the mounted folders."""
    skills = context.shared.agent_skills
    found = skills.present()
    return AgentSkillReport(
        mounts=tuple(each.path for each in skills.mounts), skills=len(found.skills), findings=len(found.findings)
    )
