"""agent_skill.list."""

from __future__ import annotations

import os
from collections.abc import Mapping

from beetle.contracts.agent_skills import (
    AgentSkillFinding,
    AgentSkillListReport,
    AgentSkillListRequest,
    AgentSkillMount,
    AgentSkillSummary,
)
from beetle.contracts.codec import replace
from beetle.contracts.refs import format_ref
from beetle.runtime.host.skill_folder import SkillFolder
from beetle.runtime.pipeline.cursor import read_cursor
from beetle.runtime.pipeline.handlers import Handler, Plain
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.pipeline.paging import page

FINDINGS_SHOWN = 256
UNREAD = "0" * 64
"""As long as a fingerprint: it stands in its place until the files are read, which are those of the page alone."""


def list_skills(invocation: Invocation, request: AgentSkillListRequest) -> AgentSkillListReport:
    """Scan anew; by mount and name, at which the cursor stands."""
    bound_to = invocation.bound(request.query)
    after = ("", "") if request.cursor is None else tuple(read_cursor(invocation.key, bound_to, request.cursor))
    skills = invocation.shared.agent_skills
    found = skills.anew()
    wanted = [each for each in found.skills if (each.mount, each.name) > after and _holds(each, request.query)]
    shown = page(
        invocation, wanted, request.limit, _summary, bound_to=bound_to, place=lambda each: [each.mount, each.name]
    )
    measured = skills.measured(tuple(wanted[: len(shown.entries)]), found)
    findings = [*found.findings, *(finding for one, _ in measured for finding in one.findings)]
    return AgentSkillListReport(
        total=len(found.skills),
        skills=tuple(
            replace(each, resources=one.resources, fingerprint=one.fingerprint, changed=changed)
            for each, (one, changed) in zip(shown.entries, measured, strict=True)
        ),
        findings=tuple(
            # A file's name is any bytes, and need not be a text.
            AgentSkillFinding(
                kind=each.kind, mount=each.mount, path=os.fsencode(each.path).decode("utf-8", "backslashreplace")
            )
            for each in findings[:FINDINGS_SHOWN]
        ),
        mounts=tuple(
            AgentSkillMount(
                mount=each.mount, path=each.path, skills=sum(skill.mount == each.mount for skill in found.skills)
            )
            for each in skills.mounts
        ),
        has_more=shown.has_more,
        next_cursor=shown.next_cursor,
        profile_budget_applied=shown.cut or found.clipped or len(findings) > FINDINGS_SHOWN,
    )


def _holds(skill: SkillFolder, query: str) -> bool:
    """Whether every word of the query stands in name or description."""
    text = f"{skill.name} {skill.description}".lower()
    return all(word in text for word in query.lower().split())


def _summary(skill: SkillFolder) -> AgentSkillSummary:
    """What is known of a skill before its files are read."""
    return AgentSkillSummary(
        ref=format_ref("agent_skill", skill.mount, skill.name),
        mount=skill.mount,
        name=skill.name,
        description=skill.description,
        resources=0,
        fingerprint=UNREAD,
    )


HANDLERS: Mapping[str, Handler] = {
    "agent_skill.list": Plain(list_skills),
}
