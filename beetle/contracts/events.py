"""Events: what happened in a session, by time: event.ingest and event.range."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from beetle.contracts.common import ConversationRef, Cursor, Report
from beetle.contracts.fields import Evidence, Id, Open, Part, Piece, Request, Visibility, budgeted, clipped
from beetle.contracts.operation import EVENT, QUERY, RPC, Operation
from beetle.contracts.transcript import Redacted
from beetle.contracts.turns import EventType, StoredRole

EventRole = Literal["user", "assistant", "system", "tool"]
CHANNEL = "event"
"""The channel of the conversations that ingested events make."""
EVENT_ID_BYTES = 128
FIRST_MS = -62_135_596_800_000
LAST_MS = 253_402_300_799_999
"""The years 1 to 9999."""
TimestampMs = Annotated[int, Meta(ge=FIRST_MS, le=LAST_MS)]


class Event(Part, frozen=True, kw_only=True):
    """One event of a session. Its session is a conversation of the channel `event`, the event a turn of it."""

    event_id: Annotated[Id, Meta(description="the client's own id, unique in the space; at most 128 bytes")]
    session_id: Annotated[Id, Meta(description="the session that it is of")]
    timestamp_ms: Annotated[TimestampMs, Meta(description="when it was, in milliseconds since the epoch, UTC")]
    event_type: Annotated[EventType, Meta(description="what happened")]
    role: Annotated[EventRole, Meta(description="who caused it")] = "user"
    text: Annotated[str, Meta(extra=budgeted("message_content_bytes"), description="what was said; may be empty")] = ""
    metadata: (
        Annotated[
            dict[Id, str],
            Meta(
                max_length=256, description="more of it, by name: a tool's name, a file's path; counted with the text"
            ),
        ]
        | None
    ) = None
    agent: Annotated[Id, Meta(description="id of the agent that it is of")] | None = None

    def __post_init__(self) -> None:
        if len(self.event_id.encode(errors="surrogatepass")) > EVENT_ID_BYTES:
            raise ValueError(f"an event_id has at most {EVENT_ID_BYTES} bytes")


class EventIngestRequest(Request, frozen=True, kw_only=True):
    """Keep one event as evidence, once: what its id names already stays as it came first."""

    event: Annotated[Event, Meta(description="the event")]


class EventIngestReport(Report, frozen=True, kw_only=True):
    """`created` false: an event of this id existed already, and nothing was written."""

    event_id: Open[str]
    created: Open[bool]


class EventRangeRequest(Request, frozen=True, kw_only=True):
    """Read what was said between two times, in the order of (timestamp_ms, event_id); both ends are included.

    Turns that came in by other ways are events too: their ids are refs. They precede ingested events of the same
    millisecond.
    """

    from_timestamp_ms: Annotated[TimestampMs, Meta(description="from then on, milliseconds since the epoch")]
    to_timestamp_ms: Annotated[TimestampMs, Meta(description="until then, included")]
    limit: Annotated[int, Meta(extra=clipped("page_limit"), description="maximum number; 0 or less: 50")] = 50
    cursor: Cursor | None = None


class EventRecord(Piece, frozen=True, kw_only=True):
    """One event. `text` and `metadata` are null where they may not be shown, and `redacted` says why.

    `event_type` of a turn that came in another way follows from its role. `tool_use` is shown as role assistant,
    `tool_result` as tool, `other` as system; `stored_role` is the stored one.
    """

    event_id: Open[str]
    session_id: Open[str]
    timestamp_ms: Open[int]
    event_type: Open[EventType]
    role: Open[EventRole]
    stored_role: Open[StoredRole]
    ref: Open[str]
    conversation: Open[ConversationRef]
    turn_id: Open[str]
    message_id: Open[str]
    visibility: Open[Visibility]
    state: Open[Literal["live", "masked", "deleted"]]
    text: Evidence[str | None] = None
    metadata: Evidence[dict[str, str] | None] = None
    agent: Open[str | None] = None
    redacted: Open[Redacted | UnsetType] = UNSET


class EventRangeReport(Report, frozen=True, kw_only=True):
    """A page of events in order of time."""

    events: Open[tuple[EventRecord, ...]]
    has_more: Open[bool] = False
    next_cursor: Open[str | None] = None


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "event.ingest", "ingest_event", EventIngestRequest, EventIngestReport, "write", "event", EVENT,
        ("event", "ingest"),
        "keep one event as evidence, once: what its id names already stays as it came first",
        example={
            "event": {
                "event_id": "01HXYZABC123", "session_id": "session-1", "timestamp_ms": 1738281600000,
                "event_type": "user_message", "role": "user", "text": "What is Rust?",
            }
        },
        exposed=RPC,
    ),
    Operation(
        "event.range", "event_range", EventRangeRequest, EventRangeReport, "read", "event", QUERY,
        ("query", "events"),
        "read what was said between two times, in the order of (timestamp_ms, event_id); both ends are included",
        example={"from_timestamp_ms": 1738278000000, "to_timestamp_ms": 1738281600000},
        exposed=RPC,
    ),
)  # fmt: skip
