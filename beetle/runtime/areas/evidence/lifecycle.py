"""transcript.lifecycle: archive, mask, unmask, delete_raw, review."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from typing import TypeVar

from beetle.contracts.codec import replace, to_us
from beetle.contracts.common import Report
from beetle.contracts.transcript import MemoryTranscriptLifecycleReport, MemoryTranscriptLifecycleRequest
from beetle.runtime.areas import copies, receipts
from beetle.runtime.areas.erasure import slices
from beetle.runtime.areas.erasure.turns import IDS_SHOWN, Impact, index_row, new_impact
from beetle.runtime.areas.snapshots import kept, store_snapshots
from beetle.runtime.pipeline.handlers import Handler, Staged
from beetle.runtime.pipeline.idempotency import KeyedWrite
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.planes.evidence import INDEXED
from beetle.runtime.planes.proof import is_whole
from beetle.store import erasures, evidence, recall_index, repair, turn_times
from beetle.store.engine.transaction import Reading
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.erasures import OpenErasure, Part
from beetle.store.evidence import AffectedMessage, ConversationRow

STEPS = ("look", "change")
DELETE_STEPS = ("look", "erase", "cut_log")
ERASURE_WAIT_S = 3.0
"""Longest wait for readers to let go of the write-ahead log before an erasure is reported as pending."""


def lifecycle(
    invocation: Invocation, request: MemoryTranscriptLifecycleRequest, write: KeyedWrite
) -> MemoryTranscriptLifecycleReport:
    """Raw deletion in slices; every other action over all matching turns in one transaction."""
    if not request.dry_run:
        receipts.ready(invocation)
    if request.action == "delete_raw" and not request.dry_run:
        return _delete_raw(invocation, request, write)
    invocation.progress.plan(("look",) if request.dry_run else STEPS)
    if request.dry_run:
        # On a reader: nobody's write waits for it.
        with invocation.reading() as tx:
            seen = _seen(invocation, request, tx)
        return write.commit(lambda tx: seen)
    return write.commit(partial(_change_all, invocation, request))


def _seen(
    invocation: Invocation, request: MemoryTranscriptLifecycleRequest, tx: Reading
) -> MemoryTranscriptLifecycleReport:
    space, found = _place(invocation, tx, request)
    if space is None or found is None:
        return _report(invocation, request, Impact(), changed=False)
    impact, _ = _look(invocation, tx, request, space, found.conversation)
    return _report(invocation, request, impact, changed=False)


def _change_all(
    invocation: Invocation, request: MemoryTranscriptLifecycleRequest, tx: WriteTransaction
) -> MemoryTranscriptLifecycleReport:
    space, found = _place(invocation, tx, request)
    if space is None or found is None:
        return _report(invocation, request, Impact(), changed=False)
    impact, turns = _look(invocation, tx, request, space, found.conversation)
    if not turns:
        return _report(invocation, request, impact, changed=False)
    changed = _change(invocation, tx, request, turns, space, found.conversation)
    if not changed and request.action != "review":
        return _report(invocation, request, impact, changed=False)
    return _logged_report(invocation, tx, request, impact, changed)


def _logged_report(
    invocation: Invocation,
    tx: WriteTransaction,
    request: MemoryTranscriptLifecycleRequest,
    impact: Impact,
    changed: int,
) -> MemoryTranscriptLifecycleReport:
    """Log what was done, and make its receipt and report."""
    seq = tx.log(
        invocation.event(
            "transcript",
            {"review": "reviewed"}.get(request.action, request.action),
            channel_id=request.conversation.channel_id,
            conversation_id=request.conversation.conversation_id,
            turns=impact.affected,
            changed=changed,
        )
    )
    counts = {"turns": impact.affected, "messages": impact.count_messages, "changed": changed}
    receipt = receipts.make(invocation, tx, f"transcript.{request.action}", seq, counts, impact.digests)
    report = _report(invocation, request, impact, changed=changed > 0)
    return replace(report, audit_event_id=invocation.number_of(tx.logged[-1:]), receipt=receipt)


def _delete_raw(
    invocation: Invocation, request: MemoryTranscriptLifecycleRequest, write: KeyedWrite
) -> MemoryTranscriptLifecycleReport:
    """Look for the turns, write down which they are, erase them slice by slice, and tell what was done."""
    if (earlier := write.earlier()) is not None:
        return settle(invocation, earlier)
    invocation.progress.plan(DELETE_STEPS)
    invocation.progress.step("look")
    with invocation.reading() as tx:
        _, found = _place(invocation, tx, request)
        sequences = [] if found is None else _sequences(tx, request, found.conversation)
    begun: list[OpenErasure] = []

    def begin(tx: WriteTransaction) -> MemoryTranscriptLifecycleReport:
        begun.clear()
        space, found = _place(invocation, tx, request)
        if sequences and space is not None and found is not None:
            begun.append(_begin(invocation, tx, request, space, found.conversation, sequences))
        return replace(_report(invocation, request, Impact(), changed=False), erasure="pending" if begun else None)

    def end(tx: WriteTransaction) -> MemoryTranscriptLifecycleReport:
        impact = tally.impact
        changed = impact.changed_messages or impact.changed
        evidence.settle_lifecycle(tx, lifecycle, impact.affected if changed else 0, impact.changed_messages)
        if not changed:
            erasures.drop(tx, begun[0].erasure)
            return _report(invocation, request, impact, changed=False)
        slices.close(invocation, tx, begun[0])
        return replace(_logged_report(invocation, tx, request, impact, changed), erasure="pending")

    report = write.commit(begin)
    if write.repeated or not begun:
        return report
    with invocation.reading() as tx:
        left = erasures.next_part(tx, begun[0].erasure)
    assert left is not None and left.part.lifecycle is not None, "it was written down just now"
    lifecycle = left.part.lifecycle
    tally = slices.run(invocation, begun[0], len(sequences))
    return settle(invocation, write.commit(end))


def _begin(
    invocation: Invocation,
    tx: WriteTransaction,
    request: MemoryTranscriptLifecycleRequest,
    space: int,
    conversation: int,
    sequences: list[int],
) -> OpenErasure:
    step = evidence.add_lifecycle(
        tx, conversation, request.action, request.reason, invocation.caller.name, tx.now, len(sequences), 0
    )
    parts = [Part(slices.TURNS, first, last, conversation, step) for first, last in slices.runs(sequences)]
    parts.append(Part(slices.SPEAKERS, conversation, conversation, lifecycle=step))
    terms = slices.Terms(None, "operator" if invocation.caller.is_operator else "user_asserted")
    return slices.begin(invocation, tx, space, terms, parts)


def _place(
    invocation: Invocation, tx: Reading, request: MemoryTranscriptLifecycleRequest
) -> tuple[int | None, ConversationRow | None]:
    """The space and the conversation that a request names, as far as they are there."""
    where = request.conversation
    space = evidence.find_space(tx, invocation.space_id)
    return space, evidence.find_conversation(tx, space, where.channel_id, where.conversation_id)


def _sequences(tx: Reading, request: MemoryTranscriptLifecycleRequest, conversation: int) -> list[int]:
    if request.turn_ids is not None:
        return evidence.sequences_by_id(tx, conversation, request.turn_ids)
    assert request.before is not None
    return turn_times.sequences_before(tx, conversation, to_us(request.before))


E = TypeVar("E", bound=Report)


def settle(invocation: Invocation, report: E) -> E:
    """An erasure is acknowledged as done only when no byte is left in the write-ahead log."""
    if getattr(report, "erasure", None) != "pending":
        return report
    left = (
        ERASURE_WAIT_S if invocation.deadline is None else min(ERASURE_WAIT_S, invocation.deadline - time.monotonic())
    )
    if invocation.progress.plans("cut_log"):
        invocation.progress.step("cut_log")
    done = invocation.shared.store.writer.finish_erasures(max(0.0, left))
    horizon = store_snapshots.horizon(invocation.shared.store, invocation.now)
    return replace(
        report,
        erasure="done" if done else "pending",
        replica_horizon=horizon,
        copies_until=kept.until(invocation.shared, invocation.now),
        replicated_until=copies.replicated_until(invocation.shared.store, invocation.now),
    )


def _look(
    invocation: Invocation, tx: Reading, request: MemoryTranscriptLifecycleRequest, space: int, conversation: int
) -> tuple[Impact, list[tuple[int, list[AffectedMessage]]]]:
    """What a step touches, and the matching turns with their messages."""
    sequences = _sequences(tx, request, conversation)
    impact, found = new_impact(invocation), list[tuple[int, list[AffectedMessage]]]()
    invocation.progress.step("look", of=len(sequences))
    for sequence in invocation.progress.through(sequences):
        for turn in evidence.turns_between(tx, conversation, sequence, sequence, 1):
            messages = evidence.affected_messages(tx, turn.turn)
            impact.see(invocation, tx, space, [(turn, messages)])
            if not request.dry_run:
                found.append((turn.turn, messages))
    return impact, found


TRANSITIONS: dict[str, tuple[tuple[str, ...], str]] = {
    "mask": (("live",), "masked"),
    "unmask": (("masked",), "live"),
}
"""The states of messages that an action changes, and the one that they have after it."""


def _change(
    invocation: Invocation,
    tx: WriteTransaction,
    request: MemoryTranscriptLifecycleRequest,
    turns: list[tuple[int, list[AffectedMessage]]],
    space: int,
    conversation: int,
) -> int:
    """Carry the action out: how many rows it changed. A step that changes none leaves no record, but for a review."""
    changing, state = TRANSITIONS.get(request.action, ((), ""))
    todo = [message for _, messages in turns for message in messages if message.state in changing]
    archived = sum(evidence.archive_turn(tx, turn) for turn, _ in turns) if request.action == "archive" else 0
    if not todo and not archived and request.action != "review":
        return 0
    step = evidence.add_lifecycle(
        tx, conversation, request.action, request.reason, invocation.caller.name, tx.now, len(turns), len(todo)
    )
    invocation.progress.step("change", of=len(todo))
    for message in invocation.progress.through(todo):
        sound = is_whole(invocation.key, message)
        if sound and request.action == "mask":
            recall_index.remove(tx, *index_row(space, message))
        elif sound and message.visibility in INDEXED and not repair.is_indexed(tx, message.message):
            recall_index.add(tx, *index_row(space, message))
        evidence.set_state(tx, message.message, state, step)
    if todo:
        evidence.settle_speakers(tx, conversation, sorted({(m.visibility, m.speaker) for m in todo if m.speaker}))
    return len(todo) or archived


def _report(
    invocation: Invocation, request: MemoryTranscriptLifecycleRequest, impact: Impact, *, changed: bool
) -> MemoryTranscriptLifecycleReport:
    budgets = invocation.shared.profile.budgets
    clipped = (
        len(impact.redactions) > budgets.redaction_items
        or impact.count_derived > budgets.derived_refs
        or impact.count_messages > IDS_SHOWN
        or impact.count_refs > budgets.redaction_items
    )
    return MemoryTranscriptLifecycleReport(
        action=request.action,
        dry_run=request.dry_run,
        changed=changed,
        affected_turns=impact.affected,
        affected_messages=impact.count_messages,
        affected_refs=impact.count_refs,
        affected_derived=impact.count_derived,
        turn_ids=tuple(impact.turn_ids[:IDS_SHOWN]),
        message_ids=tuple(impact.message_ids[:IDS_SHOWN]),
        host_refs=tuple(impact.refs[: budgets.redaction_items]),
        redactions=tuple(impact.redactions[: budgets.redaction_items]),
        derived_refs=tuple(impact.derived[: budgets.derived_refs]),
        profile_budget_applied=clipped,
    )


HANDLERS: Mapping[str, Handler] = {
    "transcript.lifecycle": Staged(lifecycle),
}
