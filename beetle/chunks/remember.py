"""REMEMBER: a text into chunks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from beetle.chunks.engine import ChunkingEngine
from beetle.chunks.linker import AutoLinker
from beetle.chunks.records import ChunkType

if TYPE_CHECKING:
    from beetle.chunks.store import ChunkStore


class RememberOperation:
    """Splits texts, stores their chunks and links them, each text in one transaction."""

    def __init__(self, store: ChunkStore, linker: AutoLinker | None = None) -> None:
        """Set the store. Linking is the store's own; a linker with another window adds to it."""
        self.store = store
        self.engine = ChunkingEngine()
        self.linker = linker or AutoLinker(store)

    def remember(
        self,
        content: str,
        conversation_id: str,
        tags: Iterable[str] | None = None,
        confidence: float = 0.7,
        chunk_type: str | None = None,
    ) -> dict[str, Any]:
        """Store a text.

        Args:
            confidence: from 0 to 1.
            chunk_type: the type of every chunk; detected from each one's words when left out.

        Returns:
            `success`, `chunk_ids` in the text's order, `total_tokens`, `chunks_created`; of a blank text also `error`.

        Raises:
            TypeError: the content is no text, or the confidence no number.
            ValueError: the conversation's id is empty, the confidence is out of its range, or the type is unknown.
            BeetleError: the store refuses it, for example since it is too large.
        """
        if not isinstance(content, str):
            raise TypeError(f"content must be a string, not {type(content).__name__}")
        if not conversation_id:
            raise ValueError("conversation_id is required")
        if not isinstance(confidence, (int, float)):
            raise TypeError(f"confidence must be a number, not {type(confidence).__name__}")
        if not 0.0 <= confidence <= 1.0:
            raise ValueError(f"confidence must be between 0.0 and 1.0, not {confidence}")
        if chunk_type is not None and chunk_type not in list(ChunkType):
            raise ValueError(f"unknown chunk_type {chunk_type!r}: give one of {', '.join(ChunkType)}")
        return self.store.remember_text(content, conversation_id, tags, confidence, chunk_type)
