"""Hooks of coding agents as events: what a hook says becomes an event, and events go to a memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any, Protocol, cast

from beetle.contracts.events import Event, EventIngestReport
from beetle.hook import EVENTS, new_ulid

__all__ = ["HookEvent", "HookEventType", "ingest", "ingest_batch", "map_hook_event"]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class HookEventType(Enum):
    """What kind of hook it is."""

    SessionStart = "SessionStart"
    UserPromptSubmit = "UserPromptSubmit"
    AssistantResponse = "AssistantResponse"
    ToolUse = "ToolUse"
    ToolResult = "ToolResult"
    Stop = "Stop"
    SubagentStart = "SubagentStart"
    SubagentStop = "SubagentStop"


@dataclass(frozen=True)
class HookEvent:
    """One hook: `HookEvent("session-1", HookEventType.ToolResult, "File contents").with_tool_name("Read")`."""

    session_id: str
    event_type: HookEventType
    content: str
    timestamp: datetime | None = None
    tool_name: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict[str, str])

    def with_timestamp(self, timestamp: datetime) -> HookEvent:
        """When it was, with a zone; without one it is taken for now."""
        return replace(self, timestamp=timestamp)

    def with_tool_name(self, tool_name: str) -> HookEvent:
        """The tool that was used."""
        return replace(self, tool_name=tool_name)

    def with_metadata(self, metadata: Mapping[str, str]) -> HookEvent:
        """More of it, by name."""
        return replace(self, metadata=dict(metadata))


def map_hook_event(hook: HookEvent) -> Event:
    """The event that a hook is, with a new ULID. The tool's name goes into the metadata as `tool_name`."""
    event_type, role = EVENTS[hook.event_type.value]
    at = hook.timestamp or datetime.now(UTC)
    metadata = dict(hook.metadata)
    if hook.tool_name is not None:
        metadata["tool_name"] = hook.tool_name
    return Event(
        event_id=new_ulid(),
        session_id=hook.session_id,
        timestamp_ms=(at - EPOCH) // timedelta(milliseconds=1),
        event_type=cast(Any, event_type),
        role=cast(Any, role),
        text=hook.content,
        metadata=metadata or None,
    )


class Memory(Protocol):
    """A `Client` or a `MemoryRuntime`."""

    def call(self, operation: str, arguments: Any = None) -> Any: ...


def ingest(memory: Memory, event: Event) -> tuple[str, bool]:
    """Keep one event; its id, and whether it is new.

    Raises:
        BeetleError: what event.ingest answers.
    """
    report: EventIngestReport = memory.call("event.ingest", {"event": event})
    return report.event_id, report.created


def ingest_batch(memory: Memory, events: Iterable[Event]) -> int:
    """Keep events one after another; how many of them are new. It ends at the first error.

    Raises:
        BeetleError: what event.ingest answers; the events before it are kept.
    """
    return sum(ingest(memory, event)[1] for event in events)
