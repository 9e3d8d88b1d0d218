"""The plan of an erasure, or of a step over many turns: what is left to do, on whose behalf, and what was done.

It is kept until all is done. An erasure that is called off under an idempotency key waits for the same request again,
as long as what the key was answered then is kept. What a restore has put something else in the place of is struck off,
and nobody is told that it was done.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from beetle.contracts.codec import json_text, replace
from beetle.runtime.areas.erasure import kinds, tally, turns
from beetle.runtime.areas.erasure.tally import Tally
from beetle.runtime.areas.erasure.terms import MERGE, Terms, asker_of, readable, terms_of, unreadable
from beetle.runtime.pipeline.idempotency import KeyedWrite
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.planes.forgetting import Selection, sight_of
from beetle.store import erasures, evidence_lifecycle, index_merge
from beetle.store.engine.transaction import Reading
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.erasures import OpenErasure, Part

TURNS, SPEAKERS, INDEX = "turns", "speakers", "index"
UNINDEXING = (TURNS, "mask")
"""Planes of parts that take messages out of the recall index."""
TIDYING = (SPEAKERS, INDEX)
"""Planes of parts that take away what is left of what others have done."""
MANY_TURNS = 64
MERGED_PART = 1000
"""From so many turns on, if they are this part of all messages or more, the whole index is made anew behind them.
Measured with 4,000 of 104,000: 1.2 s and 85 MB written, where editing each page with a term took 25 s and 578 MB."""
ALL_LEVELS = 1 << 30
TURNS_AT_ONCE = 1000


def begin(
    invocation: Invocation,
    tx: WriteTransaction,
    space: int,
    terms: Terms,
    parts: Sequence[Part] = (),
    *,
    write: KeyedWrite | None = None,
) -> OpenErasure:
    """Write down what is to be done; from now on it is, whatever happens to this process.

    Args:
        write: the call's, which keeps its first report in the same transaction.
    """
    terms = replace(terms, id=invocation.new_id("e"), asker=asker_of(invocation))
    if write is not None and write.key is not None:
        terms = replace(terms, key=write.key, request=write.digest.hex())
    caller, said = invocation.caller, json_text(terms)
    if terms.action != MERGE and _merges(tx, parts):
        parts = [*parts, Part(INDEX, 0, ALL_LEVELS)]
    begun = erasures.begin(tx, space, invocation.operation.name, caller.name, said, tx.now, parts)
    return begun._replace(memory_space_id=invocation.space_id)


def _merges(tx: Reading, parts: Iterable[Part]) -> bool:
    """Whether the index is made anew behind all. What another has taken out of the answers and not yet off the pages
    may be part of what is erased here."""
    turns = sum(part.last - part.first + 1 for part in parts if part.plane in UNINDEXING)
    return are_many(tx, turns) or erasures.any_has_left(tx, INDEX)


def are_many(tx: Reading, turns: int) -> bool:
    """Whether so many turns are better hidden in the index, which is made anew then, than taken off its pages."""
    return turns >= MANY_TURNS and turns * MERGED_PART >= index_merge.rows(tx)


def begin_merge(
    invocation: Invocation, tx: WriteTransaction, space: int, *, of: OpenErasure | None = None
) -> OpenErasure:
    """Have the index made anew behind this write, by `slices.finish_merge` or the next opening.

    Args:
        of: the plan whose part that is; a merge that has begun goes on.
    """
    begun = begin(invocation, tx, space, Terms(None, "operator", MERGE))
    if of is None:
        erasures.add(tx, begun.erasure, [Part(INDEX, 0, ALL_LEVELS)])
    else:
        erasures.move(tx, of.erasure, INDEX, begun.erasure)
    return begun


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


def records_of(found: Selection) -> list[Part]:
    """A part for each record of a selection, in the order in which they are erased."""
    planned = ((plane, found.keys.get(plane, {})) for plane in kinds.by_name())
    return [Part(plane, key, key, mark=known.mark) for plane, records in planned for key, known in records.items()]


def current(tx: Reading, record: OpenErasure) -> Terms | None:
    """The terms of a plan as they stand; None where it was struck off."""
    found = erasures.find(tx, record.erasure)
    terms = None if found is None else terms_of(found)
    return terms if terms is not None and terms.id == terms_of(record).id else None


def restate(tx: WriteTransaction, record: OpenErasure, terms: Terms) -> None:
    """Write down what a plan has come to."""
    erasures.restate(tx, record.erasure, json_text(terms))


def note(invocation: Invocation, tx: WriteTransaction, record: OpenErasure, terms: Terms, more: Tally) -> None:
    """Write down what a slice has done."""
    before = tally.read(invocation, terms.done)
    before.join(more)
    restate(tx, record, replace(terms, done=before.written()))


# Going on.


def waiting(invocation: Invocation, tx: Reading, write: KeyedWrite) -> OpenErasure | None:
    """What this very request has begun before, and was called off or failed: while it runs the key has its turn.

    Raises:
        IntegrityViolation: it cannot be read.
    """
    if write.key is None:
        return None
    named = (invocation.space_id, invocation.operation.name, invocation.caller.name)
    found = erasures.of_key(tx, *named, write.key)
    return found if found is not None and terms_of(found).request == write.digest.hex() else None


def pause(tx: WriteTransaction, record: OpenErasure, terms: Terms) -> None:
    """What is left waits for the same request again."""
    restate(tx, record, replace(terms, paused=True))


def go_on(invocation: Invocation, write: KeyedWrite, tx: WriteTransaction) -> OpenErasure | None:
    """What was left goes on; None where nothing waits for this request."""
    record = waiting(invocation, tx, write)
    if record is None:
        return None
    if not erasures.has_left(tx, record.erasure, INDEX) and _merges(
        tx, erasures.parts_of(tx, record.erasure, UNINDEXING)
    ):
        erasures.add(tx, record.erasure, [Part(INDEX, 0, ALL_LEVELS)])
    restate(tx, record, replace(terms_of(record), paused=False))
    return erasures.find(tx, record.erasure)


def strike(tx: WriteTransaction, record: OpenErasure, *, refused: bool) -> None:
    """Nothing more is done of a plan, and its key is not answered that it was.

    Args:
        refused: the same request under its key is refused from now on: what its key was answered stays, which says what
            was begun. Otherwise that request begins anew.
    """
    if not refused:
        erasures.drop_report(tx, record.erasure)
    erasures.drop(tx, record.erasure)


def strike_replaced(
    tx: WriteTransaction, space: int, conversation: int | None, records: Mapping[str, Sequence[int]] | None
) -> None:
    """Strike off what plans have left in what is emptied: what comes in its place is not meant, also where the request
    comes again under its key. What was hidden in the index before is taken off its pages all the same.

    Args:
        conversation: of a chat, its conversation; None where it has none yet.
        records: of a chat, keys of what it takes along by their kinds; None where all of the space is emptied.
    """
    for each in erasures.every(tx, space):
        if records is None:
            struck = erasures.keep_planes(tx, each.erasure, (INDEX,))
        else:
            struck = sum(erasures.drop_records(tx, each.erasure, kind, keys) for kind, keys in records.items())
            if conversation is not None:
                struck += erasures.drop_conversation(tx, each.erasure, conversation, SPEAKERS)
        terms = readable(each)
        if terms is None or not struck:
            continue
        if terms.paused:
            strike(tx, each, refused=True)
        else:
            restate(tx, each, replace(terms, replaced=True))


def strike_all(tx: WriteTransaction) -> None:
    """In a copy of a store that takes its place: what it had left was done since, or was called off. What it had done
    is tidied when it is opened."""
    for each in erasures.every(tx):
        erasures.keep_planes(tx, each.erasure, TIDYING)
        terms = readable(each)
        if terms is None:
            continue
        if not terms.erases:
            # It told of no erasure: the key would be answered that nothing was to be changed.
            erasures.drop_report(tx, each.erasure)
        if terms.paused or erasures.next_part(tx, each.erasure) is None:
            erasures.drop(tx, each.erasure)
        else:
            restate(tx, each, replace(terms, replaced=True, key=None, request=None, done=None))


def damaged(tx: Reading) -> list[OpenErasure]:
    """Plans that cannot be read, so that nothing is done of them."""
    return [each for each in erasures.every(tx) if readable(each) is None]


def drop_damaged(invocation: Invocation, tx: WriteTransaction) -> int:
    """Drop plans that cannot be read, with the first reports that were kept when they began; how many. What they have
    hidden in the index goes off its pages behind this write, by `slices.finish_merge`."""
    found = damaged(tx)
    for each in found:
        for part in erasures.parts_of(tx, each.erasure, (SPEAKERS,)):
            turns.settle_speakers(tx, part.first)
        if erasures.has_left(tx, each.erasure, INDEX):
            begin_merge(invocation, tx, each.space, of=each)
        erasures.drop_reports_of(tx, each.erasure)
        erasures.drop(tx, each.erasure)
    if found:
        erasures.drop_forsaken(tx)
    return len(found)


# What rests on the turns that are gone.


def resting(turns: Iterable[Part]) -> list[Part]:
    """Parts that name turns to the end of a plan."""
    return [Part(erasures.RESTING, part.first, part.last, part.conversation) for part in turns if part.plane == TURNS]


def look_again(invocation: Invocation, tx: Reading, record: OpenErasure) -> Selection:
    """What rests on the turns of a plan alone by now: others write while it runs.

    Raises:
        IntegrityViolation: a part cannot be read.
    """
    gone = list[int]()
    for part in erasures.parts_of(tx, record.erasure, (erasures.RESTING,)):
        if part.conversation is None:
            raise unreadable(record)
        first = part.first
        while page := evidence_lifecycle.turns_between(tx, part.conversation, first, part.last, TURNS_AT_ONCE):
            gone += [each.turn for each in page]
            first = page[-1].sequence + 1
    return kinds.select_resting(invocation, tx, record.space, gone) if gone else Selection(0, sight_of(invocation))
