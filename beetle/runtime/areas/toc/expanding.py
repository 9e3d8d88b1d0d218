"""grip.expand: the events behind a bullet, within their session."""

from __future__ import annotations

from collections.abc import Mapping

from beetle.contracts.common import ConversationRef
from beetle.contracts.events import EventRecord
from beetle.contracts.toc import GRIP_SOURCE, Grip, GripExpandReport, GripExpandRequest
from beetle.domain.toc.summary import shorten
from beetle.runtime.areas.capture.events import Shown
from beetle.runtime.areas.toc.building import bullet_text
from beetle.runtime.pipeline.handlers import Handler, Read
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.pipeline.paging import Room
from beetle.runtime.pipeline.views import visible_kinds
from beetle.runtime.planes.proof import is_whole
from beetle.store import evidence, session_order, toc
from beetle.store.engine.transaction import Reading
from beetle.store.toc import GripRow

EXCERPT_EVENTS = 100
"""So many events of an excerpt are shown."""


def expand(invocation: Invocation, request: GripExpandRequest, tx: Reading) -> GripExpandReport:
    """The excerpt, and its neighbours in the session's order."""
    space = evidence.find_space(tx, invocation.space_id)
    grip = None if space is None else toc.grip(tx, space, request.grip_id)
    if space is None or grip is None:
        return GripExpandReport(grip=None)
    first, last = (session_order.place(tx, space, each) for each in (grip.message, grip.last_message))
    if first is None or last is None or first.conversation != last.conversation:
        return GripExpandReport(grip=None)
    # What this caller may not see is not among its neighbours: it would say that something is there.
    kinds = visible_kinds(invocation.viewer())
    before = session_order.before(tx, first, kinds, max(0, request.events_before))
    inside = session_order.between(tx, first, last, kinds, EXCERPT_EVENTS)
    after = session_order.after(tx, last, kinds, max(0, request.events_after))
    room = Room(invocation)
    records = Shown(invocation, tx, [*before, *inside, *after])
    # The excerpt first: what there is no room for is what stands around it.
    events = room.fill(records.record(row) for row in inside)
    behind = room.fill(records.record(row) for row in after)
    ahead = room.fill(records.record(row) for row in reversed(before))
    return GripExpandReport(
        grip=_shown(invocation, tx, space, grip, events),
        events_before=ahead[::-1],
        excerpt_events=events,
        events_after=behind,
        profile_budget_applied=room.full,
    )


def _shown(
    invocation: Invocation, tx: Reading, space: int, grip: GripRow, events: tuple[EventRecord, ...]
) -> Grip | None:
    row = toc.by_key(tx, grip.segment)
    if row is None or row.space != space or not events:
        return None
    found = toc.texts(tx, space, {grip.message, grip.last_message})
    texts = {each.message: each for each in found if is_whole(invocation.key, each)}
    text = bullet_text(grip._replace(written=None), texts)
    excerpt = None if text is None else text if len(text) == (cut := shorten(text)) else f"{text[:cut]}..."
    where = events[0].conversation
    return Grip(
        grip_id=grip.grip_id,
        excerpt=excerpt,
        event_id_start=events[0].event_id,
        event_id_end=events[-1].event_id,
        timestamp_ms=events[0].timestamp_ms,
        source=GRIP_SOURCE,
        node_id=row.node_id,
        conversation=ConversationRef(channel_id=where.channel_id, conversation_id=where.conversation_id),
    )


HANDLERS: Mapping[str, Handler] = {"grip.expand": Read(expand)}
