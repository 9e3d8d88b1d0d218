"""Recovery of the index by time, and of the keys by which captured turns are known."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from beetle.runtime.areas.capture import restoring
from beetle.runtime.areas.capture.turns import ATTR
from beetle.runtime.pipeline.invocation import Invocation
from beetle.store import captures, time_repair
from beetle.store.engine.transaction import Reading
from beetle.store.engine.write_transaction import WriteTransaction

LOOK = 1000
"""Rows that are looked at in one read or write."""


def index_by_time(invocation: Invocation, look: Callable[[], None]) -> int:
    """Take wrong rows out of the index by time and put missing ones in; how many. `look` is called between pieces."""
    store = invocation.shared.store
    mended, after = 0, time_repair.BEFORE_ALL
    while True:
        look()
        with store.read() as tx:
            rows = time_repair.rows_behind(tx, after, LOOK)
        wrong = [each for each in rows if each.wrong]

        def take_out(tx: WriteTransaction, wrong: list[time_repair.EventRow] = wrong) -> None:
            for each in wrong:
                time_repair.drop(tx, each)

        if wrong:
            store.write(take_out, grows=False)
        mended += len(wrong)
        if len(rows) < LOOK:
            break
        after = rows[-1]
    with store.read() as tx:
        last = time_repair.last_message(tx)
    for first, until in _pages(invocation, time_repair.messages, look):
        invocation.progress.at(first, last)
        add = partial(time_repair.add_missing, first=first, last=until)
        mended += store.write(add, grows=False)
    return mended


def _pages(
    invocation: Invocation, keys_behind: Callable[[Reading, int, int], list[int]], look: Callable[[], None]
) -> Iterator[tuple[int, int]]:
    """The first and the last key of each page of a table."""
    after = 0
    while True:
        look()
        with invocation.shared.store.read() as tx:
            keys = keys_behind(tx, after, LOOK)
        if not keys:
            return
        after = keys[-1]
        yield keys[0], after


def captured_turns(invocation: Invocation, look: Callable[[], None]) -> int:
    """Take the keys of captured turns again, as the turns tell them; how many. Counts of repetitions begin anew."""
    store = invocation.shared.store
    mended = 0
    for first, last in _pages(invocation, time_repair.turns, look):
        with store.read() as tx:
            found = time_repair.uncaptured(tx, ATTR, first, last)

        def take(tx: WriteTransaction, found: list[time_repair.Uncaptured] = found) -> int:
            return sum(_take(tx, each) for each in found)

        if found:
            mended += store.write(take, grows=False)
    return mended


def _take(tx: WriteTransaction, each: time_repair.Uncaptured) -> bool:
    told = restoring.delivery_of(each.told)
    if told is None or captures.is_taken(tx, each.space, told.host_session_id, told.host_turn_index):
        return False
    restoring.take(tx, each.space, each.turn, told, restoring.Said(each.role, each.content, each.at))
    return True
