"""Uploaded skills as text for people. What agents have written is shown so that it can drive no terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from beetle.cli.text import count, neutral, neutral_lines, pairs, size, table, when, wrap
from beetle.contracts.common import Report
from beetle.contracts.skill_registry import (
    SkillRegistryListReport,
    SkillRegistryManifestReport,
    SkillRegistryMdReport,
    SkillRegistryMutationReport,
    SkillRegistryReadReport,
    SkillRegistrySearchReport,
    SkillRegistryVersionsReport,
    UploadedSkill,
)

SHORT_HASH = 12
WITHHELD = "[withheld]"
HEAD = ("SKILL", "STATUS", "VERSIONS", "UPDATED", "BY", "NAME")


def page(report: SkillRegistryMdReport, width: int | None) -> str:
    """The page as it is."""
    del width
    return report.markdown.rstrip("\n")


def skill_list(report: SkillRegistryListReport, width: int | None) -> str:
    """Skills, the last changed first."""
    if not report.total:
        return "No skill was uploaded."
    return f"{_table(report.skills, width)}\n{count(report.total, 'skill')}"


def found(report: SkillRegistrySearchReport, width: int | None) -> str:
    """The skills that fit."""
    return _table(report.skills, width) if report.skills else "No uploaded skill fits."


def _table(skills: tuple[UploadedSkill, ...], width: int | None) -> str:
    rows = [
        (
            each.skill_id,
            each.status,
            str(each.version_count),
            when(each.updated_at),
            each.latest_uploaded_by_agent_id,
            WITHHELD if each.name is None else each.name,
        )
        for each in skills
    ]
    return table(rows, HEAD, width, numbers=(2,))


def manifest(report: SkillRegistryManifestReport, width: int | None) -> str:
    """What the registry takes."""
    told = report.manifest
    lines = [
        pairs(
            [
                ("Registry version", str(told.registry_version)),
                ("Skill schema", str(told.current_skill_schema_version)),
                ("Formats", ", ".join(told.supported_formats)),
                ("Largest skill", size(told.content_bytes)),
            ]
        ),
        *wrap(f"Searched by: {', '.join(told.searchable_fields)}", "", width),
        *wrap(f"Read by: {', '.join(told.read_parameters)}", "", width),
    ]
    return "\n".join(lines)


def read(report: SkillRegistryReadReport, width: int | None) -> str:
    """The warnings, and the content behind them."""
    shown = report.format if report.format == report.source_format else f"{report.format} of {report.source_format}"
    head = pairs(
        [
            ("Skill", report.skill_id),
            ("Version", f"{report.version_number} ({report.version_id})"),
            ("Status", f"{report.status}{f': {report.status_reason}' if report.status_reason else ''}"),
            ("Signed", "yes" if report.signed else "no"),
            ("Format", shown),
        ]
    )
    lines = [head]
    for each in report.safety_warnings or (WITHHELD,):
        lines.extend(wrap(f"! {neutral(' '.join(each.split()))}", "", width))
    content = WITHHELD if report.content is None else report.content.rstrip("\n")
    return "\n".join([*lines, "", *neutral_lines(content)])


def versions(report: SkillRegistryVersionsReport, width: int | None) -> str:
    """Versions, the oldest first."""
    rows = [
        (
            str(each.version_number),
            each.version_id,
            when(each.uploaded_at),
            each.uploaded_by_agent_id,
            each.source_format,
            size(each.content_bytes),
            WITHHELD if each.content_hash is None else each.content_hash[:SHORT_HASH],
            each.signing_key_id or "-",
        )
        for each in report.versions
    ]
    head = ("NO", "VERSION", "UPLOADED", "BY", "FORMAT", "SIZE", "SHA-256", "KEY")
    return table(rows, head, width, numbers=(0, 5))


def mutation(report: SkillRegistryMutationReport, width: int | None) -> str:
    """The skill as it is now."""
    del width
    skill = report.skill
    reason = f": {neutral(skill.status_reason)}" if skill.status_reason else ""
    number = count(skill.version_count, "version")
    return f"{neutral(skill.skill_id)} {skill.status}{reason} ({number}, the latest {skill.latest_version_id})"


RENDERERS: Mapping[type[Report], Callable[[Any, int | None], str]] = {
    SkillRegistryMdReport: page,
    SkillRegistryListReport: skill_list,
    SkillRegistrySearchReport: found,
    SkillRegistryManifestReport: manifest,
    SkillRegistryReadReport: read,
    SkillRegistryVersionsReport: versions,
    SkillRegistryMutationReport: mutation,
}
"""The reports of this area."""
