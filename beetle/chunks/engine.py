"""The chunking engine: a text as chunks of 100 to 800 tokens, each with its type."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from beetle.chunks.arguments import as_list
from beetle.chunks.records import Chunk
from beetle.domain.chunks.kinds import detect_type
from beetle.domain.chunks.splitting import MAX_TOKENS, MIN_TOKENS, paragraphs, sentences, split
from beetle.domain.chunks.tokens import count_tokens

if TYPE_CHECKING:
    from beetle.chunks.store import ChunkStore


@dataclass
class ChunkResult:
    """A piece of a text that is to be a chunk; `content` is a slice of the text."""

    content: str
    tokens: int
    type: str
    tags: list[str] = field(default_factory=list)


class ChunkingEngine:
    """Splits texts. Nothing is lost, no piece is longer than `max_tokens`; code, tables and lists stay as they are."""

    def __init__(self, min_tokens: int = MIN_TOKENS, max_tokens: int = MAX_TOKENS) -> None:
        """Set the bounds of a piece, in tokens as `count_tokens` counts them.

        Raises:
            ValueError: `max_tokens` is below 1, or below `min_tokens`.
        """
        if max_tokens < max(1, min_tokens):
            raise ValueError(
                f"max_tokens is {max_tokens}: it must be at least 1 and at least min_tokens ({min_tokens})"
            )
        self.min_tokens = min_tokens
        self.max_tokens = max_tokens

    def count_tokens(self, text: str | None) -> int:
        """How many tokens a text has, the same on every machine; none for None."""
        return count_tokens(text or "")

    def detect_content_type(self, content: str | None) -> str:
        """The type of a text by the words it uses: decision, pattern, preference, fact, else note."""
        return detect_type(content or "")

    def chunk(
        self, content: str | None, conversation_id: str = "", tags: Iterable[str] | None = None
    ) -> list[ChunkResult]:
        """Split a text.

        Args:
            conversation_id: of no effect; callers of other engines give it.
            tags: of every piece.

        Returns:
            The pieces in the text's order; none for a blank text.

        Raises:
            TypeError: the content is no text.
        """
        if content is not None and not isinstance(content, str):
            raise TypeError(f"content must be a string, not {type(content).__name__}")
        labels = as_list(tags, "tags")
        found = split(content or "", min_tokens=self.min_tokens, max_tokens=self.max_tokens)
        return [ChunkResult(each.content, each.tokens, each.kind, list(labels)) for each in found]

    def _split_into_paragraphs(self, content: str) -> list[str]:
        return paragraphs(content)

    def _split_sentences(self, text: str) -> list[str]:
        return sentences(text)


def chunk_and_store(
    content: str,
    conversation_id: str,
    store: ChunkStore,
    tags: Iterable[str] | None = None,
    min_tokens: int = MIN_TOKENS,
    max_tokens: int = MAX_TOKENS,
) -> list[Chunk]:
    """Split a text and create a chunk of each piece."""
    engine = ChunkingEngine(min_tokens, max_tokens)
    return [
        store.create_chunk(each.content, each.type, conversation_id, each.tokens, each.tags)
        for each in engine.chunk(content, conversation_id, tags)
    ]
