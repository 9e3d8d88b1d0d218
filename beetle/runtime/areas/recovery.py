"""The recoverable steps: each finds what is wrong, mends it in small writes, and says what it did.

Writers are held up by no more than one small write at a time; only making the file anew (`vacuum`) holds them for as
long as it takes, and is done only where it gives back a quarter of the file.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from beetle.contracts.errors import BeetleError, IntegrityViolation, StoreCorrupt
from beetle.contracts.lifecycle import RecoverStep, StepName, StepReason
from beetle.contracts.progress import ProgressStep
from beetle.contracts.transcript_repair import IssueKind, MemoryTranscriptRepairSafeRequest
from beetle.named_tuple import NamedTuple
from beetle.runtime.areas import common_words
from beetle.runtime.areas.capture import recovering
from beetle.runtime.areas.evidence.repair import repair_safe
from beetle.runtime.areas.snapshots import store_snapshots
from beetle.runtime.areas.toc import recovering as toc_recovering
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.planes import table
from beetle.runtime.planes.plane import Indexed, IndexRow, Texts
from beetle.store import (
    columns,
    erasures,
    index_rebuild,
    index_tail,
    index_terms,
    jobs,
    recall_index,
    recover,
    snapshot_file,
)
from beetle.store.damaged_rows import UNFORESEEN
from beetle.store.engine import exchange
from beetle.store.engine.failures import log_defect
from beetle.store.engine.progress import Progress
from beetle.store.engine.store import free_bytes
from beetle.store.engine.transaction import Reading
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.indexed import is_key

CHECKPOINT_WAIT_S = 5.0
PIECE = 100
"""Rows of the index that one write adds."""
LOOK = 1000
"""Rows that are looked at in one read."""
KEYS = 1000
MERGE_PAGES = 200
"""Pages of the index that one write merges: under a MiB."""
SAVES_A = 4
"""The file is made anew when a fourth of it is free, and at least so many pages are."""
FREE_PAGES = 256
FILLING = "recall_index_fill"

CITED_FROM_ELSEWHERE: frozenset[IssueKind] = frozenset({"missing_source_turn", "missing_source_message"})
"""What a repair reports of a citation that names nothing here."""


class Done(NamedTuple):
    """What a step did: how many things it mended, how many it had to leave."""

    mended: int = 0
    left: int = 0
    reason: StepReason | None = None
    failed: bool = False


def run(invocation: Invocation, only: Sequence[StepName] = ()) -> tuple[RecoverStep, ...]:
    """Every step in its order, or those that are named. One that fails is told of, and the rest run. A runtime that
    closes stops them all, and so do a deadline that passes and a client that goes."""
    invocation.progress.plan(plan(only))
    return tuple(_step(invocation, name, work) for name, work in STEPS.items() if not only or name in only)


def _step(invocation: Invocation, name: StepName, work: Callable[[Invocation], Done]) -> RecoverStep:
    begun = time.monotonic()
    invocation.progress.step(name)
    error: str | None = None
    if invocation.shared.lifecycle.stopping or invocation.must_end:
        done = Done(reason="stopped", failed=True)
    else:
        try:
            done = work(invocation)
        except BeetleError as refused:
            done, error = Done(reason="refused", failed=True), refused.key
        except UNFORESEEN as defect:
            # A value that no runtime writes: the steps behind it may still mend what they can.
            log_defect("recovery_step_failed", f"the step {name} of a recovery met a value that it cannot read", defect)
            done, error = Done(reason="refused", failed=True), IntegrityViolation.key
    outcome = "failed" if done.failed or (done.left and not done.mended) else "done" if done.mended else "nothing_to_do"
    ms = round((time.monotonic() - begun) * 1000, 3)
    return RecoverStep(
        step=name, outcome=outcome, count=done.mended, left=done.left, reason=done.reason, error=error, ms=ms
    )


def look(invocation: Invocation) -> None:
    """Between two pieces of a step: it ends with the runtime, with its deadline, and when its client has gone."""
    invocation.shared.lifecycle.check()
    invocation.check("the store was recovered")
    invocation.work.rest()


def _checkpoint(invocation: Invocation) -> Done:
    """Fold the write-ahead log into the file; `count` is its bytes."""
    store = invocation.shared.store
    if store.settings.backend == "in-memory":
        return Done(reason="in_memory")
    before = store.wal_bytes()
    if not before:
        return Done()
    if store.follower.attached:
        return Done(reason="replicated")  # the sidecar folds it, when it has sent it
    whole = store.cut_log(CHECKPOINT_WAIT_S)
    return Done(before - store.wal_bytes(), reason=None if whole else "held_by_a_reader", failed=not whole)


def _pending_erasures(invocation: Invocation) -> Done:
    """Cut the write-ahead log behind what was erased. Plans of erasures that cannot be read are dropped: what they have
    left stays until it is asked for again."""
    store = invocation.shared.store
    writer = store.writer
    damaged = _drop_unreadable_plans(invocation)
    before = writer.erasures
    if not before:
        return Done(damaged)
    # Of what keeps the log from being cut, a reader is waited for; what a disk refuses is raised.
    whole = store.cut_log(CHECKPOINT_WAIT_S) and writer.finish_erasures(CHECKPOINT_WAIT_S)
    done = damaged + before - writer.erasures
    return Done(done, reason=None if whole else "held_by_a_reader", failed=not whole)


def _drop_unreadable_plans(invocation: Invocation) -> int:
    """Drop plans of erasures that cannot be read; how many."""
    store = invocation.shared.store
    with store.read() as tx:
        if not erasures.every(tx):
            return 0
    # The code of all planes is loaded where an erasure is open.
    from beetle.runtime.areas.erasure import plans, slices

    with store.read() as tx:
        damaged = bool(plans.damaged(tx))
    dropped = store.write(partial(plans.drop_damaged, invocation), grows=False) if damaged else 0
    if dropped:
        slices.finish_merge(invocation)
    return dropped


def _leftovers(invocation: Invocation) -> Done:
    """Files that a crash has left half-made."""
    return Done(store_snapshots.sweep(invocation.shared.store))


def _recall_index(invocation: Invocation) -> Done:
    """Bring the index in step with the tables: in place where that is safe, else from an empty one."""
    store = invocation.shared.store
    taken = 0
    if not _is_whole(invocation):
        store.write(recover.empty_index, grows=False)
        taken = 1
    else:
        taken = store.write(index_tail.mark_again, grows=False) + _take_out(invocation)
        taken += common_words.drop_wrong(invocation, look)
    added = left = 0
    invocation.progress.step(FILLING)
    try:
        for indexed in _indexed():
            for more, beyond in _fill(invocation, indexed):
                added += more
                left += beyond
                invocation.progress.at(added)
        with store.read() as tx:
            rebuilding = index_rebuild.is_rebuilding(tx)
        if rebuilding and not invocation.shared.lifecycle.stopping:
            store.write(index_rebuild.end, grows=False)
    finally:
        # Where its caller goes before the end, the job `optimize` fills the rest.
        invocation.shared.scheduler.wake()
    return Done(taken + added, left, "damaged_records_left_out" if left else None)


def _is_whole(invocation: Invocation) -> bool:
    """Whether every row of the index could be taken out again: it is sound, and what it was made of is still there."""
    try:
        return _is_removable(invocation)
    except StoreCorrupt:
        return False


def _is_removable(invocation: Invocation) -> bool:
    """As `_is_whole`. Raises StoreCorrupt where a page is malformed."""
    store = invocation.shared.store
    with store.read() as tx:
        if not recover.index_is_sound(tx) or columns.keywords_damaged(tx):
            return False
    if any(_altered(invocation, each.texts) for each in _indexed() if each.texts) or _unremovable(invocation):
        return False
    with store.read() as tx:
        rows = partial(_rows_held, invocation, tx)
        return next(index_terms.wrong(tx, rows, Progress(lambda step: look(invocation))), None) is None


def _indexed() -> list[Indexed]:
    return [plane.indexed for plane in table.PLANES if plane.indexed is not None]


def _altered(invocation: Invocation, texts: Texts) -> bool:
    """Whether a text that is indexed is another one by now."""
    store = invocation.shared.store
    with store.read() as tx:
        invocation.progress.step(texts.step, of=0 if texts.last is None else texts.last(tx))
    after = 0
    while True:
        look(invocation)
        invocation.progress.at(after)
        with store.read() as tx:
            found = texts.page(tx, after, LOOK)
        if not found:
            return False
        if not all(texts.is_sound(invocation.key, each) for each in found):
            return True
        after = found[-1].key


def _unremovable(invocation: Invocation) -> bool:
    """Whether the index holds a row that it should not, and of which nobody knows for certain what it was made of."""
    for page in _extra(invocation):
        with invocation.shared.store.read() as tx:
            if any(_removable(invocation, tx, plane, key) is None for plane, key in page):
                return True
    return False


def _extra(invocation: Invocation) -> Iterator[list[tuple[str, int]]]:
    """Pages of (plane, key) that the index holds and should not."""
    after = -1
    while True:
        look(invocation)
        with invocation.shared.store.read() as tx:
            found = recover.extra(tx, table.indexed_tables(), after, PIECE)
        if not found:
            return
        after = found[-1][0]
        yield [(plane, key) for _, plane, key in found]


def _removable(invocation: Invocation, tx: Reading, name: str, key: int) -> IndexRow | None:
    """An index row with its text, where that is certain: only so can it be taken out alone."""
    for each in _indexed():
        if any(rows.name == name for rows in each.tables):
            return each.removable(invocation.key, tx, key)
    return None


def _rows_held(invocation: Invocation, tx: Reading) -> Iterator[IndexRow]:
    """What every row that the index has should be made of."""
    for indexed in _indexed():
        after = 0
        while keys := indexed.keys(tx, after, LOOK):
            for key in keys:
                yield from (
                    row for row in indexed.rows(invocation.key, tx, key) or () if recall_index.holds(tx, row[0])
                )
            after = keys[-1]
    after = -1
    while found := recover.extra(tx, table.indexed_tables(), after, LOOK):
        yield from filter(None, (_removable(invocation, tx, plane, key) for _, plane, key in found))
        after = found[-1][0]


def _take_out(invocation: Invocation) -> int:
    """Take out what the index should not hold; how many rows."""

    def write(tx: WriteTransaction, page: list[tuple[str, int]]) -> int:
        rows = [row for plane, key in page if (row := _removable(invocation, tx, plane, key)) is not None]
        for entry, fields in rows:
            recall_index.remove(tx, entry, fields)
        return len(rows)

    store = invocation.shared.store
    return sum(store.write(partial(write, page=page), grows=False) for page in _extra(invocation))


def _fill(invocation: Invocation, indexed: Indexed) -> Iterator[tuple[int, int]]:
    """Add what the index lacks of a plane: how many rows were added, and records left out, by write."""
    store = invocation.shared.store
    after = 0
    while True:
        look(invocation)
        with store.read() as tx:
            keys = indexed.missing(tx, after, PIECE)
        if not keys:
            return
        yield store.write(partial(_add, invocation, indexed, keys), grows=False)
        after = keys[-1]


def _add(invocation: Invocation, indexed: Indexed, keys: list[int], tx: WriteTransaction) -> tuple[int, int]:
    """Add records that still lack their rows; (rows added, records left out because they are damaged)."""
    added = left = 0
    for key in keys:
        rows = indexed.rows(invocation.key, tx, key)
        if rows is not None and not all(is_key(entry.key) for entry, _ in rows):
            rows = None
        left += rows is None
        for entry, fields in rows or ():
            if not recall_index.holds(tx, entry):
                recall_index.add(tx, entry, fields)
                added += 1
    return added, left


def _transcripts(invocation: Invocation) -> Done:
    """What `transcript.repair_safe` mends, space by space; `left` is what it cannot.

    A citation of what is not in the store is no damage: whoever wrote it may name evidence of elsewhere.
    """
    shared = invocation.shared
    mended = left = space = before = 0
    with shared.store.read() as tx:
        every = recover.all_messages(tx)
    while True:
        with shared.store.read() as tx:
            before += recover.messages_of(tx, space)
            found = recover.space_after(tx, space)
        if found is None:
            return Done(mended, left, "damaged_records_left_out" if left else None)
        space, name = found
        scope = invocation.scope._replace(owner_id=name.removeprefix("space:"))
        inner = Progress(partial(_looked, invocation, before, every))
        inside = invocation._replace(scope=scope, now=shared.dependencies.clock(), progress=inner)
        while True:
            look(invocation)
            mend = repair_safe(inside, MemoryTranscriptRepairSafeRequest(), whole=True)
            report = shared.store.write(mend, grows=False)
            mended += len(report.mended)
            if not report.has_more or not report.mended:
                break
        left += sum(count for kind, count in report.left.items() if kind not in CITED_FROM_ELSEWHERE)


def _looked(invocation: Invocation, before: int, every: int, step: ProgressStep) -> None:
    """Of the inner call's steps only one counts for this one: looking through a space's messages."""
    if step.name == "messages":
        invocation.progress.at(before + step.done, every)


def _events(invocation: Invocation) -> Done:
    return Done(recovering.index_by_time(invocation, partial(look, invocation)))


def _captured_turns(invocation: Invocation) -> Done:
    return Done(recovering.captured_turns(invocation, partial(look, invocation)))


def _table_of_contents(invocation: Invocation) -> Done:
    return Done(toc_recovering.table_of_contents(invocation, partial(look, invocation)))


def _stuck_jobs(invocation: Invocation) -> Done:
    return Done(invocation.shared.store.write(lambda tx: jobs.free_expired(tx, tx.now), grows=False))


def _idempotency_keys(invocation: Invocation) -> Done:
    most = invocation.shared.profile.budgets.idempotency_keys
    dropped = 0
    while more := invocation.shared.store.write(lambda tx: recover.drop_keys(tx, most, KEYS), grows=False):
        look(invocation)
        dropped += more
    return Done(dropped)


def _remembered(invocation: Invocation) -> Done:
    return Done(invocation.shared.store.write(recover.drop_remembered, grows=False))


def _optimize(invocation: Invocation) -> Done:
    """Merge the index's segments, piece by piece, and write the bitmaps of common words that are missing; `count` is
    the pieces and the blocks of bitmaps."""
    store = invocation.shared.store
    count, pages = 0, -MERGE_PAGES
    while store.write(partial(recover.merge_index, pages=pages), grows=False):
        look(invocation)
        count, pages = count + 1, MERGE_PAGES
    return Done(count + common_words.write_missing(invocation, look))


def _vacuum(invocation: Invocation) -> Done:
    """Write the file anew without its free pages; `count` is the bytes that it gave back."""
    store = invocation.shared.store
    if store.settings.backend == "in-memory":
        return Done(reason="in_memory")
    with store.read() as tx:
        pages, free, size = (tx.value(f"PRAGMA {name}") for name in ("page_count", "freelist_count", "page_size"))
    if free < FREE_PAGES or free * SAVES_A < pages:
        return Done(reason="does_not_pay")
    path = store.settings.path
    if free_bytes(os.path.dirname(path)) < (pages - free) * size + store_snapshots.SPARE_BYTES:
        return Done(reason="no_room")
    file_id = invocation.new_id("c")
    making, ready, old = (
        exchange.named(path, kind, file_id) for kind in (exchange.UNPACKING, exchange.READY, exchange.BEFORE)
    )
    try:
        with store.held():
            with store.read() as tx:
                before = snapshot_file.facts_of(tx)
            snapshot_file.compact_into(store.settings, making)
            if snapshot_file.examine(making) != before:
                return Done(reason="refused", failed=True)
            exchange.make_ready(making, ready)
            store.exchange(ready, old)
        store_snapshots.remove(store, old)
    except OSError as error:
        raise exchange.unwritable(path, error) from error
    finally:
        for left in (making, ready):
            store_snapshots.remove(store, left)
    return Done(free * size)


def drop_spent(invocation: Invocation) -> int:
    """What no caller can ask for any more, and leases that have ended; how many."""
    return sum(step(invocation).mended for step in (_stuck_jobs, _idempotency_keys, _remembered))


def optimize(invocation: Invocation) -> int:
    """Fold the write-ahead log into the file, fill an index that was emptied and not filled since, and merge its
    segments; how much there was to do.

    Raises:
        Overloaded: it has to be filled, and another long task runs.
    """
    return sum(step(invocation).mended for step in (_checkpoint, _fill_emptied, _optimize))


def _fill_emptied(invocation: Invocation) -> Done:
    with invocation.shared.store.read() as tx:
        if not index_rebuild.is_rebuilding(tx):
            return Done()
    # A recovery or a repair that runs fills it itself: two at once would undo each other's work.
    with invocation.shared.lifecycle.alone("the job optimize"):
        invocation.progress.plan(plan(["recall_index"]))
        return _recall_index(invocation)


STEPS: dict[StepName, Callable[[Invocation], Done]] = {
    "checkpoint": _checkpoint,
    "pending_erasures": _pending_erasures,
    "leftovers": _leftovers,
    "recall_index": _recall_index,
    "transcripts": _transcripts,
    "events": _events,
    "captured_turns": _captured_turns,
    "table_of_contents": _table_of_contents,
    "stuck_jobs": _stuck_jobs,
    "idempotency_keys": _idempotency_keys,
    "remembered_conversations": _remembered,
    "optimize": _optimize,
    "vacuum": _vacuum,
}


def plan(only: Sequence[StepName] = ()) -> tuple[str, ...]:
    """The steps, all of them or those that are named, as they are told while they run: bringing the index in step takes
    longest, and is several of them."""
    texts = (each.texts.step for each in _indexed() if each.texts is not None)
    parts = {"recall_index": (*texts, FILLING)}
    names = [name for name in STEPS if not only or name in only]
    return tuple(part for name in names for part in (name, *parts.get(name, ())))
