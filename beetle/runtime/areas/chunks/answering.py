"""chunk.recall, chunk.reason: answers out of chunks, found by the one recall."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import takewhile

from beetle.contracts.chunk_reasoning import (
    ChunkContradiction,
    ChunkReasonReport,
    ChunkReasonRequest,
    ChunkRecallReport,
    ChunkRecallRequest,
)
from beetle.contracts.refs import parse_ref
from beetle.domain.chunks.answering import respelt, tag_factor
from beetle.domain.chunks.reasoning import MOST_CONTRADICTIONS, Evidence, reason
from beetle.domain.ranking import POOL
from beetle.named_tuple import NamedTuple
from beetle.runtime.areas.recall.search import find
from beetle.runtime.pipeline.handlers import Handler, Read
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.pipeline.paging import Room
from beetle.runtime.planes.chunk_rows import NAME, conversation_digest, is_sound
from beetle.runtime.planes.plane import Search
from beetle.store import chunks, evidence
from beetle.store.chunks import ChunkRow
from beetle.store.damaged_rows import shown_time, whole
from beetle.store.engine.transaction import Reading

NOTHING_FOUND = "No relevant memories found"
SPARE = 4
"""Times as many are looked for at first as an answer may have: some are not sure enough."""
REASONED_OVER = 10
"""Chunks that an analysis is of where none are named."""


LOOKED_THROUGH = 512
"""The newest chunks, whose words a misspelt one of a query is compared with."""
LOOKED_CHARS = 512 * 1024
"""Characters of them at most: a chunk may be as long as a message."""


class RankedChunk(NamedTuple):
    """A chunk that fits a query, without what it says, and how well: what is twice as much fits twice as well."""

    row: ChunkRow
    score: float


def recall(invocation: Invocation, request: ChunkRecallRequest, tx: Reading) -> ChunkRecallReport:
    """The contents of the best chunks; each is counted as accessed."""
    sure, path, most = list[RankedChunk](), tuple[str, ...](), min(POOL, SPARE * request.max_results)
    while True:
        found, path = _ranked(invocation, tx, request.query, request.conversation_id, most)
        sure = [each for each in found if each.row.confidence >= request.min_confidence]
        if len(sure) >= request.max_results or len(found) < most or most == POOL:
            break
        most = POOL
    room = Room(invocation)
    kept: list[RankedChunk] = []
    said: list[str] = []
    for each in sure[: request.max_results]:
        content = _content(_whole(tx, each))
        if not room.takes(content):
            break
        kept.append(each)
        said.append(content)
        invocation.shared.chunk_accesses.note(each.row, invocation.now, tx)
    weight = sum(each.score for each in kept)
    return ChunkRecallReport(
        answer="\n\n".join(said) if kept else NOTHING_FOUND,
        confidence=round(sum(each.row.confidence * each.score for each in kept) / weight, 4) if weight else 0.0,
        source_chunks=tuple(each.row.chunk_id for each in kept),
        traversal_path=(*path, "min_confidence"),
        iterations_used=1,
        cost_usd=0.0,
        profile_budget_applied=room.full,
    )


def reason_over(invocation: Invocation, request: ChunkReasonRequest, tx: Reading) -> ChunkReasonReport:
    """An analysis of the chunks that are named, else of those that the query finds, else of the newest ones.

    Nothing counts as accessed.
    """
    room = Room(invocation)
    rows = list(takewhile(lambda row: room.takes(_content(row)), _reasoned_over(invocation, tx, request)))
    made = reason(request.query, list(whole(rows, _evidence)), request.analysis_type, partial(_look, invocation))
    return ChunkReasonReport(
        synthesis=made.synthesis,
        insights=tuple(made.insights),
        evidence={"sources": tuple(made.sources)},
        contradictions=tuple(
            ChunkContradiction(
                type=each.type, topic=each.topic or None, chunks=(each.first, each.second), reason=each.reason
            )
            for each in made.contradictions
        ),
        confidence=round(made.confidence, 4),
        source_chunks=tuple(made.sources),
        iterations_used=1 if rows else 0,
        cost_usd=0.0,
        profile_budget_applied=room.full or len(made.contradictions) == MOST_CONTRADICTIONS,
    )


def _reasoned_over(invocation: Invocation, tx: Reading, request: ChunkReasonRequest) -> Iterator[ChunkRow]:
    """One after the other: there may be more of them than there is room for."""
    space = evidence.find_space(tx, invocation.space_id)
    if request.context_chunks:
        named = (chunks.find(tx, space, each) for each in dict.fromkeys(request.context_chunks))
        yield from (row for row in named if row is not None and row.is_live and is_sound(invocation.key, row))
        return
    found, _ = _ranked(invocation, tx, request.query, None, SPARE * REASONED_OVER)
    yield from (_whole(tx, each) for each in found[:REASONED_OVER])
    if not found:
        yield from (row for row in chunks.newest(tx, space, REASONED_OVER) if is_sound(invocation.key, row))


def _ranked(
    invocation: Invocation, tx: Reading, query: str, conversation_id: str | None, most: int
) -> tuple[list[RankedChunk], tuple[str, ...]]:
    """The chunks that fit a query, best first, of two alike the newer one; and the steps that led to them.

    Where nothing fits, words that no chunk has are taken for misspelt.
    """
    path: tuple[str, ...] = ("search",)
    found = _found(invocation, tx, query, conversation_id, most)
    if not found:
        spelt = respelt(query, _newest_texts(invocation, tx), partial(_look, invocation))
        if spelt is not None:
            path, query = (*path, "respell", "search"), spelt
            found = _found(invocation, tx, query, conversation_id, most)
    ranked = [each._replace(score=each.score * tag_factor(query, each.row.tags)) for each in found]
    return sorted(ranked, key=lambda each: (-round(each.score, 3), -each.row.created_at)), (*path, "rank")


def _found(
    invocation: Invocation, tx: Reading, query: str, conversation_id: str | None, most: int
) -> list[RankedChunk]:
    """The chunks that fit a query best, at most so many."""
    space = evidence.find_space(tx, invocation.space_id)
    label = None if conversation_id is None else conversation_digest(invocation.key, space, conversation_id)
    search = Search(query, most, invocation.viewer(), planes=(NAME,), asked_at=invocation.now, label=label)
    made: list[RankedChunk] = []
    for hit in find(invocation, tx, search).hits:
        ref = parse_ref(hit.ref)
        row = None if ref is None else chunks.find(tx, space, ref.segments[0])
        if row is not None and row.body is not None:
            # A hundred of them may be longer than the memory that there is for all requests.
            made.append(RankedChunk(row._replace(body=row.body._replace(content="", extra=None)), hit.score))
    return made


def _whole(tx: Reading, found: RankedChunk) -> ChunkRow:
    (row,) = chunks.by_keys(tx, [found.row.chunk])
    return row


def _newest_texts(invocation: Invocation, tx: Reading) -> Iterator[str]:
    """What the newest chunks say, and their tags, as far as there is room."""
    room = LOOKED_CHARS
    for row in chunks.newest(tx, evidence.find_space(tx, invocation.space_id), LOOKED_THROUGH):
        text = f"{_content(row)} {' '.join(row.tags)}"
        room -= len(text)
        if room < 0:
            return
        if is_sound(invocation.key, row):
            yield text


def _look(invocation: Invocation) -> None:
    invocation.work.breathe()
    invocation.check("all was compared")


def _content(row: ChunkRow) -> str:
    return "" if row.body is None else row.body.content


def _evidence(row: ChunkRow) -> Evidence:
    return Evidence(
        chunk_id=row.chunk_id,
        content=_content(row),
        confidence=row.confidence,
        created_ms=row.created_at // 1000,
        day=shown_time(row.created_at, "chunk", row.chunk_id)[:10],
        kind=row.type,
        tags=row.tags,
        linked=any(each.kind != "context_of" for each in row.links),
        contradicts=tuple(each.name for each in row.links if each.kind == "contradicts"),
    )


HANDLERS: Mapping[str, Handler] = {
    "chunk.reason": Read(reason_over),
    "chunk.recall": Read(recall),
}
