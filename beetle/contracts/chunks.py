"""chunk.*: linked notes. Storing, finding by what they are, linking, archiving and deleting them."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from msgspec import Meta

from beetle.contracts.common import Cursor, PageLimit, Report
from beetle.contracts.fields import NONBLANK, Content, Id, Open, OpenText, Part, Piece, Request, Time, budgeted
from beetle.contracts.operation import CHUNK, Operation

ChunkType = Literal["fact", "preference", "pattern", "note", "decision"]
ChunkSource = Literal["interaction", "import", "derived"]
LinkKind = Literal["context_of", "follows", "related_to", "supports", "contradicts"]
LINK_KINDS: tuple[LinkKind, ...] = get_args(LinkKind)
ChunkState = Literal["live", "archived", "all"]
CHUNK_ID = r"^(?!\.)[A-Za-z0-9._-]{1,128}\Z"
"""What may be the id of a chunk. The store makes ids of the form chunk-YYYY-MM-DD-xxxxxxxx, of hex digits."""
DEFAULT_CONFIDENCE = 0.7
MOST_NAME = 256
"""Characters of a tag, a conversation's id and a link's target."""
MOST_TAGS = 256
MOST_LINKS = 10_000
"""Links of one kind."""
MOST_COUNT = 2**53 - 1
"""Of tokens and of accesses."""
MOST_DEPTH = 32
"""Levels of a file's objects and arrays within each other."""
MOST_EXTRA = 16 * 2**20
"""Characters of the JSON of what an imported file has besides. A file is shorter, but not as it was written: `1e15`."""

ChunkId = Annotated[str, Meta(max_length=1024, description="id of the chunk")]
ConversationArg = Annotated[Id, Meta(description="id of the conversation")]
ChunkContent = Annotated[
    str, Meta(pattern=NONBLANK, extra=budgeted("message_content_bytes"), description="text of the chunk")
]
TypeArg = Annotated[ChunkType, Meta(description="type of the chunk; without one it is detected from the text")]
Tokens = Annotated[
    int, Meta(ge=1, le=2**31, description="size in tokens; without one they are counted (`beetle help chunks`)")
]
Confidence = Annotated[float, Meta(ge=0, le=1, description="how reliable it is, from 0 to 1")]
Tag = Annotated[str, Meta(min_length=1, max_length=256)]
Tags = Annotated[tuple[Tag, ...], Meta(max_length=64, description="labels to find it by, case-sensitive")]
Strength = Annotated[float, Meta(ge=0, le=1, description="strength of the link, from 0 to 1")]
LinkTarget = Annotated[
    str, Meta(min_length=1, max_length=256, description="id of the chunk it leads to; of context_of a conversation")
]
Targets = Annotated[tuple[LinkTarget, ...], Meta(max_length=64)]


class ChunkLinksInput(Part, frozen=True, kw_only=True):
    """Targets by kind of link. A kind that is given is replaced as a whole, another one stays."""

    context_of: Annotated[Targets, Meta(description="ids of conversations, or of chunks")] | None = None
    follows: Annotated[Targets, Meta(description="ids of earlier chunks")] | None = None
    related_to: Annotated[Targets, Meta(description="ids of chunks on the same subject")] | None = None
    supports: Annotated[Targets, Meta(description="ids of chunks that it strengthens")] | None = None
    contradicts: Annotated[Targets, Meta(description="ids of chunks that it opposes")] | None = None


class ChunkMetadata(Piece, frozen=True, kw_only=True):
    """Where a chunk comes from and how it was used. `access_count` counts `chunk.get` and the sources of
    `chunk.recall`.
    """

    created: Open[str]
    conversation_id: OpenText[str]
    source: Open[ChunkSource]
    confidence: Open[float]
    access_count: Open[int]
    last_accessed: Open[str | None]


class ChunkLinks(Piece, frozen=True, kw_only=True):
    """Targets by kind, in the order in which they were linked. `related_to` leads both ways: it ends with the chunks
    that relate to this one.
    """

    context_of: OpenText[tuple[str, ...]]
    follows: Open[tuple[str, ...]]
    related_to: Open[tuple[str, ...]]
    supports: Open[tuple[str, ...]]
    contradicts: Open[tuple[str, ...]]


class ChunkLink(Piece, frozen=True, kw_only=True):
    """One link: `target` is the other end."""

    kind: Open[LinkKind]
    target: Open[str]
    strength: Open[float]


class ChunkExtra(Piece, frozen=True, kw_only=True):
    """Fields of an imported file that no chunk has, kept as they were: of the file, its metadata and its links."""

    chunk: Open[dict[str, Any]]
    metadata: Open[dict[str, Any]]
    links: Open[dict[str, Any]]


class Chunk(Piece, frozen=True, kw_only=True):
    """One chunk. `strengths` are the strengths of its links. `revision` grows with each change of any chunk in the
    space; a `related_to` from a later chunk is no change.
    """

    id: Open[str]
    content: Content[str | None]
    tokens: Open[int]
    type: Open[ChunkType]
    metadata: Open[ChunkMetadata]
    links: Open[ChunkLinks]
    tags: Content[tuple[str, ...] | None]
    archived: Open[bool]
    ref: Open[str]
    revision: Open[int]
    strengths: OpenText[tuple[ChunkLink, ...]]
    extra: Content[ChunkExtra | None] = None


class ChunkCreateRequest(Request, frozen=True, kw_only=True):
    """Store a chunk and link it with its conversation, what came before and what shares a tag."""

    content: ChunkContent
    type: TypeArg | None = None
    conversation_id: ConversationArg
    tokens: Tokens | None = None
    tags: Tags = ()
    confidence: Confidence = DEFAULT_CONFIDENCE
    source: Annotated[ChunkSource, Meta(description="how it came to be")] = "interaction"
    links: Annotated[ChunkLinksInput, Meta(description="links of your own, beside those that are made")] = (
        ChunkLinksInput()
    )
    link: Annotated[bool, Meta(description="make the links context_of, follows and related_to")] = True


class ChunkReport(Report, frozen=True, kw_only=True):
    """The chunk as it is now."""

    chunk: Open[Chunk]


class ChunkGetRequest(Request, frozen=True, kw_only=True):
    """Show a chunk, also an archived one, and what links to it."""

    id: ChunkId
    count_access: Annotated[bool, Meta(description="count this as an access of the chunk")] = True


class ChunkGetReport(Report, frozen=True, kw_only=True):
    """`chunk` is null where there is none of that id. `linked_from`: links of other chunks that lead to it, the newest
    first, 64 at most; `target` is the chunk that they come from.
    """

    chunk: Open[Chunk | None]
    linked_from: Open[tuple[ChunkLink, ...]] = ()


class ChunkListRequest(Request, frozen=True, kw_only=True):
    """List chunks in the order in which they were stored, by conversation, tags, type and time."""

    conversation_id: Annotated[Id, Meta(description="only chunks of this conversation")] | None = None
    tags: Annotated[Tags, Meta(description="only chunks with all of these tags")] = ()
    type: Annotated[ChunkType, Meta(description="only chunks of this type")] | None = None
    created_after: Annotated[Time, Meta(description="created at this time or later")] | None = None
    created_before: Annotated[Time, Meta(description="created at this time or earlier")] | None = None
    state: Annotated[ChunkState, Meta(description="only chunks in this state")] = "live"
    changed_since: (
        Annotated[
            int,
            Meta(ge=0, le=2**53, description="only what changed behind this revision, in the order of revisions"),
        ]
        | None
    ) = None
    limit: PageLimit = 50
    cursor: Cursor | None = None


class ChunkListReport(Report, frozen=True, kw_only=True):
    """`revision` is the space's newest. With `changed_since`, `removed` are the ids of deleted chunks, whatever the
    other filters are.
    """

    chunks: Open[tuple[Chunk, ...]]
    revision: Open[int]
    removed: Open[tuple[str, ...]] = ()
    has_more: Open[bool] = False
    next_cursor: Open[str | None] = None


class ChunkStatsRequest(Request, frozen=True, kw_only=True):
    """Count the chunks of the space, and list its conversations or its tags with the number of their chunks."""

    by: (
        Annotated[
            Literal["conversation", "tag"], Meta(description="also list these, each with the number of its live chunks")
        ]
        | None
    ) = None
    limit: PageLimit = 50
    cursor: Cursor | None = None


class ChunkGroup(Piece, frozen=True, kw_only=True):
    """A conversation or a tag, and how many live chunks it has."""

    name: Content[str | None]
    chunks: Open[int]


class ChunkStatsReport(Report, frozen=True, kw_only=True):
    """`total_chunks` and `by_type` are of live chunks. `groups` in the order of their names."""

    total_chunks: Open[int]
    archived_chunks: Open[int]
    by_type: Open[dict[str, int]]
    revision: Open[int]
    groups: Open[tuple[ChunkGroup, ...]] = ()
    has_more: Open[bool] = False
    next_cursor: Open[str | None] = None


class ChunkUpdateRequest(Request, frozen=True, kw_only=True):
    """Change a chunk; what is not given stays, and new content is counted anew unless tokens are given."""

    id: ChunkId
    content: ChunkContent | None = None
    tokens: Tokens | None = None
    type: Annotated[ChunkType, Meta(description="type of the chunk")] | None = None
    tags: Tags | None = None
    confidence: Confidence | None = None
    links: Annotated[ChunkLinksInput, Meta(description="kinds of links to replace as a whole")] = ChunkLinksInput()


class ChunkDeleteRequest(Request, frozen=True, kw_only=True):
    """Archive a chunk, or delete it for good, also from the archive."""

    id: ChunkId
    permanent: Annotated[bool, Meta(description="erase it from the store; it cannot be restored")] = False


class ChunkDeleteReport(Report, frozen=True, kw_only=True):
    """`unchanged`: it was archived already. `erasure` and `replica_horizon`: see `transcript.lifecycle`."""

    id: Open[str]
    outcome: Open[Literal["archived", "deleted", "unchanged"]]
    erasure: Open[Literal["done", "pending"] | None] = None
    replica_horizon: Open[str | None] = None
    replicated_until: Open[str | None] = None
    copies_until: Open[str | None] = None
    audit_event_id: Open[int | None] = None
    receipt: Open[str | None] = None


class ChunkRestoreRequest(Request, frozen=True, kw_only=True):
    """Take an archived chunk out of the archive."""

    id: ChunkId


class ChunkLinkRequest(Request, frozen=True, kw_only=True):
    """Link a chunk to another by hand, change the strength of a link, or remove one."""

    id: ChunkId
    kind: Annotated[LinkKind, Meta(description="kind of the link")]
    target: LinkTarget
    strength: Annotated[Strength, Meta(description="strength; without one 0.5, of context_of 1.0")] | None = None
    remove: Annotated[bool, Meta(description="remove this link")] = False


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "chunk.create", "create_chunk", ChunkCreateRequest, ChunkReport, "write", "chunk", CHUNK, ("chunk", "create"),
        "store a chunk and link it with its conversation, what came before and what shares a tag",
        word="content",
        example={
            "content": "User prefers Python over JavaScript", "conversation_id": "conv-123",
            "tags": ["coding", "preferences"], "confidence": 0.95,
        },
        shell=("beetle chunk create 'User prefers Python over JavaScript' --conversation-id conv-123 --tags coding",),
        idempotent=False,
    ),
    Operation(
        "chunk.get", "get_chunk", ChunkGetRequest, ChunkGetReport, "read", "chunk", CHUNK, ("chunk", "get"),
        "show a chunk, also an archived one, and what links to it",
        word="id",
        example={"id": "chunk-2026-02-10-a1b2c3d4"},
    ),
    Operation(
        "chunk.list", "list_chunks", ChunkListRequest, ChunkListReport, "read", "chunk", CHUNK, ("chunk", "list"),
        "list chunks in the order in which they were stored, by conversation, tags, type and time",
        example={"conversation_id": "conv-123", "tags": ["coding"]},
        shell=("beetle chunk list --tags coding --type preference",),
    ),
    Operation(
        "chunk.stats", "chunk_stats", ChunkStatsRequest, ChunkStatsReport, "read", "chunk", CHUNK, ("chunk", "stats"),
        "count the chunks of the space, and list its conversations or its tags with the number of their chunks",
        example={"by": "tag"},
    ),
    Operation(
        "chunk.update", "update_chunk", ChunkUpdateRequest, ChunkReport, "write", "chunk", CHUNK, ("chunk", "update"),
        "change a chunk; what is not given stays, and new content is counted anew unless tokens are given",
        word="id",
        example={"id": "chunk-2026-02-10-a1b2c3d4", "confidence": 0.98},
        destructive=True,
    ),
    Operation(
        "chunk.delete", "delete_chunk", ChunkDeleteRequest, ChunkDeleteReport, "write", "chunk", CHUNK,
        ("chunk", "delete"),
        "archive a chunk, or delete it for good, also from the archive",
        grows=False, word="id",
        example={"id": "chunk-2026-02-10-a1b2c3d4"},
        shell=("beetle chunk delete chunk-2026-02-10-a1b2c3d4 --permanent",),
        destructive=True,
    ),
    Operation(
        "chunk.restore", "restore_chunk", ChunkRestoreRequest, ChunkReport, "write", "chunk", CHUNK,
        ("chunk", "restore"),
        "take an archived chunk out of the archive",
        word="id",
        example={"id": "chunk-2026-02-10-a1b2c3d4"},
    ),
    Operation(
        "chunk.link", "link_chunk", ChunkLinkRequest, ChunkReport, "write", "chunk", CHUNK, ("chunk", "link"),
        "link a chunk to another by hand, change the strength of a link, or remove one",
        word="id",
        example={
            "id": "chunk-2026-02-10-a1b2c3d4", "kind": "contradicts", "target": "chunk-2026-02-09-b4c5d6e7",
        },
        destructive=True,
    ),
)  # fmt: skip
