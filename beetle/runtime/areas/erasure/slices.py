"""Many turns in slices, erased, masked or archived: what is to be done is written down first, and each slice is a small
write that takes off what it has done.

Others write between two slices. What is left when the process dies is done when the store is opened again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from beetle.contracts.common import Report
from beetle.contracts.errors import BeetleError, Conflict, DeadlineExceeded
from beetle.contracts.operations import BY_NAME
from beetle.named_tuple import NamedTuple
from beetle.runtime.areas.erasure import kinds, plans, states, tally, turns
from beetle.runtime.areas.erasure.plans import INDEX, SPEAKERS, TURNS
from beetle.runtime.areas.erasure.tally import Tally
from beetle.runtime.areas.erasure.terms import MERGE, Terms, asked_by, asker_of, readable, terms_of, unreadable
from beetle.runtime.areas.erasure.turns import Impact
from beetle.runtime.areas.evolve import proposals
from beetle.runtime.areas.governance import queue
from beetle.runtime.pipeline.crowd import Crowd, Work
from beetle.runtime.pipeline.idempotency import KeyedWrite
from beetle.runtime.pipeline.invocation import Facilities, Invocation
from beetle.store import erasures, evidence_lifecycle, index_merge
from beetle.store.engine.progress import Progress
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.erasures import LeftPart, OpenErasure, Part
from beetle.store.event_log import read_head

SLICE_S = 0.005
"""How long a slice should hold the writer: as long as a handful of commits."""
REST, MOST_REST_S = 2, 0.03
"""Where others' writes wait, the next slice waits so many times as long as the last one took. With 50,000 turns beside
eight writers their p99 is 1.2 to 1.7 times that without an erasure, which takes 27 to 39 s; without rests it was 3 to 4
times, and 14 to 21 s."""
FIRST_TURNS = 16
MOST_TURNS = 400
MERGED_PAGES = 8
LOOKS = 4
"""So often what was written meanwhile is erased in slices; what is found then goes in the last write."""
CALLED_OFF_HINT = "the rest is there still: ask for it again, with a longer deadline_ms"
REPLACED = "a restore has put something else in the place of what was to be {past}: {done} turns were, and stay {past}"
REPLACED_HINT = "look at what is there now, and ask for it again, under another key where it had one"
NOT_THE_SAME = (
    "this caller's rights or its view are not those with which this erasure was begun: what was erased stays erased,"
    " and the rest was struck off"
)
LOST = "nothing tells any more what of this was left to do: it was struck off, or another program has changed it"
AGAIN_HINT = "look at what is there now, with a dry run, and ask for it again under another key"
LOST_HINT = f"{AGAIN_HINT}; `beetle verify` names what is damaged"
ENDS = ("integrity_violation", "conflict")
"""Errors after which it does not go on by itself."""
E = TypeVar("E", bound=Report)


class SliceResult(NamedTuple):
    """What one slice did: how many records, and how long it took in seconds."""

    tally: Tally
    steps: int
    seconds: float
    more: bool


def finish_merge(invocation: Invocation) -> bool:
    """Make the index anew where a write has asked for it by `plans.begin_merge`; whether all of that is done."""
    for each in _merges(invocation):
        _finish(invocation.shared, invocation.work.crowd, each)
    return not _merges(invocation)


def _merges(invocation: Invocation) -> list[OpenErasure]:
    with invocation.reading() as tx:
        known = [(each, readable(each)) for each in erasures.unfinished(tx)]
    return [each for each, terms in known if terms is not None and terms.action == MERGE]


def resume(invocation: Invocation, write: KeyedWrite, first: Report) -> OpenErasure | None:
    """What this very request has begun before, and was called off or failed, to go on now; None where it was done.

    Args:
        first: what its key was answered then.

    Raises:
        Conflict: what was left is not known any more; or the caller is not what it was then, so that the rest was
            struck off.
        IntegrityViolation: it cannot be read.
    """
    with invocation.reading() as tx:
        waiting = plans.waiting(invocation, tx, write)
    if waiting is not None and terms_of(waiting).asker != asker_of(invocation):
        _strike_off(invocation, waiting)
        raise Conflict(reason=NOT_THE_SAME, hint=AGAIN_HINT)
    going = None if waiting is None else _write(invocation, partial(plans.go_on, invocation, write))
    if going is not None:
        write.go_on(first)
    elif waiting is not None or _is_begun_alone(first):
        raise Conflict(reason=LOST, hint=LOST_HINT)
    return going


def _is_begun_alone(first: Any) -> bool:
    """Whether a report says what an erasure was to do, and not what it did."""
    return first.erasure is not None and first.receipt is None


def begin_anew(invocation: Invocation, write: KeyedWrite) -> None:
    """Of a step that changes turns and has failed: this very request does all of it, whatever others have done since.
    What it had left is struck off, with what its key was answered."""
    with invocation.reading() as tx:
        waiting = plans.waiting(invocation, tx, write)
    if waiting is not None:
        _strike_off(invocation, waiting)


def complete(
    invocation: Invocation, write: KeyedWrite, record: OpenErasure, end: Callable[[WriteTransaction, Tally], E]
) -> E:
    """Do all slices, and the last write with what is told of them. Raises as `run` and `close`."""
    with invocation.reading() as tx:
        of = erasures.size(tx, record.erasure, plans.TIDYING)
    ended = False
    try:
        done = run(invocation, record, of)
        try:
            told = write.commit(lambda tx: end(tx, close(invocation, tx, record, done)))
        except BeetleError as error:
            if error.key in ENDS:
                call_off(invocation, record, done)
            raise
        ended = True
        return told
    finally:
        if not ended and not terms_of(record).erases and not invocation.shared.lifecycle.stopping:
            # What it has left is not done when the store is opened: others may have undone it by then.
            with suppress(BeetleError):
                _strike_off(invocation, record)


def _strike_off(invocation: Invocation, record: OpenErasure) -> None:
    """What is left of a plan is not done, and its key is not answered that it was."""
    with invocation.shared.store.read() as tx:
        terms = plans.current(tx, record)
    if terms is not None:
        call_off(invocation, record, tally.read(invocation, terms.done), for_good=True)


def run(invocation: Invocation, record: OpenErasure, of: int) -> Tally:
    """Do all slices but the last write; all that was done, before a crash or a call off too.

    Raises:
        DeadlineExceeded: it was called off between two slices: the deadline passed, or the client has gone. What was
            erased stays erased, and the rest stays.
        ServicesUnavailable: the runtime closes; the rest is erased when the store is opened again.
        IntegrityViolation: a damaged record cannot be erased; what was before it is.
    """
    terms = terms_of(record)
    total, size, done, looks, more = tally.read(invocation, terms.done), FIRST_TURNS, 0, 0, True
    invocation.progress.step(terms.step, of=of)
    while more:
        invocation.shared.lifecycle.check()
        if invocation.must_end:
            call_off(invocation, record, total)
            told = f"all was {terms.past}: {done} of {of} were, and stay {terms.past}"
            raise DeadlineExceeded.before(told, CALLED_OFF_HINT)
        try:
            step = _write(invocation, partial(_slice, invocation, record, size))
        except BeetleError as error:
            if error.key in ENDS:
                call_off(invocation, record, total)
            raise
        total.join(step.tally)
        done += step.steps
        more = step.more
        size = _next_size(size, step)
        if more and invocation.shared.store.writer.queued:
            time.sleep(min(REST * step.seconds, MOST_REST_S))
        invocation.progress.at(min(done, of))
        if not more and looks < LOOKS:
            looks, more = looks + 1, _look_again(invocation, record, total)
    return total


def _write(invocation: Invocation, apply: Callable[[WriteTransaction], Any]) -> Any:
    return invocation.shared.store.write(apply, grows=False, by=invocation.caller.name)


def _next_size(size: int, step: SliceResult) -> int:
    """Turns of the next slice: as many as fit into the time, by what this one took."""
    if not step.steps:
        return size
    wanted = int(step.steps * SLICE_S / max(step.seconds, 1e-4))
    return max(1, min(MOST_TURNS, 2 * size, wanted))


def _slice(invocation: Invocation, record: OpenErasure, size: int, tx: WriteTransaction) -> SliceResult:
    """One write: the next part, or as much of it as fits; small parts together."""
    began = time.monotonic()
    done, steps = Tally(turns.new_impact(invocation)), 0
    terms = plans.current(tx, record)
    if terms is None:
        return SliceResult(done, 0, 0.0, more=False)
    with tx.recorded():
        while (left := erasures.next_part(tx, record.erasure)) is not None:
            steps += _do(invocation, tx, record, terms, left, size - steps, done)
            if steps >= size or time.monotonic() - began > SLICE_S / 2:
                break
        more = erasures.next_part(tx, record.erasure) is not None
        plans.note(invocation, tx, record, terms, done)
    return SliceResult(done, steps, time.monotonic() - began, more)


def _do(
    invocation: Invocation,
    tx: WriteTransaction,
    record: OpenErasure,
    terms: Terms,
    left: LeftPart,
    size: int,
    done: Tally,
) -> int:
    """Do what comes next of a part, and take it off; how many records that were.

    Raises:
        IntegrityViolation: the part, or a record, is damaged.
    """
    part = left.part
    if part.plane == TURNS or part.plane in states.DONE:
        if part.conversation is None or (part.plane in states.DONE and part.lifecycle is None):
            raise unreadable(record)
        merged = erasures.has_left(tx, record.erasure, INDEX)
        if part.plane == TURNS:
            impact, after = turns.erase(invocation, tx, record.space, part, terms.kinds, size, merged=merged)
        else:
            impact, after = states.change(invocation, tx, record.space, part, size, merged=merged)
        done.impact.join(impact)
        erasures.go_on(tx, left, after)
        return impact.affected or 1
    if part.plane == INDEX:
        erasures.go_on(tx, left, _merge(tx, part))
        return 0
    if part.plane == SPEAKERS:
        turns.settle_speakers(tx, part.first)
    else:
        done.add(_erase(invocation, tx, record, terms, part))
    erasures.go_on(tx, left, part.first + 1)
    return 1


def _erase(invocation: Invocation, tx: WriteTransaction, record: OpenErasure, terms: Terms, part: Part) -> kinds.Step:
    if part.plane not in kinds.by_name():
        raise unreadable(record)
    return kinds.erase(invocation, tx, record.space, part.plane, part.first, part.mark, terms.authority)


def _merge(tx: WriteTransaction, part: Part) -> int:
    """Make a few more pages of the index anew; where this part goes on."""
    level = part.first or index_merge.begin(tx)
    return part.last + 1 if index_merge.go_on(tx, level, MERGED_PAGES) else level


def _look_again(invocation: Invocation, record: OpenErasure, total: Tally) -> bool:
    """Plan what was made of the turns while they went; whether there was anything."""
    with invocation.shared.store.read() as tx:
        found = plans.look_again(invocation, tx, record)
        total.seen = read_head(tx)
    total.see(found)
    if not found.keys:
        return False

    def add(tx: WriteTransaction) -> None:
        if plans.current(tx, record) is not None:
            erasures.add(tx, record.erasure, plans.records_of(found))

    _write(invocation, add)
    return True


def close(invocation: Invocation, tx: WriteTransaction, record: OpenErasure, total: Tally) -> Tally:
    """The last write, after which nothing is left to do: what rests on what is gone goes too. All that was done.

    Raises:
        Conflict: a part of what was to be done was struck off.
    """
    terms = plans.current(tx, record)
    if terms is None or terms.replaced:
        told = REPLACED.format(past=terms_of(record).past, done=total.impact.affected)
        raise Conflict(reason=told, hint=REPLACED_HINT)
    last = tally.read(invocation, None)
    last.join(total)
    if total.seen != tx.head:
        found = plans.look_again(invocation, tx, record)
        last.see(found)
        for part in plans.records_of(found):
            more = tally.read(invocation, None)
            more.add(_erase(invocation, tx, record, terms, part))
            last.join(more)
    erasures.drop(tx, record.erasure)
    if terms.lifecycle is not None:
        told = last.changed or terms.action == "review"
        evidence_lifecycle.settle_lifecycle(
            tx, terms.lifecycle, last.impact.affected if told else 0, last.impact.changed_messages
        )
    if last.changed or terms.lifecycle is None:
        _settle_gone(invocation, tx, record)
    return last


def _settle_gone(invocation: Invocation, tx: WriteTransaction, record: OpenErasure) -> None:
    """Of an erasure: candidates and proposals that rest on what is gone go too, and the write-ahead log is cut."""
    terms = terms_of(record)
    if not terms.erases:
        return
    tx.expect_erasure()
    if terms.action == MERGE:
        return
    queue.drop_unfounded(invocation, tx, record.space)
    proposals.drop_unfounded(invocation, tx, record.space)


def call_off(invocation: Invocation, record: OpenErasure, total: Tally, *, for_good: bool = False) -> None:
    """Tell what was done, and leave the rest: an erasure goes on when it is asked for again under its key. What the
    index still holds of what was done goes behind the call."""
    left = _write(invocation, partial(_called_off, invocation, record, total, for_good))
    if left is not None:
        args = (invocation.shared, invocation.work.crowd, left)
        threading.Thread(target=_finish, args=args, name="beetle-erasure", daemon=True).start()


def _called_off(
    invocation: Invocation, record: OpenErasure, total: Tally, for_good: bool, tx: WriteTransaction
) -> OpenErasure | None:
    terms = plans.current(tx, record)
    if terms is None:
        return None
    goes_on = terms.erases and total.changed and not (for_good or terms.replaced)
    goes_on = goes_on and erasures.report_of(tx, record.erasure) is not None
    if (left := erasures.next_part(tx, record.erasure)) is not None:
        _settle_part(tx, record, left.part, total.impact, goes_on=goes_on)
    if total.changed:
        told = {"turns": total.impact.affected, "changed": total.impact.changed, **total.counts}
        if not terms.paused:
            tx.log(invocation.event("transcript", f"{terms.event}_called_off", terms.matter, **told))
        _settle_gone(invocation, tx, record)
    merge = None
    if erasures.has_left(tx, record.erasure, INDEX):
        merge = plans.begin_merge(invocation, tx, record.space, of=record)
    if goes_on:
        plans.pause(tx, record, terms)
    else:
        plans.strike(tx, record, refused=terms.erases and (for_good or terms.replaced))
    return merge


def _settle_part(tx: WriteTransaction, record: OpenErasure, part: Part, impact: Impact, *, goes_on: bool) -> None:
    """Of the part that was called off: who still speaks in its conversation, and what the record of the step says. Of a
    step that has changed nothing, and does not go on, no record stays."""
    if part.conversation is not None:
        turns.settle_speakers(tx, part.conversation)
    changed = impact.changed or impact.changed_messages
    if part.lifecycle is None or (goes_on and not changed):
        return
    if not terms_of(record).erases:
        done = (impact.affected, impact.changed_messages) if changed else (0, 0)
        evidence_lifecycle.settle_lifecycle(tx, part.lifecycle, *done)
    elif not impact.changed:
        evidence_lifecycle.settle_lifecycle(tx, part.lifecycle, 0, 0)


def _finish(shared: Facilities, crowd: Crowd, record: OpenErasure) -> None:
    """Make the index anew, on nobody's call. Where that fails, the next opening does it."""
    with suppress(BeetleError):
        invocation = on_behalf(shared, crowd, record)
        done = run(invocation, record, 0)
        _write(invocation, lambda tx: close(invocation, tx, record, done))


def on_behalf(shared: Facilities, crowd: Crowd, record: OpenErasure) -> Invocation:
    """A call in the name of whoever has begun an erasure; it is asked for nothing. Raises as `terms_of`."""
    caller, scope, view = asked_by(record)
    if record.operation not in BY_NAME:
        raise unreadable(record)
    return Invocation(
        caller=caller,
        scope=scope,
        operation=BY_NAME[record.operation],
        view=view,
        now=shared.dependencies.clock(),
        deadline=None,
        shared=shared,
        progress=_silent(terms_of(record).step),
        work=Work(crowd, record.principal),
    )


def _silent(step: str) -> Progress:
    progress = Progress()
    progress.plan((step,))
    return progress
