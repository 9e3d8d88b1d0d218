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
from beetle.runtime.areas.erasure import plans, slices, states
from beetle.runtime.areas.erasure.tally import Tally
from beetle.runtime.areas.erasure.terms import Authority, Terms
from beetle.runtime.areas.erasure.turns import IDS_SHOWN, Affected, Impact, look, new_impact
from beetle.runtime.areas.snapshots import kept, store_snapshots
from beetle.runtime.pipeline.handlers import Handler, Staged
from beetle.runtime.pipeline.idempotency import KeyedWrite
from beetle.runtime.pipeline.invocation import Invocation
from beetle.store import chunk_imports, evidence, evidence_lifecycle, turn_times
from beetle.store.engine import kept_imports
from beetle.store.engine.transaction import Reading
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.erasures import OpenErasure, Part
from beetle.store.evidence import ConversationRow

STEPS = ("look", "change")
DELETE_STEPS = ("look", "erase", "cut_log")
TURNS_AT_ONCE = 200
Asked = MemoryTranscriptLifecycleRequest | MemoryTranscriptLifecycleReport
"""A request, or a report of one: both name the action."""
ERASURE_WAIT_S = 3.0
"""Longest wait for readers to let go of the write-ahead log before an erasure is reported as pending."""


def lifecycle(
    invocation: Invocation, request: MemoryTranscriptLifecycleRequest, write: KeyedWrite
) -> MemoryTranscriptLifecycleReport:
    """Raw deletion in slices, and every other action over many turns; over few in one transaction."""
    if not request.dry_run:
        receipts.ready(invocation)
    erases = request.action == "delete_raw"
    invocation.progress.plan(("look",) if request.dry_run else DELETE_STEPS if erases else STEPS)
    invocation.progress.step("look")
    if not erases:
        slices.begin_anew(invocation, write)
    if (earlier := write.earlier()) is not None:
        begun = slices.resume(invocation, write, earlier) if erases else None
        return settle(invocation, earlier if begun is None else _carry_out(invocation, write, begun, request))
    # On a reader: nobody's write waits for it.
    with invocation.reading() as tx:
        space, found = _place(invocation, tx, request)
        sequences = [] if found is None else _sequences(tx, request, found.conversation)
        impact = Impact()
        if request.dry_run and space is not None and found is not None:
            impact, _ = _look(invocation, tx, space, found.conversation, sequences, keep=False)
    if request.dry_run:
        seen = _report(invocation, request, impact, changed=False)
        return write.commit(lambda tx: seen)
    if erases or len(sequences) > slices.FIRST_TURNS:
        return _in_slices(invocation, request, write, sequences)
    return write.commit(partial(_change_few, invocation, request))


def _change_few(
    invocation: Invocation, request: MemoryTranscriptLifecycleRequest, tx: WriteTransaction
) -> MemoryTranscriptLifecycleReport:
    space, found = _place(invocation, tx, request)
    if space is None or found is None:
        return _report(invocation, request, Impact(), changed=False)
    conversation = found.conversation
    impact, turns = _look(invocation, tx, space, conversation, _sequences(tx, request, conversation), keep=True)
    if not turns:
        return _report(invocation, request, impact, changed=False)
    changed = _change(invocation, tx, request, turns, space, conversation)
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
    seq = _log(invocation, tx, request, impact, changed)
    return _receipted(invocation, tx, request, impact, changed, seq)


def _log(
    invocation: Invocation,
    tx: WriteTransaction,
    request: MemoryTranscriptLifecycleRequest,
    impact: Impact,
    changed: int,
) -> int:
    return tx.log(
        invocation.event(
            "transcript",
            {"review": "reviewed"}.get(request.action, request.action),
            channel_id=request.conversation.channel_id,
            conversation_id=request.conversation.conversation_id,
            turns=impact.affected,
            changed=changed,
        )
    )


def _receipted(
    invocation: Invocation, tx: WriteTransaction, asked: Asked, impact: Impact, changed: int, seq: int
) -> MemoryTranscriptLifecycleReport:
    counts = {"turns": impact.affected, "messages": impact.count_messages, "changed": changed}
    receipt = receipts.make(invocation, tx, f"transcript.{asked.action}", seq, counts, impact.digests)
    report = _report(invocation, asked, impact, changed=changed > 0)
    return replace(report, audit_event_id=invocation.number_of(tx.logged[-1:]), receipt=receipt)


def _in_slices(
    invocation: Invocation, request: MemoryTranscriptLifecycleRequest, write: KeyedWrite, sequences: list[int]
) -> MemoryTranscriptLifecycleReport:
    """Write down which turns it is about, do it slice by slice, and tell what was done."""
    erases = request.action == "delete_raw"
    records: list[OpenErasure] = []

    def begin(tx: WriteTransaction) -> MemoryTranscriptLifecycleReport:
        records.clear()
        space, found = _place(invocation, tx, request)
        if sequences and space is not None and found is not None:
            records.append(_begin(invocation, tx, request, space, found.conversation, sequences, write))
        first = _report(invocation, request, Impact(), changed=False)
        return replace(first, erasure="pending" if records and erases else None)

    report = write.commit(begin)
    if write.repeated or not records:
        return report
    return settle(invocation, _carry_out(invocation, write, records[0], request))


def _carry_out(
    invocation: Invocation, write: KeyedWrite, record: OpenErasure, request: MemoryTranscriptLifecycleRequest
) -> MemoryTranscriptLifecycleReport:
    """Do what was begun."""

    def end(tx: WriteTransaction, total: Tally) -> MemoryTranscriptLifecycleReport:
        changed = total.impact.changed_messages or total.impact.changed
        told = changed or request.action == "review"
        seq = _log(invocation, tx, request, total.impact, changed) if told else None
        return ended(invocation, tx, request, total, seq)

    return slices.complete(invocation, write, record, end)


def ended(
    invocation: Invocation, tx: WriteTransaction, asked: Asked, total: Tally, seq: int | None
) -> MemoryTranscriptLifecycleReport:
    """The report of all that was done.

    Args:
        seq: number of the event that tells; None where nothing was done.
    """
    impact = total.impact
    if seq is None:
        return _report(invocation, asked, impact, changed=False)
    changed = impact.changed_messages or impact.changed
    report = _receipted(invocation, tx, asked, impact, changed, seq)
    return replace(report, erasure="pending" if asked.action == "delete_raw" else None)


def _begin(
    invocation: Invocation,
    tx: WriteTransaction,
    request: MemoryTranscriptLifecycleRequest,
    space: int,
    conversation: int,
    sequences: list[int],
    write: KeyedWrite,
) -> OpenErasure:
    step = evidence_lifecycle.add_lifecycle(
        tx, conversation, request.action, request.reason, invocation.caller.name, tx.now, len(sequences), 0
    )
    action = "" if request.action == "delete_raw" else request.action
    plane = action or plans.TURNS
    parts = [Part(plane, first, last, conversation, step) for first, last in plans.runs(sequences)]
    parts.append(Part(plans.SPEAKERS, conversation, conversation, lifecycle=step))
    authority: Authority = "operator" if invocation.caller.is_operator else "user_asserted"
    terms = Terms(None, authority, action, lifecycle=step)
    return plans.begin(invocation, tx, space, terms, parts, write=write)


def _place(
    invocation: Invocation, tx: Reading, request: MemoryTranscriptLifecycleRequest
) -> tuple[int | None, ConversationRow | None]:
    """The space and the conversation that a request names, as far as they are there."""
    where = request.conversation
    space = evidence.find_space(tx, invocation.space_id)
    return space, evidence.find_conversation(tx, space, where.channel_id, where.conversation_id)


def _sequences(tx: Reading, request: MemoryTranscriptLifecycleRequest, conversation: int) -> list[int]:
    if request.turn_ids is not None:
        return evidence_lifecycle.sequences_by_id(tx, conversation, request.turn_ids)
    assert request.before is not None
    return turn_times.sequences_before(tx, conversation, to_us(request.before))


E = TypeVar("E", bound=Report)


def settle(invocation: Invocation, report: E) -> E:
    """An erasure is acknowledged as done only when no byte is left in the write-ahead log, and none can be in what a
    running import of chunks into the space was given."""
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
        erasure="done" if done and not _import_is_kept(invocation) else "pending",
        replica_horizon=horizon,
        copies_until=kept.until(invocation.shared, invocation.now),
        replicated_until=copies.replicated_until(invocation.shared.store, invocation.now),
    )


def _import_is_kept(invocation: Invocation) -> bool:
    settings = invocation.shared.store.settings
    with invocation.shared.store.read() as tx:
        space = evidence.find_space(tx, invocation.space_id)
        ours = [each.import_id for each in chunk_imports.unfinished(tx) if each.space == space]
        unknown = [each.import_id for each in chunk_imports.unreadable(tx)]
    return any(kept_imports.is_kept(settings, each) for each in (*ours, *unknown))


def _look(
    invocation: Invocation, tx: Reading, space: int, conversation: int, sequences: list[int], *, keep: bool
) -> tuple[Impact, list[Affected]]:
    """What a step touches; where they are to be kept, the turns with their messages."""
    impact, found = new_impact(invocation), list[Affected]()
    invocation.progress.step("look", of=len(sequences))
    for first, last in plans.runs(sequences):
        while first <= last:
            invocation.check("all was looked at")
            seen, affected, first = look(invocation, tx, space, conversation, first, last, TURNS_AT_ONCE)
            impact.join(seen)
            if keep:
                found += affected
            invocation.progress.at(impact.affected)
    return impact, found


def _change(
    invocation: Invocation,
    tx: WriteTransaction,
    request: MemoryTranscriptLifecycleRequest,
    turns: list[Affected],
    space: int,
    conversation: int,
) -> int:
    """Carry the action out: how many rows it changed. A step that changes none leaves no record, but for a review."""
    todo = states.changing(request.action, turns)
    archived = (
        sum(evidence_lifecycle.archive_turn(tx, turn.turn) for turn, _ in turns) if request.action == "archive" else 0
    )
    if not todo and not archived and request.action != "review":
        return 0
    step = evidence_lifecycle.add_lifecycle(
        tx, conversation, request.action, request.reason, invocation.caller.name, tx.now, len(turns), len(todo)
    )
    invocation.progress.step("change", of=len(todo))
    if todo:
        states.set_states(invocation, tx, space, request.action, todo, step)
        states.settle_speakers(tx, todo)
    return len(todo) or archived


def _report(
    invocation: Invocation, request: Asked, impact: Impact, *, changed: bool
) -> MemoryTranscriptLifecycleReport:
    budgets = invocation.shared.profile.budgets
    clipped = (
        len(impact.redactions) > budgets.redaction_items
        or len(impact.derived) > budgets.derived_refs
        or max(len(impact.turn_ids), len(impact.message_ids)) > IDS_SHOWN
        or len(impact.refs) > budgets.redaction_items
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
