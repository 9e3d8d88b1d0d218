"""Evidence: commit, replay, export, timeline, conversations, search."""

from __future__ import annotations

from typing import Any

from beetle.contracts.codec import to_us
from beetle.contracts.common import Conversation, ConversationRef
from beetle.contracts.errors import Conflict, InvalidRequest, NotFound, PrivacyDenied
from beetle.contracts.fields import ViewName
from beetle.contracts.transcript import (
    ActorAttribution,
    CanonicalTurnDelta,
    CommittedTurn,
    MemoryTranscriptCommitReport,
    MemoryTranscriptCommitRequest,
    MemoryTranscriptConversationsReport,
    MemoryTranscriptConversationsRequest,
    MemoryTranscriptExportReport,
    MemoryTranscriptExportRequest,
    MemoryTranscriptReplayReport,
    MemoryTranscriptReplayRequest,
    MemoryTranscriptSearchReport,
    MemoryTranscriptSearchRequest,
    MemoryTranscriptTimelineReport,
    MemoryTranscriptTimelineRequest,
    MessageTarget,
    SearchHit,
    TimelineAnchor,
    TranscriptAttr,
    TranscriptTurn,
)
from beetle.memory.digest import content_digest, turn_digest
from beetle.memory.lexical import evidence_fields
from beetle.runtime.cursor import make_cursor, read_cursor
from beetle.runtime.handling import Apply, Context
from beetle.runtime.search import Search, find
from beetle.runtime.views import visible_kinds
from beetle.store import evidence, recall_index, tool_observations, transcripts
from beetle.store.evidence import ConversationRow, PreparedAttr, PreparedMessage, PreparedRef, PreparedTurn
from beetle.store.tool_observations import Place
from beetle.store.transaction import Reading
from beetle.store.writer import WriteTransaction

INDEXED = ("shared", "private")
"""Visibilities that the recall index may hold; soul, backend and operator material is never indexed."""
NO_ACTOR: tuple[str | None, ...] = (None,) * len(ActorAttribution.__struct_fields__)
LAST = 2**62


def commit(context: Context, request: MemoryTranscriptCommitRequest) -> Apply:
    """Digests and index fields are made here, on the caller's thread; the writer only writes."""
    turns = [_prepare(context.key, turn, index) for index, turn in enumerate(request.turns)]
    where = request.conversation

    def apply(tx: WriteTransaction) -> MemoryTranscriptCommitReport:
        space = evidence.ensure_space(tx, context.space_id, tx.now)
        conversation = evidence.ensure_conversation(tx, space, where.channel_id, where.conversation_id, tx.now)
        outcomes: list[CommittedTurn] = []
        fresh: list[PreparedTurn] = []
        for turn in turns:
            known = evidence.known_turn(tx, conversation.conversation, turn.turn_id)
            if known is not None:
                outcomes.append(_unchanged(turn, known))
                continue
            conversation, written = evidence.add_turn(tx, conversation, turn, "transcript", tx.now)
            for key, message in written:
                _index(tx, space, conversation.conversation, key, message)
            fresh.append(turn)
            sequence = conversation.last_sequence
            outcomes.append(CommittedTurn(turn_id=turn.turn_id, sequence=sequence, outcome="committed"))
        if fresh:
            _count(tx, context, space, conversation, fresh, where)
        return MemoryTranscriptCommitReport(
            committed=len(fresh), unchanged=len(outcomes) - len(fresh), turns=tuple(outcomes)
        )

    return apply


def _count(
    tx: WriteTransaction,
    context: Context,
    space: int,
    conversation: ConversationRow,
    fresh: list[PreparedTurn],
    where: Conversation,
) -> None:
    key, last, _ = conversation
    evidence.grow_conversation(tx, conversation, [turn.at for turn in fresh])
    spoke = {(m.visibility, m.actor[0]) for turn in fresh for m in turn.messages if m.actor[0] is not None}
    evidence.add_speakers(tx, key, sorted((visibility, name or "") for visibility, name in spoke))
    evidence.remember_conversation(tx, context.remembered_by(space), key)
    tool_observations.tie(tx, space, key, [turn.turn_id for turn in fresh], _names(context, where))
    tx.log(
        context.event(
            "transcript",
            "committed",
            channel_id=where.channel_id,
            conversation_id=where.conversation_id,
            turns=len(fresh),
            first_sequence=last - len(fresh) + 1,
            last_sequence=last,
        )
    )


def _names(context: Context, where: Conversation) -> list[Place]:
    """How feedback that came before a turn has named its conversation: by itself, or by the chat of who commits."""
    scope = context.scope
    return [
        Place(where.channel_id, where.conversation_id),
        Place(scope.channel, scope.chat_id, context.caller.name),
    ]


def _unchanged(turn: PreparedTurn, known: tuple[int, bytes]) -> CommittedTurn:
    sequence, digest = known
    if digest != turn.digest:
        raise Conflict(
            reason=f"turn {turn.turn_id!r} is there already with other content",
            hint="a committed turn never changes; commit the new content as another turn",
            turn_id=turn.turn_id,
            sequence=sequence,
        )
    return CommittedTurn(turn_id=turn.turn_id, sequence=sequence, outcome="unchanged")


def _index(tx: WriteTransaction, space: int, conversation: int, key: int, message: PreparedMessage) -> None:
    if message.fields is not None:
        entry = recall_index.Entry("evidence", key, space, conversation, message.visibility)
        recall_index.add(tx, entry, message.fields)


def _prepare(key: bytes, turn: CanonicalTurnDelta, index: int) -> PreparedTurn:
    at = to_us(turn.at)
    messages: list[PreparedMessage] = []
    places: dict[str, int] = {}
    for place, message in enumerate(turn.messages):
        path = f"$.args.turns[{index}].messages[{place}]"
        if places.setdefault(message.message_id, place) != place:
            reason = f"message id {message.message_id!r} stands twice in turn {turn.turn_id!r}"
            raise InvalidRequest(reason=reason, path=f"{path}.message_id")
        actor = message.actor
        who = NO_ACTOR if actor is None else tuple(getattr(actor, name) for name in actor.__struct_fields__)
        when = at if message.at is None else to_us(message.at)
        fields = evidence_fields(message.content, who[0], when) if message.visibility in INDEXED else None
        digest = content_digest(key, message.content)
        messages.append(
            PreparedMessage(
                message.message_id, message.role, when, message.visibility, message.content, digest, who, fields
            )
        )
    refs = tuple(
        PreparedRef(ref.kind, ref.ref_id, ref.relation, ref.label, ",".join(dict.fromkeys(ref.visibility)))
        for ref in turn.host_refs
    )
    attrs = tuple(
        _prepare_attr(attr, places, f"$.args.turns[{index}].attrs[{place}]") for place, attr in enumerate(turn.attrs)
    )
    return PreparedTurn(turn.turn_id, at, turn_digest(key, turn), tuple(messages), refs, attrs)


def _prepare_attr(attr: TranscriptAttr, places: dict[str, int], path: str) -> PreparedAttr:
    target: int | None = None
    if isinstance(attr.target, MessageTarget):
        target = places.get(attr.target.message_id)
        if target is None:
            reason = f"the attr's target {attr.target.message_id!r} is no message of its turn"
            raise InvalidRequest(reason=reason, path=f"{path}.target.message_id")
    shown = ",".join(dict.fromkeys(attr.visibility))
    return PreparedAttr(attr.key, attr.value, target, shown, attr.export_allowed)


def replay(context: Context, request: MemoryTranscriptReplayRequest, tx: Reading) -> MemoryTranscriptReplayReport:
    """Turns in sequence order. The cursor stands at a sequence: later writes neither shift nor repeat a page."""
    bound_to = _bound(context, request.conversation, request.view)
    turns, cursor = _page(context, request, tx, bound_to)
    return MemoryTranscriptReplayReport(view=request.view, turns=turns, has_more=cursor is not None, next_cursor=cursor)


def export(context: Context, request: MemoryTranscriptExportRequest, tx: Reading) -> MemoryTranscriptExportReport:
    """As replay, through the export view. Who may include private material was checked when it was admitted."""
    bound_to = _bound(context, request.conversation, request.view, request.include_private)
    turns, cursor = _page(context, request, tx, bound_to)
    return MemoryTranscriptExportReport(
        view=request.view,
        turns=turns,
        has_more=cursor is not None,
        next_cursor=cursor,
        include_private=request.include_private,
    )


def _page(
    context: Context,
    request: MemoryTranscriptReplayRequest | MemoryTranscriptExportRequest,
    tx: Reading,
    bound_to: tuple[Any, ...],
) -> tuple[tuple[TranscriptTurn, ...], str | None]:
    """The turns behind the request's cursor, and the cursor of the page after them."""
    conversation = _conversation(context, tx, request.conversation)
    after = 0 if request.cursor is None else read_cursor(context.key, bound_to, request.cursor)
    turns = transcripts.turns_forward(tx, conversation, after + 1, LAST, request.limit + 1)
    more = len(turns) > request.limit
    turns = turns[: request.limit]
    return tuple(turns), make_cursor(context.key, bound_to, turns[-1].sequence) if more else None


def timeline(context: Context, request: MemoryTranscriptTimelineRequest, tx: Reading) -> MemoryTranscriptTimelineReport:
    """One page around an anchor. `next_cursor` is for transcript.replay's order and stays None: anchors page here."""
    conversation = _conversation(context, tx, request.conversation)
    found = transcripts.edges(tx, conversation)
    if found is None:
        return MemoryTranscriptTimelineReport(view=request.view, turns=())
    turns = _placed(tx, conversation, request.anchor, request.limit)
    if not turns:
        return MemoryTranscriptTimelineReport(view=request.view, turns=())
    return MemoryTranscriptTimelineReport(
        view=request.view,
        turns=tuple(turns),
        has_more=turns[0].sequence > found[0] or turns[-1].sequence < found[1],
        has_before=turns[0].sequence > found[0],
        has_after=turns[-1].sequence < found[1],
    )


def _placed(tx: Reading, conversation: int, anchor: Any, limit: int) -> list[Any]:
    if not isinstance(anchor, TimelineAnchor):
        return transcripts.turns_backward(tx, conversation, 0, LAST, limit)
    if anchor.before is not None:
        return transcripts.turns_backward(tx, conversation, 0, anchor.before - 1, limit)
    if anchor.after is not None:
        return transcripts.turns_forward(tx, conversation, anchor.after + 1, LAST, limit)
    around = anchor.around if anchor.turn is None else _sequence(tx, conversation, anchor.turn)
    if around is not None:
        older = transcripts.turns_backward(tx, conversation, 0, around - 1, limit // 2)
        return older + transcripts.turns_forward(tx, conversation, around, LAST, limit - len(older))
    if anchor.at is not None:
        start = transcripts.first_at(tx, conversation, to_us(anchor.at))
    else:
        assert anchor.first_in is not None
        begin, end = to_us(anchor.first_in.begin), to_us(anchor.first_in.end)
        start = transcripts.first_in(tx, conversation, begin, end)
    return [] if start is None else transcripts.turns_forward(tx, conversation, start, LAST, limit)


def _sequence(tx: Reading, conversation: int, turn_id: str) -> int:
    known = evidence.known_turn(tx, conversation, turn_id)
    if known is None:
        raise NotFound(kind="turn", name=turn_id, listing="`beetle transcript timeline` shows the turns that are there")
    return known[0]


def conversations(
    context: Context, request: MemoryTranscriptConversationsRequest, tx: Reading
) -> MemoryTranscriptConversationsReport:
    """The most recently begun first: that order never changes, so a page has no gap while others write."""
    space = evidence.find_space(tx, context.space_id)
    if space is None:
        return MemoryTranscriptConversationsReport(conversations=())
    since = -LAST if request.since is None else to_us(request.since)
    until = LAST if request.until is None else to_us(request.until)
    bound_to = context.bound(request.query, since, until)
    below = LAST if request.cursor is None else read_cursor(context.key, bound_to, request.cursor)
    rows = transcripts.conversations(tx, space, below, request.query, since, until, request.limit + 1)
    more = len(rows) > request.limit
    rows = rows[: request.limit]
    kinds = visible_kinds(context.viewer())
    return MemoryTranscriptConversationsReport(
        conversations=tuple(transcripts.conversation_summary(tx, row, kinds) for row in rows),
        has_more=more,
        next_cursor=make_cursor(context.key, bound_to, rows[-1][0]) if more else None,
    )


SEARCHABLE: frozenset[ViewName] = frozenset({"raw_owner", "model_context", "host_ui"})


def search(context: Context, request: MemoryTranscriptSearchRequest, tx: Reading) -> MemoryTranscriptSearchReport:
    """Messages by their words. A view that may not read content cannot search it either: hits would tell of it."""
    if request.view not in SEARCHABLE:
        raise PrivacyDenied(
            reason=f"the view {request.view} shows no content to search",
            hint=f"search through one of {', '.join(sorted(SEARCHABLE))}",
            view=request.view,
        )
    found = find(
        context,
        tx,
        Search(
            query=request.query,
            limit=request.limit,
            viewer=context.viewer(request.view),
            conversation=request.conversation,
            planes=("evidence",),
            since=None if request.since is None else to_us(request.since),
            until=None if request.until is None else to_us(request.until),
        ),
    )
    hits = tuple(
        SearchHit(
            ref=hit.ref,
            score=hit.score,
            excerpt=hit.excerpt,
            at=hit.at or "",
            conversation=hit.conversation or ConversationRef(channel_id="", conversation_id=""),
            turn_id=hit.turn_id or "",
            message_id=hit.message_id or "",
            visibility=hit.visibility,
            state=hit.state,
        )
        for hit in found.hits
    )
    return MemoryTranscriptSearchReport(hits=hits)


def _conversation(context: Context, tx: Reading, where: Conversation) -> int:
    space = evidence.find_space(tx, context.space_id)
    found = evidence.find_conversation(tx, space, where.channel_id, where.conversation_id)
    if found is None:
        raise NotFound(
            kind="conversation",
            name=f"{where.channel_id}/{where.conversation_id}",
            listing="`beetle transcript conversations` lists what is there",
        )
    return found.conversation


def _bound(context: Context, where: Conversation, view: ViewName, *filters: Any) -> tuple[Any, ...]:
    return context.bound(where.channel_id, where.conversation_id, view, *filters)
