"""Chunks of an archive: written as they were, with their links; and all chunks of a space taken away."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from beetle.contracts.codec import unpack_json
from beetle.contracts.continuity_records import ChunkRecord
from beetle.runtime.areas import secrets
from beetle.runtime.areas.chunks import words
from beetle.runtime.areas.chunks.keeping import Draft, Given, add, relink
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.planes.chunk_rows import check, unindex, within_bounds
from beetle.store import chunks, plane_chunks
from beetle.store.engine.write_transaction import WriteTransaction


def said(records: Iterable[ChunkRecord]) -> Iterator[secrets.Said]:
    """What the chunks say, for the detector of secrets."""
    for place, each in enumerate(records):
        yield from words.texts(f"records.chunks[{place}]", each.content, each.tags, _extra(each))


def named(records: Iterable[ChunkRecord]) -> Iterator[secrets.Said]:
    """The ids in the chunks, for the same."""
    for place, each in enumerate(records):
        targets = (link.target for link in each.links)
        yield from words.names(f"records.chunks[{place}]", each.conversation_id, targets, each.chunk_id)


def write(invocation: Invocation, tx: WriteTransaction, space: int, records: Iterable[ChunkRecord]) -> None:
    """All chunks, and then their links: one may lead to a chunk that comes later."""
    made = [(add(invocation, tx, space, _draft(each), link=False), each) for each in records]
    for row, each in made:
        if each.links:
            relink(invocation, tx, row, [Given(one.kind, one.target, one.strength) for one in each.links])
    if made:
        tx.log(invocation.event("chunk", "imported", chunks=len(made)))


def _draft(each: ChunkRecord) -> Draft:
    return Draft(
        content=each.content,
        type=each.type,
        conversation_id=each.conversation_id,
        tokens=each.tokens,
        tags=each.tags,
        confidence=each.confidence,
        source=each.source,
        created_at=each.created_at,
        chunk_id=each.chunk_id,
        extra=_extra(each),
        archived_at=each.archived_at,
        accesses=each.accesses,
        last_accessed=each.last_accessed,
    )


def _extra(each: ChunkRecord) -> dict[str, Any] | None:
    return None if each.extra is None else within_bounds(unpack_json(each.extra))


def clear(invocation: Invocation, tx: WriteTransaction, space: int) -> None:
    """Take all chunks of a space away; their ids stay, for who follows the revisions."""
    found = list(chunks.of_space(tx, space))
    for row in found:
        check(invocation.key, row)
        unindex(invocation.key, tx, row)
    plane_chunks.remove_all(tx, space, [row.chunk_id for row in found], chunks.revision(tx, space))
    invocation.shared.chunk_accesses.forget(tx, found)
    if found:
        tx.log(invocation.event("chunk", "removed", chunks=len(found)))
