"""Chunks as reports have them."""

from __future__ import annotations

from typing import Any, cast

from beetle.contracts.chunks import (
    LINK_KINDS,
    MOST_COUNT,
    Chunk,
    ChunkExtra,
    ChunkLink,
    ChunkLinks,
    ChunkMetadata,
    ChunkReport,
)
from beetle.contracts.codec import replace
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.planes.chunk_rows import extra_of, is_sound, ref_of
from beetle.store import chunk_links, chunks, evidence
from beetle.store.chunk_links import Backlink
from beetle.store.chunks import ChunkRow
from beetle.store.damaged_rows import known_time, shown_time
from beetle.store.engine.transaction import Reading

BACKLINKS = 64
"""Links of other chunks that are shown of one."""
PARTS = ("chunk", "metadata", "links")


def shown(invocation: Invocation, tx: Reading, row: ChunkRow) -> Chunk:
    """A chunk. What it says is null where another program has changed it."""
    body = row.body if is_sound(invocation.key, row) else None
    links = _links(tx, row)
    return Chunk(
        id=row.chunk_id,
        content=None if body is None else body.content,
        tokens=row.tokens,
        type=cast(Any, row.type),
        metadata=_metadata(invocation, tx, row),
        links=ChunkLinks(**{kind: tuple(each.target for each in links if each.kind == kind) for kind in LINK_KINDS}),
        tags=None if body is None else row.tags,
        archived=not row.is_live,
        ref=ref_of(row.chunk_id),
        revision=row.revision,
        strengths=links,
        extra=None if body is None or body.extra is None else _extra(row),
    )


def again(invocation: Invocation, request: Any, tx: Reading, first: ChunkReport) -> ChunkReport:
    """A first report with its chunk as it is now. One that was deleted for good is no live one."""
    del request
    row = chunks.find(tx, evidence.find_space(tx, invocation.space_id), first.chunk.id)
    if row is None:
        return replace(first, chunk=replace(first.chunk, archived=True))
    now = shown(invocation, tx, row)
    # A file of another time may have brought another chunk of that id, or have changed this one.
    return replace(first, chunk=now) if now.metadata.created == first.chunk.metadata.created else first


def linked_from(tx: Reading, row: ChunkRow) -> tuple[ChunkLink, ...]:
    """The newest links of other chunks that lead to one."""
    found = [each for kind in LINK_KINDS for each in _backlinks(tx, row, kind)]
    newest = sorted(found, key=lambda each: each.chunk, reverse=True)[:BACKLINKS]
    return tuple(ChunkLink(kind=cast(Any, each.kind), target=each.chunk_id, strength=each.strength) for each in newest)


def _metadata(invocation: Invocation, tx: Reading, row: ChunkRow) -> ChunkMetadata:
    accesses, last = invocation.shared.chunk_accesses.added_to(row, tx)
    return ChunkMetadata(
        created=shown_time(row.created_at, "chunk", row.chunk_id),
        conversation_id=row.conversation_id,
        source=cast(Any, row.source),
        confidence=row.confidence,
        access_count=min(accesses, MOST_COUNT),
        last_accessed=known_time(last),
    )


def _links(tx: Reading, row: ChunkRow) -> tuple[ChunkLink, ...]:
    """Its own links, and those that relate to it, the newest first: a relation stands once, and leads both ways."""
    own = {(each.kind, each.name): each.strength for each in row.links}
    for each in _backlinks(tx, row, "related_to"):
        own.setdefault(("related_to", each.chunk_id), each.strength)
    return tuple(
        ChunkLink(kind=cast(Any, kind), target=target, strength=strength) for (kind, target), strength in own.items()
    )


def _backlinks(tx: Reading, row: ChunkRow, kind: str) -> list[Backlink]:
    return chunk_links.leading_to(tx, row.space, row.chunk, row.chunk_id, kind, BACKLINKS)


def _extra(row: ChunkRow) -> ChunkExtra:
    found = extra_of(row)
    return ChunkExtra(**{name: found.get(name, {}) for name in PARTS})
