"""episode.start, record, complete, similar: an episode is a conversation, so all that governs evidence governs it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from beetle.contracts.agents import (
    CHANNEL,
    OUTCOME,
    TASK,
    EpisodeCompleteReport,
    EpisodeCompleteRequest,
    EpisodeRecordReport,
    EpisodeRecordRequest,
    EpisodeSimilarReport,
    EpisodeSimilarRequest,
    EpisodeStartReport,
    EpisodeStartRequest,
    EpisodeStatus,
    EpisodeSummary,
)
from beetle.contracts.codec import from_us
from beetle.contracts.common import Conversation, ConversationRef
from beetle.contracts.errors import Conflict, NotFound, PrivacyDenied
from beetle.contracts.transcript import MemoryTranscriptCommitRequest
from beetle.contracts.turns import (
    ActorAttribution,
    CanonicalTurnDelta,
    MessageDelta,
    RefView,
    ToolCall,
    ToolResult,
    TranscriptAttr,
)
from beetle.domain.lexical import parse_query, stem_of
from beetle.domain.ranking import Candidate, rank
from beetle.named_tuple import NamedTuple
from beetle.runtime.areas.capture.events import EPOCH
from beetle.runtime.areas.evidence.transcript import committing
from beetle.runtime.pipeline.handlers import Apply, Handler, Read, Write
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.pipeline.views import visible_kinds
from beetle.runtime.planes.proof import is_whole
from beetle.store import episodes, evidence
from beetle.store.engine.transaction import Reading
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.episodes import EpisodeRow, EpisodeText

NEWEST = 1000
"""So many episodes are looked through."""
BEST_OUTCOME = 0.65
SCORE, FAILED = "outcome_score", "failed"
LESSON, FAILURE, PLAN = "lesson", "failure", "plan"
VIEWS: tuple[RefView, ...] = ("host_ui", "model_context", "operator_audit", "export")
AUDIT = "operator_audit"
START_HINT = "`beetle episode start` begins one; `beetle episode similar` finds those that there are"


def start(invocation: Invocation, request: EpisodeStartRequest) -> Apply:
    """The first turn of a new conversation."""
    episode_id = invocation.new_id("episode")
    at = from_us(invocation.now)
    actor = ActorAttribution(agent_id=request.agent_id or invocation.scope.agent_id)
    said = [
        MessageDelta(message_id=TASK, role="user", content=request.task, actor=actor),
        *_numbered(PLAN, request.plan, actor),
    ]
    commit = _committing(invocation, episode_id, CanonicalTurnDelta(turn_id=TASK, at=at, messages=tuple(said)))

    def apply(tx: WriteTransaction) -> EpisodeStartReport:
        commit(tx)
        return EpisodeStartReport(episode_id=episode_id)

    return apply


def record(invocation: Invocation, request: EpisodeRecordRequest) -> Apply:
    """One more turn, of a call and its result."""
    action, turn_id = request.action, invocation.new_id("action")
    at = from_us(invocation.now) if action.timestamp_ms is None else _time(action.timestamp_ms)
    actor = ActorAttribution(agent_id=invocation.scope.agent_id)
    call = ToolCall(tool=action.action_type)
    said = [MessageDelta(message_id=turn_id, role="assistant", content=action.input, tool_calls=(call,), actor=actor)]
    if action.result_status != "pending":
        result = ToolResult(tool=action.action_type, failed=action.result_status == "failure")
        detail = action.result_detail
        said.append(MessageDelta(message_id=f"{turn_id}-result", role="tool", content=detail, tool_result=result))
    turn = CanonicalTurnDelta(turn_id=turn_id, at=at, messages=tuple(said))
    commit = _committing(invocation, request.episode_id, turn)

    def apply(tx: WriteTransaction) -> EpisodeRecordReport:
        actions = _open_episode(invocation, tx, request.episode_id)
        commit(tx)
        return EpisodeRecordReport(recorded=True, action_count=actions + 1)

    return apply


def complete(invocation: Invocation, request: EpisodeCompleteRequest) -> Apply:
    """The last turn: how it ended, what was learned, what went wrong."""
    actor = ActorAttribution(agent_id=invocation.scope.agent_id)
    ended = f"{'Failed' if request.failed else 'Completed'}, outcome {request.outcome_score:g}."
    said = [
        MessageDelta(message_id=OUTCOME, role="assistant", content=ended, actor=actor),
        *_numbered(LESSON, request.lessons_learned, actor),
        *_numbered(FAILURE, request.failure_modes, actor),
    ]
    told = {SCORE: repr(request.outcome_score), FAILED: str(request.failed).lower()}
    attrs = tuple(
        TranscriptAttr(key=key, value=value, visibility=VIEWS, export_allowed=True) for key, value in told.items()
    )
    turn = CanonicalTurnDelta(turn_id=OUTCOME, at=from_us(invocation.now), messages=tuple(said), attrs=attrs)
    commit = _committing(invocation, request.episode_id, turn)

    def apply(tx: WriteTransaction) -> EpisodeCompleteReport:
        _open_episode(invocation, tx, request.episode_id)
        commit(tx)
        return EpisodeCompleteReport(completed=True, value_score=_value(request.outcome_score))

    return apply


def _committing(invocation: Invocation, episode_id: str, turn: CanonicalTurnDelta) -> Apply:
    where = Conversation(channel_id=CHANNEL, conversation_id=episode_id)
    request = MemoryTranscriptCommitRequest(conversation=where, turns=(turn,))
    # What an agent does beside its talk does not become the conversation that its chat stands for.
    return committing(invocation, request, is_current=False)


def _numbered(kind: str, lines: Sequence[str], actor: ActorAttribution) -> list[MessageDelta]:
    return [
        MessageDelta(message_id=f"{kind}-{place}", role="assistant", content=line, actor=actor)
        for place, line in enumerate(lines, 1)
    ]


def _open_episode(invocation: Invocation, tx: WriteTransaction, episode_id: str) -> int:
    """How many actions an episode has that goes on.

    Raises:
        NotFound: there is none of that id.
        Conflict: it has ended.
    """
    space = evidence.find_space(tx, invocation.space_id)
    found = evidence.find_conversation(tx, space, CHANNEL, episode_id)
    if found is None or evidence.known_turn(tx, found.conversation, TASK) is None:
        raise NotFound(kind="episode", name=episode_id, listing=START_HINT)
    if evidence.known_turn(tx, found.conversation, OUTCOME) is not None:
        raise Conflict(reason=f"the episode {episode_id} has ended", hint="start another one: `beetle episode start`")
    return found.last_sequence - 1


def _time(milliseconds: int) -> datetime:
    return EPOCH + timedelta(milliseconds=milliseconds)


def _score(text: str) -> float | None:
    """The outcome that stands beside a last turn; None for what is none: other doors may commit to this channel too."""
    try:
        found = float(text)
    except ValueError:
        return None
    return found if 0 <= found <= 1 else None


def _value(outcome: float) -> float:
    return round(max(0.0, 1.0 - abs(outcome - BEST_OUTCOME)), 6)


class Told(NamedTuple):
    """An episode with what the view shows of it."""

    row: EpisodeRow
    texts: tuple[EpisodeText, ...]
    outcome: Mapping[str, str]

    def said(self, kind: str) -> tuple[str, ...]:
        """The texts of one kind, in their order."""
        return tuple(each.content[: each.length] for each in self.texts if each.message_id.partition("-")[0] == kind)

    @property
    def words(self) -> str:
        """What it is found by."""
        return "\n".join((*self.said(TASK), *self.said(PLAN), *self.said(LESSON), *self.said(FAILURE)))


def similar(invocation: Invocation, request: EpisodeSimilarRequest, tx: Reading) -> EpisodeSimilarReport:
    """Ranked as recall ranks.

    Raises:
        PrivacyDenied: the view shows no content to search.
    """
    if invocation.view == AUDIT:
        raise PrivacyDenied(
            reason=f"the view {AUDIT} shows no content to search",
            hint="ask as a principal with another view",
            view=AUDIT,
        )
    parsed = parse_query(request.query)
    stems = [stem_of(term) for term in parsed.terms]
    candidates: list[Candidate] = []
    told = _recent(invocation, tx) if stems else []
    for place, each in enumerate(told):
        low = each.words.lower()
        share = sum(stem in low for stem in stems) / len(stems)
        if share > 0 and share >= request.min_score:
            made = Candidate(
                plane="episode", source_id=str(place), text=each.words, at_us=each.row.created_at, bm25=share
            )
            candidates.append(made)
    shares = {each.source_id: each.bm25 for each in candidates}
    ranked = rank(parsed, candidates, limit=request.limit)
    found = [each.candidate.source_id for each in ranked]
    return EpisodeSimilarReport(
        episodes=tuple(_summary(told[int(source_id)], shares[source_id] or 0.0) for source_id in found)
    )


def _recent(invocation: Invocation, tx: Reading) -> list[Told]:
    space = evidence.find_space(tx, invocation.space_id)
    if space is None:
        return []
    rows = episodes.newest(tx, space, CHANNEL, OUTCOME, NEWEST)
    keys = [row.conversation for row in rows]
    texts: dict[int, list[EpisodeText]] = {}
    for each in episodes.texts(tx, keys, (TASK, OUTCOME), visible_kinds(invocation.viewer())):
        if is_whole(invocation.key, each):
            texts.setdefault(each.conversation, []).append(each)
    outcomes = episodes.outcomes(tx, keys, OUTCOME)
    return [Told(row, tuple(texts.get(row.conversation, ())), outcomes.get(row.conversation, {})) for row in rows]


def _summary(told: Told, share: float) -> EpisodeSummary:
    row = told.row
    status: EpisodeStatus = "in_progress"
    if row.ended:
        status = "failed" if told.outcome.get(FAILED) == "true" else "completed"
    outcome = _score(told.outcome.get(SCORE, ""))
    return EpisodeSummary(
        episode_id=row.episode_id,
        task=next(iter(told.said(TASK)), None),
        status=status,
        outcome_score=outcome,
        value_score=None if outcome is None else _value(outcome),
        similarity_score=round(share, 4),
        lessons_learned=told.said(LESSON),
        failure_modes=told.said(FAILURE),
        action_count=max(0, row.turns - 1 - row.ended),
        created_at_ms=row.created_at // 1000,
        agent=next((each.agent_id for each in told.texts if each.message_id == TASK), None),
        conversation=ConversationRef(channel_id=CHANNEL, conversation_id=row.episode_id),
    )


HANDLERS: Mapping[str, Handler] = {
    "episode.start": Write(start),
    "episode.record": Write(record),
    "episode.complete": Write(complete),
    "episode.similar": Read(similar),
}
