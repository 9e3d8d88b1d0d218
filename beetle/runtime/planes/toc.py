"""The table of contents: refs to its nodes and grips, and whether its nodes agree with the evidence."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Final

from beetle.contracts.refs import Ref
from beetle.domain.toc.periods import FIRST_DAY, day_of, periods_of_day
from beetle.domain.toc.segments import OVERLAP_TOKENS, OVERLAP_US, Member, cut
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.planes.plane import Named, Plane, Verified
from beetle.store import toc
from beetle.store.engine.transaction import Reading
from beetle.store.toc import DAY_US, Waiting
from beetle.store.verify import Finding

NAME: Final = "toc"
MOST = 100
REBUILD = "`beetle admin rebuild-toc` makes it anew"


def _agrees(tx: Reading) -> Iterator[Finding]:
    """Nodes that do not follow from the events, days that wait in the outbox left out."""
    told = 0
    for each in toc.all_days(tx, FIRST_DAY):
        if told >= MOST:
            return
        if not toc.waits(tx, *each):
            for problem in problems_of(tx, each):
                told += 1
                yield Finding(NAME, f"day {each.day} of conversation {each.conversation}", f"{problem}; {REBUILD}")
    for node, grip_id in toc.lost_grips(tx, MOST):
        yield Finding(NAME, f"node {node}", f"its grip {grip_id} is not there; {REBUILD}")
    for node in toc.lost_nodes(tx, MOST):
        yield Finding(NAME, f"node {node}", f"nothing is below it; {REBUILD}")


def day_members(tx: Reading, conversation: int, day: int) -> tuple[Iterator[Member], Sequence[Member]]:
    """What a day of a conversation is cut from: its events, and the last of those in the minutes before it."""
    begin = day * DAY_US
    minutes = toc.members(tx, conversation, begin - OVERLAP_US, begin - 1)
    # Each has a token at least.
    before = deque((Member(*row) for row in minutes), maxlen=OVERLAP_TOKENS)
    return (Member(*row) for row in toc.members(tx, conversation, begin, begin + DAY_US - 1)), before


def problems_of(tx: Reading, each: Waiting) -> Iterator[str]:
    """What of the segments of a day of a conversation does not follow from its events."""
    known = {segment.node_id: segment for segment in toc.segments(tx, each.conversation, each.day)}
    place = toc.place_of(tx, each.conversation)
    if place is not None:
        for segment in cut(*day_members(tx, *each)):
            found = known.pop(segment.node_id(*place[1:]), None)
            if found is None:
                yield "a segment is missing"
                continue
            day = periods_of_day(day_of(segment.start_ms))[-1].node_id
            if found.space != place.space or toc.key_of(tx, place.space, day) != found.parent:
                yield f"{found.node_id} stands under another day"
            elif (found.members, found.starts, found.ends) != (segment.digest(), segment.start_ms, segment.end_ms):
                yield f"{found.node_id} was made of other events"
    for gone in known.values():
        yield f"{gone.node_id} has no events"


def _resolves(invocation: Invocation, tx: Reading, space: int, ref: Ref) -> bool | None:
    del invocation
    named = f"{ref.plane}:{ref.segments[0].removeprefix(f'{ref.plane}:')}"
    return (toc.node if ref.plane == NAME else toc.grip)(tx, space, named) is not None


def _rows(tx: Reading) -> dict[str, int]:
    return json.loads(tx.value(toc.ROWS_SQL))


PLANE = Plane(NAME, verified=Verified(_rows, {NAME: _agrees}), named=Named((NAME, "grip"), resolves=_resolves))
