"""Tool experience: what hosts have registered of their tools, and what governed experience says of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar, cast

from textual.binding import Binding, BindingType

from beetle.contracts.codec import to_plain
from beetle.contracts.errors import BeetleError
from beetle.contracts.memory import AgentToolHint, MemoryProjectionReport
from beetle.contracts.tool_registries import (
    RegisteredTool,
    ToolRegistryGetReport,
    ToolRegistryListReport,
    ToolRegistryMutationReport,
    ToolRegistrySummary,
)
from beetle_tui.memory.section import NOT_SHOWN, Section, day
from beetle_tui.prose import Block, section
from beetle_tui.rows import Batch, CursorRows
from beetle_tui.split import remark, value
from beetle_tui.table import Column
from beetle_tui.text import count, moment

WHY_NONE = {
    "available": "There is governed experience.",
    "no_governed_tool_experience": "No governed experience yet: hosts report it with memory.write, kind "
    "agent_tool_usage_feedback.",
    "registry_missing": "There is experience, and its registry is not registered.",
    "registry_drifted": "There is experience, and its registry is another one now.",
    "experience_stale": "There is experience of tools whose schema is another one now.",
}


class Tools(Section[ToolRegistrySummary]):
    """The tool registries of the space; the detail shows each tool with what experience says of it."""

    TITLE = "Tools"
    NOUN = ("registry", "registries")
    EMPTY = "No tool registry"
    HOW = (
        "A host registers its tools in short (tool_registry.upsert) and reports how they fared "
        "(memory.write, kind agent_tool_usage_feedback). What is learned from it is shown here as hints."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("d", "delete", "Delete", id="registry-delete", tooltip="delete the registry; what was observed stays"),
    ]

    def columns(self) -> Sequence[Column[ToolRegistrySummary]]:
        """See Section."""
        return (
            Column("Registry", lambda row: row.registry_id),
            Column("Scope", lambda row: row.scope, 12),
            Column("Tools", lambda row: f"{row.tools:,}", 5, right=True),
            Column("Rev", lambda row: f"{row.revision:,}", 5, right=True),
            Column("Changed", lambda row: day(row.updated_at), 10, narrow=70),
        )

    def key(self, row: ToolRegistrySummary) -> object:
        """See Section."""
        return row.registry_id

    async def rows(self) -> CursorRows[ToolRegistrySummary]:
        """See Section."""
        return CursorRows(self._page)

    async def look(self, row: ToolRegistrySummary) -> tuple[str, Iterable[Block]]:
        """See Section."""
        link = self.area.link
        found = cast(ToolRegistryGetReport, await link.call("tool_registry.get", {"registry_id": row.registry_id}))
        registry = found.registry
        named = {"registry_id": registry.registry_id, "fingerprint": registry.fingerprint, "scope": registry.scope}
        # A block without room is no block: the hints are all that is asked for.
        asked = {"user_query": "", "system_max_len": 0, "recent_messages_limit": 0, "tool_registry_refs": [named]}
        try:
            told = cast(MemoryProjectionReport, await link.call("memory.project", asked))
        except BeetleError as error:
            told = error
        return registry.registry_id, list(registry_parts(found, told))

    async def whole(self, row: ToolRegistrySummary) -> Any:
        """See Section."""
        return to_plain(await self.area.link.call("tool_registry.get", {"registry_id": row.registry_id}))

    async def _page(self, cursor: str | None, most: int) -> Batch[ToolRegistrySummary]:
        asked = {"limit": most, "cursor": cursor}
        found = cast(ToolRegistryListReport, await self.area.link.call("tool_registry.list", asked))
        return Batch(found.registries, found.next_cursor, found.total)

    def action_delete(self) -> None:
        """Delete the registry, once it was said what goes."""
        self.with_chosen(self._delete)

    async def _delete(self, row: ToolRegistrySummary) -> None:
        lines = [
            f"{row.registry_id}: {count(row.tools, 'tool')}, revision {row.revision}.",
            "What was observed of its tools stays, and gives no hints until the registry is registered again.",
        ]
        if not await self.agreed("Delete the registry?", lines):
            return
        now = await self.area.ask("tool_registry.get", {"registry_id": row.registry_id})
        if now is None:
            return
        registry = cast(ToolRegistryGetReport, now).registry
        if (registry.revision, registry.created_at) != (row.revision, row.created_at):
            self.area.show_notice(f"{row.registry_id} was changed meanwhile, and nothing was done")
            return
        done = await self.changed("tool_registry.delete", {"registry_id": row.registry_id})
        if done is not None:
            report = cast(ToolRegistryMutationReport, done)
            self.area.show_notice(f"{report.outcome}: {report.registry_id}, {count(len(report.removed), 'tool')}")


def registry_parts(found: ToolRegistryGetReport, told: MemoryProjectionReport | BeetleError) -> Iterator[Block]:
    """The detail of a registry; `told` is what a host is told of its tools, or why it is told nothing."""
    registry = found.registry
    hints: dict[str, AgentToolHint] = {}
    if isinstance(told, BeetleError):
        yield from remark(f"Hints: {told.key}: {told.message}")
    else:
        hints = {each.tool_id: each for each in told.agent_tool_hints}
        yield from remark(WHY_NONE[told.tool_experience_status.reason])
    yield from section("About it")
    yield value("Fingerprint", registry.fingerprint)
    yield value("Scope", registry.scope)
    yield value("Made", moment(registry.created_at))
    yield value("Changed", f"{moment(registry.updated_at)}, revision {registry.revision}")
    yield from section(f"{count(len(found.tools), 'tool')}, {len(hints):,} with experience")
    # What is known comes first, the best of it before the rest.
    for tool in sorted(found.tools, key=lambda each: -hints[each.tool_id].score if each.tool_id in hints else 1.0):
        yield from _tool_parts(tool, hints.get(tool.tool_id))


def _tool_parts(tool: RegisteredTool, hint: AgentToolHint | None) -> Iterator[Block]:
    yield value("Tool", f"{tool.tool_id}: {NOT_SHOWN if tool.title is None else tool.title}")
    if tool.summary:
        yield value("", tool.summary)
    if hint is not None:
        yield value("", f"score {hint.score:.2f}: {hint.reason or NOT_SHOWN}")
    tags = [f"needs {each}" for each in tool.permission_tags] + [f"risk {each}" for each in tool.risk_tags]
    yield value("", "; ".join([f"schema {tool.schema_fingerprint}", *tags]))
