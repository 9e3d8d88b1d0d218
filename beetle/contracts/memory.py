"""memory.*: write, recall, project, inspect, capabilities."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

from beetle.contracts.common import (
    Conversation,
    ConversationRef,
    DerivedMemoryRef,
    ModeArg,
    ModeInput,
    RecallLimit,
    RegistryRef,
    Report,
)
from beetle.contracts.fields import (
    Content,
    Evidence,
    Open,
    OperatorOnly,
    Piece,
    Request,
    Time,
    Visibility,
    budgeted,
    clipped,
)
from beetle.contracts.governance import (
    CandidatesWrite,
    GovernanceOutcome,
    LongTermExtractionWrite,
    ToolFeedbackWrite,
)
from beetle.contracts.lifecycle import Mode
from beetle.contracts.maintain import DeferredGovernance
from beetle.contracts.names import PLANE_NAMES, PlaneName
from beetle.contracts.operation import MEMORY, RPC, Operation, Tool
from beetle.contracts.skills import RuntimeSkillWrite, RuntimeSkillWriteOutcome
from beetle.contracts.transcript import Query

Pressure = Literal["normal", "elevated", "critical"]
CurrentBy = Literal["named", "remembered", "chat_id", "untrusted", "withheld", "nothing"]
"""By what the current conversation was found. Without one: two conversations claim the chat id (`untrusted`), nothing
of the conversation is live (`withheld`), or there is none."""


class ProceduralWrite(Request, frozen=True, kw_only=True, tag="procedural", tag_field="kind"):
    """Create or revise runtime skills: all of them or none."""

    source: Annotated[
        Literal["manual", "post_turn", "replay_promotion", "import"], Meta(description="source of the skills")
    ]
    writes: Annotated[
        tuple[RuntimeSkillWrite, ...],
        Meta(min_length=1, extra=budgeted("batch_requests"), description="the skills to create or revise"),
    ]


MemoryWriteRequest = ProceduralWrite | LongTermExtractionWrite | CandidatesWrite | ToolFeedbackWrite
"""Tagged by `kind`."""


class MemoryWriteReport(Report, frozen=True, kw_only=True):
    """`writes` (of skills) or `outcomes` (of what was judged) in the order of the request.

    `derived_refs` are those that this write made.
    """

    accepted: Open[int]
    writes: Open[tuple[RuntimeSkillWriteOutcome, ...]] = ()
    outcomes: Open[tuple[GovernanceOutcome, ...]] = ()
    derived_refs: Open[tuple[DerivedMemoryRef, ...]] = ()


class MemoryRecallRequest(Request, frozen=True, kw_only=True):
    """Find what memory holds for a query, over every plane that the caller may see."""

    query: Query
    limit: RecallLimit = 8
    tool_registry_refs: Annotated[
        tuple[RegistryRef, ...], Meta(max_length=64, description="the host's registries")
    ] = ()
    planes: (
        Annotated[
            tuple[PlaneName, ...], Meta(min_length=1, max_length=len(PLANE_NAMES), description="only these planes")
        ]
        | None
    ) = None
    conversation: Conversation | None = None
    since: Annotated[Time, Meta(description="not before")] | None = None
    until: Annotated[Time, Meta(description="not after")] | None = None
    as_of: Annotated[Time, Meta(description="recall as of this time")] | None = None
    asked_at: (
        Annotated[Time, Meta(description="when the query was asked: what `last week` in it counts from; default: now")]
        | None
    ) = None
    path: Annotated[
        Literal["direct", "toc"], Meta(description="toc: by the table of contents, from years down to segments")
    ] = "direct"


class RecallHit(Piece, frozen=True, kw_only=True):
    """One hit of the fused list; `why` names the signals that ranked it. Higher scores come first. `toc_nodes` are the
    nodes of the table of contents that led to it, from the year down, where the request's `path` is toc.
    """

    plane: Open[PlaneName]
    ref: Open[str]
    score: Open[float]
    excerpt: Evidence[str | None]
    why: Open[tuple[str, ...]]
    at: Open[str | None] = None
    title: Content[str | None] = None
    conversation: Open[ConversationRef | None] = None
    turn_id: Open[str | None] = None
    message_id: Open[str | None] = None
    session_id: Open[str | None] = None
    event_id: Open[str | None] = None
    visibility: Open[Visibility] = "shared"
    state: Open[Literal["live", "masked", "deleted"]] = "live"
    toc_nodes: Open[tuple[str, ...]] = ()


class AgentToolHint(Piece, frozen=True, kw_only=True):
    """Governed experience with a tool of the host; the host executes, and decides whether it may.

    `score` is between 0 and 1: the share of its last uses that succeeded, one of each kind added.
    """

    tool_id: Open[str]
    registry_id: Open[str]
    schema_fingerprint: Open[str]
    reason: Content[str | None]
    permission_tags: Open[tuple[str, ...]] = ()
    risk_tags: Open[tuple[str, ...]] = ()
    host_execution_required: Open[bool] = True
    score: Open[float] = 0.0
    registry_fingerprint: Open[str] = ""
    registry_scope: Open[str] = "global"


ToolExperienceReason = Literal[
    "available", "no_governed_tool_experience", "registry_missing", "registry_drifted", "experience_stale"
]


class ToolExperienceStatus(Piece, frozen=True, kw_only=True):
    """Why there are hints, or none. `registries` were looked at; of them some are not registered, some have drifted.

    Without hints, the first that holds of: experience of a tool whose registry is missing, is another one now, or
    whose schema is another one now; else there is no governed experience.
    """

    reason: Open[ToolExperienceReason] = "no_governed_tool_experience"
    registries: Open[tuple[str, ...]] = ()
    missing: Open[tuple[str, ...]] = ()
    drifted: Open[tuple[str, ...]] = ()


class WorkingRecall(Piece, frozen=True, kw_only=True):
    """How the hits were found: the conversation that counted as current, the planes searched, how many were ranked.

    `time_from` and `time_until` are the period that the query names, if any.
    """

    current_conversation: Open[ConversationRef | None] = None
    current_by: Open[CurrentBy] = "nothing"
    planes: Open[tuple[str, ...]] = ()
    candidates: Open[int] = 0
    terms: Open[int] = 0
    time_from: Open[str | None] = None
    time_until: Open[str | None] = None


class RecallTimings(Piece, frozen=True, kw_only=True):
    """Milliseconds spent searching the index, loading candidates and ranking them."""

    search: Open[float] = 0.0
    load: Open[float] = 0.0
    rank: Open[float] = 0.0
    total: Open[float] = 0.0


class MemoryRecallReport(Report, frozen=True, kw_only=True):
    """`hits` is the fused list, best first; the lists by plane hold the same hits apart."""

    hits: Open[tuple[RecallHit, ...]]
    runtime_skills: Open[tuple[RecallHit, ...]] = ()
    agent_skills: Open[tuple[RecallHit, ...]] = ()
    long_term: Open[tuple[RecallHit, ...]] = ()
    evidence: Open[tuple[RecallHit, ...]] = ()
    thoughts: Open[tuple[RecallHit, ...]] = ()
    chunks: Open[tuple[RecallHit, ...]] = ()
    agent_tool_hints: Open[tuple[AgentToolHint, ...]] = ()
    tool_experience_status: Open[ToolExperienceStatus] = ToolExperienceStatus()
    working_recall: Open[WorkingRecall] = WorkingRecall()
    timings_ms: Open[RecallTimings] = RecallTimings()


SystemMaxLen = Annotated[
    int, Meta(ge=0, extra=clipped("projection_chars"), description="characters the block may have, a hard bound")
]
PressureArg = Annotated[Pressure, Meta(description="how little room the model's context window has")]


class MemoryProjectionRequest(Request, frozen=True, kw_only=True):
    """Build the bounded memory block for a model's context."""

    user_query: Annotated[
        str, Meta(extra=budgeted("query_chars"), description="the user's current query; may be empty")
    ]
    system_max_len: SystemMaxLen = 4000
    recent_messages_limit: Annotated[int, Meta(ge=0, le=1000, description="most recent messages to show")] = 10
    pressure: PressureArg = "normal"
    conversation: Conversation | None = None
    mode_input: ModeArg = ModeInput()
    tool_registry_refs: Annotated[
        tuple[RegistryRef, ...], Meta(max_length=64, description="the host's registries")
    ] = ()


class ProjectionSection(Piece, frozen=True, kw_only=True):
    """One section of the block: what it may take, what it took, in characters."""

    name: Open[str]
    items: Open[int]
    characters: Open[int]
    budget: Open[int]
    omitted: Open[int] = 0


class ProjectionAudit(Piece, frozen=True, kw_only=True):
    """What went into the block and what the privacy gate withheld (counts only)."""

    source_planes: Open[tuple[str, ...]] = ()
    selected: Open[tuple[str, ...]] = ()
    characters: Open[int] = 0
    budget: Open[int] = 0
    pressure: Open[Pressure] = "normal"
    withheld: Open[int] = 0


class MemoryProjectionReport(Report, frozen=True, kw_only=True):
    """`system_memory_block` goes into a model's context unchanged; empty when nothing fits."""

    system_memory_block: Content[str | None]
    sections: Open[tuple[ProjectionSection, ...]]
    audit: Open[ProjectionAudit]
    agent_tool_hints: Open[tuple[AgentToolHint, ...]] = ()
    tool_experience_status: Open[ToolExperienceStatus] = ToolExperienceStatus()


class MemoryCapabilitiesRequest(Request, frozen=True, kw_only=True):
    """List the caller's capabilities, and the reason for each one that is hidden."""


class Capability(Piece, frozen=True, kw_only=True):
    """One entry of the catalog. `reason` says what hides it."""

    visible: Open[bool]
    reason: Open[str | None] = None
    operations: Open[tuple[str, ...]] = ()


class MemoryCapabilityCatalog(Report, frozen=True, kw_only=True):
    """Capability name to whether it is visible, the intersection of profile, build, runtime and privacy policy."""

    profile: Open[str]
    backend: Open[str]
    capabilities: Open[dict[str, Capability]]
    views: Open[tuple[str, ...]]


class MemoryInspectionRequest(Request, frozen=True, kw_only=True):
    """Report the state of the store, its counts and, with a query, how recall and projection answer it."""

    query: Annotated[
        str, Meta(extra=budgeted("query_chars"), description="also show recall and projection of this")
    ] = ""
    system_max_len: SystemMaxLen = 4000
    pressure: PressureArg = "normal"
    mode_input: ModeArg = ModeInput()


class StoreState(Piece, frozen=True, kw_only=True):
    """The store's file. What grows with the writes of all owners is for operators."""

    path: OperatorOnly[str | None]
    bytes: OperatorOnly[int | None]
    wal_bytes: OperatorOnly[int | None]
    pages: OperatorOnly[int | None]
    ceiling_bytes: Open[int]
    schema: Open[int]
    backend: Open[str]
    pending_erasures: OperatorOnly[int | None] = 0


class PlaneCounts(Piece, frozen=True, kw_only=True):
    """Rows of the caller's space. `facts` are the current ones."""

    conversations: Open[int]
    turns: Open[int]
    messages: Open[int]
    masked_messages: Open[int]
    deleted_messages: Open[int]
    runtime_skills: Open[int]
    skill_revisions: Open[int]
    derived_refs: Open[int]
    facts: Open[int]
    stale_facts: Open[int]
    superseded_facts: Open[int]
    deleted_facts: Open[int]
    waiting_candidates: Open[int]
    uploaded_skills: Open[int]
    uploaded_skill_versions: Open[int]
    chains: Open[int]
    thoughts: Open[int]
    chunks: Open[int]
    archived_chunks: Open[int]


class EventLogState(Piece, frozen=True, kw_only=True):
    """The whole log for an operator; for others the events of the space that they may know of."""

    rows: Open[int]
    head: Open[str]


class AgentSkillReport(Piece, frozen=True, kw_only=True):
    """Mounted agent-skill directories: what was found in them."""

    mounts: OperatorOnly[tuple[str, ...] | None] = ()
    skills: Open[int] = 0
    findings: Open[int] = 0


class ToolRegistryReport(Piece, frozen=True, kw_only=True):
    """Registries of the space, the tools in them, how many of those are known by experience, and why or why not."""

    registries: Open[int] = 0
    tools: Open[int] = 0
    experienced: Open[int] = 0
    reason: Open[ToolExperienceReason] = "no_governed_tool_experience"


IdentityName = Literal["usable", "missing", "wrong", "exposed", "unreadable", "broken", "unrecorded"]
"""How the device identity is: docs/store.md tells what each means."""


class IdentityState(Piece, frozen=True, kw_only=True):
    """Whether the device identity can be used: without it the private plane is closed and receipts are unsigned.

    `device` is the fingerprint of its public key, null before it has signed anything. `former` are those of the
    identities that the store had before, and `closed` counts the private records and waiting texts that these sealed:
    they cannot be read any more.
    """

    state: Open[IdentityName]
    problem: OperatorOnly[str | None] = None
    advice: OperatorOnly[str | None] = None
    device: OperatorOnly[str | None] = None
    former: OperatorOnly[tuple[str, ...] | None] = ()
    closed: OperatorOnly[int | None] = 0


class OperatorInspection(Piece, frozen=True, kw_only=True):
    """What an operator needs to see first. What the whole daemon does is for operators alone."""

    principal: Open[str]
    profile: Open[str]
    uptime_s: Open[float]
    current_conversation: Open[ConversationRef | None]
    current_by: Open[CurrentBy]
    queued_writes: OperatorOnly[int | None]
    readers: Open[int]
    refusals: OperatorOnly[int | None]
    findings: OperatorOnly[tuple[str, ...] | None]
    identity: Open[IdentityState | None] = None


class RuntimeState(Piece, frozen=True, kw_only=True):
    """The mode that holds, and the operation of the long task that runs now.

    `replica_horizon` is the time of the newest copy beside the store: what was erased since may still be in every
    copy up to then. None where there is no copy. `copies_until` is when the last of them will have been removed by the
    schedule and the policy of snapshots; None where one stays until somebody removes it. `replicated_until` is until
    when the replica holds something that was erased, told until it was seen to be gone; None where it holds nothing.
    """

    mode: Open[Mode]
    task: OperatorOnly[str | None] = None
    replica_horizon: Open[str | None] = None
    replicated_until: Open[str | None] = None
    copies_until: Open[str | None] = None


class OperatorAction(Piece, frozen=True, kw_only=True):
    """A step of the runtime's own life, or one of an operator: its row of the event log, without its subject."""

    event_id: Open[int]
    at: Open[str]
    topic: Open[str]
    event: Open[str]
    operation: Open[str]
    principal: Open[str]


class MemoryInspectionReport(Report, frozen=True, kw_only=True):
    """`recall`, `recall_hits` and `projection` are filled when the request gives a query.

    `capabilities` are this caller's. `operator_actions` are the last ones, the newest first; the daemon's own are for
    operators. `agent_skills` counts nothing in the mode safe, in which mounted folders are not read.
    """

    runtime: Open[RuntimeState]
    store: Open[StoreState]
    counts: Open[PlaneCounts]
    event_log: Open[EventLogState]
    operator: Open[OperatorInspection]
    capabilities: Open[dict[str, Capability]] = field(default_factory=dict[str, Capability])
    operator_actions: Open[tuple[OperatorAction, ...]] = ()
    deferred: Open[DeferredGovernance] = DeferredGovernance()
    agent_skills: Open[AgentSkillReport] = AgentSkillReport()
    tool_registries: Open[ToolRegistryReport] = ToolRegistryReport()
    recall: Open[WorkingRecall | None] = None
    recall_hits: Open[tuple[RecallHit, ...]] = ()
    projection: Open[ProjectionAudit | None] = None


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "memory.capabilities", "capabilities", MemoryCapabilitiesRequest, MemoryCapabilityCatalog, "read", "", MEMORY,
        ("memory", "capabilities"),
        "list the caller's capabilities, and the reason for each one that is hidden",
        exposed=RPC,
    ),
    Operation(
        "memory.inspect", "inspect", MemoryInspectionRequest, MemoryInspectionReport, "read", "inspect", MEMORY,
        ("memory", "inspect"),
        "report the state of the store, its counts and, with a query, how recall and projection answer it",
    ),
    Operation(
        "memory.recall", "recall", MemoryRecallRequest, MemoryRecallReport, "read", "recall", MEMORY,
        ("memory", "recall"),
        "find what memory holds for a query, over every plane that the caller may see",
        view="model", word="query",
        example={"query": "where is the spare key"},
        shell=(
            'beetle memory recall "where is the spare key"',
            "beetle memory recall --query key --planes evidence --conversation telegram/42 --limit 3",
        ),
        exposed=RPC,
        tool=Tool(
            place=1,
            leaves_out=("runtime_skills", "agent_skills", "long_term", "evidence", "thoughts", "chunks", "timings_ms"),
        ),
    ),
    Operation(
        "memory.project", "project", MemoryProjectionRequest, MemoryProjectionReport, "read", "project", MEMORY,
        ("memory", "project"),
        "build the bounded memory block for a model's context",
        view="model", word="user_query",
        example={"user_query": "what do I need today"},
        shell=('beetle memory project "what do I need today" --system-max-len 2000',),
        tool=Tool(place=2),
    ),
    Operation(
        "memory.write", "write", MemoryWriteRequest, MemoryWriteReport, "write", "write", MEMORY,
        ("memory", "write-procedural"),
        "write runtime skills, candidates for facts, an extraction or feedback on tools: all of it or nothing",
        example={
            "kind": "procedural",
            "source": "manual",
            "writes": [{
                "name": "backup", "topic": "operations", "title": "Nightly backup",
                "summary": "When the nightly backup fails", "content": "1. read the log\n2. run it again",
            }],
        },
        shell=(
            "beetle memory write-procedural --name backup --topic operations --title 'Nightly backup' \\",
            "      --summary 'When the nightly backup fails' --content-file steps.md",
            "beetle memory write-procedural --file skills.json",
        ),
        tool=Tool(kinds={"candidates": "memory_write_candidate"}, place=4),
    ),
)  # fmt: skip
