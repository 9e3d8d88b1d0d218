"""Chunks as an archive holds them, in the order in which they were stored."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, cast

from beetle.contracts.continuity_records import ChunkLinkRecord, ChunkRecord
from beetle.runtime.planes.chunk_rows import extra_of, is_sound
from beetle.runtime.planes.gathering import Gathering
from beetle.store import chunks
from beetle.store.columns import mapping


def gather(gathering: Gathering, space: int) -> dict[str, Any]:
    """A chat has none of its own. A damaged chunk stays behind."""
    return {} if gathering.chat is not None else {"chunks": tuple(_chunks(gathering, space))}


def _chunks(gathering: Gathering, space: int) -> Iterator[ChunkRecord]:
    for row in chunks.of_space(gathering.tx, space):
        if row.body is None or (gathering.key is not None and not is_sound(gathering.key, row)):
            gathering.leave_out("chunks")
            continue
        extra = row.body.extra
        if extra is not None and (mended := extra_of(row)) != mapping(extra):
            extra = json.dumps(mended, ensure_ascii=False)
        gathering.spend(len(row.body.content) + len(extra or ""))
        accesses, last_accessed = gathering.accesses(row, gathering.tx)
        yield ChunkRecord(
            chunk_id=row.chunk_id, conversation_id=row.conversation_id, type=cast(Any, row.type),
            source=cast(Any, row.source), tokens=row.tokens, confidence=row.confidence, created_at=row.created_at,
            content=row.body.content, tags=row.tags, extra=extra, archived_at=row.archived_at,
            accesses=accesses, last_accessed=last_accessed,
            links=tuple(
                ChunkLinkRecord(kind=cast(Any, each.kind), target=each.name, strength=each.strength)
                for each in row.links
            ),
        )  # fmt: skip
