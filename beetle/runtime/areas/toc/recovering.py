"""Recovery of the table of contents: what does not follow from the events is made anew, and nothing else."""

from __future__ import annotations

from collections.abc import Callable

from beetle.domain.toc.periods import FIRST_DAY
from beetle.runtime.areas.toc import building
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.planes.toc import problems_of
from beetle.store import time_repair, toc
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.toc import Waiting


def table_of_contents(invocation: Invocation, look: Callable[[], None]) -> int:
    """Make anew the days whose segments are wrong, segments without grips and empty periods; how many of them."""
    store = invocation.shared.store
    with invocation.reading(heavy=True) as tx:
        days = toc.all_days(tx, FIRST_DAY)
    wrong: list[Waiting] = []
    for number, each in enumerate(days):
        look()
        invocation.progress.at(number, len(days))
        with store.read() as tx:
            if not toc.waits(tx, *each) and any(problems_of(tx, each)):
                wrong.append(each)
    with invocation.reading(heavy=True) as tx:
        gripless = time_repair.gripless(tx)

    def mark(tx: WriteTransaction) -> None:
        for each in wrong:
            toc.put_waiting(tx, *each)
        for key in gripless:
            toc.make_stale(tx, key)

    if wrong or gripless:
        store.write(mark, grows=False)
        building.cut_waiting(invocation)
    empty = store.write(_drop_empty, grows=False)
    if wrong or gripless or empty:
        building.summarize_segments(invocation)
        building.roll_up(invocation)
    return len(wrong) + len(gripless) + empty


def _drop_empty(tx: WriteTransaction) -> int:
    """Take periods away that hold nothing; how many."""
    found = time_repair.empty_periods(tx)
    for key in found:
        stays = toc.drop_if_empty(tx, key)
        if stays is not None:
            toc.make_stale(tx, stays)
    return len(found)
