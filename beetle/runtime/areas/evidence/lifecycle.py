"""transcript.lifecycle: archive, mask, unmask, delete_raw, review."""

from __future__ import annotations

import time
from collections.abc import Mapping

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
from beetle.domain.lexical import evidence_fields
from beetle.runtime.areas import receipts
from beetle.runtime.areas.evolve import proposals
from beetle.runtime.areas.governance import queue
from beetle.runtime.areas.snapshots import store_snapshots
from beetle.runtime.pipeline.handlers import Apply, Handler, Write
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.pipeline.views import sanitize_refs
from beetle.runtime.planes import table
from beetle.runtime.planes.evidence import INDEXED, entry
from beetle.runtime.planes.plane import Erased, IndexRow
from beetle.runtime.planes.proof import is_whole
from beetle.store import evidence, recall_index, repair
from beetle.store.engine.transaction import Reading
from beetle.store.engine.writer import WriteTransaction
from beetle.store.evidence import AffectedMessage

STEPS = ("look", "change", "erase")
ERASURE_WAIT_S = 3.0
"""Longest wait for readers to let go of the write-ahead log before an erasure is reported as pending."""
IDS_SHOWN = 10_000
DELETE_AGAIN = "`beetle memory recover` makes the index anew without it; then delete it again"


class Impact(Struct):
    """What a step would touch, and of that what it changes."""

    turn_ids: list[str] = []
    turns: list[int] = []
    messages: list[AffectedMessage] = []
    refs: list[HostRefView] = []
    redactions: list[TranscriptRedactionReportItem] = []
    derived: list[DerivedMemoryRef] = []
    space: int = 0


def lifecycle(invocation: Invocation, request: MemoryTranscriptLifecycleRequest) -> Apply:
    """All matching turns in one transaction."""
    if not request.dry_run:
        receipts.ready(invocation)
    invocation.progress.plan(("look",) if request.dry_run else STEPS)

    def apply(tx: WriteTransaction) -> MemoryTranscriptLifecycleReport:
        where = request.conversation
        space = evidence.find_space(tx, invocation.space_id)
        found = evidence.find_conversation(tx, space, where.channel_id, where.conversation_id)
        if space is None or found is None:
            return _report(invocation, request, Impact(), changed=0)
        impact = _impact(invocation, tx, request, space, found.conversation)
        if request.dry_run or not impact.turns:
            return _report(invocation, request, impact, changed=0)
        changed = _change(invocation, tx, request, impact, found.conversation)
        erased = request.action == "delete_raw" and changed > 0
        if erased:
            queue.drop_citing(invocation, tx, space, where.channel_id, where.conversation_id, impact.turn_ids)
            proposals.drop_citing(invocation, tx, space, where.channel_id, where.conversation_id, impact.turn_ids)
        if changed or request.action == "review":
            seq = tx.log(
                invocation.event(
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
            receipt = receipts.make(invocation, tx, f"transcript.{request.action}", seq, counts, digests)
            report = _report(invocation, request, impact, changed)
            return replace(
                report,
                audit_event_id=invocation.number_of(tx.logged[-1:]),
                erasure="pending" if erased else None,
                receipt=receipt,
            )
        return _report(invocation, request, impact, changed)

    return apply


def settle(invocation: Invocation, report: MemoryTranscriptLifecycleReport) -> MemoryTranscriptLifecycleReport:
    """An erasure is acknowledged as done only when no byte is left in the write-ahead log."""
    if report.erasure != "pending":
        return report
    left = (
        ERASURE_WAIT_S if invocation.deadline is None else min(ERASURE_WAIT_S, invocation.deadline - time.monotonic())
    )
    done = invocation.shared.store.writer.finish_erasures(max(0.0, left))
    horizon = store_snapshots.horizon(invocation.shared.store, invocation.now)
    return replace(report, erasure="done" if done else "pending", replica_horizon=horizon)


def _impact(
    invocation: Invocation, tx: Reading, request: MemoryTranscriptLifecycleRequest, space: int, conversation: int
) -> Impact:
    if request.turn_ids is not None:
        turns = evidence.turns_by_id(tx, conversation, request.turn_ids)
    else:
        assert request.before is not None
        turns = evidence.turns_before(tx, conversation, to_us(request.before))
    impact = Impact(turns=turns, space=space)
    invocation.progress.step("look", of=len(turns))
    for turn in invocation.progress.through(turns):
        messages = evidence.affected_messages(tx, turn)
        impact.messages.extend(messages)
        turn_id = evidence.turn_id_of(tx, turn)
        impact.turn_ids.append(turn_id)
        _impact_refs(invocation, tx, impact, turn, turn_id)
        impact.derived.extend(
            DerivedMemoryRef(derived=derived, evidence=source, relation=relation)
            for derived, source, relation in evidence.derived_from(tx, turn, space)
            if table.is_known(invocation, tx, space, derived)
        )
    return impact


def _impact_refs(invocation: Invocation, tx: Reading, impact: Impact, turn: int, turn_id: str) -> None:
    """The turn's host refs that the caller's view may see. Their labels are content, and in no report of a step."""
    for kind, ref_id, relation, shown, labelled in evidence.refs_of_turn(tx, turn):
        views = tuple(shown.split(",")) if shown else ()
        ref = HostRefView(kind=kind, ref_id=ref_id, relation=relation, visibility=views)
        seen, redactions = sanitize_refs((ref,), turn_id, invocation.viewer())
        impact.refs.extend(seen)
        impact.redactions.extend(redactions)
        if seen and labelled:
            withheld = TranscriptRedactionReportItem(turn_id=turn_id, field="HostRefLabel", reason="not_in_view")
            impact.redactions.append(withheld)


TRANSITIONS: dict[str, tuple[tuple[str, ...], str]] = {
    "mask": (("live",), "masked"),
    "unmask": (("masked",), "live"),
    "delete_raw": (("live", "masked"), "deleted"),
}
"""The states of messages that an action changes, and the one that they have after it."""


def _change(
    invocation: Invocation,
    tx: WriteTransaction,
    request: MemoryTranscriptLifecycleRequest,
    impact: Impact,
    conversation: int,
) -> int:
    """Carry the action out: how many rows it changed. A step that changes none leaves no record, but for a review."""
    changing, state = TRANSITIONS.get(request.action, ((), ""))
    todo = [m for m in impact.messages if m.state in changing]
    archived = sum(evidence.archive_turn(tx, turn) for turn in impact.turns) if request.action == "archive" else 0
    # A turn that was deleted before may hold content again: the brief of a tool comes when the tool is done.
    erasing = _erased() if request.action == "delete_raw" else []
    full = [turn for turn in impact.turns if any(each.holds(tx, turn) for each in erasing)]
    if not todo and not archived and not full and request.action != "review":
        return 0
    step = evidence.add_lifecycle(
        tx, conversation, request.action, request.reason, invocation.caller.name, tx.now, len(impact.turns), len(todo)
    )
    invocation.progress.step("change", of=len(todo))
    for message in invocation.progress.through(todo):
        if request.action == "delete_raw":
            unindex_to_erase(invocation, tx, impact.space, message, DELETE_AGAIN)
        elif request.action == "mask":
            if _is_sound(invocation, message):
                _unindex(tx, impact.space, message)
        elif (
            message.visibility in INDEXED
            and _is_sound(invocation, message)
            and not repair.is_indexed(tx, message.message)
        ):
            recall_index.add(tx, *_index_row(impact.space, message))
        evidence.set_state(tx, message.message, state, step)
    if todo:
        speakers = {(m.visibility, m.speaker) for m in todo if m.speaker is not None}
        evidence.settle_speakers(tx, conversation, sorted(speakers))
    _erase(invocation, tx, impact, full)
    return len(todo) or archived or len(full)


def _erase(invocation: Invocation, tx: WriteTransaction, impact: Impact, turns: list[int]) -> None:
    """Take the content out of turns whose messages are deleted."""
    held: dict[int, list[int]] = {turn: [] for turn in turns}
    for message in impact.messages:
        if message.turn in held:
            if message.state == "deleted":
                unindex_to_erase(invocation, tx, impact.space, message, DELETE_AGAIN)
            held[message.turn].append(message.message)
    invocation.progress.step("erase", of=len(held))
    for turn, messages in invocation.progress.through(held.items()):
        for each in _erased():
            each.erase(tx, turn, messages)


def _erased() -> list[Erased]:
    return [plane.erased for plane in table.PLANES if plane.erased is not None]


def _unindex(tx: WriteTransaction, space: int, message: AffectedMessage) -> None:
    """Take a message out of the index, if it is in it: what is not there must not be taken out."""
    if message.content is not None and repair.is_indexed(tx, message.message):
        recall_index.remove(tx, *_index_row(space, message))


def unindex_to_erase(
    invocation: Invocation, tx: WriteTransaction, space: int, message: AffectedMessage, hint: str
) -> None:
    """Take a message out of the index, where nothing of it may stay behind.

    Raises:
        IntegrityViolation: what is indexed of it is not known; `hint` says what to do then.
    """
    if not _is_sound(invocation, message) and repair.is_indexed(tx, message.message):
        raise IntegrityViolation(
            reason=f"message {message.message_id!r} of turn {message.turn_id!r} is not what was indexed of it: "
            "what the recall index holds of it cannot be erased",
            hint=hint,
            turn_id=message.turn_id,
            message_id=message.message_id,
        )
    _unindex(tx, space, message)


def _is_sound(invocation: Invocation, message: AffectedMessage) -> bool:
    """Whether a message's content is what was committed, and so what its index row was made of."""
    return is_whole(invocation.key, message)


def _index_row(space: int, message: AffectedMessage) -> IndexRow:
    row = entry(message.message, space, message.conversation, message.visibility)
    return row, evidence_fields(message.content or "", message.speaker, message.at)


def _report(
    invocation: Invocation, request: MemoryTranscriptLifecycleRequest, impact: Impact, changed: int
) -> MemoryTranscriptLifecycleReport:
    budgets = invocation.shared.profile.budgets
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


HANDLERS: Mapping[str, Handler] = {
    "transcript.lifecycle": Write(lifecycle, settle),
}
