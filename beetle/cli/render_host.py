"""The host's skills and tools as text for people."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from beetle.cli.text import count, neutral, pairs, table, when, wrap
from beetle.contracts.agent_skills import FINDINGS, AgentSkillFinding, AgentSkillListReport
from beetle.contracts.common import Report
from beetle.contracts.memory import AgentToolHint
from beetle.contracts.tool_registries import (
    RegisteredTool,
    ToolRegistryGetReport,
    ToolRegistryListReport,
    ToolRegistryMutationReport,
)

SHORT_HASH = 12


def agent_skill_list(report: AgentSkillListReport, width: int | None) -> str:
    """Skills by mount and name, what was found wrong, and for operators where they are mounted."""
    lines: list[str] = []
    for each in report.skills:
        shown = "-" if each.fingerprint is None else each.fingerprint[:SHORT_HASH]
        changed = "  changed" if each.changed else ""
        lines.append(f"{neutral(each.ref)}  {count(each.resources, 'resource')}  {shown}{changed}")
        lines.extend(wrap(each.description or "[withheld]", "    ", width))
    lines.extend(_finding(each) for each in report.findings)
    for mount in report.mounts or ():
        place = "" if mount.path is None else f" at {neutral(mount.path)}"
        lines.append(f"{neutral(mount.mount)}{place}: {count(mount.skills, 'skill')}")
    return "\n".join(lines) if lines else "No folder of Agent Skills is mounted."


def _finding(found: AgentSkillFinding) -> str:
    place = neutral(found.mount) if not found.path else f"{neutral(found.mount)}/{neutral(found.path)}"
    return f"! {place}: {FINDINGS.get(found.kind, found.kind)}"


def registry_list(report: ToolRegistryListReport, width: int | None) -> str:
    """Registries by id."""
    if not report.registries:
        return "No tool registry is registered." if not report.total else count(report.total, "registry", "registries")
    rows = [
        (each.registry_id, each.scope, each.fingerprint, str(each.revision), str(each.tools), when(each.updated_at))
        for each in report.registries
    ]
    head = ("REGISTRY", "SCOPE", "FINGERPRINT", "REVISION", "TOOLS", "UPDATED")
    return f"{table(rows, head, width, numbers=(3, 4))}\n{count(report.total, 'registry', 'registries')}"


def registry(report: ToolRegistryGetReport, width: int | None) -> str:
    """One registry with its tools."""
    shown = report.registry
    head = pairs(
        [
            ("Registry", shown.registry_id),
            ("Scope", shown.scope),
            ("Fingerprint", shown.fingerprint),
            ("Revision", str(shown.revision)),
            ("Updated", when(shown.updated_at)),
        ]
    )
    rows = [_tool(each) for each in report.tools]
    return f"{head}\n{table(rows, ('TOOL', 'TITLE', 'SCHEMA', 'TAGS'), width)}" if rows else head


def _tool(found: RegisteredTool) -> tuple[str, str, str, str]:
    tags = ", ".join((*found.permission_tags, *found.risk_tags))
    return (found.tool_id, found.title or "[withheld]", found.schema_fingerprint, tags)


def registry_mutation(report: ToolRegistryMutationReport, width: int | None) -> str:
    """What a registration or a deletion changed."""
    lines = [f"{neutral(report.registry_id)} {report.outcome} (revision {report.revision})"]
    for word, tools in (("added", report.added), ("removed", report.removed), ("drifted", report.drifted)):
        if tools:
            lines.extend(wrap(f"{word}: {', '.join(neutral(each) for each in tools)}", "  ", width))
    return "\n".join(lines)


def tool_hints(hints: Iterable[AgentToolHint], width: int | None) -> Iterable[str]:
    """Experience with tools, the best first."""
    for each in hints:
        yield f"tool {neutral(each.registry_id)}/{neutral(each.tool_id)}  {each.score:.3f}"
        yield from wrap(each.reason or "[withheld]", "    ", width)


RENDERERS: Mapping[type[Report], Callable[[Any, int | None], str]] = {
    AgentSkillListReport: agent_skill_list,
    ToolRegistryListReport: registry_list,
    ToolRegistryGetReport: registry,
    ToolRegistryMutationReport: registry_mutation,
}
"""The reports of this area."""
