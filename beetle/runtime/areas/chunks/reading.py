"""chunk.get, chunk.list, chunk.stats."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from heapq import merge
from itertools import islice
from operator import itemgetter

from beetle.contracts.chunks import (
    ChunkGetReport,
    ChunkGetRequest,
    ChunkGroup,
    ChunkListReport,
    ChunkListRequest,
    ChunkStatsReport,
    ChunkStatsRequest,
)
from beetle.contracts.codec import to_us
from beetle.runtime.areas.chunks.showing import linked_from, shown
from beetle.runtime.pipeline.cursor import make_cursor, read_cursor
from beetle.runtime.pipeline.handlers import Handler, Read
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.pipeline.paging import Room, page
from beetle.runtime.planes.chunk_rows import tag_digests
from beetle.store import chunks, evidence
from beetle.store.chunks import ChunkRow, Wanted
from beetle.store.engine.transaction import Reading

ARCHIVED: Mapping[str, bool | None] = {"live": False, "archived": True, "all": None}
Change = tuple[int, ChunkRow | str]
"""A revision, and the chunk that has it or the id of the one that was deleted."""


def get(invocation: Invocation, request: ChunkGetRequest, tx: Reading) -> ChunkGetReport:
    """A chunk by its id; an archived one is shown, and not counted as accessed."""
    row = chunks.find(tx, evidence.find_space(tx, invocation.space_id), request.id)
    if row is None:
        return ChunkGetReport(chunk=None)
    if request.count_access and row.is_live:
        invocation.shared.chunk_accesses.note(row, invocation.now, tx)
    return ChunkGetReport(chunk=shown(invocation, tx, row), linked_from=linked_from(tx, row))


def list_chunks(invocation: Invocation, request: ChunkListRequest, tx: Reading) -> ChunkListReport:
    """In the order in which they were stored, or changed."""
    space = evidence.find_space(tx, invocation.space_id)
    wanted = Wanted(
        space,
        conversation_id=request.conversation_id,
        tags=tuple(tag_digests(invocation.key, space or 0, request.tags)),
        type=request.type,
        since=None if request.created_after is None else to_us(request.created_after),
        until=None if request.created_before is None else to_us(request.created_before),
        archived=ARCHIVED[request.state],
    )
    bound_to = invocation.bound(*wanted[1:], request.changed_since)
    after = 0 if request.cursor is None else read_cursor(invocation.key, bound_to, request.cursor)
    if request.changed_since is not None:
        return _changed(invocation, request.limit, tx, wanted, max(after, request.changed_since), bound_to)
    found = page(
        invocation,
        chunks.listed(tx, wanted, after),
        request.limit,
        lambda row: shown(invocation, tx, row),
        bound_to=bound_to,
        place=lambda row: row.chunk,
    )
    return ChunkListReport(
        chunks=found.entries,
        revision=chunks.revision(tx, space),
        has_more=found.has_more,
        next_cursor=found.next_cursor,
        profile_budget_applied=found.cut,
    )


def _changed(
    invocation: Invocation, limit: int, tx: Reading, wanted: Wanted, since: int, bound_to: tuple[object, ...]
) -> ChunkListReport:
    """What changed and what was deleted behind a revision, in one order."""
    rows = islice(_changes(tx, wanted, since, limit + 1), limit + 1)
    room = Room(invocation)
    kept: list[ChunkRow] = []
    removed: list[str] = []
    last, more = since, False
    for revision, what in rows:
        if len(kept) + len(removed) == limit or not room.takes(what if isinstance(what, str) else what.body or ()):
            more = True
            break
        last = revision
        if isinstance(what, str):
            removed.append(what)
        else:
            kept.append(what)
    return ChunkListReport(
        chunks=tuple(shown(invocation, tx, row) for row in kept),
        removed=tuple(removed),
        revision=chunks.revision(tx, wanted.space),
        has_more=more,
        next_cursor=make_cursor(invocation.key, bound_to, last) if more else None,
        profile_budget_applied=room.full,
    )


def _changes(tx: Reading, wanted: Wanted, since: int, most: int) -> Iterator[Change]:
    """What was changed and what was removed, in the order of the revisions."""
    removed: Iterator[Change] = ((revision, gone) for gone, revision in chunks.removed(tx, wanted.space, since, most))
    changed: Iterator[Change] = ((row.revision, row) for row in islice(chunks.changed(tx, wanted, since), most))
    return merge(changed, removed, key=itemgetter(0))


def stats(invocation: Invocation, request: ChunkStatsRequest, tx: Reading) -> ChunkStatsReport:
    """Counts, and a page of conversations or tags."""
    space = evidence.find_space(tx, invocation.space_id)
    by_type = chunks.count_types(tx, space)
    bound_to = invocation.bound(request.by)
    after = "" if request.cursor is None else read_cursor(invocation.key, bound_to, request.cursor)
    walk = {"conversation": chunks.conversations, "tag": chunks.tags}
    rows = [] if request.by is None else walk[request.by](tx, space, after, request.limit + 1)
    found = page(
        invocation,
        rows,
        request.limit,
        lambda row: ChunkGroup(name=row[0], chunks=row[1]),
        bound_to=bound_to,
        place=lambda row: row[0],
    )
    return ChunkStatsReport(
        total_chunks=sum(by_type.values()),
        archived_chunks=chunks.count_archived(tx, space),
        by_type=by_type,
        revision=chunks.revision(tx, space),
        groups=found.entries,
        has_more=found.has_more,
        next_cursor=found.next_cursor,
        profile_budget_applied=found.cut,
    )


HANDLERS: Mapping[str, Handler] = {
    "chunk.get": Read(get),
    "chunk.list": Read(list_chunks),
    "chunk.stats": Read(stats),
}
