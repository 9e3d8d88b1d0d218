"""admin.rebuild_toc, and the scheduler's jobs of the table of contents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from beetle.contracts.errors import InvalidRequest
from beetle.contracts.toc import AdminRebuildTocReport, AdminRebuildTocRequest
from beetle.domain.toc.periods import FIRST_DAY, day_named
from beetle.runtime.areas.toc import building
from beetle.runtime.pipeline.handlers import Handler, Plain
from beetle.runtime.pipeline.invocation import Invocation, log_apart
from beetle.store import toc
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.toc import DAY_US, Waiting

DAYS_AT_ONCE = 500
MARKING, CUTTING, SUMMARIZING, ROLLING = "mark days", "cut segments", "summarize segments", "roll up"


def rebuild(invocation: Invocation, request: AdminRebuildTocRequest) -> AdminRebuildTocReport:
    """Make every node anew whose days are from the date on.

    Raises:
        InvalidRequest: the date is none.
    """
    first = FIRST_DAY if request.from_date is None else day_named(request.from_date)
    if first is None:
        raise InvalidRequest(
            reason=f"{request.from_date!r} is no date - at $.args.from_date",
            hint="give it as 2026-01-31",
            path="$.args.from_date",
        )
    with invocation.reading(heavy=True) as tx:
        days = toc.all_days(tx, first)
        before = toc.versions(tx)
    if request.dry_run:
        return AdminRebuildTocReport(dry_run=True, days=len(days), nodes=len(before), changed_nodes=0)
    invocation.progress.plan((MARKING, CUTTING, SUMMARIZING, ROLLING))
    _mark(invocation, days, first)
    invocation.progress.step(CUTTING, of=len(days))
    building.cut_waiting(invocation)
    invocation.progress.step(SUMMARIZING)
    building.summarize_segments(invocation)
    invocation.progress.step(ROLLING)
    building.roll_up(invocation)
    with invocation.reading(heavy=False) as tx:
        now = toc.versions(tx)
    changed = sum(before.get(each) != now.get(each) for each in before.keys() | now.keys())
    lifecycle = log_apart(
        invocation, invocation.own_event("lifecycle", "toc_rebuilt", days=len(days), changed_nodes=changed)
    )
    return AdminRebuildTocReport(
        dry_run=False, days=len(days), nodes=len(now), changed_nodes=changed, lifecycle=lifecycle
    )


def _mark(invocation: Invocation, days: Sequence[Waiting], first: int) -> None:
    invocation.progress.step(MARKING, of=len(days))
    for at in range(0, len(days), DAYS_AT_ONCE):
        invocation.check("more days are marked")

        def mark(tx: WriteTransaction, some: Sequence[Waiting] = days[at : at + DAYS_AT_ONCE]) -> None:
            for each in some:
                toc.put_waiting(tx, *each)

        invocation.shared.store.write(mark, grows=False, by=invocation.caller.name)
        invocation.progress.at(at)
    since = first * DAY_US // 1000
    invocation.shared.store.write(lambda tx: toc.make_all_stale(tx, since), grows=False, by=invocation.caller.name)


HANDLERS: Mapping[str, Handler] = {"admin.rebuild_toc": Plain(rebuild)}
