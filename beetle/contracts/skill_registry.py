"""skill_registry.*: skills that agents upload for one another, as versions that are never changed."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from beetle.contracts.common import Cursor, PageLimit, Report
from beetle.contracts.fields import NO_CONTROL, NONBLANK, Content, Id, Label, Open, Part, Piece, Request, Time, budgeted
from beetle.contracts.operation import REGISTRY, Operation, Tool

SkillFormat = Literal["markdown", "json"]
SkillStatus = Literal["active", "deprecated", "revoked"]
FORMATS: tuple[SkillFormat, ...] = ("markdown", "json")
STATUSES: tuple[SkillStatus, ...] = ("active", "deprecated", "revoked")
REGISTRY_VERSION = 2
SCHEMA_VERSION = 1
SIGNATURE_BYTES = 64

ChainKey = Annotated[Label, Meta(description="the chain of the agent; it is logged, the registry is the owner's")]
FormatArg = Annotated[
    str,
    Meta(max_length=32, description="markdown, md or json", extra_json_schema={"enum": ["markdown", "md", "json"]}),
]
UploadedSkillId = Annotated[Id, Meta(description="id of the skill, as it was given or made of the name")]
VersionId = Annotated[Id, Meta(description="id of one version; the latest when left out")]
Reason = Annotated[str, Meta(max_length=512, pattern=NO_CONTROL, description="the reason, in a sentence")]
Names = Annotated[tuple[Label, ...], Meta(max_length=64)]


class SkillSectionJson(Part, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """A section of a skill in JSON."""

    level: Annotated[int, Meta(ge=1, le=6)] = 1
    heading: str
    body: str = ""


class SkillJson(Part, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """A skill in JSON. Fields of other names are kept with the content, and mean nothing here."""

    schema_version: Annotated[int, Meta(ge=1, le=2**31)] = SCHEMA_VERSION
    name: str
    description: str = ""
    tags: tuple[str, ...] = ()
    triggers: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    intro: str = ""
    sections: Annotated[tuple[SkillSectionJson, ...], Meta(max_length=4096)] = ()


class SkillRegistryMdRequest(Request, frozen=True, kw_only=True):
    """Read how a model uses Beetle: memory, chains and the skill registry on one page."""


class SkillRegistryListRequest(Request, frozen=True, kw_only=True):
    """List the uploaded skills of the owner, the last changed first."""

    chain_key: ChainKey | None = None
    limit: PageLimit = 50
    cursor: Cursor | None = None


class SkillRegistryManifestRequest(Request, frozen=True, kw_only=True):
    """Read which formats the skill registry takes, and by what it can be searched."""


class SkillRegistrySearchRequest(Request, frozen=True, kw_only=True):
    """Search uploaded skills: every filter given must fit, and of a list any of its entries; no ranking."""

    chain_key: ChainKey | None = None
    text: Annotated[str, Meta(max_length=256, description="exact words of name or content")] | None = None
    skill_ids: Annotated[Names, Meta(description="ids of skills")] = ()
    names: Annotated[Names, Meta(description="names, whatever their case")] = ()
    tags_any: Annotated[Names, Meta(description="tags, whatever their case")] = ()
    triggers_any: Annotated[Names, Meta(description="triggers, whatever their case")] = ()
    uploaded_by_agent_ids: Annotated[Names, Meta(description="ids of agents that uploaded any version")] = ()
    uploaded_by_agent_names: Annotated[Names, Meta(description="their names, whatever the case")] = ()
    uploaded_by_agent_owners: Annotated[Names, Meta(description="their owners, whatever the case")] = ()
    statuses: Annotated[Names, Meta(description="active, deprecated, revoked")] = ()
    formats: Annotated[Names, Meta(description="markdown, json: of any version")] = ()
    schema_versions: Annotated[tuple[int, ...], Meta(max_length=64, description="schema versions: of any version")] = ()
    since: Annotated[Time, Meta(description="latest version uploaded then or later")] | None = None
    until: Annotated[Time, Meta(description="latest version uploaded then or earlier")] | None = None
    limit: PageLimit = 50
    cursor: Cursor | None = None


class SkillRegistryReadRequest(Request, frozen=True, kw_only=True):
    """Read one version of an uploaded skill with its safety warnings; in its own format byte for byte."""

    chain_key: ChainKey | None = None
    skill_id: UploadedSkillId
    version_id: VersionId | None = None
    format: FormatArg = "markdown"


class SkillRegistryVersionsRequest(Request, frozen=True, kw_only=True):
    """List the versions of an uploaded skill, the oldest first."""

    chain_key: ChainKey | None = None
    skill_id: UploadedSkillId
    limit: PageLimit = 50
    cursor: Cursor | None = None


class SkillRegistryUploadRequest(Request, frozen=True, kw_only=True):
    """Upload a skill as a new version, which is never changed. A signature that is given must hold."""

    chain_key: ChainKey | None = None
    skill_id: Annotated[Id, Meta(description="id of the skill; made of the name when left out")] | None = None
    agent_id: Annotated[Id, Meta(description="agent that uploads it")]
    format: FormatArg = "markdown"
    content: Annotated[
        str,
        Meta(pattern=NONBLANK, extra=budgeted("skill_text_bytes"), description="the skill, as Markdown or JSON"),
    ]
    signing_key_id: Annotated[Label, Meta(min_length=1, description="the agent's key that signed")] | None = None
    skill_signature: (
        Annotated[
            tuple[Annotated[int, Meta(ge=0, le=255)], ...],
            Meta(
                min_length=SIGNATURE_BYTES,
                max_length=SIGNATURE_BYTES,
                description="the 64 bytes of the Ed25519 signature over the content's UTF-8 bytes",
            ),
        ]
        | None
    ) = None

    def __post_init__(self) -> None:
        if (self.signing_key_id is None) != (self.skill_signature is None):
            raise ValueError("give signing_key_id and skill_signature together")


class SkillRegistryDeprecateRequest(Request, frozen=True, kw_only=True):
    """Mark an uploaded skill as deprecated; its versions stay, and a new one makes it active again."""

    chain_key: ChainKey | None = None
    skill_id: UploadedSkillId
    reason: Reason | None = None


class SkillRegistryRevokeRequest(Request, frozen=True, kw_only=True):
    """Revoke an uploaded skill for good; its versions stay readable, with a warning."""

    chain_key: ChainKey | None = None
    skill_id: UploadedSkillId
    reason: Reason | None = None


class UploadedSkill(Piece, frozen=True, kw_only=True):
    """A skill by its latest version. Whose agent names and owners these are, they were when it was uploaded."""

    skill_id: Open[str]
    name: Content[str | None]
    description: Content[str | None]
    status: Open[SkillStatus]
    status_reason: Content[str | None]
    schema_version: Open[int]
    tags: Content[tuple[str, ...] | None]
    triggers: Content[tuple[str, ...] | None]
    warnings: Content[tuple[str, ...] | None]
    latest_version_id: Open[str]
    version_count: Open[int]
    created_at: Open[str]
    updated_at: Open[str]
    latest_uploaded_at: Open[str]
    latest_uploaded_by_agent_id: Open[str]
    latest_uploaded_by_agent_name: Content[str | None]
    latest_uploaded_by_agent_owner: Content[str | None]
    latest_source_format: Open[SkillFormat]


class UploadedSkillVersion(Piece, frozen=True, kw_only=True):
    """A version; `version_number` counts from 0, `content_hash` is the SHA-256 (hex) of the uploaded bytes.

    `skill_signature` is the Ed25519 signature over those bytes, `public_key_bytes` the key that it was verified with.
    """

    version_id: Open[str]
    version_number: Open[int]
    uploaded_at: Open[str]
    uploaded_by_agent_id: Open[str]
    uploaded_by_agent_name: Content[str | None]
    uploaded_by_agent_owner: Content[str | None]
    source_format: Open[SkillFormat]
    content_hash: Content[str | None]
    content_bytes: Open[int]
    schema_version: Open[int]
    signing_key_id: Open[str | None] = None
    skill_signature: Content[tuple[int, ...] | None] = None
    public_key_bytes: Open[tuple[int, ...] | None] = None


class SkillManifest(Piece, frozen=True, kw_only=True):
    registry_version: Open[int]
    current_skill_schema_version: Open[int]
    supported_formats: Open[tuple[str, ...]]
    searchable_fields: Open[tuple[str, ...]]
    read_parameters: Open[tuple[str, ...]]
    content_bytes: Open[int]


class SkillRegistryMdReport(Report, frozen=True, kw_only=True):
    """One page of Markdown."""

    markdown: Open[str]


class SkillRegistryListReport(Report, frozen=True, kw_only=True):
    """`total` counts all skills of the owner, not the page."""

    total: Open[int]
    skills: Open[tuple[UploadedSkill, ...]]
    has_more: Open[bool] = False
    next_cursor: Open[str | None] = None


class SkillRegistryManifestReport(Report, frozen=True, kw_only=True):
    """What this build and its profile take."""

    manifest: Open[SkillManifest]


class SkillRegistrySearchReport(Report, frozen=True, kw_only=True):
    """The skills that fit, the last changed first."""

    skills: Open[tuple[UploadedSkill, ...]]
    has_more: Open[bool] = False
    next_cursor: Open[str | None] = None


class SkillRegistryReadReport(Report, frozen=True, kw_only=True):
    """`content` is untrusted: read `safety_warnings` first.

    In the source format it is what was uploaded, and `content_hash` its SHA-256; else it is rendered. `signed`: the
    uploader's signature was verified when it was uploaded.
    """

    skill_id: Open[str]
    version_id: Open[str]
    version_number: Open[int]
    format: Open[SkillFormat]
    source_format: Open[SkillFormat]
    schema_version: Open[int]
    status: Open[SkillStatus]
    status_reason: Content[str | None]
    safety_warnings: Content[tuple[str, ...] | None]
    content_hash: Content[str | None]
    signed: Open[bool]
    content: Content[str | None]


class SkillRegistryVersionsReport(Report, frozen=True, kw_only=True):
    """The versions of one skill, the oldest first."""

    skill_id: Open[str]
    versions: Open[tuple[UploadedSkillVersion, ...]]
    has_more: Open[bool] = False
    next_cursor: Open[str | None] = None


class SkillRegistryMutationReport(Report, frozen=True, kw_only=True):
    """Of skill_registry.upload, deprecate and revoke: the skill as it is now."""

    skill: Open[UploadedSkill]


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "skill_registry.md", "read_skill_md", SkillRegistryMdRequest, SkillRegistryMdReport, "read",
        "skill_registry", REGISTRY, ("registry", "md"),
        "read how a model uses Beetle: memory, chains and the skill registry on one page",
        tool=Tool(name="mentisdb_skill_md"),
    ),
    Operation(
        "skill_registry.list", "list_uploaded_skills", SkillRegistryListRequest, SkillRegistryListReport, "read",
        "skill_registry", REGISTRY, ("registry", "list"),
        "list the uploaded skills of the owner, the last changed first",
        tool=Tool(name="mentisdb_list_skills"),
    ),
    Operation(
        "skill_registry.manifest", "read_skill_manifest", SkillRegistryManifestRequest, SkillRegistryManifestReport,
        "read", "skill_registry", REGISTRY, ("registry", "manifest"),
        "read which formats the skill registry takes, and by what it can be searched",
        tool=Tool(name="mentisdb_skill_manifest"),
    ),
    Operation(
        "skill_registry.search", "search_uploaded_skills", SkillRegistrySearchRequest, SkillRegistrySearchReport,
        "read", "skill_registry", REGISTRY, ("registry", "search"),
        "search uploaded skills: every filter given must fit, and of a list any of its entries; no ranking",
        word="text",
        example={"text": "backup", "tags_any": ["ops"], "statuses": ["active"]},
        shell=("beetle registry search backup", "beetle registry search --tags-any ops --statuses active"),
        tool=Tool(name="mentisdb_search_skill"),
    ),
    Operation(
        "skill_registry.read", "read_uploaded_skill", SkillRegistryReadRequest, SkillRegistryReadReport, "read",
        "skill_registry", REGISTRY, ("registry", "read"),
        "read one version of an uploaded skill with its safety warnings; in its own format byte for byte",
        word="skill_id",
        example={"skill_id": "nightly-backup"},
        shell=("beetle registry read nightly-backup", "beetle registry read nightly-backup > SKILL.md"),
        tool=Tool(name="mentisdb_read_skill"),
    ),
    Operation(
        "skill_registry.versions", "list_skill_versions", SkillRegistryVersionsRequest, SkillRegistryVersionsReport,
        "read", "skill_registry", REGISTRY, ("registry", "versions"),
        "list the versions of an uploaded skill, the oldest first",
        word="skill_id",
        example={"skill_id": "nightly-backup"},
        tool=Tool(name="mentisdb_skill_versions"),
    ),
    Operation(
        "skill_registry.upload", "upload_skill", SkillRegistryUploadRequest, SkillRegistryMutationReport, "write",
        "skill_registry", REGISTRY, ("registry", "upload"),
        "upload a skill as a new version, which is never changed. A signature that is given must hold",
        example={
            "agent_id": "agent-main",
            "content": "---\nname: Nightly backup\ndescription: Copy the store.\n---\n# Steps\n\n1. Copy it.\n",
        },
        shell=("beetle registry upload SKILL.md", "beetle registry upload skill.json --agent-id planner"),
        idempotent=False,
        tool=Tool(name="mentisdb_upload_skill"),
    ),
    Operation(
        "skill_registry.deprecate", "deprecate_skill", SkillRegistryDeprecateRequest, SkillRegistryMutationReport,
        "write", "skill_registry", REGISTRY, ("registry", "deprecate"),
        "mark an uploaded skill as deprecated; its versions stay, and a new one makes it active again",
        word="skill_id",
        example={"skill_id": "nightly-backup", "reason": "the store is replicated now"},
        tool=Tool(name="mentisdb_deprecate_skill"),
    ),
    Operation(
        "skill_registry.revoke", "revoke_skill", SkillRegistryRevokeRequest, SkillRegistryMutationReport, "write",
        "skill_registry", REGISTRY, ("registry", "revoke"),
        "revoke an uploaded skill for good; its versions stay readable, with a warning",
        word="skill_id",
        example={"skill_id": "nightly-backup", "reason": "it deletes the wrong folder"},
        destructive=True,
        tool=Tool(name="mentisdb_revoke_skill"),
    ),
)  # fmt: skip
