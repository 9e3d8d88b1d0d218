"""RECALL: an answer out of chunks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from beetle.chunks.store import ChunkStore


@dataclass
class RecallResult:
    """`answer` holds the contents of `source_chunks`, best first, with a blank line between. `confidence` is theirs,
    weighted by how well each fits, from 0 to 1. No model is asked: `cost_usd` stays 0.
    """

    answer: str
    confidence: float = 0.0
    source_chunks: list[str] = field(default_factory=list)
    traversal_path: list[str] = field(default_factory=list)
    iterations_used: int = 0
    cost_usd: float = 0.0


class RecallOperation:
    """Answers queries with the chunks that fit them best, in any language, typing errors forgiven."""

    def __init__(
        self, chunk_store: ChunkStore, llm_client: object = None, max_iterations: int = 10, timeout_seconds: int = 60
    ) -> None:
        """Set the store. `llm_client` and the limits of asking one are taken from callers who give them; none is asked.

        Raises:
            ValueError: there is no store.
        """
        if chunk_store is None:
            raise ValueError("chunk_store is required")
        self.chunk_store = chunk_store
        self.llm_client = llm_client
        self.max_iterations = max_iterations
        self.timeout_seconds = timeout_seconds
        self._results: list[tuple[float, int]] = []

    def recall(
        self, query: str | None, conversation_id: str | None = None, max_results: int = 5, min_confidence: float = 0.5
    ) -> RecallResult:
        """Answer a query.

        Args:
            conversation_id: only chunks of this conversation.
            max_results: chunks in the answer at most.
            min_confidence: only chunks with at least this confidence.
        """
        if query is None or (isinstance(query, str) and not query.strip()):
            return RecallResult("No query provided")
        found = self.chunk_store.recall_chunks(query, conversation_id, max_results, min_confidence)
        self._results.append((found.confidence, found.iterations_used))
        return RecallResult(
            found.answer or "No relevant memories found",
            found.confidence,
            list(found.source_chunks),
            list(found.traversal_path),
            found.iterations_used,
            found.cost_usd,
        )

    def get_stats(self) -> dict[str, Any]:
        """How many queries this object answered, their average confidence and iterations, their cost."""
        count = len(self._results)
        return {
            "total_queries": count,
            "avg_confidence": sum(confidence for confidence, _ in self._results) / count if count else 0.0,
            "avg_iterations": sum(iterations for _, iterations in self._results) / count if count else 0.0,
            "total_cost_usd": 0.0,
        }
