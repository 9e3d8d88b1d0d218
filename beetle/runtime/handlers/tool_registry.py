"""tool_registry.*: compact registries of the host's tools."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from beetle.contracts.codec import format_us
from beetle.contracts.errors import InvalidRequest, NotFound, PrivacyDenied
from beetle.contracts.tool_registries import (
    RegisteredTool,
    ToolRegistryDeleteRequest,
    ToolRegistryGetReport,
    ToolRegistryGetRequest,
    ToolRegistryListReport,
    ToolRegistryListRequest,
    ToolRegistryMutationReport,
    ToolRegistrySummary,
    ToolRegistryUpsertRequest,
)
from beetle.memory.sensitive import FINDING_WORDS, finding
from beetle.runtime.cursor import make_cursor, read_cursor
from beetle.runtime.handling import Apply, Context
from beetle.store import evidence, tool_registries
from beetle.store.tool_registries import RegistryRow, ToolRow
from beetle.store.transaction import Reading
from beetle.store.writer import WriteTransaction


def list_registries(context: Context, request: ToolRegistryListRequest, tx: Reading) -> ToolRegistryListReport:
    """By id; the cursor stands at an id."""
    space = evidence.find_space(tx, context.space_id)
    bound_to = context.bound()
    after = "" if request.cursor is None else read_cursor(context.key, bound_to, request.cursor)
    rows = tool_registries.list_registries(tx, space, after, request.limit + 1)
    more = len(rows) > request.limit
    rows = rows[: request.limit]
    return ToolRegistryListReport(
        total=tool_registries.count_registries(tx, space),
        registries=tuple(_summary(tx, row) for row in rows),
        has_more=more,
        next_cursor=make_cursor(context.key, bound_to, rows[-1].registry_id) if more else None,
    )


def get_registry(context: Context, request: ToolRegistryGetRequest, tx: Reading) -> ToolRegistryGetReport:
    """One registry with its tools, in the host's order."""
    row = _existing(context, tx, request.registry_id)
    tools = tool_registries.tools_of(tx, row.registry)
    return ToolRegistryGetReport(
        registry=_summary(tx, row), tools=tuple(RegisteredTool(**tool._asdict()) for tool in tools)
    )


def upsert(context: Context, request: ToolRegistryUpsertRequest) -> Apply:
    """Register, or replace whole; the same registry again changes nothing."""
    _refuse_repeated(request)
    _refuse_more_than_an_index(request)
    tools = [
        ToolRow(
            each.tool_id, each.title, each.summary, each.schema_fingerprint, each.permission_tags, each.risk_tags
        )
        for each in request.tools
    ]  # fmt: skip

    def apply(tx: WriteTransaction) -> ToolRegistryMutationReport:
        space = evidence.ensure_space(tx, context.space_id, tx.now)
        known = tool_registries.find_registry(tx, space, request.registry_id)
        row = RegistryRow(
            registry=0 if known is None else known.registry,
            registry_id=request.registry_id,
            scope=request.scope,
            fingerprint=request.fingerprint,
            revision=1 if known is None else known.revision + 1,
            principal=context.caller.name,
            created_at=tx.now if known is None else known.created_at,
            updated_at=tx.now,
        )
        if known is None:
            tool_registries.add_registry(tx, space, row, tools)
            return _told(context, tx, row, "created", [], tools)
        before = tool_registries.tools_of(tx, known.registry)
        if before == tools and (known.scope, known.fingerprint) == (row.scope, row.fingerprint):
            return ToolRegistryMutationReport(
                registry_id=known.registry_id, outcome="unchanged", revision=known.revision
            )
        tool_registries.replace_registry(tx, row, tools)
        return _told(context, tx, row, "replaced", before, tools)

    return apply


def delete(context: Context, request: ToolRegistryDeleteRequest) -> Apply:
    """The registry goes; what was observed of its tools stays, and speaks no more."""

    def apply(tx: WriteTransaction) -> ToolRegistryMutationReport:
        row = _existing(context, tx, request.registry_id)
        before = tool_registries.tools_of(tx, row.registry)
        tool_registries.delete_registry(tx, row.registry)
        return _told(context, tx, row, "deleted", before, [])

    return apply


def _existing(context: Context, tx: Reading, registry_id: str) -> RegistryRow:
    found = tool_registries.find_registry(tx, evidence.find_space(tx, context.space_id), registry_id)
    if found is None:
        listing = "`beetle tool-registry list` shows the registries of this space"
        raise NotFound(kind="tool registry", name=registry_id, listing=listing)
    return found


def _told(
    context: Context, tx: WriteTransaction, row: RegistryRow, outcome: str, before: list[ToolRow], after: list[ToolRow]
) -> ToolRegistryMutationReport:
    """The event of a change, and the report of what it changed."""
    old = {each.tool_id: each.schema_fingerprint for each in before}
    new = {each.tool_id: each.schema_fingerprint for each in after}
    drifted = tuple(name for name in new if name in old and new[name] != old[name])
    event = f"tool_registry_{outcome}"
    subject = {"registry_id": row.registry_id, "revision": row.revision, "tools": len(new), "drifted": len(drifted)}
    tx.log(context.event("memory", event, **subject))
    return ToolRegistryMutationReport(
        registry_id=row.registry_id,
        outcome=outcome,  # type: ignore[arg-type] - one of the three that this module gives
        revision=row.revision,
        added=tuple(name for name in new if name not in old),
        removed=tuple(name for name in old if name not in new),
        drifted=drifted,
    )


def _summary(tx: Reading, row: RegistryRow) -> ToolRegistrySummary:
    return ToolRegistrySummary(
        registry_id=row.registry_id,
        fingerprint=row.fingerprint,
        scope=row.scope,
        revision=row.revision,
        tools=tool_registries.count_tools(tx, row.registry),
        created_at=format_us(row.created_at),
        updated_at=format_us(row.updated_at),
    )


def _refuse_repeated(request: ToolRegistryUpsertRequest) -> None:
    seen: set[str] = set()
    for index, tool in enumerate(request.tools):
        if tool.tool_id in seen:
            raise InvalidRequest(
                reason=f"tool id {tool.tool_id!r} stands twice in the registry",
                hint="each tool stands once; give the other one an id of its own",
                path=f"$.args.tools[{index}].tool_id",
            )
        seen.add(tool.tool_id)


def _refuse_more_than_an_index(request: ToolRegistryUpsertRequest) -> None:
    """Raises PrivacyDenied, naming the place, for a schema, a secret or a result in any field; it is not told."""
    for path, text in _texts(request):
        if (found := finding(text)) is not None:
            raise PrivacyDenied(
                reason=f"{path} {FINDING_WORDS[found]}",
                hint="register the tool's id, title and a sentence on it; its schema stays with the host",
                path=path,
                found=found,
            )


def _texts(request: ToolRegistryUpsertRequest) -> Iterator[tuple[str, str]]:
    for name in ("registry_id", "fingerprint", "scope"):
        yield f"$.args.{name}", getattr(request, name)
    for index, tool in enumerate(request.tools):
        path = f"$.args.tools[{index}]"
        for name in ("tool_id", "title", "summary", "schema_fingerprint"):
            yield f"{path}.{name}", getattr(tool, name)
        yield from _tags(f"{path}.permission_tags", tool.permission_tags)
        yield from _tags(f"{path}.risk_tags", tool.risk_tags)


def _tags(path: str, tags: Sequence[str]) -> Iterator[tuple[str, str]]:
    return ((f"{path}[{place}]", tag) for place, tag in enumerate(tags))
