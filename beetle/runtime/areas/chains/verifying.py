"""Whether a chain is whole, at a cost that does not grow with it: what was recomputed before is remembered.

A call recomputes the newest thoughts, what came since the last call, and a step towards the beginning. The full walk
is `store.verify`.
"""

from __future__ import annotations

from beetle.runtime.areas.chains.places import OpenChain
from beetle.runtime.host.sealing import sealer_of
from beetle.runtime.host.verified_chains import Span
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.planes.thought_checks import problems
from beetle.store import chains, plane_thoughts, seal_checks
from beetle.store.chains import ChainRow
from beetle.store.engine.transaction import Reading
from beetle.store.plane_thoughts import Pin

WINDOW = 128
"""The newest thoughts of a chain, which each call recomputes."""
STEP = 512
"""Further thoughts that a call recomputes at most."""


def is_whole(invocation: Invocation, tx: Reading, chain: OpenChain, row: ChainRow) -> tuple[bool, int]:
    """Whether the chain's row, its last event and its newest thoughts agree; and from which index on all thoughts were
    recomputed, by this call or an earlier one.
    """
    begin = max(0, row.length - WINDOW)
    sealer = sealer_of(invocation.key, invocation.shared.identity)
    if seal_checks.row_problem(tx, sealer, "chain", tuple(row)) is not None:
        return False, begin
    told = Pin(row.length, row.head.hex())
    if row.pinned and plane_thoughts.pinned(tx, row.pinned) != (invocation.space_id, chain.key, told):
        return False, begin
    newest = _recomputed(chain, begin, row.length)
    if newest is None or newest.last != row.head:
        return False, begin
    remembered, epoch = invocation.shared.verified_chains, invocation.shared.store.epoch
    span, sound = _extended(chain, remembered.get(epoch, row.chain), newest)
    remembered.put(epoch, row.chain, span)
    return sound, span.first if span.until == row.length else begin


def _extended(chain: OpenChain, known: Span | None, newest: Span) -> tuple[Span, bool]:
    """What is known to be whole now, with at most a step more than before; and whether no break was met."""
    span = newest if known is None or not _stands(chain, known) else known
    left = STEP
    if span.until < newest.first:
        more = _recomputed(chain, span.until, min(newest.first, span.until + left))
        if more is None or more.before != span.last:
            return span, False
        left -= more.until - more.first
        span = span._replace(until=more.until, last=more.last)
    if span.until >= newest.first:
        span = _joined(span, newest)
    if left and span.first:
        earlier = _recomputed(chain, max(0, span.first - left), span.first)
        if earlier is None or earlier.last != span.before:
            return span, False
        span = span._replace(first=earlier.first, before=earlier.before)
    return span, True


def _joined(span: Span, newest: Span) -> Span:
    """Both together, where one reaches to the other."""
    early = span if span.first <= newest.first else newest
    return Span(early.first, newest.until, early.before, newest.last)


def _stands(chain: OpenChain, known: Span) -> bool:
    """Whether the chain still has the last of the thoughts that are known: else it is another one by now."""
    last = chain.at(known.until - 1) if known.until <= chain.length else None
    return last is not None and last.hash == known.last


def _recomputed(chain: OpenChain, first: int, until: int) -> Span | None:
    """The thoughts between two places, when each follows from the one before."""
    before = chain.at(first - 1) if first else None
    start = b"" if before is None else before.hash
    index, previous = first, start
    for each in chain.walk(first, until):
        if any(True for _ in problems(each, index, previous.hex())):
            return None
        index, previous = index + 1, each.hash
    return Span(first, until, start, previous) if index == until else None


def remember_all(invocation: Invocation, tx: Reading) -> None:
    """Every chain was walked from its beginning, and no thought is wrong."""
    after = 0
    while page := chains.every(tx, after, 100):
        for row in page:
            after = row.chain
            if row.length:
                invocation.shared.verified_chains.put(
                    invocation.shared.store.epoch, row.chain, Span(0, row.length, b"", row.head)
                )
