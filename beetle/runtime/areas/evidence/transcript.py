"""Evidence: commit, replay, export, timeline, conversations, search."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from beetle.contracts.codec import to_us
from beetle.contracts.common import Conversation, ConversationRef
from beetle.contracts.errors import Conflict, InvalidRequest, NotFound, PayloadTooLarge, PrivacyDenied
from beetle.contracts.names import ViewName
from beetle.contracts.tool_parts import refuse_binary, tail_of
from beetle.contracts.transcript import (
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
    SearchHit,
    TimelineAnchor,
    TranscriptTurn,
)
from beetle.contracts.turns import CanonicalTurnDelta, MessageDelta, MessageTarget, TranscriptAttr
from beetle.domain.digest import turn_digest
from beetle.runtime.areas.evidence.alias import existing_conversation, remember
from beetle.runtime.areas.recall.search import Search, find
from beetle.runtime.pipeline.cursor import make_cursor, read_cursor
from beetle.runtime.pipeline.handlers import Apply, Handler, Read, Write
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.pipeline.paging import Room, page
from beetle.runtime.pipeline.views import sees_all, visible_kinds
from beetle.runtime.planes import evidence as evidence_plane
from beetle.runtime.planes.proof import proof
from beetle.store import evidence, tool_observations, transcripts, turn_times
from beetle.store.engine.transaction import Reading
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.evidence import ConversationRow, KnownTurn, PreparedAttr, PreparedMessage, PreparedTurn
from beetle.store.tool_observations import ClaimedConversation

LAST = 2**62


def commit(invocation: Invocation, request: MemoryTranscriptCommitRequest) -> Apply:
    """Digests and index fields are made here, on the caller's thread; the writer only writes."""
    return committing(invocation, request)


def committing(
    invocation: Invocation, request: MemoryTranscriptCommitRequest, *, is_current: bool = True
) -> Callable[[WriteTransaction], MemoryTranscriptCommitReport]:
    """What commits turns; `is_current`: from then on the caller's chat id stands for this conversation."""
    most = invocation.shared.profile.budgets.message_content_bytes
    turns = [_prepare(invocation.key, turn, index, most) for index, turn in enumerate(request.turns)]
    where = request.conversation

    def apply(tx: WriteTransaction) -> MemoryTranscriptCommitReport:
        space = evidence.ensure_space(tx, invocation.space_id, tx.now)
        conversation = evidence.ensure_conversation(tx, space, where.channel_id, where.conversation_id, tx.now)
        key, sequence = conversation.conversation, conversation.last_sequence
        known = evidence.known_turns(tx, key, (turn.turn_id for turn in turns))
        fresh = {turn.turn_id: turn for turn in reversed(turns) if turn.turn_id not in known}
        new = [turn for turn in turns if fresh.get(turn.turn_id) is turn]
        if new:
            conversation, written = evidence.add_turns(tx, conversation, new, "transcript", tx.now)
            evidence_plane.index(tx, space, key, written)
            _count(tx, invocation, space, conversation, new, where, is_current=is_current)
        outcomes: list[CommittedTurn] = []
        for turn in turns:
            if fresh.get(turn.turn_id) is turn:
                sequence += 1
                outcomes.append(CommittedTurn(turn_id=turn.turn_id, sequence=sequence, outcome="committed"))
                continue
            stands = known.get(turn.turn_id) or evidence.known_turn(tx, key, turn.turn_id)
            assert stands is not None, "an earlier one of this request"
            outcomes.append(_unchanged(invocation, tx, turn, stands))
        return MemoryTranscriptCommitReport(
            committed=len(new), unchanged=len(outcomes) - len(new), turns=tuple(outcomes)
        )

    return apply


def _count(
    tx: WriteTransaction,
    invocation: Invocation,
    space: int,
    conversation: ConversationRow,
    fresh: list[PreparedTurn],
    where: Conversation,
    *,
    is_current: bool,
) -> None:
    key, last = conversation.conversation, conversation.last_sequence
    evidence.grow_conversation(tx, conversation, [turn.at for turn in fresh])
    spoke = {(m.visibility, m.actor[0]) for turn in fresh for m in turn.messages if m.actor[0] is not None}
    evidence.add_speakers(tx, key, sorted((visibility, name or "") for visibility, name in spoke))
    if is_current:
        remember(invocation, tx, space, key)
    scope = invocation.scope
    # How feedback that came before a turn has named its conversation: by itself, or by the chat of who commits.
    names = [
        ClaimedConversation(where.channel_id, where.conversation_id),
        ClaimedConversation(scope.channel, scope.chat_id, invocation.caller.name),
    ]
    tool_observations.tie(tx, space, key, [turn.turn_id for turn in fresh], names)
    tx.log(
        invocation.event(
            "transcript",
            "committed",
            channel_id=where.channel_id,
            conversation_id=where.conversation_id,
            turns=len(fresh),
            first_sequence=last - len(fresh) + 1,
            last_sequence=last,
        )
    )


def _unchanged(invocation: Invocation, tx: Reading, turn: PreparedTurn, known: KnownTurn) -> CommittedTurn:
    """The answer for a turn that is there. Who may not see all of it is told that alone, and can try no guess on it.

    Raises:
        Conflict: it has other content, and the caller may see that.
    """
    if known.digest != turn.digest and _sees_all(invocation, tx, known.turn):
        raise Conflict(
            reason=f"turn {turn.turn_id!r} exists already with other content",
            hint="a committed turn never changes; commit the new content as another turn",
            turn_id=turn.turn_id,
            sequence=known.sequence,
        )
    return CommittedTurn(turn_id=turn.turn_id, sequence=known.sequence, outcome="unchanged")


def _sees_all(invocation: Invocation, tx: Reading, turn: int) -> bool:
    """Whether the caller may see all that a turn's digest covers: each message and each host ref in one of its views.

    Who it was that committed the turn does not count: what was masked or erased since is nobody's to try again.
    """
    refs = [
        (tuple(views.split(",")), bool(labelled)) for *_, views, labelled in evidence.refs_of_turns(tx, (turn,))[turn]
    ]
    return sees_all(evidence.kinds_of_turn(tx, turn), refs, invocation.viewers)


def _prepare(key: bytes, turn: CanonicalTurnDelta, index: int, most: int) -> PreparedTurn:
    at = to_us(turn.at)
    messages: list[PreparedMessage] = []
    places: dict[str, int] = {}
    for place, message in enumerate(turn.messages):
        path = f"$.args.turns[{index}].messages[{place}]"
        if places.setdefault(message.message_id, place) != place:
            reason = f"message id {message.message_id!r} occurs twice in turn {turn.turn_id!r}"
            raise InvalidRequest(reason=reason, path=f"{path}.message_id")
        _check_parts(message, path, most)
        messages.append(evidence_plane.prepared(key, message, at if message.at is None else to_us(message.at)))
    refs = tuple(evidence_plane.prepared_ref(ref) for ref in turn.host_refs)
    attrs = tuple(
        _prepare_attr(attr, places, f"$.args.turns[{index}].attrs[{place}]") for place, attr in enumerate(turn.attrs)
    )
    return PreparedTurn(turn.turn_id, at, turn_digest(key, turn), tuple(messages), refs, attrs)


def _check_parts(message: MessageDelta, path: str, most: int) -> None:
    """Refuse tool calls and results that hold what JSON cannot, or are too large together with the content."""
    for place, call in enumerate(message.tool_calls):
        refuse_binary(call.arguments, f"{path}.tool_calls[{place}].arguments")
    result = message.tool_result
    if result is not None:
        refuse_binary(result.output, f"{path}.tool_result.output")
    if not message.tool_calls and result is None:
        return
    actual = len((message.content + tail_of(message.tool_calls, result)).encode())
    if actual > most:
        what = f"{path}, with its tool calls and result,"
        raise PayloadTooLarge(
            what=what, maximum=most, unit="bytes", limit="message_content_bytes", actual=actual, path=path
        )


def _prepare_attr(attr: TranscriptAttr, places: dict[str, int], path: str) -> PreparedAttr:
    target: int | None = None
    if isinstance(attr.target, MessageTarget):
        target = places.get(attr.target.message_id)
        if target is None:
            reason = f"the attr's target {attr.target.message_id!r} is not a message of its turn"
            raise InvalidRequest(reason=reason, path=f"{path}.target.message_id")
    shown = ",".join(dict.fromkeys(attr.visibility))
    return PreparedAttr(attr.key, attr.value, target, shown, attr.export_allowed)


def replay(invocation: Invocation, request: MemoryTranscriptReplayRequest, tx: Reading) -> MemoryTranscriptReplayReport:
    """Turns in sequence order. The cursor stands at a sequence: later writes neither shift nor repeat a page."""
    turns, cursor, cut = _page(invocation, request, tx)
    return MemoryTranscriptReplayReport(
        view=request.view,
        turns=turns,
        has_more=cursor is not None,
        next_cursor=cursor,
        profile_budget_applied=cut,
    )


def export(invocation: Invocation, request: MemoryTranscriptExportRequest, tx: Reading) -> MemoryTranscriptExportReport:
    """As replay, through the export view. Who may include private material was checked when it was admitted."""
    turns, cursor, cut = _page(invocation, request, tx, request.include_private)
    return MemoryTranscriptExportReport(
        view=request.view,
        turns=turns,
        has_more=cursor is not None,
        next_cursor=cursor,
        include_private=request.include_private,
        profile_budget_applied=cut,
    )


def _page(
    invocation: Invocation,
    request: MemoryTranscriptReplayRequest | MemoryTranscriptExportRequest,
    tx: Reading,
    *filters: bool,
) -> tuple[tuple[TranscriptTurn, ...], str | None, bool]:
    """The turns behind the request's cursor, the cursor of the page after them, and whether their bytes ended it."""
    where = request.conversation
    bound_to = invocation.bound(where.channel_id, where.conversation_id, request.view, *filters)
    _, conversation = existing_conversation(invocation, tx, where)
    after = 0 if request.cursor is None else read_cursor(invocation.key, bound_to, request.cursor)
    pages = _Pages(invocation, tx, conversation)
    turns = pages.forward(after + 1, request.limit + 1)
    more = pages.cut or len(turns) > request.limit
    turns = turns[: request.limit]
    cursor = make_cursor(invocation.key, bound_to, turns[-1].sequence) if more else None
    return tuple(turns), cursor, pages.cut


class _Pages:
    """Turns of one conversation, as many as an answer may hold; `cut` when their bytes were what ended them.

    Only so many are read: the contents of a page of full-sized turns are more than there is memory for.
    """

    def __init__(self, invocation: Invocation, tx: Reading, conversation: int) -> None:
        self._invocation = invocation
        self._tx = tx
        self._conversation = conversation
        self._most = invocation.shared.profile.budgets.answer_bytes
        self._proof = proof(invocation.key)
        self.cut = False

    def forward(self, first: int, limit: int) -> list[TranscriptTurn]:
        """From a sequence on."""
        fit = self._fit((first, LAST), limit, backwards=False)
        turns = transcripts.turns_forward(self._tx, self._conversation, first, LAST, fit, self._proof)
        return self._filled(turns)

    def backward(self, last: int, limit: int) -> list[TranscriptTurn]:
        """Up to a sequence."""
        fit = self._fit((0, last), limit, backwards=True)
        turns = transcripts.turns_backward(self._tx, self._conversation, 0, last, fit, self._proof)
        return self._filled(turns[::-1])[::-1]

    def _filled(self, turns: list[TranscriptTurn]) -> list[TranscriptTurn]:
        room = Room(self._invocation)
        kept = list(room.fill(turns))
        self.cut = self.cut or room.full
        return kept

    def _fit(self, between: tuple[int, int], limit: int, *, backwards: bool) -> int:
        fit, cut = transcripts.how_many_fit(
            self._tx, self._conversation, between, limit, self._most, backwards=backwards
        )
        self.cut = self.cut or cut
        return fit


def timeline(
    invocation: Invocation, request: MemoryTranscriptTimelineRequest, tx: Reading
) -> MemoryTranscriptTimelineReport:
    """One page around an anchor. `next_cursor` is for transcript.replay's order and stays None: anchors page here."""
    _, conversation = existing_conversation(invocation, tx, request.conversation)
    found = transcripts.edges(tx, conversation)
    if found is None:
        return MemoryTranscriptTimelineReport(view=request.view, turns=())
    pages = _Pages(invocation, tx, conversation)
    turns = _placed(tx, conversation, pages, request.anchor, request.limit)
    if not turns:
        return MemoryTranscriptTimelineReport(view=request.view, turns=())
    return MemoryTranscriptTimelineReport(
        view=request.view,
        turns=tuple(turns),
        has_more=turns[0].sequence > found[0] or turns[-1].sequence < found[1],
        has_before=turns[0].sequence > found[0],
        has_after=turns[-1].sequence < found[1],
        profile_budget_applied=pages.cut,
    )


def _placed(tx: Reading, conversation: int, pages: _Pages, anchor: Any, limit: int) -> list[TranscriptTurn]:
    if not isinstance(anchor, TimelineAnchor):
        return pages.backward(LAST, limit)
    if anchor.before is not None:
        return pages.backward(anchor.before - 1, limit)
    if anchor.after is not None:
        return pages.forward(anchor.after + 1, limit)
    around = anchor.around if anchor.turn is None else _sequence(tx, conversation, anchor.turn)
    if around is not None:
        older = pages.backward(around - 1, limit // 2)
        return older + pages.forward(around, limit - len(older))
    if anchor.at is not None:
        start = turn_times.first_at(tx, conversation, to_us(anchor.at))
    else:
        assert anchor.first_in is not None
        begin, end = to_us(anchor.first_in.begin), to_us(anchor.first_in.end)
        start = turn_times.first_in(tx, conversation, begin, end)
    return [] if start is None else pages.forward(start, limit)


def _sequence(tx: Reading, conversation: int, turn_id: str) -> int:
    known = evidence.known_turn(tx, conversation, turn_id)
    if known is None:
        raise NotFound(kind="turn", name=turn_id, listing="`beetle transcript timeline` lists the turns")
    return known.sequence


def conversations(
    invocation: Invocation, request: MemoryTranscriptConversationsRequest, tx: Reading
) -> MemoryTranscriptConversationsReport:
    """The most recently begun first: that order never changes, so a page has no gap while others write."""
    space = evidence.find_space(tx, invocation.space_id)
    if space is None:
        return MemoryTranscriptConversationsReport(conversations=())
    since = -LAST if request.since is None else to_us(request.since)
    until = LAST if request.until is None else to_us(request.until)
    bound_to = invocation.bound(request.query, since, until)
    below = LAST if request.cursor is None else read_cursor(invocation.key, bound_to, request.cursor)
    rows = transcripts.conversations(tx, space, below, request.query, since, until, request.limit + 1)
    kinds = visible_kinds(invocation.viewer())
    found = page(
        invocation,
        rows,
        request.limit,
        lambda row: transcripts.conversation_summary(tx, row, kinds),
        bound_to=bound_to,
        place=lambda row: row[0],
    )
    return MemoryTranscriptConversationsReport(
        conversations=found.entries,
        has_more=found.has_more,
        next_cursor=found.next_cursor,
        profile_budget_applied=found.cut,
    )


SEARCHABLE: frozenset[ViewName] = frozenset({"raw_owner", "model_context", "host_ui"})


def search(invocation: Invocation, request: MemoryTranscriptSearchRequest, tx: Reading) -> MemoryTranscriptSearchReport:
    """Messages by their words. A view that may not read content cannot search it either: hits would tell of it."""
    if request.view not in SEARCHABLE:
        raise PrivacyDenied(
            reason=f"the view {request.view} shows no content to search",
            hint=f"search through one of {', '.join(sorted(SEARCHABLE))}",
            view=request.view,
        )
    found = find(
        invocation,
        tx,
        Search(
            query=request.query,
            limit=request.limit,
            viewer=invocation.viewer(request.view),
            conversation=request.conversation,
            planes=(evidence_plane.NAME,),
            since=None if request.since is None else to_us(request.since),
            until=None if request.until is None else to_us(request.until),
            neighbours=request.neighbours,
        ),
    )
    hits = tuple(
        SearchHit(
            ref=hit.ref,
            score=hit.score,
            excerpt=hit.excerpt,
            why=hit.why,
            at=hit.at or "",
            conversation=hit.conversation or ConversationRef(channel_id="", conversation_id=""),
            turn_id=hit.turn_id or "",
            message_id=hit.message_id or "",
            visibility=hit.visibility,
            state=hit.state,
        )
        for hit in found.hits
    )
    return MemoryTranscriptSearchReport(hits=hits, profile_budget_applied=found.clipped)


HANDLERS: Mapping[str, Handler] = {
    "transcript.commit": Write(commit, brief=True),
    "transcript.replay": Read(replay),
    "transcript.export": Read(export),
    "transcript.conversations": Read(conversations),
    "transcript.timeline": Read(timeline),
    "transcript.search": Read(search),
}
