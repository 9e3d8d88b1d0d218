"""chain.*: what writes to a thought chain: bootstrap, appends, branches, and masking or erasing what a thought says."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from beetle.contracts.chains import (
    AgentId,
    AgentName,
    AgentOwner,
    ChainKey,
    ChainSummary,
    RoleWord,
    Thought,
    ThoughtHash,
    ThoughtId,
    ThoughtIndex,
    TypeWord,
)
from beetle.contracts.common import Report
from beetle.contracts.fields import NO_CONTROL, Open, Part, Request, Time, budgeted
from beetle.contracts.operation import CHAIN, Operation, Tool

ThoughtContent = Annotated[str, Meta(extra=budgeted("message_content_bytes"), description="what is thought, in words")]
Importance = Annotated[float, Meta(description="how much it matters; clamped to 0..1")]
Confidence = Annotated[float, Meta(description="how sure the agent is; clamped to 0..1")]
Labels = Annotated[tuple[Annotated[str, Meta(max_length=256)], ...], Meta(max_length=64)]
Tags = Annotated[Labels, Meta(description="labels; blanks are dropped, each is kept once")]
Concepts = Annotated[Labels, Meta(description="concepts that it is about; blanks are dropped, each is kept once")]
Refs = Annotated[
    tuple[ThoughtIndex, ...], Meta(max_length=256, description="indexes of earlier thoughts that it refers to")
]
Signature = Annotated[
    tuple[Annotated[int, Meta(ge=0, le=255)], ...],
    Meta(max_length=64, description="Ed25519 signature, 64 bytes, by the key that signing_key_id names"),
]
SigningKey = Annotated[
    str, Meta(max_length=256, pattern=NO_CONTROL, description="id of the agent's key that signed it")
]
SessionId = Annotated[str, Meta(max_length=256, pattern=NO_CONTROL, description="id of the session that it is of")]


class RelationInput(Part, frozen=True, kw_only=True):
    """A typed link to an earlier thought of the chain (`index`) or to any record (`ref`), one of the two."""

    kind: Annotated[str, Meta(max_length=64, description="supports, contradicts, supersedes or caused_by")]
    index: Annotated[ThoughtIndex, Meta(description="index of an earlier thought")] | None = None
    ref: Annotated[str, Meta(min_length=1, max_length=1024, description="ref of any record")] | None = None
    valid_at: Annotated[Time, Meta(description="holds from this time on")] | None = None
    invalid_at: Annotated[Time, Meta(description="holds no more from this time on")] | None = None

    def __post_init__(self) -> None:
        if (self.index is None) == (self.ref is None):
            raise ValueError("give exactly one of index and ref")


Relations = Annotated[
    tuple[RelationInput, ...],
    Meta(max_length=64, description="typed links: supports, contradicts, supersedes, caused_by"),
]


class ChainBootstrapRequest(Request, frozen=True, kw_only=True):
    """Create a chain if needed, and write its first thought only when it is empty."""

    chain_key: ChainKey | None = None
    agent_id: AgentId | None = None
    agent_name: AgentName | None = None
    agent_owner: AgentOwner | None = None
    content: ThoughtContent
    importance: Importance | None = None
    tags: Tags = ()
    concepts: Concepts = ()
    storage_adapter: (
        Annotated[str, Meta(max_length=64, description="binary, or jsonl; both are kept in the store")] | None
    ) = None


class ChainBootstrapReport(Report, frozen=True, kw_only=True):
    """`bootstrapped` false: the chain had thoughts, and nothing was written."""

    bootstrapped: Open[bool]
    thought_count: Open[int]
    head_hash: Open[str | None]


class ChainAppendRetrospectiveRequest(Request, frozen=True, kw_only=True):
    """Append a lesson after a failure or a long search, with the role Retrospective."""

    chain_key: ChainKey | None = None
    agent_id: AgentId | None = None
    agent_name: AgentName | None = None
    agent_owner: AgentOwner | None = None
    thought_type: Annotated[TypeWord, Meta(description="thought type; LessonLearned unless given")] | None = None
    content: ThoughtContent
    importance: Importance | None = None
    confidence: Confidence | None = None
    tags: Tags = ()
    concepts: Concepts = ()
    refs: Refs = ()
    relations: Relations = ()
    session_id: SessionId | None = None
    signing_key_id: SigningKey | None = None
    thought_signature: Signature | None = None


class ChainAppendRequest(Request, frozen=True, kw_only=True):
    """Append a thought to a chain; its timestamp, place and hash are given by the store."""

    chain_key: ChainKey | None = None
    agent_id: AgentId | None = None
    agent_name: AgentName | None = None
    agent_owner: AgentOwner | None = None
    thought_type: TypeWord
    content: ThoughtContent
    role: RoleWord | None = None
    importance: Importance | None = None
    confidence: Confidence | None = None
    tags: Tags = ()
    concepts: Concepts = ()
    refs: Refs = ()
    relations: Relations = ()
    session_id: SessionId | None = None
    signing_key_id: SigningKey | None = None
    thought_signature: Signature | None = None


class ChainAppendReport(Report, frozen=True, kw_only=True):
    """The thought as it was written; `head_hash` is its hash."""

    thought: Open[Thought]
    head_hash: Open[str]


class ChainBranchRequest(Request, frozen=True, kw_only=True):
    """Make a new chain that shares the thoughts of another up to one of them, and goes on by itself."""

    chain_key: ChainKey | None = None
    new_chain_key: Annotated[ChainKey, Meta(min_length=1, description="key of the branch")]
    anchor_id: Annotated[ThoughtId, Meta(description="the last shared thought, by its id")] | None = None
    anchor_hash: Annotated[ThoughtHash, Meta(description="the last shared thought, by its hash")] | None = None
    anchor_index: (
        Annotated[ThoughtIndex, Meta(description="the last shared thought, by its index; without any, the newest")]
        | None
    ) = None

    def __post_init__(self) -> None:
        if sum(each is not None for each in (self.anchor_id, self.anchor_hash, self.anchor_index)) > 1:
            raise ValueError("give at most one of anchor_id, anchor_hash and anchor_index")


class ChainBranchReport(Report, frozen=True, kw_only=True):
    """The branch as it begins."""

    chain: Open[ChainSummary]


class ChainLifecycleRequest(Request, frozen=True, kw_only=True):
    """Mask, unmask or erase what thoughts say; the chain keeps their places and hashes, and still verifies."""

    chain_key: ChainKey | None = None
    action: Annotated[Literal["mask", "unmask", "erase"], Meta(description="what to do with their content")]
    indexes: Annotated[
        tuple[ThoughtIndex, ...],
        Meta(min_length=1, extra=budgeted("commit_turns"), description="indexes of the thoughts"),
    ]
    reason: Annotated[str, Meta(min_length=1, max_length=512, description="reason, for the reader of the request")]
    dry_run: Annotated[bool, Meta(description="report what would change; change nothing")] = False


class ChainLifecycleReport(Report, frozen=True, kw_only=True):
    """`indexes` are the thoughts that changed, or in a dry run would. `erasure` and `replica_horizon`: see
    `transcript.lifecycle`.
    """

    chain_key: Open[str]
    action: Open[str]
    dry_run: Open[bool]
    changed: Open[bool]
    indexes: Open[tuple[int, ...]]
    erasure: Open[Literal["done", "pending"] | None] = None
    replica_horizon: Open[str | None] = None
    replicated_until: Open[str | None] = None
    audit_event_id: Open[int | None] = None
    receipt: Open[str | None] = None


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "chain.bootstrap", "bootstrap_chain", ChainBootstrapRequest, ChainBootstrapReport, "write", "chain", CHAIN,
        ("chain", "bootstrap"),
        "create a chain if needed, and write its first thought only when it is empty",
        word="content",
        example={"chain_key": "project-alpha", "content": "Memory for Project Alpha.", "tags": ["bootstrap"]},
        tool=Tool(name="mentisdb_bootstrap"),
    ),
    Operation(
        "chain.append", "append_thought", ChainAppendRequest, ChainAppendReport, "write", "chain", CHAIN,
        ("chain", "append"),
        "append a thought to a chain; its timestamp, place and hash are given by the store",
        word="content",
        example={
            "chain_key": "project-alpha", "thought_type": "Plan", "importance": 0.82, "tags": ["deployment"],
            "content": "Use a staged deployment with a canary instance.",
        },
        idempotent=False,
        tool=Tool(name="mentisdb_append"),
    ),
    Operation(
        "chain.append_retrospective", "append_retrospective", ChainAppendRetrospectiveRequest, ChainAppendReport,
        "write", "chain", CHAIN, ("chain", "append-retrospective"),
        "append a lesson after a failure or a long search, with the role Retrospective",
        word="content",
        example={"chain_key": "project-alpha", "refs": [17], "content": "Verify migrations before a deployment."},
        idempotent=False,
        tool=Tool(name="mentisdb_append_retrospective"),
    ),
    Operation(
        "chain.branch", "branch_chain", ChainBranchRequest, ChainBranchReport, "write", "chain", CHAIN,
        ("chain", "branch"),
        "make a new chain that shares the thoughts of another up to one of them, and goes on by itself",
        word="new_chain_key",
        example={"chain_key": "project-alpha", "new_chain_key": "experiment", "anchor_index": 17},
        idempotent=False,
    ),
    Operation(
        "chain.lifecycle", "thought_lifecycle", ChainLifecycleRequest, ChainLifecycleReport, "write", "chain", CHAIN,
        ("chain", "lifecycle"),
        "mask, unmask or erase what thoughts say; the chain keeps their places and hashes, and still verifies",
        grows=False,
        example={"chain_key": "project-alpha", "action": "erase", "indexes": [17], "reason": "asked for"},
        destructive=True,
    ),
)  # fmt: skip
