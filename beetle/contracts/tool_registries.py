"""tool_registry.*: what a host registers of its tools, in short: an index and fingerprints, never a schema."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from beetle.contracts.common import Cursor, PageLimit, Report
from beetle.contracts.fields import NONBLANK, Content, Id, Label, Open, Part, Piece, Request
from beetle.contracts.governance import Tags
from beetle.contracts.operation import TOOL_REGISTRY, Operation

Fingerprint = Annotated[Label, Meta(min_length=1)]
RegistryIdArg = Annotated[Id, Meta(description="the host's id of the registry")]


class ToolEntry(Part, frozen=True, kw_only=True):
    """One tool in short. Its schema stays with the host; `schema_fingerprint` says which one it is."""

    tool_id: Annotated[Id, Meta(description="the host's id of the tool")]
    title: Annotated[str, Meta(max_length=256, pattern=NONBLANK, description="title")]
    summary: Annotated[str, Meta(max_length=512, description="what the tool does, in one or two sentences")] = ""
    schema_fingerprint: Annotated[Fingerprint, Meta(description="fingerprint of its schema as it is now")]
    permission_tags: Tags = ()
    risk_tags: Tags = ()


class ToolRegistryListRequest(Request, frozen=True, kw_only=True):
    """List the tool registries of the space by their ids."""

    limit: PageLimit = 50
    cursor: Cursor | None = None


class ToolRegistryGetRequest(Request, frozen=True, kw_only=True):
    """Show one tool registry with its tools."""

    registry_id: RegistryIdArg


class ToolRegistryUpsertRequest(Request, frozen=True, kw_only=True):
    """Register short descriptions of the host's tools, or replace the registry with the same id."""

    registry_id: RegistryIdArg
    fingerprint: Annotated[Fingerprint, Meta(description="fingerprint of the whole registry as it is now")]
    scope: Annotated[Label, Meta(min_length=1, description="scope of the registry; global applies everywhere")] = (
        "global"
    )
    tools: Annotated[tuple[ToolEntry, ...], Meta(max_length=512, description="its tools, each id once")]


class ToolRegistryDeleteRequest(Request, frozen=True, kw_only=True):
    """Delete a tool registry. Observations of its tools stay, but give no hints without it."""

    registry_id: RegistryIdArg


class ToolRegistrySummary(Piece, frozen=True, kw_only=True):
    """A registry without its tools."""

    registry_id: Open[str]
    fingerprint: Open[str]
    scope: Open[str]
    revision: Open[int]
    tools: Open[int]
    created_at: Open[str]
    updated_at: Open[str]


class RegisteredTool(Piece, frozen=True, kw_only=True):
    """One tool as it was registered."""

    tool_id: Open[str]
    title: Content[str | None]
    summary: Content[str | None]
    schema_fingerprint: Open[str]
    permission_tags: Open[tuple[str, ...]] = ()
    risk_tags: Open[tuple[str, ...]] = ()


class ToolRegistryListReport(Report, frozen=True, kw_only=True):
    """`total` counts the whole space, not the page."""

    total: Open[int]
    registries: Open[tuple[ToolRegistrySummary, ...]]
    has_more: Open[bool] = False
    next_cursor: Open[str | None] = None


class ToolRegistryGetReport(Report, frozen=True, kw_only=True):
    """One registry; its tools in the host's order."""

    registry: Open[ToolRegistrySummary]
    tools: Open[tuple[RegisteredTool, ...]]


class ToolRegistryMutationReport(Report, frozen=True, kw_only=True):
    """Of tool_registry.upsert and tool_registry.delete. `revision` is the current one, or the last one deleted.

    `drifted` are tools whose schema is another one now: what was observed of them gives no more hints.
    """

    registry_id: Open[str]
    outcome: Open[Literal["created", "replaced", "unchanged", "deleted"]]
    revision: Open[int]
    added: Open[tuple[str, ...]] = ()
    removed: Open[tuple[str, ...]] = ()
    drifted: Open[tuple[str, ...]] = ()


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "tool_registry.list", "list_agent_tool_registries", ToolRegistryListRequest, ToolRegistryListReport, "read",
        "tool_registry", TOOL_REGISTRY, ("tool-registry", "list"),
        "list the tool registries of the space by their ids",
    ),
    Operation(
        "tool_registry.get", "get_agent_tool_registry", ToolRegistryGetRequest, ToolRegistryGetReport, "read",
        "tool_registry", TOOL_REGISTRY, ("tool-registry", "show"),
        "show one tool registry with its tools",
        word="registry_id",
        example={"registry_id": "host-tools"},
    ),
    Operation(
        "tool_registry.upsert", "upsert_agent_tool_registry", ToolRegistryUpsertRequest, ToolRegistryMutationReport,
        "write", "tool_registry", TOOL_REGISTRY, ("tool-registry", "upsert"),
        "register short descriptions of the host's tools, or replace the registry with the same id",
        word="registry_id",
        example={
            "registry_id": "host-tools",
            "fingerprint": "f1",
            "tools": [{"tool_id": "lamp", "title": "Kitchen lamp", "schema_fingerprint": "s1"}],
        },
        shell=("beetle tool-registry upsert host-tools --fingerprint f1 --tools @tools.json",),
    ),
    Operation(
        "tool_registry.delete", "delete_agent_tool_registry", ToolRegistryDeleteRequest, ToolRegistryMutationReport,
        "write", "tool_registry", TOOL_REGISTRY, ("tool-registry", "delete"),
        "delete a tool registry. Observations of its tools stay, but give no hints without it",
        grows=False, word="registry_id",
        example={"registry_id": "host-tools"},
        destructive=True,
    ),
)  # fmt: skip
