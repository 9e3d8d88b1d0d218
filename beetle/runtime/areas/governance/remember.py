"""memory.remember: the words as evidence and the fact that cites them, in one transaction."""

from __future__ import annotations

from collections.abc import Mapping

from beetle.contracts.codec import from_us
from beetle.contracts.common import Conversation, ConversationRef
from beetle.contracts.governance import Candidate, GovernanceOutcome, OutcomeName
from beetle.contracts.refs import format_ref
from beetle.contracts.remembering import MemoryRememberReport, MemoryRememberRequest, Remembered
from beetle.contracts.transcript import MemoryTranscriptCommitRequest
from beetle.contracts.turns import ActorAttribution, CanonicalTurnDelta, MessageDelta
from beetle.runtime.areas import secrets
from beetle.runtime.areas.evidence import transcript
from beetle.runtime.areas.governance import write
from beetle.runtime.pipeline.handlers import Apply, Handler, Write
from beetle.runtime.pipeline.invocation import Invocation
from beetle.store.engine.write_transaction import WriteTransaction

OUTCOMES: Mapping[OutcomeName, Remembered] = {"accepted": "accepted", "deferred": "waiting", "rejected": "refused"}
CALLER_CHARS = 200
"""Of a caller's name, in the id of its conversation: ids are bounded, names may be longer."""


def remember(invocation: Invocation, request: MemoryRememberRequest) -> Apply:
    """Commit the words, then have the fact judged exactly as memory.write judges a candidate.

    Raises:
        PrivacyDenied: the text or its topic holds what looks like a secret; nothing is stored.
    """
    secrets.refuse(secrets.fields(request, "$.args", "topic", "text", "said"))
    by_user = request.said is not None
    where, own = _conversation(invocation, request)
    turn = _turn(invocation, request)
    evidence_ref = format_ref(
        "evidence", where.channel_id, where.conversation_id, turn.turn_id, turn.messages[0].message_id
    )
    candidate = Candidate(
        candidate_id=turn.turn_id,
        authority="user_asserted" if by_user else "assistant_claimed",
        target="long_term",
        privacy="shared_with_subject",
        content=request.text,
        evidence_refs=(evidence_ref,),
        kind=request.kind,
        topic=request.topic,
    )
    words = MemoryTranscriptCommitRequest(conversation=where, turns=(turn,))
    commit = transcript.committing(invocation, words, is_current=not own)
    judge = write.considering(invocation, [write.given_claim(write.claim_of_candidate(invocation, candidate))])

    def apply(tx: WriteTransaction) -> MemoryRememberReport:
        commit(tx)
        (outcome,) = judge(tx).outcomes
        return _report(candidate, outcome, where, evidence_ref)

    return apply


def _report(
    candidate: Candidate, outcome: GovernanceOutcome, where: Conversation, evidence_ref: str
) -> MemoryRememberReport:
    return MemoryRememberReport(
        outcome=OUTCOMES[outcome.outcome],
        reason=outcome.reason,
        authority=candidate.authority,
        evidence_ref=evidence_ref,
        conversation=ConversationRef(channel_id=where.channel_id, conversation_id=where.conversation_id),
        ref=outcome.ref,
        revision=outcome.revision,
        superseded_ref=outcome.superseded_ref,
        waiting_id=outcome.waiting_id,
    )


def _turn(invocation: Invocation, request: MemoryRememberRequest) -> CanonicalTurnDelta:
    """The words as one new turn: what is said twice was said twice."""
    by_user = request.said is not None
    message = MessageDelta(
        message_id=invocation.new_id("m"),
        role="user" if by_user else "assistant",
        content=request.text if request.said is None else request.said,
        actor=ActorAttribution(speaker=request.speaker) if by_user else _by_agent(invocation),
    )
    return CanonicalTurnDelta(turn_id=invocation.new_id("t"), at=from_us(invocation.now), messages=(message,))


def _by_agent(invocation: Invocation) -> ActorAttribution:
    return ActorAttribution(agent_id=invocation.scope.agent_id)


def _conversation(invocation: Invocation, request: MemoryRememberRequest) -> tuple[Conversation, bool]:
    """Where the words go, and whether that is the caller's own notebook of the day rather than a talk.

    A notebook is not what the caller's chat id stands for: the talk that goes on there stays the current one.
    """
    if request.conversation is not None:
        return request.conversation, False
    scope = invocation.scope
    if scope.conversation_id is not None:
        return Conversation(channel_id=scope.channel, conversation_id=scope.conversation_id), False
    day = from_us(invocation.now).date().isoformat()
    name = f"remembered-{invocation.caller.name[:CALLER_CHARS]}-{day}"
    return Conversation(channel_id=scope.channel, conversation_id=name), True


HANDLERS: Mapping[str, Handler] = {
    "memory.remember": Write(remember),
}
