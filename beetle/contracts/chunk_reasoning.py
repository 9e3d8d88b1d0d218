"""chunk.remember, chunk.recall and chunk.reason: text into chunks, and answers out of them."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from beetle.contracts.chunks import DEFAULT_CONFIDENCE, ChunkType, Confidence, ConversationArg, Tags
from beetle.contracts.common import RecallLimit, Report
from beetle.contracts.fields import Content, Id, Open, Piece, Request, budgeted
from beetle.contracts.operation import CHUNK, Operation
from beetle.contracts.transcript import Query

AnalysisType = Literal["synthesis", "comparison", "pattern", "gap"]


class ChunkRememberRequest(Request, frozen=True, kw_only=True):
    """Split a text into chunks of 100 to 800 tokens, store them and link them."""

    content: Annotated[
        str, Meta(extra=budgeted("message_content_bytes"), description="the text; blank text is stored as nothing")
    ]
    conversation_id: ConversationArg
    tags: Annotated[Tags, Meta(description="labels of every chunk, case-sensitive")] = ()
    confidence: Confidence = DEFAULT_CONFIDENCE
    type: Annotated[ChunkType, Meta(description="type of every chunk; without one each is detected")] | None = None


class ChunkRememberReport(Report, frozen=True, kw_only=True):
    """`chunk_ids` in the order of the text. Without success, `error` says why nothing was stored."""

    success: Open[bool]
    error: Open[str | None] = None
    chunk_ids: Open[tuple[str, ...]] = ()
    total_tokens: Open[int] = 0
    chunks_created: Open[int] = 0


class ChunkRecallRequest(Request, frozen=True, kw_only=True):
    """Answer a query with the chunks that fit it best."""

    query: Query
    conversation_id: Annotated[Id, Meta(description="only chunks of this conversation")] | None = None
    max_results: Annotated[RecallLimit, Meta(description="chunks in the answer at most")] = 5
    min_confidence: Annotated[float, Meta(ge=0, le=1, description="only chunks with at least this confidence")] = 0.5


class ChunkRecallReport(Report, frozen=True, kw_only=True):
    """`answer` holds the contents of `source_chunks`, best first. `confidence` is theirs, weighted by their scores.
    `traversal_path` are the steps that led to them. No model is asked: `cost_usd` is 0.
    """

    answer: Content[str | None]
    confidence: Open[float]
    source_chunks: Open[tuple[str, ...]]
    traversal_path: Open[tuple[str, ...]]
    iterations_used: Open[int]
    cost_usd: Open[float]


class ChunkReasonRequest(Request, frozen=True, kw_only=True):
    """Analyse chunks: what they say together, how they compare, their patterns, gaps and contradictions."""

    query: Query
    context_chunks: Annotated[
        tuple[Annotated[str, Meta(max_length=1024)], ...],
        Meta(max_length=256, description="ids of the chunks to analyse; without any, those that the query finds"),
    ] = ()
    analysis_type: Annotated[AnalysisType, Meta(description="kind of analysis")] = "synthesis"


class ChunkContradiction(Piece, frozen=True, kw_only=True):
    """Two chunks that oppose each other: by a link of kind contradicts, or by their words under a shared tag."""

    type: Open[Literal["explicit", "potential_preference_conflict", "negation_conflict"]]
    topic: Content[str | None]
    chunks: Open[tuple[str, ...]]
    reason: Content[str | None]


class ChunkReasonReport(Report, frozen=True, kw_only=True):
    """`synthesis` is the analysis as text, `insights` its points one by one. `evidence` names the chunks that it rests
    on, by role.
    """

    synthesis: Content[str | None]
    insights: Content[tuple[str, ...] | None]
    evidence: Open[dict[str, tuple[str, ...]]]
    contradictions: Open[tuple[ChunkContradiction, ...]]
    confidence: Open[float]
    source_chunks: Open[tuple[str, ...]]
    iterations_used: Open[int]
    cost_usd: Open[float]


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "chunk.remember", "remember_chunks", ChunkRememberRequest, ChunkRememberReport, "write", "chunk", CHUNK,
        ("chunk", "remember"),
        "split a text into chunks of 100 to 800 tokens, store them and link them",
        word="content",
        example={"content": "User prefers Python over JavaScript.", "conversation_id": "conv-123"},
        shell=("beetle chunk remember --content-file notes.md --conversation-id conv-123 --tags notes",),
        idempotent=False,
    ),
    Operation(
        "chunk.recall", "recall_chunks", ChunkRecallRequest, ChunkRecallReport, "read", "chunk", CHUNK,
        ("chunk", "recall"),
        "answer a query with the chunks that fit it best",
        view="model", word="query",
        example={"query": "which language does the user prefer"},
        shell=('beetle chunk recall "which language does the user prefer" --min-confidence 0.8',),
    ),
    Operation(
        "chunk.reason", "reason_chunks", ChunkReasonRequest, ChunkReasonReport, "read", "chunk", CHUNK,
        ("chunk", "reason"),
        "analyse chunks: what they say together, how they compare, their patterns, gaps and contradictions",
        view="model", word="query",
        example={"query": "which language does the user prefer", "analysis_type": "comparison"},
    ),
)  # fmt: skip
