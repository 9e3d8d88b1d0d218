"""chain.traverse, chain.export, chain.merge_report: chains in their order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from beetle.contracts.chains import (
    ChainExportReport,
    ChainExportRequest,
    ChainMergeReport,
    ChainMergeReportRequest,
    ChainTraverseReport,
    ChainTraverseRequest,
    ExportedThought,
    SharedTarget,
    ThoughtCursor,
    TimeWindow,
)
from beetle.contracts.errors import InvalidRequest
from beetle.domain.chains.ledger import FIRST_US, LAST_US
from beetle.runtime.areas.chains.filtering import filter_of, wanted_in
from beetle.runtime.areas.chains.places import OpenChain, ThoughtLocator
from beetle.runtime.pipeline.cursor import read_cursor
from beetle.runtime.pipeline.handlers import Handler, Read
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.pipeline.paging import Room, page
from beetle.store.engine.transaction import Reading
from beetle.store.thoughts import ThoughtRow

FORMAT = "beetle-chain-1"
UNITS = {"seconds": 1_000_000, "milliseconds": 1_000}


def traverse(invocation: Invocation, request: ChainTraverseRequest, tx: Reading) -> ChainTraverseReport:
    """A chunk of the walk."""
    chain = OpenChain(invocation, tx, request.chain_key)
    backwards = request.direction == "backward"
    anchor, included = _anchor(chain, request, backwards=backwards)
    wanted = filter_of(request)
    if request.time_window is not None:
        since, until = _bounds(request.time_window)
        wanted = wanted._replace(since=since, until=until)
    room, rows, more = Room(invocation), list[ThoughtRow](), False
    if anchor is not None:
        here = anchor.position
        span = (0, here + included) if backwards else (here + 1 - included, chain.length)
        for row in wanted_in(chain, wanted).matches(*span, backwards=backwards):
            if len(rows) == request.chunk_size or not room.takes(chain.shown(row)):
                more = True
                break
            rows.append(row)
    return ChainTraverseReport(
        chain_key=chain.key,
        direction=request.direction,
        include_anchor=request.include_anchor,
        chunk_size=request.chunk_size,
        anchor=_cursor(anchor),
        thoughts=tuple(map(chain.shown, rows)),
        has_more=more,
        next_cursor=_cursor(rows[-1] if rows else None),
        previous_cursor=_cursor(rows[0] if rows else None),
        profile_budget_applied=room.full,
    )


def _anchor(chain: OpenChain, request: ChainTraverseRequest, *, backwards: bool) -> tuple[ThoughtRow | None, bool]:
    """Where the walk begins, and whether that thought belongs to it: one at an end of the chain always does."""
    place = ThoughtLocator(request.anchor_id, request.anchor_hash, request.anchor_index)
    if any(each is not None for each in place):
        return chain.located(place), request.include_anchor
    at_head = request.anchor_boundary == "head" if request.anchor_boundary is not None else backwards
    return (chain.at(chain.length - 1 if at_head else 0) if chain.length else None), True


def _cursor(row: ThoughtRow | None) -> ThoughtCursor | None:
    return None if row is None else ThoughtCursor(id=row.thought_id, index=row.position, hash=row.hash.hex())


def _bounds(window: TimeWindow) -> tuple[int, int]:
    """Both ends in microseconds, the last one to the end of its unit."""
    unit = UNITS[window.unit]
    since, until = window.start * unit, (window.start + window.delta + 1) * unit - 1
    if since < FIRST_US or until > LAST_US:
        raise InvalidRequest(reason="the window ends beyond the years 1 to 9999", path="$.args.time_window")
    return since, until


def export(invocation: Invocation, request: ChainExportRequest, tx: Reading) -> ChainExportReport:
    """A page of the whole chain; the cursor stands at an index."""
    chain = OpenChain(invocation, tx, request.chain_key)
    row = chain.existing()
    bound_to = invocation.bound(chain.key)
    begin = 0 if request.cursor is None else int(read_cursor(invocation.key, bound_to, request.cursor)) + 1
    found = page(
        invocation,
        chain.walk(begin, min(row.length, begin + request.limit + 1)),
        request.limit,
        lambda each: _exported(chain, each),
        bound_to=bound_to,
        place=lambda each: each.position,
    )
    return ChainExportReport(
        chain_key=chain.key,
        format=FORMAT,
        thought_count=row.length,
        head_hash=row.head.hex() or None,
        thoughts=found.entries,
        has_more=found.has_more,
        next_cursor=found.next_cursor,
        profile_budget_applied=found.cut,
    )


def _exported(chain: OpenChain, row: ThoughtRow) -> ExportedThought:
    body = chain.body(row)
    fields: dict[str, Any] = chain.fields(row)
    return ExportedThought(**fields, salt=None if body is None else body.salt.hex())


def merge_report(invocation: Invocation, request: ChainMergeReportRequest, tx: Reading) -> ChainMergeReport:
    """What both chains share, and what each says alone."""
    mine = OpenChain(invocation, tx, request.chain_key)
    other = OpenChain(invocation, tx, request.other_chain_key)
    mine.existing()
    other.existing()
    shared = 0
    for a, b in zip(mine.line, other.line, strict=False):
        if (a.chain, a.first) != (b.chain, b.first):
            break
        shared = min(a.until, b.until)
        if a.until != b.until:
            break
    last = mine.at(shared - 1) if shared else None
    room = Room(invocation)
    tails = [
        room.fill(chain.shown(row) for row in chain.walk(shared, min(chain.length, shared + request.limit)))
        for chain in (mine, other)
    ]
    return ChainMergeReport(
        chain_key=mine.key,
        other_chain_key=other.key,
        shared=shared,
        shared_hash=None if last is None else last.hash.hex(),
        thought_count=mine.length,
        other_thought_count=other.length,
        only_in_chain=tails[0],
        only_in_other=tails[1],
        both_relate_to=tuple(_both(mine, other, shared)),
        has_more=any(len(tail) < chain.length - shared for tail, chain in zip(tails, (mine, other), strict=True)),
        profile_budget_applied=room.full,
    )


def _both(mine: OpenChain, other: OpenChain, shared: int) -> Iterable[SharedTarget]:
    """Shared thoughts to which thoughts of both tails relate."""
    found: list[dict[int, list[tuple[str, int]]]] = []
    for chain in (mine, other):
        targets: dict[int, list[tuple[str, int]]] = {}
        for row in chain.walk(shared, chain.length):
            for link in row.links:
                if link.position is not None and link.position < shared:
                    targets.setdefault(link.position, []).append((link.kind, row.position))
        found.append(targets)
    for index in sorted(found[0].keys() & found[1].keys()):
        a, b = found[0][index], found[1][index]
        yield SharedTarget(
            index=index,
            kinds=tuple(sorted({kind for kind, _ in (*a, *b)})),
            by_chain=tuple(dict.fromkeys(place for _, place in a)),
            by_other=tuple(dict.fromkeys(place for _, place in b)),
        )


HANDLERS: Mapping[str, Handler] = {
    "chain.traverse": Read(traverse),
    "chain.export": Read(export),
    "chain.merge_report": Read(merge_report),
}
