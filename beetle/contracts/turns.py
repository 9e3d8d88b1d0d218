"""What a turn is made of as it is written: messages, actors, host refs, attrs."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from msgspec import Meta

from beetle.contracts.fields import (
    Id,
    Label,
    Part,
    Time,
    Visibility,
    budgeted,
)

Role = Literal["user", "assistant", "system", "tool"]
StoredRole = Literal["user", "assistant", "system", "tool", "tool_use", "tool_result", "other"]
EventType = Literal[
    "session_start", "user_message", "assistant_message", "tool_result", "assistant_stop", "subagent_start",
    "subagent_stop", "session_end",
]  # fmt: skip
EVENT_TYPES: tuple[EventType, ...] = get_args(EventType)
"""In the order of their numbers, which stand in the store and in protocols; the first is 1."""
EVENT_NUMBERS = range(1, len(EVENT_TYPES) + 1)
RefView = Literal["host_ui", "model_context", "operator_audit", "export"]


class ActorAttribution(Part, frozen=True, kw_only=True):
    """Who spoke, about whom, as whom, and what set it off; never collapsed into one identity."""

    speaker: Annotated[Label, Meta(description="display name of the speaker")] | None = None
    subject_id: Annotated[Id, Meta(description="the subject that the message is about")] | None = None
    actor_subject_id: Annotated[Id, Meta(description="id of the speaking subject")] | None = None
    mounted_subject_id: Annotated[Id, Meta(description="id of the subject that the agent represents")] | None = None
    agent_id: Annotated[Id, Meta(description="id of the agent that spoke")] | None = None
    trigger: Annotated[Label, Meta(description="what triggered the message")] | None = None


class ToolCall(Part, frozen=True, kw_only=True, omit_defaults=True):
    """A tool that a message calls."""

    tool: Annotated[Id, Meta(description="name of the tool")]
    call_id: Annotated[Id, Meta(description="id of the call, which its result names")] | None = None
    arguments: Annotated[dict[str, Any], Meta(description="its arguments by name, any JSON")] | None = None
    brief: Annotated[str, Meta(max_length=200, description="the call in short")] | None = None


class ToolResult(Part, frozen=True, kw_only=True, omit_defaults=True):
    """What a tool answered, besides the text of its message."""

    call_id: Annotated[Id, Meta(description="id of the call that it answers")] | None = None
    tool: Annotated[Id, Meta(description="name of the tool")] | None = None
    failed: Annotated[bool, Meta(description="whether the call failed")] = False
    output: Annotated[dict[str, Any], Meta(description="structured output, any JSON")] | None = None


class MessageDelta(Part, frozen=True, kw_only=True):
    """One message of a turn. `at` defaults to its turn's. Its tool calls and result count as content: they are private,
    found and erased with it, and count with it against `message_content_bytes`."""

    message_id: Annotated[Id, Meta(description="unique in its conversation")]
    role: Annotated[Role, Meta(description="role of the sender in the conversation")]
    content: Annotated[str, Meta(extra=budgeted("message_content_bytes"), description="the text; stored unchanged")]
    at: Annotated[Time, Meta(description="time of the message; default: the turn's time")] | None = None
    visibility: Annotated[Visibility, Meta(description="visibility of the content")] = "shared"
    actor: ActorAttribution | None = None
    tool_calls: Annotated[
        tuple[ToolCall, ...], Meta(max_length=128, description="tools that the message calls, in order")
    ] = ()
    tool_result: Annotated[ToolResult, Meta(description="the tool's answer; of a message of role tool")] | None = None

    def __post_init__(self) -> None:
        if self.tool_result is not None and self.role != "tool":
            raise ValueError("tool_result is of a message of role tool alone")


class HostOpaqueRef(Part, frozen=True, kw_only=True):
    """A host's own object (task, ticket, order…), which memory never looks into."""

    kind: Annotated[Id, Meta(description="the host's name for this kind of object")]
    ref_id: Annotated[Id, Meta(description="the host's own id of it")]
    relation: Annotated[Label, Meta(description="relation of the turn to the object")] | None = None
    label: Annotated[str, Meta(max_length=1024, description="display name; content, and erased with it")] | None = None
    visibility: Annotated[tuple[RefView, ...], Meta(description="the views that show it")] = ("host_ui",)


class MessageTarget(Part, frozen=True, kw_only=True):
    """An attribute's target when it is one message of the turn."""

    message_id: Id


class TranscriptAttr(Part, frozen=True, kw_only=True):
    """A named value that a host keeps beside a turn or a message."""

    key: Annotated[Id, Meta(description="name of the value")]
    value: Annotated[
        str, Meta(extra=budgeted("message_content_bytes"), description="the value; content, and erased with it")
    ]
    target: Annotated[Literal["turn"] | MessageTarget, Meta(description="`turn`, or one message of it")] = "turn"
    visibility: Annotated[tuple[RefView, ...], Meta(description="the views that show it")] = ("host_ui",)
    export_allowed: Annotated[bool, Meta(description="whether the export view may show it")] = False


class CanonicalTurnDelta(Part, frozen=True, kw_only=True):
    """A delivered turn. Its digest covers turn_id, at, the messages and the host refs, not the attrs."""

    turn_id: Annotated[Id, Meta(description="unique in its conversation")]
    at: Annotated[Time, Meta(description="when the turn was")]
    messages: Annotated[
        tuple[MessageDelta, ...], Meta(min_length=1, max_length=1000, description="its messages, in order")
    ]
    host_refs: Annotated[
        tuple[HostOpaqueRef, ...], Meta(extra=budgeted("host_refs_per_turn"), description="objects of the host")
    ] = ()
    attrs: Annotated[tuple[TranscriptAttr, ...], Meta(max_length=256, description="values stored with the turn")] = ()
