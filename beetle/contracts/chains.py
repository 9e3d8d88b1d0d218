"""chain.*: thought chains, append-only ledgers of typed thoughts. Reading, searching and walking them."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from beetle.contracts.common import Cursor, PageLimit, Report
from beetle.contracts.fields import (
    NO_CONTROL,
    Content,
    Open,
    OpenText,
    OperatorOnly,
    Part,
    Piece,
    Request,
    Time,
    budgeted,
    clipped,
)
from beetle.contracts.operation import CHAIN, Operation, Tool

DEFAULT_CHAIN = "default"
"""The chain that a request without a `chain_key` means."""

ChainKey = Annotated[
    str, Meta(max_length=256, pattern=NO_CONTROL, description="key of the chain; without one, the default chain")
]
AgentId = Annotated[str, Meta(max_length=256, pattern=NO_CONTROL, description="id of the agent that writes")]
AgentName = Annotated[str, Meta(max_length=256, pattern=NO_CONTROL, description="display name of the agent")]
AgentOwner = Annotated[str, Meta(max_length=256, pattern=NO_CONTROL, description="owner or tenant of the agent")]
TypeWord = Annotated[str, Meta(max_length=64, description="thought type; case and punctuation do not matter")]
RoleWord = Annotated[str, Meta(max_length=64, description="role; case and punctuation do not matter")]
Words = Annotated[tuple[Annotated[str, Meta(max_length=256)], ...], Meta(max_length=256)]
ThoughtIndex = Annotated[int, Meta(ge=0, le=2**53 - 1)]
Direction = Literal["forward", "backward"]
State = Literal["live", "masked", "erased", "damaged"]
HEX_64 = r"^[0-9a-fA-F]{64}\Z"
ThoughtId = Annotated[str, Meta(min_length=1, max_length=64, description="id of a thought, a UUID")]
ThoughtHash = Annotated[str, Meta(pattern=HEX_64, description="hash of a thought, 64 hex digits")]


class ThoughtFilter(Request, frozen=True, kw_only=True):
    """What thoughts are filtered by: filters are joined by and, the values of one by or."""

    chain_key: ChainKey | None = None
    text: (
        Annotated[
            str,
            Meta(
                extra=budgeted("query_chars"),
                description="part of the content, a tag, a concept or the writer's id, name, owner, alias, description",
            ),
        ]
        | None
    ) = None
    thought_types: Annotated[
        tuple[TypeWord, ...], Meta(max_length=64, description="any of these types; case and punctuation do not matter")
    ] = ()
    roles: Annotated[
        tuple[RoleWord, ...], Meta(max_length=64, description="any of these roles; case and punctuation do not matter")
    ] = ()
    tags_any: Annotated[Words, Meta(description="any of these is part of a tag, whatever the case")] = ()
    concepts_any: Annotated[Words, Meta(description="any of these is part of a concept, whatever the case")] = ()
    agent_ids: Annotated[Words, Meta(description="written by any of these agents, by id")] = ()
    agent_names: Annotated[Words, Meta(description="written by any of these, by display name or alias")] = ()
    agent_owners: Annotated[Words, Meta(description="written by an agent of any of these owners")] = ()
    min_importance: Annotated[float, Meta(description="at least this importance")] | None = None
    min_confidence: Annotated[float, Meta(description="with a confidence, at least this one")] | None = None
    since: Annotated[Time, Meta(description="not before")] | None = None
    until: Annotated[Time, Meta(description="not after")] | None = None


class ThoughtRelation(Piece, frozen=True, kw_only=True):
    """A typed link to an earlier thought of the chain (`index`) or to a record (`ref`), and when it holds."""

    kind: Open[str]
    index: Open[int | None] = None
    ref: Open[str | None] = None
    valid_at: Open[str | None] = None
    invalid_at: Open[str | None] = None


class Thought(Piece, frozen=True, kw_only=True):
    """One thought. `agent_name` and `agent_owner` are the registry's of now, and no part of the hash. Of a masked or
    erased thought content, tags, concepts and signature are null. Hashes: `beetle help chain-format`.
    """

    schema_version: Open[int]
    id: Open[str]
    index: Open[int]
    timestamp: Open[str]
    session_id: OpenText[str | None]
    agent_id: Open[str]
    agent_name: Content[str | None]
    agent_owner: Content[str | None]
    signing_key_id: Open[str | None]
    thought_signature: Content[tuple[int, ...] | None]
    thought_type: Open[str]
    role: Open[str]
    content: Content[str | None]
    confidence: Open[float | None]
    importance: Open[float]
    tags: Content[tuple[str, ...] | None]
    concepts: Content[tuple[str, ...] | None]
    refs: Open[tuple[int, ...]]
    relations: Open[tuple[ThoughtRelation, ...]]
    content_digest: Open[str]
    prev_hash: Open[str]
    hash: Open[str]
    state: Open[State]
    ref: Open[str]


class ChainSearchRequest(ThoughtFilter, frozen=True, kw_only=True):
    """Find the thoughts of a chain that fit all filters, in append order; limit keeps the newest."""

    limit: (
        Annotated[int, Meta(ge=0, description="keep this many, the newest; without one, as many as an answer holds")]
        | None
    ) = None


class ChainSearchReport(Report, frozen=True, kw_only=True):
    """In append order, unranked. `profile_budget_applied`: older ones had no room; `chain.traverse` has all of them."""

    thoughts: Open[tuple[Thought, ...]]


class ChainListRequest(Request, frozen=True, kw_only=True):
    """List the chains of the space by their keys."""

    limit: PageLimit = 50
    cursor: Cursor | None = None


class ChainSummary(Piece, frozen=True, kw_only=True):
    """One chain. A branch shares its first thoughts with the chain that it was made from."""

    chain_key: Open[str]
    version: Open[int]
    storage_adapter: Open[str]
    thought_count: Open[int]
    agent_count: Open[int]
    storage_location: OperatorOnly[str | None]
    head_hash: Open[str | None]
    created_at: Open[str]
    updated_at: Open[str]
    branched_from: Open[str | None] = None
    shared_thoughts: Open[int] = 0


class ChainListReport(Report, frozen=True, kw_only=True):
    """`chain_keys` are those of `chains`; the default chain need not be there."""

    default_chain_key: Open[str]
    chain_keys: Open[tuple[str, ...]]
    chains: Open[tuple[ChainSummary, ...]]
    has_more: Open[bool] = False
    next_cursor: Open[str | None] = None


class ChainHeadRequest(Request, frozen=True, kw_only=True):
    """Show the newest thought of a chain, and whether the chain is whole."""

    chain_key: ChainKey | None = None


class ChainHeadReport(Report, frozen=True, kw_only=True):
    """`integrity_ok` compares the head with the event log, and recomputes the newest 128 thoughts and at most 512 more.
    All thoughts from `verified_from` on were recomputed, by this call or earlier ones since the daemon began. `beetle
    verify` recomputes all of them anew.
    """

    chain_key: Open[str]
    thought_count: Open[int]
    head_hash: Open[str | None]
    latest_thought: Open[Thought | None]
    integrity_ok: Open[bool]
    storage_location: OperatorOnly[str | None]
    verified_from: Open[int] = 0


class ChainGenesisRequest(Request, frozen=True, kw_only=True):
    """Show the first thought of a chain."""

    chain_key: ChainKey | None = None


class ChainThoughtReport(Report, frozen=True, kw_only=True):
    """Of chain.genesis and chain.get_thought; `thought` is null where the chain is empty."""

    chain_key: Open[str]
    thought: Open[Thought | None]


class ChainGetThoughtRequest(Request, frozen=True, kw_only=True):
    """Show one thought by exactly one of its id, its hash and its index."""

    chain_key: ChainKey | None = None
    thought_id: ThoughtId | None = None
    thought_hash: ThoughtHash | None = None
    thought_index: Annotated[ThoughtIndex, Meta(description="its place in the chain, from 0")] | None = None

    def __post_init__(self) -> None:
        if sum(each is not None for each in (self.thought_id, self.thought_hash, self.thought_index)) != 1:
            raise ValueError("give exactly one of thought_id, thought_hash and thought_index, only one")


class TimeWindow(Part, frozen=True, kw_only=True):
    """A window of whole seconds or milliseconds since the epoch, both ends included to their last instant."""

    start: Annotated[int, Meta(ge=-(2**53), le=2**53, description="begin of the window, since the epoch")]
    delta: Annotated[int, Meta(ge=0, le=2**53, description="length of the window")]
    unit: Annotated[Literal["seconds", "milliseconds"], Meta(description="unit of start and delta")]


class ChainTraverseRequest(ThoughtFilter, frozen=True, kw_only=True):
    """Walk a chain in append order, forward or backward, in chunks."""

    anchor_id: Annotated[ThoughtId, Meta(description="begin at the thought of this id")] | None = None
    anchor_hash: Annotated[ThoughtHash, Meta(description="begin at the thought of this hash")] | None = None
    anchor_index: Annotated[ThoughtIndex, Meta(description="begin at this place")] | None = None
    anchor_boundary: (
        Annotated[Literal["genesis", "head"], Meta(description="begin at this end of the chain")] | None
    ) = None
    direction: Annotated[Direction, Meta(description="way to walk")] = "forward"
    include_anchor: Annotated[
        bool, Meta(description="return the anchor too, if it fits; a boundary is returned in any case")
    ] = False
    chunk_size: Annotated[int, Meta(ge=1, extra=clipped("page_limit"), description="thoughts to return at most")] = 50
    time_window: Annotated[TimeWindow, Meta(description="written in this window")] | None = None

    def __post_init__(self) -> None:
        anchors = (self.anchor_id, self.anchor_hash, self.anchor_index, self.anchor_boundary)
        if sum(each is not None for each in anchors) > 1:
            raise ValueError("give at most one of anchor_id, anchor_hash, anchor_index and anchor_boundary")
        if self.time_window is not None and (self.since is not None or self.until is not None):
            raise ValueError("give time_window, or since and until")


class ThoughtCursor(Piece, frozen=True, kw_only=True):
    """Where a thought is: pass any one of these as the next anchor."""

    id: Open[str]
    index: Open[int]
    hash: Open[str]


class ChainTraverseReport(Report, frozen=True, kw_only=True):
    """`thoughts` in the order of the walk. `next_cursor` is the last of them, the anchor of the next chunk in the same
    direction; `previous_cursor` the first, for the other direction.
    """

    chain_key: Open[str]
    direction: Open[Direction]
    include_anchor: Open[bool]
    chunk_size: Open[int]
    anchor: Open[ThoughtCursor | None]
    thoughts: Open[tuple[Thought, ...]]
    has_more: Open[bool]
    next_cursor: Open[ThoughtCursor | None]
    previous_cursor: Open[ThoughtCursor | None]


class ChainRecentContextRequest(Request, frozen=True, kw_only=True):
    """Render the latest thoughts of a chain as a prompt to go on from."""

    chain_key: ChainKey | None = None
    last_n: Annotated[int, Meta(ge=0, extra=clipped("page_limit"), description="how many thoughts")] = 12
    agent_id: Annotated[AgentId, Meta(description="only thoughts of this agent")] | None = None


class ChainRecentContextReport(Report, frozen=True, kw_only=True):
    """One line for each thought, the oldest first; empty where there is none."""

    prompt: Content[str | None]


class ChainMemoryMarkdownRequest(ThoughtFilter, frozen=True, kw_only=True):
    """Render a chain, or the thoughts of it that fit all filters, as Markdown by sections."""

    limit: (
        Annotated[int, Meta(ge=0, description="keep this many, the newest; without one, as many as an answer holds")]
        | None
    ) = None


class ChainMemoryMarkdownReport(Report, frozen=True, kw_only=True):
    """One list item for each thought."""

    markdown: Content[str | None]


class ExportedThought(Thought, frozen=True, kw_only=True):
    """A thought with the salt of its content digest; null where its content is."""

    salt: Content[str | None]


class ChainExportRequest(Request, frozen=True, kw_only=True):
    """Export a chain in append order with all that its hashes are over."""

    chain_key: ChainKey | None = None
    limit: PageLimit = 50
    cursor: Cursor | None = None


class ChainExportReport(Report, frozen=True, kw_only=True):
    """`format` is the version of docs/chain-format.md; `head_hash` that of the whole chain."""

    chain_key: Open[str]
    format: Open[str]
    thought_count: Open[int]
    head_hash: Open[str | None]
    thoughts: Open[tuple[ExportedThought, ...]]
    has_more: Open[bool] = False
    next_cursor: Open[str | None] = None


class ChainMergeReportRequest(Request, frozen=True, kw_only=True):
    """Compare two chains: the thoughts that both share, those of one alone, what both say of the same thought."""

    chain_key: ChainKey | None = None
    other_chain_key: Annotated[ChainKey, Meta(min_length=1, description="the chain to compare with")]
    limit: PageLimit = 50


class SharedTarget(Piece, frozen=True, kw_only=True):
    """A thought of the shared prefix that thoughts of both chains relate to, by their indexes."""

    index: Open[int]
    kinds: Open[tuple[str, ...]]
    by_chain: Open[tuple[int, ...]]
    by_other: Open[tuple[int, ...]]


class ChainMergeReport(Report, frozen=True, kw_only=True):
    """`only_in_chain` and `only_in_other` are the first thoughts of each behind the `shared` ones."""

    chain_key: Open[str]
    other_chain_key: Open[str]
    shared: Open[int]
    shared_hash: Open[str | None]
    thought_count: Open[int]
    other_thought_count: Open[int]
    only_in_chain: Open[tuple[Thought, ...]]
    only_in_other: Open[tuple[Thought, ...]]
    both_relate_to: Open[tuple[SharedTarget, ...]]
    has_more: Open[bool] = False


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "chain.search", "search_thoughts", ChainSearchRequest, ChainSearchReport, "read", "chain", CHAIN,
        ("chain", "search"),
        "find the thoughts of a chain that fit all filters, in append order; limit keeps the newest",
        word="text",
        example={"text": "deployment", "thought_types": ["Constraint", "Decision"], "limit": 10},
        tool=Tool(name="mentisdb_search"),
    ),
    Operation(
        "chain.list", "list_chains", ChainListRequest, ChainListReport, "read", "chain", CHAIN, ("chain", "list"),
        "list the chains of the space by their keys",
        tool=Tool(name="mentisdb_list_chains"),
    ),
    Operation(
        "chain.head", "chain_head", ChainHeadRequest, ChainHeadReport, "read", "chain", CHAIN, ("chain", "head"),
        "show the newest thought of a chain, and whether the chain is whole",
        word="chain_key",
        example={"chain_key": "project-alpha"},
        tool=Tool(name="mentisdb_head"),
    ),
    Operation(
        "chain.genesis", "genesis_thought", ChainGenesisRequest, ChainThoughtReport, "read", "chain", CHAIN,
        ("chain", "genesis"),
        "show the first thought of a chain",
        word="chain_key",
        example={"chain_key": "project-alpha"},
        tool=Tool(name="mentisdb_get_genesis_thought"),
    ),
    Operation(
        "chain.get_thought", "get_thought", ChainGetThoughtRequest, ChainThoughtReport, "read", "chain", CHAIN,
        ("chain", "thought"),
        "show one thought by exactly one of its id, its hash and its index",
        example={"chain_key": "project-alpha", "thought_index": 17},
        tool=Tool(name="mentisdb_get_thought"),
    ),
    Operation(
        "chain.traverse", "traverse_thoughts", ChainTraverseRequest, ChainTraverseReport, "read", "chain", CHAIN,
        ("chain", "traverse"),
        "walk a chain in append order, forward or backward, in chunks",
        example={"chain_key": "project-alpha", "anchor_boundary": "head", "direction": "backward", "chunk_size": 5},
        tool=Tool(name="mentisdb_traverse_thoughts"),
    ),
    Operation(
        "chain.recent_context", "recent_context", ChainRecentContextRequest, ChainRecentContextReport, "read", "chain",
        CHAIN, ("chain", "recent-context"),
        "render the latest thoughts of a chain as a prompt to go on from",
        view="model", word="chain_key",
        example={"chain_key": "project-alpha", "last_n": 12},
        tool=Tool(name="mentisdb_recent_context"),
    ),
    Operation(
        "chain.memory_markdown", "memory_markdown", ChainMemoryMarkdownRequest, ChainMemoryMarkdownReport, "read",
        "chain", CHAIN, ("chain", "markdown"),
        "render a chain, or the thoughts of it that fit all filters, as Markdown by sections",
        view="model",
        example={"chain_key": "project-alpha"},
        tool=Tool(name="mentisdb_memory_markdown"),
    ),
    Operation(
        "chain.export", "export_chain", ChainExportRequest, ChainExportReport, "read", "chain", CHAIN,
        ("chain", "export"),
        "export a chain in append order with all that its hashes are over",
        word="chain_key",
        example={"chain_key": "project-alpha"},
        tool=Tool(none="for whoever verifies a chain: a model reads with mentisdb_traverse_thoughts"),
    ),
    Operation(
        "chain.merge_report", "chain_merge_report", ChainMergeReportRequest, ChainMergeReport, "read", "chain", CHAIN,
        ("chain", "merge-report"),
        "compare two chains: the thoughts that both share, those of one alone, what both say of the same thought",
        example={"chain_key": "project-alpha", "other_chain_key": "experiment"},
    ),
)  # fmt: skip
