"""tool_registry.*: what a host registers of its tools, in short: an index and fingerprints, never a schema."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from beetle.contracts.common import Cursor, PageLimit, Report
from beetle.contracts.fields import Content, Id, Label, Open, Part, Piece, Request
from beetle.contracts.governance import NONBLANK, Tags

Fingerprint = Annotated[Label, Meta(min_length=1)]
RegistryIdArg = Annotated[Id, Meta(description="the host's id of the registry")]


class ToolEntry(Part, frozen=True, kw_only=True):
    """One tool in short. Its schema stays with the host; `schema_fingerprint` says which one it is."""

    tool_id: Annotated[Id, Meta(description="the host's id of the tool")]
    title: Annotated[str, Meta(max_length=256, pattern=NONBLANK, description="what it is called")]
    summary: Annotated[str, Meta(max_length=512, description="what it does, in a sentence or two")] = ""
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
    """Register the host's tools in short, or replace what was registered under the same id."""

    registry_id: RegistryIdArg
    fingerprint: Annotated[Fingerprint, Meta(description="fingerprint of the whole registry as it is now")]
    scope: Annotated[Label, Meta(min_length=1, description="where it holds; global is everywhere")] = "global"
    tools: Annotated[tuple[ToolEntry, ...], Meta(max_length=512, description="its tools, each id once")]


class ToolRegistryDeleteRequest(Request, frozen=True, kw_only=True):
    """Delete a tool registry. What was observed of its tools stays, and gives no hints without it."""

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

    `drifted` are tools whose schema is another one now: what was observed of them gives no hints any more.
    """

    registry_id: Open[str]
    outcome: Open[Literal["created", "replaced", "unchanged", "deleted"]]
    revision: Open[int]
    added: Open[tuple[str, ...]] = ()
    removed: Open[tuple[str, ...]] = ()
    drifted: Open[tuple[str, ...]] = ()
