"""transcript.lifecycle: archive, mask, unmask, delete_raw, review."""

from __future__ import annotations

import time
from collections.abc import Callable

from msgspec import Struct

from beetle.contracts.codec import replace, to_us
from beetle.contracts.common import DerivedMemoryRef
from beetle.contracts.errors import IntegrityViolation
from beetle.contracts.transcript import (
    HostRefView,
    MemoryTranscriptLifecycleReport,
    MemoryTranscriptLifecycleRequest,
    TranscriptRedactionReportItem,
)
from beetle.memory.digest import content_digest
from beetle.memory.lexical import evidence_fields
from beetle.runtime import evolve, governance, receipts, snapshots
from beetle.runtime.handlers.transcript import INDEXED
from beetle.runtime.handling import Apply, Context
from beetle.runtime.views import sanitize_refs
from beetle.store import evidence, recall_index, repair
from beetle.store.evidence import AffectedMessage
from beetle.store.transaction import Reading
from beetle.store.writer import WriteTransaction

STEPS = ("look", "change", "erase")
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
    if not request.dry_run:
        receipts.ready(context)
    context.progress.plan(("look",) if request.dry_run else STEPS)

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
        if erased:
            governance.drop_citing(context, tx, space, where.channel_id, where.conversation_id, impact.turn_ids)
            evolve.drop_citing(context, tx, space, where.channel_id, where.conversation_id, impact.turn_ids)
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
            counts = {"turns": len(impact.turns), "messages": len(impact.messages), "changed": changed}
            digests = (message.digest for message in impact.messages)
            receipt = receipts.make(context, tx, f"transcript.{request.action}", seq, counts, digests)
            report = _report(context, request, impact, changed)
            return replace(report, audit_event_id=seq, erasure="pending" if erased else None, receipt=receipt)
        return _report(context, request, impact, changed)

    return apply


def settle(context: Context, report: MemoryTranscriptLifecycleReport) -> MemoryTranscriptLifecycleReport:
    """An erasure is acknowledged as done only when no byte is left in the write-ahead log."""
    if report.erasure != "pending":
        return report
    report = replace(report, replica_horizon=snapshots.horizon(context.shared.store, context.now))
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
    context.progress.step("look", of=len(turns))
    for number, turn in enumerate(turns):
        context.progress.at(number)
        messages = evidence.affected_messages(tx, turn)
        impact.messages.extend(messages)
        turn_id = evidence.turn_id_of(tx, turn)
        impact.turn_ids.append(turn_id)
        _impact_refs(context, tx, impact, turn, turn_id)
        impact.derived.extend(
            DerivedMemoryRef(derived=derived, evidence=source, relation=relation)
            for derived, source, relation in evidence.derived_from(tx, turn, space)
        )
    return impact


def _impact_refs(context: Context, tx: Reading, impact: Impact, turn: int, turn_id: str) -> None:
    """The turn's host refs that the caller's view may see. Their labels are content, and in no report of a step."""
    for kind, ref_id, relation, shown, labelled in evidence.refs_of_turn(tx, turn):
        views = tuple(shown.split(",")) if shown else ()
        ref = HostRefView(kind=kind, ref_id=ref_id, relation=relation, visibility=views)
        seen, redactions = sanitize_refs((ref,), turn_id, context.viewer())
        impact.refs.extend(seen)
        impact.redactions.extend(redactions)
        if seen and labelled:
            withheld = TranscriptRedactionReportItem(turn_id=turn_id, field="HostRefLabel", reason="not_in_view")
            impact.redactions.append(withheld)


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
    # A turn that was deleted before may hold content again: the brief of a tool comes when the tool is done.
    full = [turn for turn in impact.turns if request.action == "delete_raw" and evidence.holds_content(tx, turn)]
    if not todo and not archived and not full and request.action != "review":
        return 0
    step = evidence.add_lifecycle(
        tx, conversation, request.action, request.reason, context.caller.name, tx.now, len(impact.turns), len(todo)
    )
    context.progress.step("change", of=len(todo))
    if todo:
        ACTIONS[request.action](context, tx, impact.space, todo, step)
        speakers = {(m.visibility, m.speaker) for m in todo if m.speaker is not None}
        evidence.settle_speakers(tx, conversation, sorted(speakers))
    _erase(context, tx, impact, full)
    return len(todo) or archived or len(full)


def _mask(context: Context, tx: WriteTransaction, space: int, messages: list[AffectedMessage], step: int) -> None:
    for number, message in enumerate(messages):
        context.progress.at(number)
        if _is_sound(context, message):
            _unindex(tx, space, message)
        evidence.set_state(tx, message.message, "masked", step)


def _unmask(context: Context, tx: WriteTransaction, space: int, messages: list[AffectedMessage], step: int) -> None:
    for number, message in enumerate(messages):
        context.progress.at(number)
        wanted = message.visibility in INDEXED and _is_sound(context, message)
        if wanted and message.content is not None and not repair.is_indexed(tx, message.message):
            recall_index.add(tx, _entry(space, message), _fields(message, message.content))
        evidence.set_state(tx, message.message, "live", step)


def _delete_raw(context: Context, tx: WriteTransaction, space: int, messages: list[AffectedMessage], step: int) -> None:
    for number, message in enumerate(messages):
        context.progress.at(number)
        _unindex_to_erase(context, tx, space, message)
        evidence.set_state(tx, message.message, "deleted", step)


def _erase(context: Context, tx: WriteTransaction, impact: Impact, turns: list[int]) -> None:
    """Take the content out of turns whose messages are deleted."""
    held: dict[int, list[int]] = {turn: [] for turn in turns}
    for message in impact.messages:
        if message.turn in held:
            if message.state == "deleted":
                _unindex_to_erase(context, tx, impact.space, message)
            held[message.turn].append(message.message)
    context.progress.step("erase", of=len(held))
    for number, (turn, messages) in enumerate(held.items()):
        context.progress.at(number)
        evidence.erase_turn(tx, turn, messages)


ACTIONS: dict[str, Callable[[Context, WriteTransaction, int, list[AffectedMessage], int], None]] = {
    "mask": _mask,
    "unmask": _unmask,
    "delete_raw": _delete_raw,
}


def _unindex(tx: WriteTransaction, space: int, message: AffectedMessage) -> None:
    """Take a message out of the index, if it is in it: what is not there must not be taken out."""
    if message.content is not None and repair.is_indexed(tx, message.message):
        recall_index.remove(tx, _entry(space, message), _fields(message, message.content))


def _unindex_to_erase(context: Context, tx: WriteTransaction, space: int, message: AffectedMessage) -> None:
    """As `_unindex`, where nothing of the message may stay behind."""
    if not _is_sound(context, message) and repair.is_indexed(tx, message.message):
        raise IntegrityViolation(
            reason=f"message {message.message_id!r} of turn {message.turn_id!r} is not what was indexed of it: "
            "what the recall index holds of it cannot be erased",
            hint="`beetle memory recover` makes the index anew without it; then delete it again",
            turn_id=message.turn_id,
            message_id=message.message_id,
        )
    _unindex(tx, space, message)


def _is_sound(context: Context, message: AffectedMessage) -> bool:
    """Whether a message's content is what was committed, and so what its index row was made of."""
    return message.content is not None and content_digest(context.key, message.content) == message.digest


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
