"""The plan of an erasure, or of a step over many turns: what is left to do, on whose behalf, and what was done.

It is kept until all is done. One that is called off under an idempotency key waits for the same request again. What a
restore has put something else in the place of is struck off, and nobody is told that it was done.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from beetle.named_tuple import NamedTuple
from beetle.runtime.areas.erasure import kinds, states, tally
from beetle.runtime.areas.erasure.tally import Tally
from beetle.runtime.host.caller import Caller, Scope
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.planes.forgetting import Selection, sight_of
from beetle.store import erasures, evidence_lifecycle, idempotency, index_merge
from beetle.store.engine.transaction import Reading
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.erasures import OpenErasure, Part
from beetle.store.event_places import Matter

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
ALL_LEVELS = 1 << 30
TURNS_AT_ONCE = 1000


class Asker(NamedTuple):
    """Who has begun it, and how: so that the rest is done as its own."""

    kind: Any
    capabilities: Sequence[str]
    views: Sequence[Any]
    owner_id: str | None
    agent_id: str | None
    added_at: int | None
    scope: Sequence[Any]
    view: Any

    def caller(self, name: str) -> Caller:
        """The caller as it was."""
        own = (self.owner_id, self.agent_id, self.added_at)
        return Caller(name, self.kind, frozenset(self.capabilities), tuple(self.views), "in_process", *own)


class Terms(NamedTuple):
    """On whose behalf, and what.

    Attributes:
        kinds: the visibilities of messages that go; None for all.
        authority: the caller's.
        action: what is done to turns that stay; empty for an erasure, `MERGE` for what was erased otherwise.
        id: tells this plan from any other that has its number later.
        key: the idempotency key of the request.
        asker: see Asker; None in plans of earlier builds.
        matter: whose matter its events are.
        lifecycle: the record of the step, where there is one for all of it.
        paused: it was called off, and goes on when it is asked for again.
        replaced: part of it was struck off by a restore.
        done: what was done, as `tally.written`.
    """

    kinds: tuple[str, ...] | None
    authority: str
    action: str = ""
    id: str = ""
    key: str | None = None
    asker: Sequence[Any] | None = None
    matter: Matter = "shared"
    lifecycle: int | None = None
    paused: bool = False
    replaced: bool = False
    done: Mapping[str, Any] | None = None

    @property
    def erases(self) -> bool:
        """Whether content goes."""
        return self.action not in states.DONE

    @property
    def step(self) -> str:
        """The step of progress that it is."""
        return "erase" if self.erases else "change"

    @property
    def past(self) -> str:
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


def _text(terms: Terms) -> str:
    before = Terms(terms.kinds, terms.authority)
    said = {name: value for name, value in terms._asdict().items() if value != getattr(before, name)}
    return json.dumps({"kinds": terms.kinds, "authority": terms.authority, **said})


def terms_of(record: OpenErasure) -> Terms:
    """On whose behalf it is done, what, and what was."""
    return Terms(**json.loads(record.terms))


def begin(
    invocation: Invocation,
    tx: WriteTransaction,
    space: int,
    terms: Terms,
    parts: Sequence[Part] = (),
    *,
    key: str | None = None,
) -> OpenErasure:
    """Write down what is to be done; from now on it is, whatever happens to this process."""
    for each in erasures.forsaken(tx):
        erasures.drop(tx, each.erasure)
    caller, scope = invocation.caller, invocation.scope
    capabilities, own = sorted(caller.capabilities), (caller.owner_id, caller.agent_id, caller.added_at)
    asker = Asker(caller.kind, capabilities, caller.views, *own, tuple(scope), invocation.view)
    said = _text(terms._replace(id=invocation.new_id("e"), key=key, asker=tuple(asker)))
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
    erasures.restate(tx, record.erasure, _text(terms))


def note(invocation: Invocation, tx: WriteTransaction, record: OpenErasure, terms: Terms, more: Tally) -> None:
    """Write down what a slice has done."""
    before = tally.read(invocation, terms.done)
    before.join(more)
    restate(tx, record, terms._replace(done=before.written()))


# Going on.


def waiting(invocation: Invocation, key: str | None) -> OpenErasure | None:
    """What this very request has begun before, and was called off or failed: while it runs the key has its turn."""
    if key is None:
        return None
    with invocation.reading() as tx:
        return erasures.of_key(tx, invocation.space_id, invocation.operation.name, invocation.caller.name, key)


def pause(tx: WriteTransaction, record: OpenErasure, terms: Terms) -> None:
    """What is left waits for the same request again."""
    restate(tx, record, terms._replace(paused=True))


def go_on(record: OpenErasure, tx: WriteTransaction) -> OpenErasure:
    """What was left goes on."""
    terms = terms_of(record)
    if not erasures.has_left(tx, record.erasure, INDEX) and _merges(
        tx, erasures.parts_of(tx, record.erasure, UNINDEXING)
    ):
        erasures.add(tx, record.erasure, [Part(INDEX, 0, ALL_LEVELS)])
    going = terms._replace(paused=False)
    restate(tx, record, going)
    return record._replace(terms=_text(going))


def strike(tx: WriteTransaction, record: OpenErasure) -> None:
    """Nothing more is done of a plan, and its key is not answered that it was."""
    _forget_report(tx, record)
    erasures.drop(tx, record.erasure)


def _forget_report(tx: WriteTransaction, record: OpenErasure) -> None:
    if (key := terms_of(record).key) is not None:
        idempotency.drop(tx, record.principal, record.memory_space_id, key)


def strike_replaced(
    tx: WriteTransaction, space: int, conversation: int | None, records: Mapping[str, Sequence[int]] | None
) -> None:
    """Strike off what plans have left in what is emptied: what comes in its place is not meant. What was hidden in the
    index before is taken off its pages all the same.

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
        terms = terms_of(each)
        if struck and terms.paused:
            strike(tx, each)
        elif struck:
            _forget_report(tx, each)
            restate(tx, each, terms._replace(replaced=True))


def strike_all(tx: WriteTransaction) -> None:
    """In a copy of a store that takes its place: what it had left was done since, or was called off. What it had done
    is tidied when it is opened."""
    for each in erasures.every(tx):
        erasures.keep_planes(tx, each.erasure, TIDYING)
        terms = terms_of(each)
        _forget_report(tx, each)
        if terms.paused or erasures.next_part(tx, each.erasure) is None:
            erasures.drop(tx, each.erasure)
        else:
            restate(tx, each, terms._replace(replaced=True, key=None, done=None))


# What rests on the turns that are gone.


def resting(turns: Iterable[Part]) -> list[Part]:
    """Parts that name turns to the end of a plan."""
    return [Part(erasures.RESTING, part.first, part.last, part.conversation) for part in turns if part.plane == TURNS]


def look_again(invocation: Invocation, tx: Reading, record: OpenErasure) -> Selection:
    """What rests on the turns of a plan alone by now: others write while it runs."""
    gone = list[int]()
    for part in erasures.parts_of(tx, record.erasure, (erasures.RESTING,)):
        assert part.conversation is not None, "turns are named in their conversation"
        first = part.first
        while page := evidence_lifecycle.turns_between(tx, part.conversation, first, part.last, TURNS_AT_ONCE):
            gone += [each.turn for each in page]
            first = page[-1].sequence + 1
    return kinds.select_resting(invocation, tx, record.space, gone) if gone else Selection(0, sight_of(invocation))


def asked_by(record: OpenErasure) -> tuple[Caller, Scope, Any]:
    """Who has begun a plan, for what scope, through which view."""
    owner = record.memory_space_id.removeprefix("space:")
    if (said := terms_of(record).asker) is None:
        caller = Caller(record.principal, "unknown", frozenset(), ("operator_audit",), "in_process")
        return caller, Scope(owner, "", "", "", None), "operator_audit"
    asker = Asker(*said)
    return asker.caller(record.principal), Scope(*asker.scope), asker.view
