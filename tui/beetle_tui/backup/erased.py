"""Until when copies of the store hold what was erased from it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from beetle.contracts.memory import MemoryInspectionReport, RuntimeState
from beetle_tui.link import Link
from beetle_tui.prose import Block, section
from beetle_tui.split import remark, value
from beetle_tui.text import moment


async def inspected(link: Link) -> MemoryInspectionReport:
    """What the store says of itself, and in its runtime state of the copies of it.

    Raises:
        BeetleError: it is refused, or cannot be read.
    """
    return cast(MemoryInspectionReport, await link.call("memory.inspect"))


def erased_blocks(state: RuntimeState | None) -> Iterator[Block]:
    """Where erased content may be."""
    if state is None:
        return
    yield from section("What was erased")
    if state.replica_horizon is None:
        yield from remark("No snapshot and no replaced store holds any of it.")
    else:
        yield value("May be in", f"copies made up to {moment(state.replica_horizon)}")
        until = state.copies_until
        yield value("Until", "until they are pruned" if until is None else f"{moment(until)}, by the schedule")
    if state.replicated_until is not None:
        yield value("In replica", f"until {moment(state.replicated_until)}")
        yield from remark("`beetle replica forget` removes it from the replica now.")
