"""agent_skill.list."""

from __future__ import annotations

import os

from beetle.contracts.agent_skills import (
    AgentSkillFinding,
    AgentSkillListReport,
    AgentSkillListRequest,
    AgentSkillMount,
    AgentSkillSummary,
)
from beetle.contracts.refs import format_ref
from beetle.runtime.cursor import make_cursor, read_cursor
from beetle.runtime.handling import Context
from beetle.runtime.skill_folder import Finding, Measured, SkillFolder
from beetle.runtime.skill_mounts import Scan

FINDINGS_SHOWN = 256


def list_skills(context: Context, request: AgentSkillListRequest) -> AgentSkillListReport:
    """Scan anew; by mount and name, at which the cursor stands."""
    bound_to = context.bound(request.query)
    after = ("", "") if request.cursor is None else tuple(read_cursor(context.key, bound_to, request.cursor))
    skills = context.shared.agent_skills
    found = skills.anew()
    wanted = [each for each in found.skills if (each.mount, each.name) > after and _holds(each, request.query)]
    page = tuple(wanted[: request.limit])
    more = len(wanted) > len(page)
    measured = skills.measured(page, found)
    findings = [*found.findings, *(finding for one, _ in measured for finding in one.findings)]
    return AgentSkillListReport(
        total=len(found.skills),
        skills=tuple(_summary(each, *one) for each, one in zip(page, measured, strict=True)),
        findings=tuple(_finding(each) for each in findings[:FINDINGS_SHOWN]),
        mounts=_mounts(context, found),
        has_more=more,
        next_cursor=make_cursor(context.key, bound_to, [page[-1].mount, page[-1].name]) if more else None,
        profile_budget_applied=found.clipped or len(findings) > FINDINGS_SHOWN,
    )


def _holds(skill: SkillFolder, query: str) -> bool:
    """Whether every word of the query stands in name or description."""
    text = f"{skill.name} {skill.description}".lower()
    return all(word in text for word in query.lower().split())


def _summary(skill: SkillFolder, measured: Measured, changed: bool | None) -> AgentSkillSummary:
    return AgentSkillSummary(
        ref=format_ref("agent_skill", skill.mount, skill.name),
        mount=skill.mount,
        name=skill.name,
        description=skill.description,
        resources=measured.resources,
        fingerprint=measured.fingerprint,
        changed=changed,
    )


def _finding(found: Finding) -> AgentSkillFinding:
    # A file's name is any bytes, and need not be a text.
    path = os.fsencode(found.path).decode("utf-8", "backslashreplace")
    return AgentSkillFinding(kind=found.kind, mount=found.mount, path=path)


def _mounts(context: Context, found: Scan) -> tuple[AgentSkillMount, ...]:
    return tuple(
        AgentSkillMount(
            mount=each.mount, path=each.path, skills=sum(skill.mount == each.mount for skill in found.skills)
        )
        for each in context.shared.agent_skills.mounts
    )
