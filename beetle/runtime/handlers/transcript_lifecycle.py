"""transcript.lifecycle: archive, mask, unmask, delete_raw, review."""

from __future__ import annotations

import time
from collections.abc import Callable

from msgspec import Struct

from beetle.contracts.codec import replace, to_us
from beetle.contracts.common import DerivedMemoryRef
from beetle.contracts.transcript import (
    HostRefView,
    MemoryTranscriptLifecycleReport,
    MemoryTranscriptLifecycleRequest,
    TranscriptRedactionReportItem,
)
from beetle.memory.lexical import evidence_fields
from beetle.runtime.handlers.transcript import INDEXED
from beetle.runtime.handling import Apply, Context
from beetle.runtime.views import sanitize_refs
from beetle.store import evidence, recall_index
from beetle.store.evidence import AffectedMessage
from beetle.store.transaction import Reading
from beetle.store.writer import WriteTransaction

ERASURE_WAIT_S = 3.0
"""Longest wait for readers to let go of the write-ahead log before an erasure is reported as pending."""
IDS_SHOWN = 10_000


class Impact(Struct):
    """What a step would touch, and of that what it changes."""

    turn_ids: list[str] = []
    turns: list[int] = []
    messages: list[AffectedMessage] = []
    refs: list[HostRefView] = []
    redactions: list[TranscriptRedactionReportItem] = []
    derived: list[DerivedMemoryRef] = []
    space: int = 0


def lifecycle(context: Context, request: MemoryTranscriptLifecycleRequest) -> Apply:
    """All matching turns in one transaction."""

    def apply(tx: WriteTransaction) -> MemoryTranscriptLifecycleReport:
        where = request.conversation
        space = evidence.find_space(tx, context.space_id)
        found = evidence.find_conversation(tx, space, where.channel_id, where.conversation_id)
        if space is None or found is None:
            return _report(context, request, Impact(), changed=0)
        impact = _impact(context, tx, request, space, found.conversation)
        if request.dry_run or not impact.turns:
            return _report(context, request, impact, changed=0)
        changed = _change(context, tx, request, impact, found.conversation)
        erased = request.action == "delete_raw" and changed > 0
        if changed or request.action == "review":
            seq = tx.log(
                context.event(
                    "transcript",
                    {"review": "reviewed"}.get(request.action, request.action),
                    channel_id=where.channel_id,
                    conversation_id=where.conversation_id,
                    turns=len(impact.turns),
                    changed=changed,
                )
            )
            if erased:
                tx.expect_erasure()
            report = _report(context, request, impact, changed)
            return replace(report, audit_event_id=seq, erasure="pending" if erased else None)
        return _report(context, request, impact, changed)

    return apply


def settle(context: Context, report: MemoryTranscriptLifecycleReport) -> MemoryTranscriptLifecycleReport:
    """An erasure is acknowledged as done only when no byte is left in the write-ahead log."""
    if report.erasure != "pending":
        return report
    left = ERASURE_WAIT_S if context.deadline is None else min(ERASURE_WAIT_S, context.deadline - time.monotonic())
    done = context.shared.store.writer.finish_erasures(max(0.0, left))
    return replace(report, erasure="done") if done else report


def _impact(
    context: Context, tx: Reading, request: MemoryTranscriptLifecycleRequest, space: int, conversation: int
) -> Impact:
    if request.turn_ids is not None:
        turns = evidence.turns_by_id(tx, conversation, request.turn_ids)
    else:
        assert request.before is not None
        turns = evidence.turns_before(tx, conversation, to_us(request.before))
    impact = Impact(turns=turns, space=space)
    for turn in turns:
        messages = evidence.affected_messages(tx, turn)
        impact.messages.extend(messages)
        turn_id = messages[0].turn_id
        impact.turn_ids.append(turn_id)
        refs = tuple(
            HostRefView(kind=kind, ref_id=ref_id, relation=relation, visibility=tuple(shown.split(",")))
            for kind, ref_id, relation, shown in evidence.refs_of_turn(tx, turn)
        )
        seen, redactions = sanitize_refs(refs, turn_id, context.viewer())
        impact.refs.extend(seen)
        impact.redactions.extend(redactions)
        impact.derived.extend(
            DerivedMemoryRef(derived=derived, evidence=source, relation=relation)
            for derived, source, relation in evidence.derived_from(tx, turn)
        )
    return impact


FROM_STATES: dict[str, tuple[str, ...]] = {
    "mask": ("live",),
    "unmask": ("masked",),
    "delete_raw": ("live", "masked"),
}
"""The states of messages that an action changes."""


def _change(
    context: Context, tx: WriteTransaction, request: MemoryTranscriptLifecycleRequest, impact: Impact, conversation: int
) -> int:
    """Carry the action out: how many rows it changed. A step that changes none leaves no record, but for a review."""
    todo = [m for m in impact.messages if m.state in FROM_STATES.get(request.action, ())]
    archived = sum(evidence.archive_turn(tx, turn) for turn in impact.turns) if request.action == "archive" else 0
    if not todo and not archived and request.action != "review":
        return 0
    step = evidence.add_lifecycle(
        tx, conversation, request.action, request.reason, context.caller.name, tx.now, len(impact.turns), len(todo)
    )
    if todo:
        ACTIONS[request.action](tx, impact.space, todo, step)
    return len(todo) or archived


def _mask(tx: WriteTransaction, space: int, messages: list[AffectedMessage], step: int) -> None:
    for message in messages:
        _unindex(tx, space, message)
        evidence.set_state(tx, message.message, "masked", step)


def _unmask(tx: WriteTransaction, space: int, messages: list[AffectedMessage], step: int) -> None:
    for message in messages:
        if message.visibility in INDEXED and message.content is not None:
            recall_index.add(tx, _entry(space, message), _fields(message, message.content))
        evidence.set_state(tx, message.message, "live", step)


def _delete_raw(tx: WriteTransaction, space: int, messages: list[AffectedMessage], step: int) -> None:
    by_turn: dict[int, list[int]] = {}
    for message in messages:
        if message.state == "live":
            _unindex(tx, space, message)
        evidence.set_state(tx, message.message, "deleted", step)
        by_turn.setdefault(message.turn, []).append(message.message)
    for turn, keys in by_turn.items():
        evidence.erase_turn(tx, turn, keys)


ACTIONS: dict[str, Callable[[WriteTransaction, int, list[AffectedMessage], int], None]] = {
    "mask": _mask,
    "unmask": _unmask,
    "delete_raw": _delete_raw,
}


def _unindex(tx: WriteTransaction, space: int, message: AffectedMessage) -> None:
    if message.visibility in INDEXED and message.content is not None:
        recall_index.remove(tx, _entry(space, message), _fields(message, message.content))


def _entry(space: int, message: AffectedMessage) -> recall_index.Entry:
    return recall_index.Entry("evidence", message.message, space, message.conversation, message.visibility)


def _fields(message: AffectedMessage, content: str) -> recall_index.Fields:
    return evidence_fields(content, message.speaker, message.at)


def _report(
    context: Context, request: MemoryTranscriptLifecycleRequest, impact: Impact, changed: int
) -> MemoryTranscriptLifecycleReport:
    budgets = context.shared.profile.budgets
    clipped = (
        len(impact.redactions) > budgets.redaction_items
        or len(impact.derived) > budgets.derived_refs
        or len(impact.messages) > IDS_SHOWN
        or len(impact.refs) > budgets.redaction_items
    )
    return MemoryTranscriptLifecycleReport(
        action=request.action,
        dry_run=request.dry_run,
        changed=changed > 0,
        affected_turns=len(impact.turns),
        turn_ids=tuple(impact.turn_ids[:IDS_SHOWN]),
        message_ids=tuple(message.message_id for message in impact.messages[:IDS_SHOWN]),
        host_refs=tuple(impact.refs[: budgets.redaction_items]),
        redactions=tuple(impact.redactions[: budgets.redaction_items]),
        derived_refs=tuple(impact.derived[: budgets.derived_refs]),
        profile_budget_applied=clipped,
    )
