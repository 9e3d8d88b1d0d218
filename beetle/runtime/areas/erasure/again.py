"""Erasing in an unpacked snapshot what was erased from the store since the snapshot was made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager

from msgspec import Struct

from beetle.contracts.refs import format_ref
from beetle.named_tuple import NamedTuple
from beetle.runtime.areas.erasure import kinds, plans, turns
from beetle.runtime.areas.evolve import proposals
from beetle.runtime.areas.governance import queue
from beetle.runtime.host.domain_functions import DOMAIN_FUNCTIONS
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.planes import removed
from beetle.store import accepted_since, erased_since, evidence_lifecycle, private, restores, snapshot_file
from beetle.store.engine.copies import Copy
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.erased_since import HeldTurn
from beetle.store.held_records import HeldRecord

TURNS_AT_ONCE = 100


class Erasable(Struct):
    """What a snapshot still holds of it: counts by what is counted, and refs of the turns, facts and skills."""

    turns: list[HeldTurn] = []
    records: list[HeldRecord] = []

    @property
    def counts(self) -> dict[str, int]:
        """How many records of each sort."""
        found = {"turns": len(self.turns), "messages": sum(len(each.messages) for each in self.turns)}
        known = kinds.by_name()
        for name, number in Counter(each.plane for each in self.records).items():
            found[known[name].counted_as] = number
        return {name: count for name, count in found.items() if count}

    @property
    def refs(self) -> list[str]:
        """What they are called."""
        named = [format_ref("evidence", each.channel_id, each.conversation_id, each.turn_id) for each in self.turns]
        planes = {name: kind.refs for name, kind in kinds.by_name().items() if kind.refs}
        return named + [format_ref(planes[each.plane], each.name) for each in self.records if each.plane in planes]


class Origin(NamedTuple):
    """Where a snapshot's event log ends. `goes_on`: the store's own log goes on from there."""

    seq: int
    goes_on: bool


class Unpacked:
    """An unpacked snapshot of this store, as it is made ready to take its place."""

    def __init__(self, invocation: Invocation, copy: Copy, seq: int, head: bytes) -> None:
        self._invocation = invocation
        self._copy = copy
        self.applied = copy.applied
        with invocation.shared.store.read() as store:
            self._origin = Origin(seq, erased_since.goes_on(store, seq, head))

    def look(self) -> Erasable:
        """What was erased since, and stands in the snapshot: as itself, or as the candidate that it was then."""
        since = self._origin.seq if self._origin.goes_on else None
        with self._invocation.shared.store.read() as store, self._copy.writing() as tx:
            told = erased_since.told(store, since)
            records = erased_since.records(store, tx, told)
            if since is not None:
                known = {each.key for each in records if each.plane == "candidate"}
                records += [each for each in accepted_since.records(store, tx, since) if each.key not in known]
            return Erasable(erased_since.turns(store, tx, told), records)

    def erase(self, found: Erasable, *, told: bool) -> None:
        """Erase it here too. No event tells of it: the one of the first time does. Nothing that waits is judged again,
        and what the store knows to be removed stays so. `told`: it is a step of progress.
        """
        progress = self._invocation.progress
        if told:
            progress.step("erase_again", of=len(found.turns) + len(found.records))
        with self._invocation.shared.store.read() as store, self._copy.writing() as tx:
            removed.carry(store, tx)
        for start in range(0, len(found.turns), TURNS_AT_ONCE):
            self._invocation.check("what was erased since was erased again")
            with self._copy.writing() as tx:
                for each in found.turns[start : start + TURNS_AT_ONCE]:
                    self._erase_turn(tx, each)
            if told:
                progress.at(start)
        with self._copy.writing() as tx:
            for record in found.records:
                invocation = self._inside(record.memory_space_id)
                kinds.erase_again(invocation, tx, record.space, record.plane, record.key)
            for turn in {each.conversation: each for each in found.turns}.values():
                turns.settle_speakers(tx, turn.conversation)
            for space, name in {each.space: each.memory_space_id for each in found.turns}.items():
                queue.drop_unfounded(self._inside(name), tx, space)
                proposals.drop_unfounded(self._inside(name), tx, space)
            tx.expect_erasure()

    def carry_events(self) -> None:
        """Let the event log go on as it did, so that what it tells, and every receipt, still holds. Nobody writes
        meanwhile. The store knows in the same moment that what these rows tell was undone: a restore may be killed
        before its event is written.
        """
        with self._invocation.shared.store.read() as store, self._copy.writing() as tx:
            # What a snapshot had left to erase was erased since, or was called off. What its index still holds of what
            # was done before goes when it is opened.
            plans.strike_all(tx)
            if self._origin.goes_on:
                erased_since.carry_events(store, tx, self._origin.seq)
                restores.record(tx, self._origin.seq)

    def _erase_turn(self, tx: WriteTransaction, each: HeldTurn) -> None:
        invocation = self._inside(each.memory_space_id)
        messages = [m for m in evidence_lifecycle.affected_messages(tx, each.turn) if m.message in each.messages]
        placed = evidence_lifecycle.PlacedTurn(each.turn, each.sequence, each.turn_id)
        turns.erase_messages(invocation, tx, each.space, placed, messages)

    def _inside(self, memory_space_id: str) -> Invocation:
        owner = memory_space_id.removeprefix("space:")
        return self._invocation._replace(scope=self._invocation.scope._replace(owner_id=owner))


@contextmanager
def opened(invocation: Invocation, path: str, seq: int, head: bytes) -> Generator[Unpacked]:
    """An unpacked snapshot of this very store, to be changed before it is anyone's; its log ends at this row."""
    shared = invocation.shared
    sealer = shared.store.sealer
    with snapshot_file.reading(path) as tx:
        if sealer is not None and private.recorded_check(tx) != shared.identity.check:
            # What a former identity of the store has sealed, today's cannot go on with.
            sealer = sealer._replace(strong=None)
    copy = Copy(path, invocation.now, shared.version, DOMAIN_FUNCTIONS, sealer)
    try:
        yield Unpacked(invocation, copy, seq, head)
    finally:
        copy.close()
