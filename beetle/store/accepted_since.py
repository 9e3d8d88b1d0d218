"""What waits in a copy of a store, was accepted in the store since, and was erased there as what it had become."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from beetle.contracts.refs import parse_ref
from beetle.named_tuple import NamedTuple
from beetle.store import candidates, erased_since, evidence
from beetle.store.engine.transaction import Reading
from beetle.store.held_records import HeldRecord

ACCEPTED = ("memory", "candidate_accepted")
ERASED = {("memory", "fact_deleted"): ("long_term", "record_id"), ("skill", "deleted"): ("procedural", "name")}
"""By topic and event: the plane of the record that went, and what of the subject names it."""
Record = tuple[str, str, Any]
"""A space, a plane and a name in it."""


class Candidate(NamedTuple):
    """A candidate as an event names it: by its id in the queue, or else by what its writer called it."""

    memory_space_id: str
    waiting_id: str
    called: tuple[str, str, str] = ("", "", "")


def records(store: Reading, copy: Reading, since: int) -> Iterator[HeldRecord]:
    """The candidates of the copy of which the store's log tells, behind its row `since`, that they were accepted, and
    that the fact or skill which they became was erased.
    """
    gone = _gone(store, since)
    for name in sorted({each.memory_space_id for each in gone}):
        space, now = evidence.find_space(copy, name), evidence.find_space(store, name)
        if space is None:
            continue
        for row in candidates.every(copy, space):
            names = {Candidate(name, row.waiting_id), Candidate(name, "", (row.candidate_id, row.target, row.kind))}
            if names & gone and candidates.named(store, now, row.waiting_id) is None:
                yield HeldRecord("candidate", row.candidate, space, name, row.candidate_id)


def _gone(store: Reading, since: int) -> set[Candidate]:
    """The candidates whose latest acceptance is of a record that was erased later."""
    became: dict[Candidate, tuple[int, Record]] = {}
    erased: dict[Record, int] = {}
    for seq, space, event, subject in erased_since.events(store, since, (ACCEPTED, *ERASED)):
        if event in ERASED:
            plane, field = ERASED[event]
            erased[space, plane, subject.get(field)] = seq
        elif (name := _candidate(space, subject)) and (ref := parse_ref(str(subject.get("ref")))):
            became[name] = seq, (space, ref.plane, ref.segments[0])
    return {candidate for candidate, (seq, record) in became.items() if erased.get(record, 0) > seq}


def _candidate(space: str, subject: dict[str, Any]) -> Candidate | None:
    """Which candidate was accepted, if it had waited and has a name."""
    if "waited_for" not in subject:
        return None
    if waiting_id := subject.get("waiting_id"):
        return Candidate(space, str(waiting_id))
    called = tuple(str(subject.get(each, "")) for each in ("candidate_id", "target", "kind"))
    return Candidate(space, "", (called[0], called[1], called[2])) if called[0] else None
