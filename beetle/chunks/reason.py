"""REASON: what chunks say together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, get_args

from beetle.chunks.arguments import as_list
from beetle.contracts.chunk_reasoning import AnalysisType

if TYPE_CHECKING:
    from beetle.chunks.store import ChunkStore


@dataclass
class ReasonResult:
    """`synthesis` is the analysis as text, `insights` its points. `contradictions`: dictionaries with `type`, `topic`,
    the two `chunks`, and the `reason`. `confidence` is from 0 to 1; no model is asked, so `cost_usd` stays 0.
    """

    synthesis: str
    insights: list[str] = field(default_factory=list)
    evidence: dict[str, list[str]] = field(default_factory=dict)
    contradictions: list[dict[str, Any]] = field(default_factory=list)
    confidence: float = 0.0
    source_chunks: list[str] = field(default_factory=list)
    iterations_used: int = 0
    cost_usd: float = 0.0


class ReasonOperation:
    """Analyses chunks: a synthesis, a comparison, their patterns, gaps and contradictions."""

    def __init__(self, chunk_store: ChunkStore, llm_client: object = None, max_iterations: int = 10) -> None:
        """Set the store. `llm_client` and `max_iterations` are taken from callers who give them; no model is asked.

        Raises:
            ValueError: there is no store.
        """
        if chunk_store is None:
            raise ValueError("chunk_store is required")
        self.chunk_store = chunk_store
        self.llm_client = llm_client
        self.max_iterations = max_iterations

    def reason(
        self, query: str | None, context_chunks: Iterable[str] | None = None, analysis_type: str = "synthesis"
    ) -> ReasonResult:
        """Analyse chunks.

        Args:
            context_chunks: ids of the chunks; those that the query finds when left out.
            analysis_type: synthesis, comparison, pattern or gap; another one is a synthesis.
        """
        if query is None or (isinstance(query, str) and not query.strip()):
            return ReasonResult("No query provided")
        analysis = analysis_type if analysis_type in get_args(AnalysisType) else "synthesis"
        found = self.chunk_store.reason_chunks(query, as_list(context_chunks, "context_chunks"), analysis)
        return ReasonResult(
            found.synthesis or "",
            list(found.insights or ()),
            {role: list(ids) for role, ids in found.evidence.items()},
            [
                {"type": each.type, "topic": each.topic, "chunks": list(each.chunks), "reason": each.reason}
                for each in found.contradictions
            ],
            found.confidence,
            list(found.source_chunks),
            found.iterations_used,
            found.cost_usd,
        )

    def analyze_contradictions(self, chunk_ids: Iterable[str]) -> list[dict[str, Any]]:
        """The contradictions that links between chunks say: `chunk_a`, `chunk_b`, `reasoning`."""
        found = [self.chunk_store.peek_chunk(each) for each in as_list(chunk_ids, "chunk_ids")]
        return [
            {"chunk_a": chunk.id, "chunk_b": target, "reasoning": "Explicit contradiction link"}
            for chunk in found
            if chunk is not None
            for target in chunk.links.contradicts
        ]
