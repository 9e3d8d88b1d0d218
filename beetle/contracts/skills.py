"""Procedural memory: runtime skills, learned procedures that keep every revision until the skill is deleted."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from beetle.contracts.common import Cursor, DerivedMemoryRef, ExpectedRevision, PageLimit, Report
from beetle.contracts.fields import Content, Label, Open, Part, Piece, Request, budgeted
from beetle.contracts.operation import SKILL, Operation

SKILL_PREFIX = "runtime_skill__"
"""Every runtime skill's stored name begins with this; it is added when absent."""

NONBLANK = r"\S"
SkillName = Annotated[
    str, Meta(min_length=1, max_length=256, pattern=r"^[^\x00-\x1f\x7f-\x9f/]*\Z", description="the skill's name")
]
SkillTitle = Annotated[str, Meta(max_length=256, pattern=NONBLANK, description="title, one line")]
SkillTopic = Annotated[str, Meta(max_length=256, pattern=NONBLANK, description="topic")]
SkillSummary = Annotated[
    str, Meta(max_length=2048, pattern=NONBLANK, description="when to use the skill, in one or two sentences")
]
SkillText = Annotated[
    str, Meta(pattern=NONBLANK, extra=budgeted("skill_text_bytes"), description="the procedure, usually Markdown")
]

SkillSort = Literal["name", "updated", "revision"]


class RuntimeSkillWrite(Part, frozen=True, kw_only=True):
    """One skill to create or revise. `observed_at` is epoch seconds; citations may be refs or any text."""

    name: SkillName
    topic: SkillTopic
    title: SkillTitle
    summary: SkillSummary
    content: SkillText
    citations: Annotated[
        tuple[Annotated[str, Meta(min_length=1, max_length=1024)], ...],
        Meta(max_length=256, description="sources: refs, or any text"),
    ] = ()
    source_chat_id: (
        Annotated[Label, Meta(description="chat in which it was learned; default: the scope's chat")] | None
    ) = None
    observed_at: (
        Annotated[int, Meta(ge=-(2**43), le=2**43, description="when it was learned, in epoch seconds")] | None
    ) = None


class RuntimeSkillWriteOutcome(Piece, frozen=True, kw_only=True):
    name: Open[str]
    outcome: Open[Literal["created", "revised", "unchanged", "rejected"]]
    revision: Open[int]
    reason: Open[str | None] = None


class RuntimeSkillListRequest(Request, frozen=True, kw_only=True):
    """List runtime skills, with a filter over name, title, topic and summary."""

    query: Annotated[
        str, Meta(max_length=256, description="words that must occur in name, title, topic or summary")
    ] = ""
    include_disabled: Annotated[bool, Meta(description="include disabled skills")] = True
    include_retired: Annotated[bool, Meta(description="include skills that governance retired")] = False
    sort: Annotated[SkillSort, Meta(description="sort key; ties are sorted by name")] = "name"
    descending: Annotated[
        bool, Meta(description="reverse the order: last name, latest change or highest revision first")
    ] = False
    limit: PageLimit = 50
    cursor: Cursor | None = None


class RuntimeSkillSummary(Piece, frozen=True, kw_only=True):
    name: Open[str]
    title: Content[str | None]
    topic: Content[str | None]
    summary: Content[str | None]
    enabled: Open[bool]
    retired: Open[bool]
    revision: Open[int]
    updated_at: Open[str]
    ref: Open[str]


class RuntimeSkillListReport(Report, frozen=True, kw_only=True):
    """`total`, `active` and `disabled` count the whole space, not the page."""

    total: Open[int]
    active: Open[int]
    disabled: Open[int]
    runtime_skills: Open[tuple[RuntimeSkillSummary, ...]]
    has_more: Open[bool] = False
    next_cursor: Open[str | None] = None


class RuntimeSkillDetailRequest(Request, frozen=True, kw_only=True):
    """Show one runtime skill with its citations, its lineage and the changes of each revision."""

    name: SkillName


class SkillCitation(Piece, frozen=True, kw_only=True):
    """A citation as given; `ref` when it names a record. `resolves` says whether the caller can see that record;
    null where it was not looked for, as of agent skills.
    """

    text: Content[str | None]
    ref: Open[str | None] = None
    resolves: Open[bool | None] = None


class SkillRevision(Piece, frozen=True, kw_only=True):
    revision: Open[int]
    at: Open[str]
    source: Open[str]
    observed_at: Open[int | None]
    source_chat_id: Open[str | None]
    edit_reason: Content[str | None] = None


class StrategyDiff(Piece, frozen=True, kw_only=True):
    """Unified diff of the procedure from one revision to the next."""

    from_revision: Open[int]
    to_revision: Open[int]
    diff: Content[str | None]


class RuntimeSkillDetailReport(Report, frozen=True, kw_only=True):
    """`procedure` is the text that write calls content; `raw_content` is the whole record as one Markdown text."""

    name: Open[str]
    title: Content[str | None]
    topic: Content[str | None]
    summary: Content[str | None]
    procedure: Content[str | None]
    enabled: Open[bool]
    retired: Open[bool]
    revision: Open[int]
    created_at: Open[str]
    updated_at: Open[str]
    ref: Open[str]
    citations: Open[tuple[SkillCitation, ...]]
    lineage: Open[tuple[SkillRevision, ...]]
    strategy_diffs: Open[tuple[StrategyDiff, ...]]
    derived_refs: Open[tuple[DerivedMemoryRef, ...]]
    raw_content: Content[str | None]


class RuntimeSkillEditRequest(Request, frozen=True, kw_only=True):
    """Edit a runtime skill as a new revision; omitted fields stay unchanged."""

    name: SkillName
    title: SkillTitle | None = None
    topic: SkillTopic | None = None
    summary: SkillSummary | None = None
    procedure: SkillText | None = None
    edit_reason: Annotated[str, Meta(min_length=1, max_length=512, pattern=NONBLANK, description="reason for the edit")]
    expected_revision: ExpectedRevision | None = None

    def __post_init__(self) -> None:
        if self.title is None and self.topic is None and self.summary is None and self.procedure is None:
            raise ValueError("give at least one of title, topic, summary, procedure")


class RuntimeSkillSetEnabledRequest(Request, frozen=True, kw_only=True):
    """Enable or disable a runtime skill; its content stays as it is."""

    name: SkillName
    enabled: Annotated[bool, Meta(description="whether recall and projection may use it")]


class RuntimeSkillDeleteRequest(Request, frozen=True, kw_only=True):
    """Delete a runtime skill with all revisions; the event log records the deletion."""

    name: SkillName


class RuntimeSkillMutationReport(Report, frozen=True, kw_only=True):
    """Of skill.edit, skill.set_enabled and skill.delete. `revision` is the current one, or the last one deleted."""

    name: Open[str]
    outcome: Open[Literal["revised", "unchanged", "enabled", "disabled", "deleted"]]
    revision: Open[int]
    receipt: Open[str | None] = None


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "skill.list", "list_runtime_skills", RuntimeSkillListRequest, RuntimeSkillListReport, "read", "skill", SKILL,
        ("skill", "list"),
        "list runtime skills, with a filter over name, title, topic and summary",
        word="query",
        example={"query": "backup"},
    ),
    Operation(
        "skill.detail", "get_runtime_skill", RuntimeSkillDetailRequest, RuntimeSkillDetailReport, "read", "skill",
        SKILL, ("skill", "show"),
        "show one runtime skill with its citations, its lineage and the changes of each revision",
        word="name",
        example={"name": "backup"},
    ),
    Operation(
        "skill.edit", "edit_runtime_skill", RuntimeSkillEditRequest, RuntimeSkillMutationReport, "write", "skill",
        SKILL, ("skill", "edit"),
        "edit a runtime skill as a new revision; omitted fields stay unchanged",
        word="name",
        example={"name": "backup", "title": "Nightly backup of the store", "edit_reason": "new host"},
        shell=("beetle skill edit backup --procedure-file steps.md --edit-reason 'new host'",),
        idempotent=False,
    ),
    Operation(
        "skill.set_enabled", "set_runtime_skill_enabled", RuntimeSkillSetEnabledRequest, RuntimeSkillMutationReport,
        "write", "skill", SKILL, ("skill", "set-enabled"),
        "enable or disable a runtime skill; its content stays as it is",
        grows=False, word="name",
        example={"name": "backup", "enabled": False},
    ),
    Operation(
        "skill.delete", "delete_runtime_skill", RuntimeSkillDeleteRequest, RuntimeSkillMutationReport, "write",
        "skill", SKILL, ("skill", "delete"),
        "delete a runtime skill with all revisions; the event log records the deletion",
        grows=False, word="name",
        example={"name": "backup"},
        destructive=True,
    ),
)  # fmt: skip
