"""An erasure in slices: its record is written first, each slice is a small write that takes off what it has done.

Others write between two slices. What is left when the process dies is done when the store is opened again.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

from beetle.contracts.errors import BeetleError, DeadlineExceeded
from beetle.contracts.operations import BY_NAME
from beetle.runtime.areas.erasure import kinds, turns
from beetle.runtime.areas.erasure.turns import Impact
from beetle.runtime.areas.evolve import proposals
from beetle.runtime.areas.governance import queue
from beetle.runtime.host.caller import Caller, Scope
from beetle.runtime.pipeline.crowd import Crowd, Work
from beetle.runtime.pipeline.invocation import Facilities, Invocation
from beetle.store import erasures, evidence, index_merge
from beetle.store.engine.progress import Progress
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
MANY_TURNS = 64
MERGED_PART = 1000
"""From so many turns on, if they are this part of all messages or more, the whole index is made anew behind them.
Measured with 4,000 of 104,000: 1.2 s and 85 MB written, where editing each page with a term took 25 s and 578 MB."""
MERGED_PAGES = 8
ALL_LEVELS = 1 << 30


CALLED_OFF_HINT = "the rest is there still: ask for it again, with a longer deadline_ms"


class Terms(NamedTuple):
    """On whose behalf: the visibilities of messages that go (None: all), the authority, whether private facts count."""

    kinds: tuple[str, ...] | None
    authority: str


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


def begin(invocation: Invocation, tx: WriteTransaction, space: int, terms: Terms, parts: list[Part]) -> OpenErasure:
    """Write down what is to be erased; from now on it is, whatever happens to this process."""
    said = json.dumps(terms._asdict())
    turns = sum(part.last - part.first + 1 for part in parts if part.plane == TURNS)
    if turns >= MANY_TURNS and turns * MERGED_PART >= index_merge.rows(tx):
        parts = [*parts, Part(INDEX, 0, ALL_LEVELS)]
    return erasures.begin(tx, space, invocation.operation.name, invocation.caller.name, said, tx.now, parts)


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
    invocation.progress.step("erase", of=of)
    while more:
        invocation.shared.lifecycle.check()
        if invocation.must_end:
            _call_off(invocation, record, tally)
            raise DeadlineExceeded.before(f"all was erased: {done} of {of} were, and stay erased", CALLED_OFF_HINT)
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
    part, terms = left.part, Terms(**json.loads(record.terms))
    if part.plane == TURNS:
        merged = erasures.has_left(tx, record.erasure, INDEX)
        impact, after = turns.erase(invocation, tx, record.space, part, terms.kinds, size, merged=merged)
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
    _drop_unfounded(invocation, tx, record)
    erasures.drop(tx, record.erasure)
    tx.expect_erasure()


def _drop_unfounded(invocation: Invocation, tx: WriteTransaction, record: OpenErasure) -> None:
    queue.drop_unfounded(invocation, tx, record.space)
    proposals.drop_unfounded(invocation, tx, record.space)


def _call_off(invocation: Invocation, record: OpenErasure, tally: Tally) -> None:
    """Strike off what is left, and tell what was done. What the index still holds of that goes behind the call."""

    def write(tx: WriteTransaction) -> OpenErasure | None:
        changed = tally.impact.changed or any(tally.counts.values())
        if not tally.impact.changed:
            _settle_step(tx, record)
        if changed:
            told = {"turns": tally.impact.affected, "changed": tally.impact.changed, **tally.counts}
            tx.log(invocation.event("transcript", "erasure_called_off", **told))
            _drop_unfounded(invocation, tx, record)
            tx.expect_erasure()
        # What was done before a crash is in no tally: the index is made anew whatever this one says.
        erasures.keep_plane(tx, record.erasure, INDEX)
        if erasures.next_part(tx, record.erasure) is not None:
            return next(each for each in erasures.unfinished(tx) if each.erasure == record.erasure)
        erasures.drop(tx, record.erasure)
        return None

    if left := _write(invocation, write):
        args = (invocation.shared, invocation.work.crowd, left)
        threading.Thread(target=_finish, args=args, name="beetle-erasure", daemon=True).start()


def _settle_step(tx: WriteTransaction, record: OpenErasure) -> None:
    """Of a step that is called off before it changed anything, no record stays."""
    if (left := erasures.next_part(tx, record.erasure)) is not None and left.part.lifecycle is not None:
        evidence.settle_lifecycle(tx, left.part.lifecycle, 0, 0)


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
        return f"an erasure that was begun could not be finished: {error.key}"
    return "an erasure that was begun is finished now"


def _finished(invocation: Invocation, record: OpenErasure, tally: Tally, tx: WriteTransaction) -> None:
    impact = tally.impact
    told = {"turns": impact.affected, "messages": impact.count_messages, "changed": impact.changed, **tally.counts}
    if any(told.values()):
        tx.log(invocation.event("transcript", "erasure_finished", **told))
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
        progress=_silent(),
        work=Work(crowd, record.principal),
    )


def _silent() -> Progress:
    progress = Progress()
    progress.plan(("erase",))
    return progress
