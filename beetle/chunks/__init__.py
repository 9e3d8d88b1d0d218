"""Chunks as Python objects, over a store that is kept at a path, with its JSON tree beside it.

`ChunkStore` creates, reads, changes, archives and lists chunks; `ChunkingEngine` splits texts; `RememberOperation`,
`RecallOperation` and `ReasonOperation` store texts, answer queries and analyse. See `beetle help chunks`.
"""

from __future__ import annotations

from beetle.chunks.engine import ChunkingEngine, ChunkResult, chunk_and_store
from beetle.chunks.index import ChunkIndex
from beetle.chunks.linker import AutoLinker, calculate_link_strength, create_chunk_with_links
from beetle.chunks.reason import ReasonOperation, ReasonResult
from beetle.chunks.recall import RecallOperation, RecallResult
from beetle.chunks.records import Chunk, ChunkLinks, ChunkMetadata, ChunkType
from beetle.chunks.remember import RememberOperation
from beetle.chunks.store import ChunkStore, ImportedTree, init_storage

__all__ = [
    "AutoLinker",
    "Chunk",
    "ChunkIndex",
    "ChunkLinks",
    "ChunkMetadata",
    "ChunkResult",
    "ChunkStore",
    "ChunkType",
    "ChunkingEngine",
    "ImportedTree",
    "ReasonOperation",
    "ReasonResult",
    "RecallOperation",
    "RecallResult",
    "RememberOperation",
    "calculate_link_strength",
    "chunk_and_store",
    "create_chunk_with_links",
    "init_storage",
]
