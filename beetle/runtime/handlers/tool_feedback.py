"""memory.write of tool feedback: observations in short, refused when they are more than that."""

from __future__ import annotations

from collections.abc import Iterator

from beetle.contracts.errors import PrivacyDenied
from beetle.contracts.governance import ToolFeedbackWrite, ToolUsageFeedback
from beetle.contracts.memory import MemoryWriteReport
from beetle.memory.sensitive import FINDING_WORDS, finding, is_secret
from beetle.runtime.alias import Current, current_conversation
from beetle.runtime.handling import Apply, Context
from beetle.store import evidence, tool_observations
from beetle.store.tool_observations import Brief, ObservationRow, Place
from beetle.store.transaction import Reading
from beetle.store.writer import WriteTransaction

ROOT = "$.args.feedback"


def write(context: Context, request: ToolFeedbackWrite) -> Apply:
    """Keep every observation; its text is content of the turn that it was observed in, and is erased with it."""
    feedback = request.feedback
    _refuse(feedback)

    def apply(tx: WriteTransaction) -> MemoryWriteReport:
        space = evidence.ensure_space(tx, context.space_id, tx.now)
        current = current_conversation(context, tx, space, None)
        turn = _turn(tx, current, feedback.turn_id)
        awaited = _awaited(context, current)
        # Words that no erasure of their turn would reach, or that would bring an erased turn back, are not kept.
        lost = feedback.turn_id is not None and (turn is None or tool_observations.is_erased(tx, turn))
        for each in feedback.observations:
            brief = Brief(
                each.summary, feedback.user_visible_result_summary, feedback.reuse_outcome, feedback.operator_note
            )
            row = ObservationRow(
                registry_id=feedback.registry_ref.registry_id,
                registry_fingerprint=feedback.registry_ref.fingerprint,
                registry_scope=feedback.registry_ref.scope,
                tool_id=each.tool_id,
                schema_fingerprint=each.schema_fingerprint,
                outcome=each.outcome,
                duration_ms=each.duration_ms,
                permission_tags=each.permission_tags,
                risk_tags=each.risk_tags,
                turn=turn,
                turn_id=feedback.turn_id,
                principal=context.caller.name,
                at=tx.now,
                channel_id=awaited.channel_id,
                conversation_id=awaited.conversation_id,
            )
            tool_observations.add_observation(tx, space, row, None if lost else brief)
        if feedback.observations:
            registry, count = feedback.registry_ref.registry_id, len(feedback.observations)
            tx.log(context.event("memory", "tools_observed", registry_id=registry, observations=count))
        return MemoryWriteReport(accepted=len(feedback.observations))

    return apply


def _turn(tx: Reading, current: Current, turn_id: str | None) -> int | None:
    if turn_id is None or current.conversation is None:
        return None
    return tool_observations.find_turn(tx, current.conversation, turn_id)


def _awaited(context: Context, current: Current) -> Place:
    """The conversation that the feedback is about, or the name by which its turn will be known when it is committed."""
    if current.ref is not None:
        return Place(current.ref.channel_id, current.ref.conversation_id)
    return Place(context.scope.channel, context.scope.conversation_id or context.scope.chat_id)


def _refuse(feedback: ToolUsageFeedback) -> None:
    """Raises PrivacyDenied, naming the place, for a text that holds more than a summary may; the text is not told."""
    for path, text in _texts(feedback):
        if (found := finding(text)) is not None:
            raise _denied(path, FINDING_WORDS[found], found)
    for path, word in _names(feedback):
        if is_secret(word):
            raise _denied(path, FINDING_WORDS["secret"], "secret")


def _denied(path: str, what: str, found: str) -> PrivacyDenied:
    return PrivacyDenied(
        reason=f"{path} {what}",
        hint="say in a sentence what the tool did; results, schemas and secrets stay with the host",
        path=path,
        found=found,
    )


def _texts(feedback: ToolUsageFeedback) -> Iterator[tuple[str, str]]:
    for index, each in enumerate(feedback.observations):
        yield f"{ROOT}.observations[{index}].summary", each.summary
    yield f"{ROOT}.user_visible_result_summary", feedback.user_visible_result_summary
    yield f"{ROOT}.operator_note", feedback.operator_note or ""


def _names(feedback: ToolUsageFeedback) -> Iterator[tuple[str, str]]:
    for index, each in enumerate(feedback.observations):
        path = f"{ROOT}.observations[{index}]"
        yield f"{path}.tool_id", each.tool_id
        for name, tags in (("permission_tags", each.permission_tags), ("risk_tags", each.risk_tags)):
            for place, tag in enumerate(tags):
                yield f"{path}.{name}[{place}]", tag
