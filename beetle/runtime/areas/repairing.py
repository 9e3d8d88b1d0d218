"""store.repair: a new store out of what can be read of the damaged one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from beetle.contracts.control import VerifyFinding
from beetle.contracts.errors import InvalidRequest
from beetle.contracts.repairing import SalvagedTable, StoreRepairReport, StoreRepairRequest
from beetle.runtime.pipeline.handlers import Handler, Plain
from beetle.runtime.pipeline.invocation import Invocation, log_apart
from beetle.store import repairs
from beetle.store.engine import exchange
from beetle.store.engine.progress import Progress

if TYPE_CHECKING:
    from beetle.store.salvage import Salvaged
    from beetle.store.verify import Finding

FINDINGS_SHOWN = 100
READING, VERIFYING = "salvage", "verify"
INDEX: Final = "recall_index"


def repair(invocation: Invocation, request: StoreRepairRequest) -> StoreRepairReport:
    """Read the file, which nobody writes meanwhile; put the new one in its place, fill its index, and verify it."""
    # Seldom asked for: a daemon that only verifies holds none of this in memory.
    from beetle.runtime.areas import recovery, verification
    from beetle.runtime.areas.snapshots import store_snapshots
    from beetle.store.salvage import need_room, new_id, salvage

    shared = invocation.shared
    store = shared.store
    path = store.settings.path
    if store.settings.backend == "in-memory" or store.settings.immutable:
        reason = "the store has no file that could be replaced"
        raise InvalidRequest(reason=reason, hint="open a store on a disk that can be written")
    invocation.progress.plan((READING,) if request.dry_run else (READING, INDEX, VERIFYING))
    file_id = new_id()
    kinds = (exchange.UNPACKING, exchange.READY, exchange.BEFORE)
    making, ready, kept = (exchange.named(path, kind, file_id) for kind in kinds)
    with shared.lifecycle.alone(invocation.operation.name):
        invocation.progress.step(READING)
        try:
            with store.held():
                need_room(path)
                done = salvage(path, making, invocation.now, shared.version)
                if request.dry_run:
                    return report_of(done, None, None)
                exchange.make_ready(making, ready)
                store.exchange(ready, kept)
        except OSError as error:
            raise exchange.unwritable(path, error) from error
        finally:
            for left in (making, ready):
                store_snapshots.remove(store, left)
        # Their own steps are parts of one of this.
        inside = invocation._replace(progress=Progress(lambda step: None))
        invocation.progress.step(INDEX)
        recovery.run(inside, [INDEX])
        invocation.progress.step(VERIFYING)
        with store.read() as tx:
            findings = verification.run(inside, tx, pages=True)[1]
        row = invocation.own_event("lifecycle", "repaired", saved=done.saved, lost=done.lost, whole=done.whole)
        # They stay gone, and later verifications tell them apart from what is new.
        lifecycle = log_apart(invocation, row, lambda tx: repairs.keep(tx, findings))
    return report_of(done, kept, findings, lifecycle=lifecycle)


def report_of(
    done: Salvaged, kept_as: str | None, findings: Sequence[Finding | VerifyFinding] | None, **more: Any
) -> StoreRepairReport:
    """What a salvage has saved. `findings` are the new store's, None of a dry run."""
    told: Sequence[Finding | VerifyFinding] = findings[:FINDINGS_SHOWN] if findings is not None else ()
    return StoreRepairReport(
        dry_run=findings is None,
        changed=findings is not None,
        whole=done.whole,
        clean=None if findings is None else not findings,
        saved=done.saved,
        lost=done.lost,
        pages=done.pages,
        damaged_pages=done.damaged_pages,
        unclear_pages=done.unclear,
        tables=tuple(
            SalvagedTable(table=each.table, saved=each.saved, lost=each.lost, incomplete=each.torn)
            for each in done.tables
            if each.lost or each.torn
        ),
        notes=done.notes,
        findings=tuple(VerifyFinding(check=each.check, subject=each.subject, problem=each.problem) for each in told),
        kept_as=kept_as,
        **more,
    )


HANDLERS: Mapping[str, Handler] = {"store.repair": Plain(repair)}
