"""Events: event.ingest and event.range."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import cast

from beetle.contracts.codec import UNSET
from beetle.contracts.common import ConversationRef
from beetle.contracts.events import (
    CHANNEL,
    EventIngestReport,
    EventIngestRequest,
    EventRangeReport,
    EventRangeRequest,
    EventRecord,
    EventRole,
)
from beetle.contracts.refs import format_ref
from beetle.contracts.transcript import TranscriptTurn
from beetle.contracts.turns import EVENT_TYPES, ActorAttribution, EventType, MessageDelta
from beetle.runtime.areas.capture.keeping import Where, keep, one_message
from beetle.runtime.pipeline.cursor import read_cursor
from beetle.runtime.pipeline.handlers import Apply, Handler, Read, Write
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.pipeline.paging import page
from beetle.runtime.pipeline.views import sanitize_turns
from beetle.runtime.planes.evidence import NAME
from beetle.runtime.planes.proof import proof
from beetle.store import events, evidence, transcripts
from beetle.store.engine.transaction import Reading
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.events import EventPosition, Timed

DEFAULT_LIMIT = 50
"""What a limit of 0 or less means."""
VIEWS = ("model_context", "host_ui", "export")
RUN = 32
"""So many turns of a conversation that follow each other are read at once."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ROLES: Mapping[str, EventRole] = {"tool_use": "assistant", "tool_result": "tool", "other": "system"}
TYPES: Mapping[str, EventType] = {
    "assistant": "assistant_message", "tool_use": "assistant_message", "tool": "tool_result",
    "tool_result": "tool_result",
}  # fmt: skip
"""What a message that is no ingested event counts as, by its role; others are as a user's."""


def ingest(invocation: Invocation, request: EventIngestRequest) -> Apply:
    """One turn of the session's conversation, unless the id names one already."""
    event = request.event
    message = MessageDelta(
        message_id=event.event_id,
        role=event.role,
        content=event.text,
        at=EPOCH + timedelta(milliseconds=event.timestamp_ms),
        actor=None if event.agent is None else ActorAttribution(agent_id=event.agent),
    )
    number = EVENT_TYPES.index(event.event_type) + 1
    turn = one_message(invocation, message, attrs=event.metadata or {}, views=VIEWS, event_type=number)

    def apply(tx: WriteTransaction) -> EventIngestReport:
        space = evidence.ensure_space(tx, invocation.space_id, tx.now)
        if events.named(tx, space, event.event_id) is not None:
            return EventIngestReport(event_id=event.event_id, created=False)
        where = Where(CHANNEL, event.session_id)
        keep(invocation, tx, space, where, turn, "event", "ingested", event_type=event.event_type)
        return EventIngestReport(event_id=event.event_id, created=True)

    return apply


def between(invocation: Invocation, request: EventRangeRequest, tx: Reading) -> EventRangeReport:
    """A page in order of time. The cursor stands behind an event, so that later writes neither shift nor repeat it."""
    space = evidence.find_space(tx, invocation.space_id)
    if space is None:
        return EventRangeReport(events=())
    first, last = request.from_timestamp_ms, request.to_timestamp_ms
    bound_to = invocation.bound(first, last)
    after = EventPosition(first, "", -1)
    if request.cursor is not None:
        after = EventPosition(*read_cursor(invocation.key, bound_to, request.cursor))
    limit = request.limit if request.limit > 0 else min(DEFAULT_LIMIT, invocation.shared.profile.budgets.page_limit)
    rows = events.between(tx, space, after, last, limit + 1)
    shown = Shown(invocation, tx, rows)
    found = page(
        invocation, rows, limit, shown.record, bound_to=bound_to, place=lambda row: tuple(row.place)
    )  # fmt: skip
    return EventRangeReport(
        events=found.entries,
        has_more=found.has_more,
        next_cursor=found.next_cursor,
        profile_budget_applied=found.cut,
    )


class Shown:
    """Rows of a page as records: what turns hold is read in runs, when the first of a run is wanted."""

    def __init__(self, invocation: Invocation, tx: Reading, rows: list[Timed]) -> None:
        self._viewer = invocation.viewer()
        self._most = invocation.shared.profile.budgets.answer_bytes
        self._tx = tx
        self._proof = proof(invocation.key)
        self._runs = {run[0].place: run for run in _runs(rows)}
        self._turns: dict[tuple[int, str], TranscriptTurn] = {}

    def record(self, row: Timed) -> EventRecord:
        """One event, as far as the view may see it."""
        if row.place in self._runs:
            run = self._runs[row.place]
            first, last = run[0].sequence, run[-1].sequence
            fit, _ = transcripts.how_many_fit(self._tx, row.conversation, (first, last), last - first + 1, self._most)
            self._read(row.conversation, first, last, fit)
        if (row.conversation, row.turn_id) not in self._turns:
            self._read(row.conversation, row.sequence, row.sequence, 1)
        return _record(row, self._turns[row.conversation, row.turn_id])

    def _read(self, conversation: int, first: int, last: int, most: int) -> None:
        turns = transcripts.turns_forward(self._tx, conversation, first, last, most, self._proof)
        self._turns = {(conversation, turn.turn_id): turn for turn in sanitize_turns(turns, self._viewer)}


def _runs(rows: Iterable[Timed]) -> Iterator[list[Timed]]:
    """Rows that follow each other in one conversation, or are of one turn."""
    run: list[Timed] = []
    for row in rows:
        if run and (
            row.conversation != run[-1].conversation
            or row.sequence - run[-1].sequence not in (0, 1)
            or row.sequence - run[0].sequence >= RUN
        ):
            yield run
            run = []
        run.append(row)
    if run:
        yield run


def _record(row: Timed, turn: TranscriptTurn) -> EventRecord:
    message = next(each for each in turn.messages if each.message_id == row.message_id)
    ref = format_ref(NAME, row.channel_id, row.conversation_id, row.turn_id, row.message_id)
    text = None if message.content is UNSET else message.content
    attrs = {
        a.key: a.value for a in turn.attrs if a.key and a.value is not None and a.message_id in (None, row.message_id)
    }
    return EventRecord(
        event_id=row.event_id or ref,
        session_id=row.conversation_id,
        timestamp_ms=row.at_ms,
        event_type=TYPES.get(message.role, "user_message") if message.event_type is UNSET else message.event_type,
        role=ROLES.get(message.role, cast(EventRole, message.role)),
        stored_role=message.role,
        ref=ref,
        conversation=ConversationRef(channel_id=row.channel_id, conversation_id=row.conversation_id),
        turn_id=row.turn_id,
        message_id=row.message_id,
        visibility=message.visibility,
        state=message.state,
        text=text,
        metadata=None if text is None else attrs,
        agent=None if message.actor is None else message.actor.agent_id,
        redacted=message.redacted,
    )


HANDLERS: Mapping[str, Handler] = {"event.ingest": Write(ingest, brief=True), "event.range": Read(between)}
