"""Automatic links between chunks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from beetle.chunks.records import Chunk
from beetle.contracts.codec import to_us
from beetle.domain.chunks.linking import Linkable, links_on_create, strength_of

if TYPE_CHECKING:
    from beetle.chunks.store import ChunkStore

DEFAULT_WINDOW_MINUTES = 5


class AutoLinker:
    """Links chunks as `ChunkStore.create_chunk` does: those that were created without, or with another window."""

    def __init__(self, chunk_store: ChunkStore, temporal_window_minutes: float = DEFAULT_WINDOW_MINUTES) -> None:
        """Set the store, and how many minutes before a chunk another one was created that it follows."""
        self.chunk_store = chunk_store
        self.temporal_window = timedelta(minutes=temporal_window_minutes)

    def link_on_create(self, new_chunk: Chunk) -> Chunk:
        """Add the links that are missing: `context_of`, `follows` and `related_to`. No access is counted.

        Returns:
            The chunk as it is now.
        """
        now = self.chunk_store.peek_chunk(new_chunk.id)
        if now is None:
            return new_chunk
        conversation = now.metadata.conversation_id
        if conversation not in now.links.context_of:
            now = self._link(now, "context_of", conversation, None)
        window_ms = int(self.temporal_window / timedelta(milliseconds=1))
        candidates = map(_linkable, self._candidates(now))
        for link in links_on_create(_linkable(now), candidates, window_ms=window_ms):
            if link.target not in getattr(now.links, link.kind):
                now = self._link(now, link.kind, link.target, link.strength)
        return now

    def _link(self, chunk: Chunk, kind: str, target: str, strength: float | None) -> Chunk:
        return self.chunk_store.link_chunk(chunk.id, kind, target, strength) or chunk

    def _candidates(self, chunk: Chunk) -> Iterator[Chunk]:
        created = datetime.fromisoformat(chunk.metadata.created)
        conversation = chunk.metadata.conversation_id
        yield from self.chunk_store.iter_chunks(conversation, None, created - self.temporal_window, created)
        for tag in dict.fromkeys(chunk.tags):
            yield from self.chunk_store.iter_chunks(tags=[tag])


def calculate_link_strength(source: Chunk, target: Chunk, link_type: str) -> float:
    """The strength of a link between two chunks, from 0 to 1; of a type that is unknown, 0.5."""
    return strength_of(link_type, _linkable(source), _linkable(target))


def create_chunk_with_links(
    store: ChunkStore,
    linker: AutoLinker,
    content: str,
    chunk_type: str,
    conversation_id: str,
    tokens: int,
    tags: Iterable[str] | None = None,
    confidence: float = 0.7,
) -> Chunk:
    """Create a chunk, and have it linked by this linker."""
    return linker.link_on_create(
        store.create_chunk(content, chunk_type, conversation_id, tokens, tags, confidence, link=False)
    )


def _linkable(chunk: Chunk) -> Linkable:
    about = chunk.metadata
    # Chunks that never were in a store may lack what is told of one.
    created = to_us(datetime.fromisoformat(about.created)) // 1000 if about else 0
    return Linkable(chunk.id, about.conversation_id if about else "", created, frozenset(chunk.tags))
