"""Every plane of memory, in the order in which recall names them."""

from __future__ import annotations

from beetle.contracts.memory import PlaneCounts
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.planes import (
    agent_skill,
    chunks,
    evidence,
    long_term,
    private,
    procedural,
    skill_registry,
    thoughts,
    toc,
    tool_experience,
)
from beetle.runtime.planes.plane import Named, Plane, Projected
from beetle.store.engine.transaction import Reading
from beetle.store.event_places import Matter
from beetle.store.indexed import Tables

PLANES: tuple[Plane, ...] = (
    evidence.PLANE,
    procedural.PLANE,
    long_term.PLANE,
    thoughts.PLANE,
    chunks.PLANE,
    agent_skill.PLANE,
    tool_experience.PLANE,
    skill_registry.PLANE,
    private.PLANE,
    toc.PLANE,
)


def indexed_tables() -> Tables:
    """All that the recall index holds."""
    return tuple(each for plane in PLANES if plane.indexed is not None for each in plane.indexed.tables)


def named_by(name: str) -> Named | None:
    """The records that refs with this name mean; None where this build keeps nothing of the kind."""
    return next((each.named for each in PLANES if each.named is not None and name in each.named.planes), None)


def projected() -> dict[str, Projected]:
    """The sections of the memory block in their order, by their planes."""
    found = {plane.name: plane.projected for plane in PLANES if plane.projected is not None}
    return dict(sorted(found.items(), key=lambda each: each[1].place))


def matter_of(tx: Reading, space: int, derived: str) -> Matter:
    """Whose matter a derived ref is: that of the record that it names."""
    named = named_by(derived.partition(":")[0])
    return "shared" if named is None else named.matter(tx, space, derived)


def is_known(invocation: Invocation, tx: Reading, space: int, derived: str) -> bool:
    """Whether the caller may know of a derived ref: of one of a private record it is told nothing."""
    matter = matter_of(tx, space, derived)
    return matter == "shared" or (invocation.sees_private if matter == "private" else invocation.reads_private)


def counts(invocation: Invocation, tx: Reading, space: int | None) -> PlaneCounts:
    """What a space holds, as far as the caller may know; zeros when nothing was ever written to it."""
    found: dict[str, int] = {}
    sight = invocation.sight
    for plane in PLANES:
        if plane.counts is not None:
            found |= plane.counts(tx, space, sight)
    return PlaneCounts(**found)
