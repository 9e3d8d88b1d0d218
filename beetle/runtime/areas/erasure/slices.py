"""Many turns in slices, erased, masked or archived: what is to be done is written down first, and each slice is a small
write that takes off what it has done.

Others write between two slices. What is left when the process dies is done when the store is opened again.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from beetle.contracts.errors import BeetleError, DeadlineExceeded
from beetle.contracts.operations import BY_NAME
from beetle.named_tuple import NamedTuple
from beetle.runtime.areas.erasure import kinds, states, turns
from beetle.runtime.areas.erasure.turns import Impact
from beetle.runtime.areas.evolve import proposals
from beetle.runtime.areas.governance import queue
from beetle.runtime.host.caller import Caller, Scope
from beetle.runtime.pipeline.crowd import Crowd, Work
from beetle.runtime.pipeline.invocation import Facilities, Invocation
from beetle.store import erasures, evidence_lifecycle, index_merge
from beetle.store.engine.progress import Progress
from beetle.store.engine.transaction import Reading
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.erasures import LeftPart, OpenErasure, Part

SLICE_S = 0.005
"""How long a slice should hold the writer: as long as a handful of commits."""
REST, MOST_REST_S = 2, 0.03
"""Where others' writes wait, the next slice waits so many times as long as the last one took. With 50,000 turns beside
eight writers their p99 is 1.2 to 1.7 times that without an erasure, which takes 27 to 39 s; without rests it was 3 to 4
times, and 14 to 21 s."""
FIRST_TURNS = 16
MOST_TURNS = 400
TURNS, SPEAKERS, INDEX = "turns", "speakers", "index"
UNINDEXING = (TURNS, "mask")
"""Planes of parts that take messages out of the recall index."""
MERGE = "merge"
"""The action of what has hidden turns in the index and erased them otherwise."""
TIDYING = (SPEAKERS, INDEX)
"""Planes of parts that take away what is left of what others have done."""
MANY_TURNS = 64
MERGED_PART = 1000
"""From so many turns on, if they are this part of all messages or more, the whole index is made anew behind them.
Measured with 4,000 of 104,000: 1.2 s and 85 MB written, where editing each page with a term took 25 s and 578 MB."""
MERGED_PAGES = 8
ALL_LEVELS = 1 << 30


CALLED_OFF_HINT = "the rest is there still: ask for it again, with a longer deadline_ms"


class Terms(NamedTuple):
    """On whose behalf: the visibilities of messages that go (None: all), and the authority.

    `action`: what is done to turns that stay; empty for an erasure, `MERGE` for what was erased otherwise.
    """

    kinds: tuple[str, ...] | None
    authority: str
    action: str = ""

    @property
    def erases(self) -> bool:
        """Whether content goes."""
        return self.action not in states.DONE

    @property
    def step(self) -> str:
        """The step of progress that it is."""
        return "erase" if self.erases else "change"

    @property
    def done(self) -> str:
        """What has been done to a turn at the end."""
        return states.DONE.get(self.action, "erased")

    @property
    def named(self) -> str:
        """What it is called."""
        return "an erasure" if self.erases else f"a step of transcripts ({self.action})"

    @property
    def event(self) -> str:
        """What its events begin with."""
        return "erasure" if self.erases else self.action


class SliceResult(NamedTuple):
    """What one slice did: its turns, other records by their plane, and how long it took in seconds."""

    impact: Impact
    counts: Mapping[str, int]
    digests: tuple[bytes, ...]
    steps: int
    seconds: float
    more: bool


class Tally(NamedTuple):
    """All that an erasure did."""

    impact: Impact
    counts: dict[str, int]
    digests: list[bytes]


Told = Callable[[WriteTransaction, Tally], Any]


def begin(
    invocation: Invocation, tx: WriteTransaction, space: int, terms: Terms, parts: Sequence[Part] = ()
) -> OpenErasure:
    """Write down what is to be done; from now on it is, whatever happens to this process."""
    said = json.dumps({name: value for name, value in terms._asdict().items() if name != "action" or value})
    turns = sum(part.last - part.first + 1 for part in parts if part.plane in UNINDEXING)
    merges = terms.action == MERGE or are_many(tx, turns)
    # What another has taken out of the answers and not yet off the pages may be part of what is erased here.
    if merges or erasures.any_has_left(tx, INDEX):
        parts = [*parts, Part(INDEX, 0, ALL_LEVELS)]
    return erasures.begin(tx, space, invocation.operation.name, invocation.caller.name, said, tx.now, parts)


def are_many(tx: Reading, turns: int) -> bool:
    """Whether so many turns are better hidden in the index, which is made anew then, than taken off its pages."""
    return turns >= MANY_TURNS and turns * MERGED_PART >= index_merge.rows(tx)


def begin_merge(invocation: Invocation, tx: WriteTransaction, space: int) -> None:
    """Have the index made anew behind this write, by `finish_merge` or the next opening."""
    begin(invocation, tx, space, Terms(None, "operator", MERGE))


def finish_merge(invocation: Invocation) -> bool:
    """Make the index anew where a write has asked for it by `begin_merge`; whether all of that is done."""
    for each in _merges(invocation):
        _finish(invocation.shared, invocation.work.crowd, each)
    return not _merges(invocation)


def _merges(invocation: Invocation) -> list[OpenErasure]:
    with invocation.reading() as tx:
        return [each for each in erasures.unfinished(tx) if terms_of(each).action == MERGE]


def runs(sequences: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Ascending numbers as (first, last) of each run without a gap."""
    first = last = None
    for each in sequences:
        if last is None or each != last + 1:
            if first is not None and last is not None:
                yield first, last
            first = each
        last = each
    if first is not None and last is not None:
        yield first, last


def run(invocation: Invocation, record: OpenErasure, of: int) -> Tally:
    """Do all slices but the last write, which the caller makes: `close`.

    Raises:
        DeadlineExceeded: it was called off between two slices: the deadline passed, or the client has gone. What was
            erased stays erased, and the rest stays.
        ServicesUnavailable: the runtime closes; the rest is erased when the store is opened again.
        IntegrityViolation: a damaged record cannot be erased; what was before it is.
    """
    tally, size, done, more = Tally(turns.new_impact(invocation), {}, []), FIRST_TURNS, 0, True
    terms = terms_of(record)
    invocation.progress.step(terms.step, of=of)
    while more:
        invocation.shared.lifecycle.check()
        if invocation.must_end:
            _call_off(invocation, record, tally)
            told = f"all was {terms.done}: {done} of {of} were, and stay {terms.done}"
            raise DeadlineExceeded.before(told, CALLED_OFF_HINT)
        try:
            step = _write(invocation, partial(_slice, invocation, record, size))
        except BeetleError as error:
            if error.key == "integrity_violation":
                _call_off(invocation, record, tally)
            raise
        _add(tally, step)
        done += step.steps
        more = step.more
        size = _next_size(size, step)
        if more and invocation.shared.store.writer.queued:
            time.sleep(min(REST * step.seconds, MOST_REST_S))
        invocation.progress.at(min(done, of))
    return tally


def _write(invocation: Invocation, apply: Callable[[WriteTransaction], Any]) -> Any:
    return invocation.shared.store.write(apply, grows=False, by=invocation.caller.name)


def _next_size(size: int, step: SliceResult) -> int:
    """Turns of the next slice: as many as fit into the time, by what this one took."""
    if not step.steps:
        return size
    wanted = int(step.steps * SLICE_S / max(step.seconds, 1e-4))
    return max(1, min(MOST_TURNS, 2 * size, wanted))


def _add(tally: Tally, step: SliceResult) -> None:
    tally.impact.join(step.impact)
    tally.digests.extend(step.digests)
    for name, number in step.counts.items():
        tally.counts[name] = tally.counts.get(name, 0) + number


def _slice(invocation: Invocation, record: OpenErasure, size: int, tx: WriteTransaction) -> SliceResult:
    """One write: the next part, or as much of it as fits; small parts together."""
    began = time.monotonic()
    tally, steps = Tally(turns.new_impact(invocation), {}, []), 0
    with tx.recorded():
        while (left := erasures.next_part(tx, record.erasure)) is not None:
            steps += _do(invocation, tx, record, left, size - steps, tally)
            if steps >= size or time.monotonic() - began > SLICE_S / 2:
                break
        more = erasures.next_part(tx, record.erasure) is not None
    return SliceResult(tally.impact, tally.counts, tuple(tally.digests), steps, time.monotonic() - began, more)


def _do(
    invocation: Invocation, tx: WriteTransaction, record: OpenErasure, left: LeftPart, size: int, tally: Tally
) -> int:
    """Do what comes next of a part, and take it off; how many records that were."""
    part, terms = left.part, terms_of(record)
    if part.plane == TURNS or part.plane in states.DONE:
        merged = erasures.has_left(tx, record.erasure, INDEX)
        if part.plane == TURNS:
            impact, after = turns.erase(invocation, tx, record.space, part, terms.kinds, size, merged=merged)
        else:
            impact, after = states.change(invocation, tx, record.space, part, size, merged=merged)
        tally.impact.join(impact)
        erasures.go_on(tx, left, after)
        return impact.affected or 1
    if part.plane == INDEX:
        erasures.go_on(tx, left, _merge(tx, part))
        return 0
    if part.plane == SPEAKERS:
        turns.settle_speakers(tx, part.first)
    else:
        name, digests = kinds.erase(invocation, tx, record.space, part.plane, part.first, terms.authority)
        tally.counts[name] = tally.counts.get(name, 0) + (digests is not None)
        tally.digests.extend(digests or ())
    erasures.go_on(tx, left, part.first + 1)
    return 1


def _merge(tx: WriteTransaction, part: Part) -> int:
    """Make a few more pages of the index anew; where this part goes on."""
    level = part.first or index_merge.begin(tx)
    return part.last + 1 if index_merge.go_on(tx, level, MERGED_PAGES) else level


def close(invocation: Invocation, tx: WriteTransaction, record: OpenErasure) -> None:
    """The last write, after which nothing is left to do: candidates and proposals that rest on what is gone go too."""
    erasures.drop(tx, record.erasure)
    _settle_gone(invocation, tx, record)


def terms_of(record: OpenErasure) -> Terms:
    """On whose behalf it is done, and what."""
    return Terms(**json.loads(record.terms))


def _settle_gone(invocation: Invocation, tx: WriteTransaction, record: OpenErasure) -> None:
    """Of an erasure: what rests on what is gone goes too, and the write-ahead log is cut."""
    terms = terms_of(record)
    if not terms.erases:
        return
    tx.expect_erasure()
    if terms.action == MERGE:
        return
    queue.drop_unfounded(invocation, tx, record.space)
    proposals.drop_unfounded(invocation, tx, record.space)


def _call_off(invocation: Invocation, record: OpenErasure, tally: Tally) -> None:
    """Strike off what is left, and tell what was done. What the index still holds of that goes behind the call."""

    def write(tx: WriteTransaction) -> OpenErasure | None:
        impact = tally.impact
        changed = impact.changed or impact.changed_messages or any(tally.counts.values())
        if (left := erasures.next_part(tx, record.erasure)) is not None:
            _settle_part(tx, record, left.part, impact)
        if changed:
            told = {"turns": impact.affected, "changed": impact.changed, **tally.counts}
            tx.log(invocation.event("transcript", f"{terms_of(record).event}_called_off", **told))
            _settle_gone(invocation, tx, record)
        # What was done before a crash is in no tally: the index is made anew whatever this one says.
        erasures.keep_plane(tx, record.erasure, INDEX)
        if erasures.next_part(tx, record.erasure) is not None:
            return next(each for each in erasures.unfinished(tx) if each.erasure == record.erasure)
        erasures.drop(tx, record.erasure)
        return None

    if left := _write(invocation, write):
        args = (invocation.shared, invocation.work.crowd, left)
        threading.Thread(target=_finish, args=args, name="beetle-erasure", daemon=True).start()


def _settle_part(tx: WriteTransaction, record: OpenErasure, part: Part, impact: Impact) -> None:
    """Of the part that was called off: who still speaks in its conversation, and what the record of the step says. Of a
    step that has changed nothing no record stays."""
    if part.conversation is not None:
        turns.settle_speakers(tx, part.conversation)
    if part.lifecycle is None:
        return
    if not terms_of(record).erases:
        changed = impact.changed or impact.changed_messages
        evidence_lifecycle.settle_lifecycle(
            tx, part.lifecycle, impact.affected if changed else 0, impact.changed_messages
        )
    elif not impact.changed:
        evidence_lifecycle.settle_lifecycle(tx, part.lifecycle, 0, 0)


def finish_all(shared: Facilities, crowd: Crowd) -> list[str]:
    """Do what erasures had left when this store was open last; findings about those that cannot be finished."""
    with shared.store.read() as tx:
        left = erasures.unfinished(tx)
    return [_finish(shared, crowd, record) for record in left]


def _finish(shared: Facilities, crowd: Crowd, record: OpenErasure) -> str:
    """Do what an erasure has left, on nobody's call; what became of it."""
    invocation = _on_behalf(shared, crowd, record)
    try:
        tally = run(invocation, record, 0)
        _write(invocation, partial(_finished, invocation, record, tally))
    except BeetleError as error:
        return f"{terms_of(record).named} that was begun could not be finished: {error.key}"
    return f"{terms_of(record).named} that was begun is finished now"


def _finished(invocation: Invocation, record: OpenErasure, tally: Tally, tx: WriteTransaction) -> None:
    impact = tally.impact
    told = {"turns": impact.affected, "messages": impact.count_messages, "changed": impact.changed, **tally.counts}
    if any(told.values()):
        tx.log(invocation.event("transcript", f"{terms_of(record).event}_finished", **told))
    close(invocation, tx, record)


def _on_behalf(shared: Facilities, crowd: Crowd, record: OpenErasure) -> Invocation:
    """A call in the name of whoever has begun an erasure; it is asked for nothing."""
    caller = Caller(record.principal, "unknown", frozenset(), ("operator_audit",), "in_process")
    return Invocation(
        caller=caller,
        scope=Scope(record.memory_space_id.removeprefix("space:"), "", "", "", None),
        operation=BY_NAME[record.operation],
        view="operator_audit",
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
