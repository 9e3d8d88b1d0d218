"""The recoverable steps: each finds what is wrong, mends it in small writes, and says what it did.

Writers are held up by no more than one small write at a time; only making the file anew (`vacuum`) holds them for as
long as it takes, and is done only where it gives back a quarter of the file.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from beetle.contracts.errors import BeetleError
from beetle.contracts.lifecycle import RecoverStep, StepName, StepReason
from beetle.contracts.progress import Step
from beetle.contracts.transcript_repair import IssueKind, MemoryTranscriptRepairSafeRequest
from beetle.memory.digest import content_digest
from beetle.memory.lexical import evidence_fields
from beetle.runtime import facts, procedural, snapshots
from beetle.runtime.handlers.transcript import INDEXED
from beetle.runtime.handlers.transcript_repair import repair_safe
from beetle.runtime.handling import Context
from beetle.store import exchange, jobs, long_term, recall_index, recover, repair, skills, snapshot
from beetle.store.progress import Progress
from beetle.store.recall_index import Entry, Fields
from beetle.store.recover import IndexedText
from beetle.store.store import free_bytes
from beetle.store.transaction import Reading
from beetle.store.writer import WriteTransaction

CHECKPOINT_WAIT_S = 5.0
PIECE = 100
"""Rows of the index that one write adds."""
LOOK = 1000
"""Rows that are looked at in one read."""
KEYS = 1000
ALL = 2**62
MERGE_PAGES = 200
"""Pages of the index that one write merges: under a MiB."""
SAVES_A = 4
"""The file is made anew when a fourth of it is free, and at least so many pages are."""
FREE_PAGES = 256
MESSAGES, FACTS, FILLING = "indexed_messages", "indexed_facts", "recall_index_fill"
PLANES = ("evidence", "procedural", "long_term")

CITED_FROM_ELSEWHERE: frozenset[IssueKind] = frozenset({"missing_source_turn", "missing_source_message"})
"""What a repair reports of a citation that names nothing here."""


class Done(NamedTuple):
    """What a step did: how many things it mended, how many it had to leave."""

    mended: int = 0
    left: int = 0
    reason: StepReason | None = None
    failed: bool = False


def run(context: Context) -> tuple[RecoverStep, ...]:
    """Every step in its order. One that fails is told of, and the rest run; a runtime that closes stops them all."""
    context.progress.plan(PLAN)
    return tuple(_step(context, name, work) for name, work in STEPS.items())


def _step(context: Context, name: StepName, work: Callable[[Context], Done]) -> RecoverStep:
    begun = time.monotonic()
    context.progress.step(name)
    error: str | None = None
    if context.shared.lifecycle.stopping:
        done = Done(reason="stopped", failed=True)
    else:
        try:
            done = work(context)
        except BeetleError as refused:
            done, error = Done(reason="refused", failed=True), refused.key
    outcome = "failed" if done.failed or (done.left and not done.mended) else "done" if done.mended else "nothing_to_do"
    ms = round((time.monotonic() - begun) * 1000, 3)
    return RecoverStep(
        step=name, outcome=outcome, count=done.mended, left=done.left, reason=done.reason, error=error, ms=ms
    )


def _checkpoint(context: Context) -> Done:
    """Fold the write-ahead log into the file; `count` is its bytes."""
    store = context.shared.store
    if store.settings.backend == "in-memory":
        return Done(reason="in_memory")
    before = store.wal_bytes()
    if not before:
        return Done()
    whole = store.cut_log(CHECKPOINT_WAIT_S)
    return Done(before - store.wal_bytes(), reason=None if whole else "held_by_a_reader", failed=not whole)


def _pending_erasures(context: Context) -> Done:
    writer = context.shared.store.writer
    before = writer.erasures
    if not before:
        return Done()
    whole = writer.finish_erasures(CHECKPOINT_WAIT_S)
    return Done(before - writer.erasures, reason=None if whole else "held_by_a_reader", failed=not whole)


def _leftovers(context: Context) -> Done:
    """Files that a crash has left half-made."""
    return Done(snapshots.sweep(context.shared.store))


def _recall_index(context: Context) -> Done:
    """Bring the index in step with the tables: in place where that is safe, else from an empty one."""
    store = context.shared.store
    taken = 0
    if not _is_whole(context):
        store.write(recover.empty_index, grows=False)
        taken = 1
    else:
        taken = _take_out(context)
    added = left = 0
    context.progress.step(FILLING)
    for plane in PLANES:
        for more, beyond in _fill(context, plane):
            added += more
            left += beyond
            context.progress.at(added)
    with store.read() as tx:
        rebuilding = recover.is_rebuilding(tx)
    if rebuilding and not context.shared.lifecycle.stopping:
        store.write(recover.rebuilt, grows=False)
    return Done(taken + added, left, "damaged_records_left_out" if left else None)


def _is_whole(context: Context) -> bool:
    """Whether every row of the index could be taken out again: it is sound, and what it was made of is still there."""
    store = context.shared.store
    try:
        with store.read() as tx:
            if not recover.index_is_sound(tx):
                return False
    except BeetleError as error:
        if error.key != "store_corrupt":
            raise
        return False
    with store.read() as tx:
        context.progress.step(MESSAGES, of=recover.last_message(tx))
    if _altered(context, recover.indexed_messages, _is_sound_message):
        return False
    context.progress.step(FACTS)
    return not (_altered(context, recover.indexed_bodies, _is_sound_body) or _unremovable(context))


def _altered(
    context: Context,
    page: Callable[[Reading, int, int], list[IndexedText]],
    sound: Callable[[bytes, IndexedText], bool],
) -> bool:
    """Whether a text that is indexed is another one by now."""
    after = 0
    while True:
        context.shared.lifecycle.check()
        context.progress.at(after)
        with context.shared.store.read() as tx:
            found = page(tx, after, LOOK)
        if not found:
            return False
        if not all(sound(context.key, each) for each in found):
            return True
        after = found[-1].key


def _is_sound_message(key: bytes, text: IndexedText) -> bool:
    return content_digest(key, text.content) == text.digest


def _is_sound_body(key: bytes, text: IndexedText) -> bool:
    said = text.digest is None or facts.content_mac(key, text.content) == text.digest
    return said and facts.topic_mac(key, text.topic) == text.topic_digest


def _unremovable(context: Context) -> bool:
    """Whether the index holds a row that it should not, and of which nobody knows for certain what it was made of."""
    for page in _extra(context):
        with context.shared.store.read() as tx:
            if any(_removable(context, tx, plane, key) is None for plane, key in page):
                return True
    return False


def _extra(context: Context) -> Iterator[list[tuple[str, int]]]:
    """Pages of (plane, key) that the index holds and should not."""
    after = -1
    while True:
        context.shared.lifecycle.check()
        with context.shared.store.read() as tx:
            found = recover.extra(tx, after, PIECE)
        if not found:
            return
        after = found[-1][0]
        yield [(plane, key) for _, plane, key in found]


def _removable(context: Context, tx: Reading, plane: str, key: int) -> tuple[Entry, Fields] | None:
    """An index row with its text: only a message never changes, and proves by its digest that it did not."""
    row = _message(context, tx, key) if plane == "evidence" else None
    return row if row is not None and row[0].visibility in INDEXED else None


def _take_out(context: Context) -> int:
    """Take out what the index should not hold; how many rows."""

    def write(tx: WriteTransaction, page: list[tuple[str, int]]) -> int:
        rows = [row for plane, key in page if (row := _removable(context, tx, plane, key)) is not None]
        for entry, fields in rows:
            recall_index.remove(tx, entry, fields)
        return len(rows)

    store = context.shared.store
    return sum(store.write(partial(write, page=page), grows=False) for page in _extra(context))


def _fill(context: Context, plane: str) -> Iterator[tuple[int, int]]:
    """Add what the index lacks of a plane: how many rows were added, and records left out, by write."""
    store = context.shared.store
    after = 0
    while True:
        context.shared.lifecycle.check()
        with store.read() as tx:
            keys = recover.missing(tx, plane, after, PIECE)
        if not keys:
            return
        yield store.write(partial(_add, context, plane, keys), grows=False)
        after = keys[-1]


def _add(context: Context, plane: str, keys: list[int], tx: WriteTransaction) -> tuple[int, int]:
    """Add records that still lack their rows; (rows added, records left out because they are damaged)."""
    rows_of = {"evidence": _message_rows, "procedural": _skill_rows, "long_term": _fact_rows}[plane]
    added = left = 0
    for key in keys:
        rows = rows_of(context, tx, key)
        left += rows is None
        for entry, fields in rows or ():
            if not recall_index.holds(tx, entry):
                recall_index.add(tx, entry, fields)
                added += 1
    return added, left


Rows = list[tuple[Entry, Fields]]


def _message(context: Context, tx: Reading, key: int) -> tuple[Entry, Fields] | None:
    """The index row of a message whose content is what was committed."""
    each, place = repair.record(tx, key), recover.place_of_message(tx, key)
    if each is None or place is None or each.content is None:
        return None
    if content_digest(context.key, each.content) != each.digest:
        return None
    entry = Entry("evidence", key, place[3], each.conversation, each.visibility)
    return entry, evidence_fields(each.content, each.actor[0], each.at)


def _message_rows(context: Context, tx: Reading, key: int) -> Rows | None:
    each = repair.record(tx, key)
    if each is None or each.state != "live" or each.visibility not in INDEXED:
        return []
    row = _message(context, tx, key)
    return None if row is None else [row]


def _skill_rows(context: Context, tx: Reading, key: int) -> Rows | None:
    del context
    space = recover.space_of_skill(tx, key)
    found = skills.skills_by_key(tx, [key])
    if space is None or not found:
        return []
    return [procedural.index_row(space, found[0], skills.revision_of(tx, key, found[0].revision))]


def _fact_rows(context: Context, tx: Reading, key: int) -> Rows | None:
    space = recover.space_of_fact(tx, key)
    found = long_term.facts_by_key(tx, [key])
    if space is None or not found:
        return []
    row = found[0]
    known = set(long_term.digests_of(tx, key))
    for body in long_term.bodies_of(tx, key):
        if known and facts.content_mac(context.key, body.content) not in known:
            return None
        if row.topic_mac is not None and facts.topic_mac(context.key, body.topic) != row.topic_mac:
            return None
    return sorted(facts.index_rows(tx, space, row))


def _transcripts(context: Context) -> Done:
    """What `transcript.repair_safe` mends, space by space; `left` is what it cannot.

    A citation of what is not in the store is no damage: whoever wrote it may name evidence of elsewhere.
    """
    shared = context.shared
    mended = left = space = 0
    with shared.store.read() as tx:
        every = recover.messages_up_to(tx, ALL)
    while True:
        with shared.store.read() as tx:
            before, found = recover.messages_up_to(tx, space), recover.space_after(tx, space)
        if found is None:
            return Done(mended, left, "damaged_records_left_out" if left else None)
        space, name = found
        scope = context.scope._replace(owner_id=name.removeprefix("space:"))
        inner = Progress(partial(_looked, context, before, every))
        inside = context._replace(scope=scope, now=shared.surroundings.clock(), progress=inner)
        while True:
            shared.lifecycle.check()
            report = shared.store.write(repair_safe(inside, MemoryTranscriptRepairSafeRequest()), grows=False)
            mended += len(report.mended)
            if not report.has_more or not report.mended:
                break
        left += sum(count for kind, count in report.left.items() if kind not in CITED_FROM_ELSEWHERE)


def _looked(context: Context, before: int, every: int, step: Step) -> None:
    """Of the inner call's steps only one counts for this one: looking through a space's messages."""
    if step.name == "messages":
        context.progress.at(before + step.done, every)


def _stuck_jobs(context: Context) -> Done:
    return Done(context.shared.store.write(lambda tx: jobs.free_expired(tx, tx.now), grows=False))


def _idempotency_keys(context: Context) -> Done:
    most = context.shared.profile.budgets.idempotency_keys
    dropped = 0
    while more := context.shared.store.write(lambda tx: recover.drop_keys(tx, most, KEYS), grows=False):
        context.shared.lifecycle.check()
        dropped += more
    return Done(dropped)


def _remembered(context: Context) -> Done:
    return Done(context.shared.store.write(recover.drop_remembered, grows=False))


def _optimize(context: Context) -> Done:
    """Merge the index's segments, piece by piece; `count` is the writes that it took."""
    store = context.shared.store
    if not store.write(lambda tx: recover.merge_index(tx, -MERGE_PAGES), grows=False):
        return Done()
    count = 1
    while store.write(lambda tx: recover.merge_index(tx, MERGE_PAGES), grows=False):
        context.shared.lifecycle.check()
        count += 1
    return Done(count)


def _vacuum(context: Context) -> Done:
    """Write the file anew without its free pages; `count` is the bytes that it gave back."""
    store = context.shared.store
    if store.settings.backend == "in-memory":
        return Done(reason="in_memory")
    with store.read() as tx:
        pages, free, size = (tx.value(f"PRAGMA {name}") for name in ("page_count", "freelist_count", "page_size"))
    if free < FREE_PAGES or free * SAVES_A < pages:
        return Done(reason="does_not_pay")
    path = store.settings.path
    if free_bytes(os.path.dirname(path)) < (pages - free) * size + snapshots.SPARE_BYTES:
        return Done(reason="no_room")
    file_id = context.new_id("c")
    making, ready, old = (
        exchange.named(path, kind, file_id) for kind in (exchange.UNPACKING, exchange.READY, exchange.BEFORE)
    )
    try:
        with store.held():
            with store.read() as tx:
                before = snapshot.facts_of(tx)
            snapshot.compact_into(store.settings, making)
            if snapshot.examine(making) != before:
                return Done(reason="refused", failed=True)
            exchange.make_ready(making, ready)
            store.exchange(ready, old)
        snapshots.remove(store, old)
    except OSError as error:
        raise exchange.unwritable(path, error) from error
    finally:
        for left in (making, ready):
            snapshots.remove(store, left)
    return Done(free * size)


STEPS: dict[StepName, Callable[[Context], Done]] = {
    "checkpoint": _checkpoint,
    "pending_erasures": _pending_erasures,
    "leftovers": _leftovers,
    "recall_index": _recall_index,
    "transcripts": _transcripts,
    "stuck_jobs": _stuck_jobs,
    "idempotency_keys": _idempotency_keys,
    "remembered_conversations": _remembered,
    "optimize": _optimize,
    "vacuum": _vacuum,
}
PARTS = {"recall_index": (MESSAGES, FACTS, FILLING)}
PLAN = tuple(part for name in STEPS for part in (name, *PARTS.get(name, ())))
"""The steps as they are told while they run: bringing the index in step takes longest, and is several of them."""
