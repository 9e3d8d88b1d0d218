"""Evidence: transcript.commit, replay, export, timeline, conversations, search, lifecycle."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from beetle.contracts.common import (
    Conversation,
    ConversationRef,
    Cursor,
    DerivedMemoryRef,
    PageLimit,
    RecallLimit,
    Report,
    TurnPageLimit,
)
from beetle.contracts.fields import (
    NONBLANK,
    Content,
    Evidence,
    Id,
    Open,
    Part,
    Piece,
    Request,
    Time,
    Visibility,
    budgeted,
)
from beetle.contracts.names import ViewName
from beetle.contracts.operation import TRANSCRIPT, Operation
from beetle.contracts.turns import CanonicalTurnDelta, EventType, StoredRole

ViewArg = Annotated[ViewName, Meta(description="view that filters the report; one that the caller is allowed to use")]
Query = Annotated[
    str, Meta(min_length=1, pattern=NONBLANK, extra=budgeted("query_chars"), description="words to look for")
]


class MemoryTranscriptCommitRequest(Request, frozen=True, kw_only=True):
    """Commit delivered turns as evidence: all of them or none."""

    conversation: Conversation
    turns: Annotated[
        tuple[CanonicalTurnDelta, ...],
        Meta(min_length=1, extra=budgeted("commit_turns"), description="the delivered turns, oldest first"),
    ]


class CommittedTurn(Piece, frozen=True, kw_only=True):
    turn_id: Open[str]
    sequence: Open[int]
    outcome: Open[Literal["committed", "unchanged"]]


class MemoryTranscriptCommitReport(Report, frozen=True, kw_only=True):
    """`turns` in the order of the request."""

    committed: Open[int]
    unchanged: Open[int]
    turns: Open[tuple[CommittedTurn, ...]]


class MemoryTranscriptReplayRequest(Request, frozen=True, kw_only=True):
    """Read a conversation's turns in sequence order through one view."""

    conversation: Conversation
    view: ViewArg
    limit: TurnPageLimit = 50
    cursor: Cursor | None = None


class Redacted(Piece, frozen=True, kw_only=True):
    """Replaces content that may not be shown: the reason and, in operator_audit, what can be said without it."""

    reason: Open[str]
    digest: Open[str | UnsetType] = UNSET
    length: Open[int | UnsetType] = UNSET
    deleted_at: Open[str | UnsetType] = UNSET
    deleted_by: Open[str | UnsetType] = UNSET


class DeletedContent(Piece, frozen=True, kw_only=True):
    """When and by whom a message's raw content was deleted."""

    at: Open[str]
    by: Open[str]


class ActorView(Piece, frozen=True, kw_only=True):
    speaker: Content[str | None] = None
    subject_id: Open[str | None] = None
    actor_subject_id: Open[str | None] = None
    mounted_subject_id: Open[str | None] = None
    agent_id: Open[str | None] = None
    trigger: Open[str | None] = None


class ToolCallView(Piece, frozen=True, kw_only=True):
    """A tool call in a report."""

    tool: Open[str]
    call_id: Open[str | None] = None
    arguments: Open[dict[str, Any] | None] = None
    brief: Open[str | None] = None


class ToolResultView(Piece, frozen=True, kw_only=True):
    """What a tool answered, in a report."""

    call_id: Open[str | None] = None
    tool: Open[str | None] = None
    failed: Open[bool] = False
    output: Open[dict[str, Any] | None] = None


class TranscriptMessage(Piece, frozen=True, kw_only=True):
    """A message in a report: `content` where the view may see it, else `redacted`.

    `tool_calls` and `tool_result` are present if the message has them and its content is shown, `event_type` where it
    was ingested as an event. `state`, `digest` and
    `deletion` are what the gate decides with; it takes `digest` and `deletion` out again.
    """

    message_id: Open[str]
    role: Open[StoredRole]
    at: Open[str]
    visibility: Open[Visibility]
    state: Open[Literal["live", "masked", "deleted"]]
    actor: Evidence[ActorView | None] = None
    content: Evidence[str | UnsetType] = UNSET
    tool_calls: Evidence[tuple[ToolCallView, ...] | UnsetType] = UNSET
    tool_result: Evidence[ToolResultView | UnsetType] = UNSET
    event_type: Open[EventType | UnsetType] = UNSET
    redacted: Open[Redacted | UnsetType] = UNSET
    length: Evidence[int | UnsetType] = UNSET
    digest: Evidence[str | UnsetType] = UNSET
    deletion: Evidence[DeletedContent | UnsetType] = UNSET


class HostRefView(Piece, frozen=True, kw_only=True):
    """A host ref in a report; `label` is shown in owner-approved views alone."""

    kind: Open[str]
    ref_id: Open[str]
    relation: Open[str | None] = None
    label: Evidence[str | None] = None
    visibility: Open[tuple[str, ...]] = ()


class AttrView(Piece, frozen=True, kw_only=True):
    """An attr in a report; dropped whole where the view is not among its own."""

    key: Evidence[str | None]
    value: Evidence[str | None]
    message_id: Open[str | None] = None
    visibility: Open[tuple[str, ...]] = ()
    export_allowed: Open[bool] = False


class TranscriptTurn(Piece, frozen=True, kw_only=True):
    turn_id: Open[str]
    sequence: Open[int]
    at: Open[str]
    archived: Open[bool]
    messages: Open[tuple[TranscriptMessage, ...]]
    host_refs: Open[tuple[HostRefView, ...]] = ()
    attrs: Open[tuple[AttrView, ...]] = ()


class TranscriptRedactionReportItem(Piece, frozen=True, kw_only=True):
    """One thing that a view withheld: where, which field, why."""

    turn_id: Open[str]
    field: Open[str]
    reason: Open[str]
    message_id: Open[str | None] = None


class TranscriptReplayAudit(Piece, frozen=True, kw_only=True):
    """Counts of what a view withheld, whole even where the list of items was clipped."""

    messages_redacted: Open[int] = 0
    host_refs_redacted: Open[int] = 0
    labels_redacted: Open[int] = 0
    attrs_redacted: Open[int] = 0


class RedactedTranscriptSlice(Report, frozen=True, kw_only=True):
    """Parent of every report that shows turns through a view. The gate fills `redactions` and `audit`."""

    view: Open[ViewName]
    turns: Open[tuple[TranscriptTurn, ...]]
    redactions: Open[tuple[TranscriptRedactionReportItem, ...]] = ()
    audit: Open[TranscriptReplayAudit] = TranscriptReplayAudit()
    has_more: Open[bool] = False
    next_cursor: Open[str | None] = None


class MemoryTranscriptReplayReport(RedactedTranscriptSlice, frozen=True, kw_only=True):
    """A page of turns in sequence order."""


class MemoryTranscriptExportRequest(Request, frozen=True, kw_only=True):
    """Read a conversation's exportable turns in sequence order."""

    conversation: Conversation
    view: Annotated[Literal["export"], Meta(description="the export view, which is the only one")] = "export"
    include_private: Annotated[
        bool,
        Meta(description="include private and soul material; needs the view raw_owner and the capability private.read"),
    ] = False
    limit: TurnPageLimit = 50
    cursor: Cursor | None = None


class MemoryTranscriptExportReport(RedactedTranscriptSlice, frozen=True, kw_only=True):
    """A page of turns in sequence order, and whether private material was asked for."""

    include_private: Open[bool] = False


class FirstIn(Part, frozen=True, kw_only=True, rename={"begin": "from", "end": "to"}):
    """A stretch of time; both ends are included."""

    begin: Time
    end: Time


class TimelineAnchor(Part, frozen=True, kw_only=True):
    """Where a timeline page begins; exactly one field. `first_in` is `{from, to}`, both included; `turn` is as `around`
    with the sequence of that turn."""

    before: Annotated[int, Meta(ge=0)] | None = None
    after: Annotated[int, Meta(ge=0)] | None = None
    around: Annotated[int, Meta(ge=0)] | None = None
    at: Time | None = None
    first_in: FirstIn | None = None
    turn: Annotated[Id, Meta(description="id of a turn of the conversation")] | None = None

    def __post_init__(self) -> None:
        given = [v for v in (self.before, self.after, self.around, self.at, self.first_in, self.turn) if v is not None]
        if len(given) != 1:
            raise ValueError("anchor takes exactly one of before, after, around, at, first_in, turn")


class MemoryTranscriptTimelineRequest(Request, frozen=True, kw_only=True):
    """One page of a conversation, placed by sequence or time; turns come in sequence order."""

    conversation: Conversation
    view: ViewArg
    anchor: Annotated[
        Literal["latest"] | TimelineAnchor,
        Meta(
            description="latest, or {before|after|around: sequence}, {at: time}, {first_in: {from, to}}, {turn: its id}"
        ),
    ] = "latest"
    limit: TurnPageLimit = 50


class MemoryTranscriptTimelineReport(RedactedTranscriptSlice, frozen=True, kw_only=True):
    """`has_before` and `has_after` say whether there are turns before and after this page."""

    has_before: Open[bool] = False
    has_after: Open[bool] = False


class MemoryTranscriptConversationsRequest(Request, frozen=True, kw_only=True):
    """List the conversations of the space, the most recently begun first."""

    query: Annotated[
        str, Meta(min_length=1, max_length=256, description="part of a conversation's or channel's id")
    ] | (None) = None
    since: Annotated[Time, Meta(description="with a turn at or after this time")] | None = None
    until: Annotated[Time, Meta(description="with a turn at or before this time")] | None = None
    limit: PageLimit = 50
    cursor: Cursor | None = None


class ConversationSummary(Piece, frozen=True, kw_only=True):
    channel_id: Open[str]
    conversation_id: Open[str]
    turns: Open[int]
    first_at: Open[str | None]
    last_at: Open[str | None]
    speakers: Content[tuple[str, ...] | None] = None


class MemoryTranscriptConversationsReport(Report, frozen=True, kw_only=True):
    """A page of conversations, the most recently begun first."""

    conversations: Open[tuple[ConversationSummary, ...]]
    has_more: Open[bool] = False
    next_cursor: Open[str | None] = None


class MemoryTranscriptSearchRequest(Request, frozen=True, kw_only=True):
    """Search messages by their words, through a view that may see them.

    Every hit holds words of the query, unless `neighbours` asks for adjacent messages too.
    """

    query: Query
    view: ViewArg
    conversation: Conversation | None = None
    since: Annotated[Time, Meta(description="not before")] | None = None
    until: Annotated[Time, Meta(description="not after")] | None = None
    limit: RecallLimit = 8
    neighbours: Annotated[bool, Meta(description="also messages that are only adjacent to a hit")] = False


class SearchHit(Piece, frozen=True, kw_only=True):
    """A message; `why` names the signals that ranked it, `lexical` where it holds words of the query."""

    ref: Open[str]
    score: Open[float]
    excerpt: Evidence[str | None]
    why: Open[tuple[str, ...]]
    at: Open[str]
    conversation: Open[ConversationRef]
    turn_id: Open[str]
    message_id: Open[str]
    visibility: Open[Visibility] = "shared"
    state: Open[Literal["live", "masked", "deleted"]] = "live"


class MemoryTranscriptSearchReport(Report, frozen=True, kw_only=True):
    """Hits that the view may see, best first."""

    hits: Open[tuple[SearchHit, ...]]


class MemoryTranscriptLifecycleRequest(Request, frozen=True, kw_only=True):
    """Archive, mask, unmask or raw-delete turns, or report what that would change (`dry_run`)."""

    conversation: Conversation
    action: Annotated[
        Literal["archive", "mask", "unmask", "delete_raw", "review"], Meta(description="action to take on the turns")
    ]
    turn_ids: (
        Annotated[tuple[Id, ...], Meta(min_length=1, extra=budgeted("commit_turns"), description="these turns")] | None
    ) = None
    before: Annotated[Time, Meta(description="every turn that is older than this")] | None = None
    reason: Annotated[str, Meta(min_length=1, max_length=512, description="reason; stored in the lifecycle record")]
    dry_run: Annotated[bool, Meta(description="report what would change; change nothing")] = False

    def __post_init__(self) -> None:
        if (self.turn_ids is None) == (self.before is None):
            raise ValueError("give exactly one of turn_ids and before")


class MemoryTranscriptLifecycleReport(Report, frozen=True, kw_only=True):
    """What a lifecycle step touched. `changed` false means that nothing matched or nothing was left to do. The counts
    (`affected_…`) are of all of it; a list ends at its budget.

    `erasure` is `done` once no byte of the content is left in database and WAL, `pending` while a reader holds an old
    snapshot or an import of chunk files into the space runs, and None where nothing was erased. `replica_horizon` is
    the time of the newest copy of the store that may hold it still, in a snapshot or set aside by a restore: when every
    copy up to then is pruned, it is nowhere. None where there is no copy. `copies_until` is when the last such copy
    will have been removed by the schedule and the policy of snapshots; None where one stays until somebody removes it.
    `replicated_until` is until when the replica holds what was erased so far, if its sidecar reaches it;
    `replication.forget` removes it at once. A time that has passed is reported until nothing is found left. None where
    no replica holds any of it.
    """

    action: Open[str]
    dry_run: Open[bool]
    changed: Open[bool]
    affected_turns: Open[int]
    affected_messages: Open[int] = 0
    affected_refs: Open[int] = 0
    affected_derived: Open[int] = 0
    turn_ids: Open[tuple[str, ...]]
    message_ids: Open[tuple[str, ...]]
    host_refs: Open[tuple[HostRefView, ...]]
    redactions: Open[tuple[TranscriptRedactionReportItem, ...]]
    derived_refs: Open[tuple[DerivedMemoryRef, ...]]
    erasure: Open[Literal["done", "pending"] | None] = None
    replica_horizon: Open[str | None] = None
    replicated_until: Open[str | None] = None
    copies_until: Open[str | None] = None
    audit_event_id: Open[int | None] = None
    receipt: Open[str | None] = None


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "transcript.commit", "commit_transcript", MemoryTranscriptCommitRequest, MemoryTranscriptCommitReport, "write",
        "transcript", TRANSCRIPT, ("transcript", "commit"),
        "commit delivered turns as evidence: all of them or none",
        example={
            "conversation": {"conversation_id": "c1"},
            "turns": [{
                "turn_id": "t1", "at": "2026-05-17T09:30:00Z",
                "messages": [{"message_id": "m1", "role": "user", "content": "The key is under the pot"}]
            }],
        },
        shell=(
            "beetle transcript commit --conversation c1 --role user --speaker Ana --text 'The key is under the pot'",
            "beetle transcript commit --conversation telegram/42 --file turns.json",
            "beetle transcript commit < request.json",
        ),
    ),
    Operation(
        "transcript.replay", "replay_transcript", MemoryTranscriptReplayRequest, MemoryTranscriptReplayReport, "read",
        "transcript", TRANSCRIPT, ("transcript", "replay"),
        "read a conversation's turns in sequence order through one view",
        word="conversation",
        example={"conversation": {"conversation_id": "c1"}, "view": "host_ui"},
    ),
    Operation(
        "transcript.export", "export_transcript", MemoryTranscriptExportRequest, MemoryTranscriptExportReport, "read",
        "transcript", TRANSCRIPT, ("transcript", "export"),
        "read a conversation's exportable turns in sequence order",
        word="conversation",
        example={"conversation": {"conversation_id": "c1"}},
        shell=("beetle transcript export c1 > c1.txt", "beetle --json transcript export c1 --limit 100 > c1.json"),
    ),
    Operation(
        "transcript.conversations", "list_conversations", MemoryTranscriptConversationsRequest,
        MemoryTranscriptConversationsReport, "read", "transcript", TRANSCRIPT, ("transcript", "conversations"),
        "list the conversations of the space, the most recently begun first",
        word="query",
    ),
    Operation(
        "transcript.timeline", "transcript_timeline", MemoryTranscriptTimelineRequest, MemoryTranscriptTimelineReport,
        "read", "transcript", TRANSCRIPT, ("transcript", "timeline"),
        "one page of a conversation, placed by sequence or time; turns come in sequence order",
        word="conversation",
        example={"conversation": {"conversation_id": "c1"}, "view": "host_ui", "anchor": {"before": 120}},
        shell=(
            "beetle transcript timeline c1 --anchor before=120 --limit 20",
            "beetle transcript timeline c1 --anchor at=2026-05-17T09:30:00Z",
        ),
    ),
    Operation(
        "transcript.search", "search_transcript", MemoryTranscriptSearchRequest, MemoryTranscriptSearchReport, "read",
        "transcript", TRANSCRIPT, ("transcript", "search"),
        "search messages by their words, through a view that may see them",
        word="query",
        example={"query": "spare key", "view": "host_ui"},
    ),
    Operation(
        "transcript.lifecycle", "request_transcript_lifecycle", MemoryTranscriptLifecycleRequest,
        MemoryTranscriptLifecycleReport, "write", "transcript", TRANSCRIPT, ("transcript", "lifecycle"),
        "archive, mask, unmask or raw-delete turns, or report what that would change (`dry_run`)",
        batch=False, grows=False, deadline_ms=3_600_000, word="conversation",
        example={
            "conversation": {"conversation_id": "c1"},
            "action": "mask",
            "turn_ids": ["t1"],
            "reason": "asked by Ana",
        },
        shell=("beetle transcript lifecycle c1 --action delete_raw --turn-ids t7 --reason 'asked by Ana' --dry-run",),
        progress=True,
        destructive=True,
    ),
)  # fmt: skip
