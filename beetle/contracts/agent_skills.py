"""agent_skill.*: the folders of Agent Skills that the host has mounted, read and never changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Meta

from beetle.contracts.common import Cursor, PageLimit, Report
from beetle.contracts.fields import Content, Open, OperatorOnly, Piece, Request
from beetle.contracts.operation import AGENT_SKILL, Operation

FindingKind = Literal[
    "mount_missing", "mount_unreadable", "mount_not_a_folder",
    "no_front_matter", "front_matter_invalid", "name_invalid", "description_invalid", "not_utf8", "duplicate_name",
    "symlink", "special_file", "unreadable", "vanished",
    "too_deep", "too_many_skills", "too_many_files", "too_large",
]  # fmt: skip
"""What a scan found wrong. None of them stops it."""

FINDINGS: Mapping[str, str] = {
    "mount_missing": "the folder is not there",
    "mount_unreadable": "the folder cannot be read",
    "mount_not_a_folder": "it is not a folder",
    "no_front_matter": "it does not begin with front matter between two lines of ---",
    "front_matter_invalid": "its front matter is not a plain mapping",
    "name_invalid": "its name is missing, or is not a short text",
    "description_invalid": "its description is missing, or is not a text of at most 1,024 characters",
    "not_utf8": "its front matter is not UTF-8",
    "duplicate_name": "another skill of the folder has its name",
    "symlink": "it is a link, which is not followed",
    "special_file": "it is neither a file nor a folder",
    "unreadable": "it cannot be read",
    "vanished": "it went away while it was read",
    "too_deep": "it lies deeper than this profile looks",
    "too_many_skills": "this profile takes no more skills",
    "too_many_files": "it holds more than is looked at",
    "too_large": "its files are larger than this profile reads",
}
"""What a finding says, in words. A later daemon may know others."""


class AgentSkillListRequest(Request, frozen=True, kw_only=True):
    """Scan the mounted Agent Skill folders and list the skills in them."""

    query: Annotated[str, Meta(max_length=256, description="words that must occur in name or description")] = ""
    limit: PageLimit = 50
    cursor: Cursor | None = None


class AgentSkillSummary(Piece, frozen=True, kw_only=True):
    """One skill. `resources` counts its files beside SKILL.md.

    `fingerprint` is absent where not every file could be read; a finding says why. `changed` compares it with the
    scan before, and is absent for a skill that this process has not listed before.
    """

    ref: Open[str]
    mount: Open[str]
    name: Open[str]
    description: Content[str | None]
    resources: Open[int]
    fingerprint: Open[str | None] = None
    changed: Open[bool | None] = None


class AgentSkillFinding(Piece, frozen=True, kw_only=True):
    """What was found wrong, in which mount; `path` is within it."""

    kind: Open[FindingKind]
    mount: Open[str]
    path: OperatorOnly[str | None] = None


class AgentSkillMount(Piece, frozen=True, kw_only=True):
    """A mounted folder, by the name that refs use."""

    mount: Open[str]
    path: OperatorOnly[str | None]
    skills: Open[int]


class AgentSkillListReport(Report, frozen=True, kw_only=True):
    """`total` counts every skill that was found, whatever the query. Files are read for the page's skills alone."""

    total: Open[int]
    skills: Open[tuple[AgentSkillSummary, ...]]
    findings: Open[tuple[AgentSkillFinding, ...]] = ()
    mounts: OperatorOnly[tuple[AgentSkillMount, ...] | None] = ()
    has_more: Open[bool] = False
    next_cursor: Open[str | None] = None


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "agent_skill.list", "list_agent_skills", AgentSkillListRequest, AgentSkillListReport, "read", "agent_skill",
        AGENT_SKILL, ("agent-skill", "list"),
        "scan the mounted Agent Skill folders and list the skills in them",
        batch=False, word="query",
        example={"query": "pdf"},
        shell=("beetle agent-skill list", "beetle agent-skill list pdf"),
    ),
)  # fmt: skip
