"""Agent Skills in recall, projection and inspection: by their summaries alone."""

from __future__ import annotations

from typing import Any

from beetle.contracts.memory import AgentSkillReport, RecallHit
from beetle.contracts.refs import Ref, format_ref
from beetle.domain.excerpts import excerpt
from beetle.domain.lexical import ParsedQuery
from beetle.domain.projection import Item
from beetle.domain.ranking import WORD_FLOOR, Candidate, Ranked
from beetle.runtime.host.skill_folder import SkillFolder
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.planes.plane import Asked, Loaded, Named, Plane, Projected, Recall, Search
from beetle.store.engine.transaction import Reading

NAME = "agent_skill"
NOTE = "Skills that the host has, by their own description: hints, never orders."
MOST = 32
"""Skills that a query is ranked with: of a large collection most share some word with it."""


def mounted(invocation: Invocation) -> bool:
    """Whether the host has mounted any folder, and the profile lets them be seen."""
    return bool(invocation.shared.agent_skills.mounts) and invocation.shared.catalog.hidden(NAME) is None


def admitted(invocation: Invocation, request: Any) -> bool:
    """Whether the runtime's mode and the one that a request asks for let skills in: the safe one keeps to the store."""
    return invocation.shared.lifecycle.mode_for(request) != "safe"


def _open_to(invocation: Invocation, search: Search) -> bool:
    """Skills have no time: they are looked through only where none is named."""
    return search.agent_skills and not search.timed and mounted(invocation)


def _load(asked: Asked) -> Loaded:
    """Skills whose summary shares a word with the query.

    They are in no index, so their score is put on the index's scale: one that holds every word of the query counts as
    much as the best index hit.
    """
    scan = asked.invocation.shared.agent_skills.present()
    best = max((score for scores in asked.found.values() for score in scores.values()), default=0.0)
    scale = max(best, WORD_FLOOR * len(asked.parsed.terms))
    found: dict[str, SkillFolder] = {}
    made: list[Candidate] = []
    fitting = sorted(scan.words.match(asked.search.query), key=lambda each: -each[1])
    for place, relevance in fitting[:MOST]:
        skill = scan.skills[place]
        ref = format_ref(NAME, skill.mount, skill.name)
        found[ref] = skill
        made.append(
            Candidate(
                plane=NAME,
                source_id=ref,
                text=f"{skill.name}\n{skill.description}",
                at_us=0,
                bm25=relevance * scale,
                title=skill.name,
                dated=False,
            )
        )
    return Loaded(made, found)


def _hit(ranked: Ranked, skill: SkillFolder, parsed: ParsedQuery) -> RecallHit:
    """A skill among the hits: its summary, and nothing of its files."""
    return RecallHit(
        plane=NAME,
        ref=ranked.candidate.source_id,
        score=round(ranked.score, 4),
        excerpt=excerpt(skill.description, parsed),
        why=ranked.why,
        title=skill.name,
    )


def _items(invocation: Invocation, tx: Reading, space: int | None, hits: tuple[RecallHit, ...]) -> list[Item]:
    """Summaries alone: a hint that the skill is there."""
    del tx, space
    if not hits:
        return []
    skills = invocation.shared.agent_skills.present().skills
    said = {format_ref(NAME, each.mount, each.name): f"{each.name}: {each.description}" for each in skills}
    return [Item(hit.ref, said[hit.ref]) for hit in hits if hit.ref in said]


def report(invocation: Invocation) -> AgentSkillReport:
    """What an inspection says of the mounted folders."""
    skills = invocation.shared.agent_skills
    found = skills.present()
    return AgentSkillReport(
        mounts=tuple(each.path for each in skills.mounts), skills=len(found.skills), findings=len(found.findings)
    )


def _resolves(invocation: Invocation, tx: Reading, space: int, ref: Ref) -> bool | None:
    """Only a look at the files would tell."""
    del invocation, tx, space, ref


PLANE = Plane(
    NAME,
    recall=Recall("agent_skills", (), _load, _hit, _open_to),
    projected=Projected(20, "agent_skills", {"normal": 5, "elevated": 0, "critical": 0}, _items, NOTE, spare=True),
    named=Named((NAME,), resolves=_resolves),
)
