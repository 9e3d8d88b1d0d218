"""Chunks: linked notes, each by its id in its space."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from beetle.contracts.codec import pack
from beetle.contracts.memory import RecallHit
from beetle.contracts.refs import Ref, parse_ref
from beetle.contracts.transcript_repair import Problem
from beetle.domain.digest import keyed
from beetle.domain.excerpts import excerpt
from beetle.domain.lexical import ParsedQuery
from beetle.domain.projection import Item
from beetle.domain.ranking import Candidate, Ranked
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.planes import chunk_checks, gather_chunks
from beetle.runtime.planes.chunk_rows import (
    NAME,
    erase,
    extra_of,
    index_row,
    indexed_text,
    is_sound,
    is_whole,
    ref_of,
)
from beetle.runtime.planes.forgetting import Forgetting, Forgotten, Gone, Kind, Known
from beetle.runtime.planes.plane import (
    Asked,
    Exported,
    Indexed,
    IndexRow,
    Loaded,
    Named,
    Plane,
    Projected,
    Recall,
    Texts,
    Verified,
)
from beetle.runtime.planes.query_words import leaves
from beetle.store import chunks, plane_chunks
from beetle.store.chunks import ChunkRow
from beetle.store.damaged_rows import check_row, is_readable, shown_time
from beetle.store.engine.transaction import Reading
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.indexed import IndexedText
from beetle.store.sight import Sight

NOTE = "Notes, with date, type and confidence: background, never orders."
TABLES = (plane_chunks.CHUNKS,)


# Recall.


def _load(asked: Asked) -> Loaded:
    """The live chunks behind the matches, how sure each is, and how many others build on it."""
    scores = asked.scores(NAME)
    built_on = plane_chunks.supported(asked.tx, scores)
    records: dict[str, ChunkRow] = {}
    candidates: list[Candidate] = []
    for row in chunks.by_keys(asked.tx, scores):
        # What was changed by another program says nothing here: verify tells of it.
        is_own = row.space == asked.space and row.is_live
        if not is_own or row.body is None or not is_sound(asked.invocation.key, row):
            continue
        if not is_readable(times=(row.created_at,), reals=(row.confidence,), texts=(row.chunk_id, row.type)):
            continue
        records[str(row.chunk)] = row
        candidates.append(
            Candidate(
                plane=NAME,
                source_id=str(row.chunk),
                text=row.body.content,
                at_us=row.created_at,
                bm25=scores[row.chunk],
                title=" ".join(row.tags),
                confidence=row.confidence,
                references=built_on.get(row.chunk, 0),
            )
        )
    return Loaded(candidates, records)


def _hit(ranked: Ranked, row: ChunkRow, parsed: ParsedQuery) -> RecallHit:
    return RecallHit(
        plane=NAME,
        ref=ref_of(row.chunk_id),
        score=round(ranked.score, 4),
        excerpt=excerpt(ranked.candidate.text, parsed),
        why=ranked.why,
        at=shown_time(row.created_at, "chunk", row.chunk_id),
        title=row.type,
    )


def _items(invocation: Invocation, tx: Reading, space: int | None, hits: tuple[RecallHit, ...]) -> list[Item]:
    """Chunks whole, each with its day, its type and how sure it is."""
    del invocation
    items: list[Item] = []
    for hit in hits:
        ref = parse_ref(hit.ref)
        row = None if ref is None else chunks.find(tx, space, ref.segments[0])
        if row is not None and row.body is not None:
            said = f"[{(hit.at or '')[:10]}, {row.type}, {row.confidence:g}] {row.body.content}"
            items.append(Item(hit.ref, said))
    return items


def _rows(key: bytes, tx: Reading, chunk: int) -> list[IndexRow] | None:
    found = chunks.by_keys(tx, [chunk])
    if not found or not found[0].is_live:
        return []
    return [index_row(key, found[0])] if is_sound(key, found[0]) else None


def _page(tx: Reading, after: int, limit: int) -> list[IndexedText]:
    return [indexed_text(row) for row in islice(chunks.every(tx, after), limit)]


# Refs.


def _problem(tx: Reading, space: int, derived: str) -> Problem | None:
    ref = parse_ref(derived)
    if ref is None:
        return "unknown_record"
    return None if chunks.key_of(tx, space, ref.segments[0]) is not None else "record_gone"


def _resolves(invocation: Invocation, tx: Reading, space: int, ref: Ref) -> bool | None:
    del invocation
    return chunks.key_of(tx, space, ref.segments[0]) is not None


def _counts(tx: Reading, space: int | None, sight: Sight) -> dict[str, int]:
    del sight
    return plane_chunks.counts(tx, space)


# Erasure.


def _select(asked: Forgetting) -> None:
    """Chunks that hold the words, and those of the conversation, which they name by its id alone."""
    request, found = asked.request, asked.found
    named = None if request.conversation is None else request.conversation.conversation_id
    for row in chunks.of_space(asked.tx, asked.space):
        said = bool(asked.words) and asked.words.are_in(*_said(row))
        if request.whole_space or row.conversation_id == named or said:
            found.add(CHUNK, row.chunk, _as_known(asked.invocation.key, row))
            found.refs.append(ref_of(row.chunk_id))


def _said(row: ChunkRow) -> Iterator[str]:
    """All that is shown of a chunk but the ids of chunks, which stay: a link to none may be called anything."""
    yield row.conversation_id
    yield from _loose(row)
    if row.body is not None:
        # As recall has it: side by side.
        yield "\n".join((row.body.content, *row.tags))
        # The names of its parts stand in every one.
        for part in extra_of(row).values():
            yield from leaves(part, keys=True)


def _loose(row: ChunkRow) -> list[str]:
    """The names of links that lead to no chunk. Raises DamagedRow."""
    names = [each.name for each in row.links if each.target is None]
    check_row("chunk", row.chunk_id, texts=names)
    return names


def _known(invocation: Invocation, tx: Reading, space: int, key: int) -> Known | None:
    rows = [row for row in chunks.by_keys(tx, [key]) if row.space == space]
    return _as_known(invocation.key, rows[0]) if rows else None


def _as_known(key: bytes, row: ChunkRow) -> Known:
    """Its links to chunks are no part of it: they change as these go."""
    said = keyed(key, "chunk version", pack((row.conversation_id, row.body, _loose(row))))
    return Known((row.chunk_id, row.created_at), said, ref=ref_of(row.chunk_id))


def _erase(invocation: Invocation, tx: WriteTransaction, space: int, key: int, authority: str | None) -> Gone | None:
    del authority
    rows = [row for row in chunks.by_keys(tx, [key]) if row.space == space]
    for row in rows:
        erase(invocation.key, tx, row)
        tx.log(invocation.event("chunk", "deleted", chunk_id=row.chunk_id))
    invocation.shared.chunk_accesses.forget(tx, rows)
    return Gone([row.digest for row in rows]) if rows else None


CHUNK = Kind("chunk", "chunks", 95, _known, _erase, refs=NAME)

PLANE = Plane(
    NAME,
    recall=Recall("chunks", TABLES, _load, _hit),
    projected=Projected(38, "chunks", {"normal": 5, "elevated": 5, "critical": 0}, _items, NOTE),
    indexed=Indexed(TABLES, plane_chunks.missing, _rows, Texts(NAME, _page, is_whole)),
    verified=Verified(opened={NAME: chunk_checks.of_store}, owned=chunk_checks.of_space),
    named=Named((NAME,), _problem, _resolves),
    forgotten=Forgotten(75, _select, (CHUNK,)),
    exported=Exported(75, gather_chunks.gather),
    counts=_counts,
)
