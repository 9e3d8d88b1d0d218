"""Finishing, when a store is opened, what erasures and long steps had left when it was open last."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from beetle.contracts.errors import BeetleError
from beetle.runtime.areas import receipts
from beetle.runtime.areas.erasure import forget, slices
from beetle.runtime.areas.erasure.tally import Tally
from beetle.runtime.areas.erasure.terms import terms_of
from beetle.runtime.areas.evidence import lifecycle
from beetle.runtime.host.devices import is_still
from beetle.runtime.pipeline.crowd import Crowd
from beetle.runtime.pipeline.invocation import Facilities, Invocation, stamp
from beetle.runtime.pipeline.staged_write import packed, unpacked
from beetle.store import erasures, idempotency, seal_checks
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.erasures import OpenErasure

REPORTS: Mapping[str, Callable[[Invocation, WriteTransaction, Any, Tally, int | None], Any]] = {
    "memory.forget": forget.ended,
    "transcript.lifecycle": lifecycle.ended,
}
"""By operation: the report of all that was done, made of the one that said what was begun. Is given the number of the
event that tells; None where nothing was done."""


def finish_all(shared: Facilities, crowd: Crowd) -> list[str]:
    """Do what erasures had left when this store was open last; findings about those that cannot be finished."""
    with shared.store.read() as tx:
        left = erasures.unfinished(tx)
    return [_finish(shared, crowd, record) for record in left]


def _finish(shared: Facilities, crowd: Crowd, record: OpenErasure) -> str:
    """Do what an erasure has left, on nobody's call; what became of it."""
    named = "an erasure or a step of transcripts"
    try:
        named = terms_of(record).named
        invocation = slices.on_behalf(shared, crowd, record)
        receipts.ready(invocation)
        done = slices.run(invocation, record, 0)
        if terms_of(record).replaced:
            slices.call_off(invocation, record, done)
        else:
            shared.store.write(partial(_finished, invocation, record, done), grows=False, by=record.principal)
    except BeetleError as error:
        where = f"row {record.erasure} of erasure"
        return f"{named} that was begun could not be finished ({where}): {error.key}; {error.message}"
    return f"{named} that was begun is finished now"


def _finished(invocation: Invocation, record: OpenErasure, done: Tally, tx: WriteTransaction) -> None:
    before, terms = len(tx.logged), terms_of(record)
    first = erasures.report_of(tx, record.erasure) if is_still(tx, invocation.caller) else None
    if first is not None and not _is_sound(tx, record, first[0]):
        # Another program has changed what was done: nothing of it is signed, or answered.
        erasures.drop_report(tx, record.erasure)
        first = None
    total = slices.close(invocation, tx, record, done)
    impact, seq = total.impact, None
    told = {"turns": impact.affected, "messages": impact.count_messages, "changed": impact.changed, **total.counts}
    if any(told.values()):
        seq = tx.log(invocation.event("transcript", f"{terms.event}_finished", terms.matter, **told))
    ended = REPORTS.get(record.operation)
    if first is None or ended is None or terms.key is None or terms.request is None:
        return
    asked, told = unpacked(first[1], invocation.operation.report)
    report = stamp(invocation, ended(invocation, tx, told, total, seq), tx, before)
    again = idempotency.FirstReport(bytes.fromhex(terms.request), packed(asked, report))
    idempotency.restate(tx, record.principal, record.memory_space_id, terms.key, again)


def _is_sound(tx: WriteTransaction, record: OpenErasure, first: int) -> bool:
    """Whether what is written down of an erasure, and what its key was answered in a row, is as the runtime wrote it,
    as far as anybody can tell."""
    if tx.sealer is None:
        return True
    row = erasures.row_of(tx, record.erasure)
    sound = seal_checks.row_problem(tx, tx.sealer, "erasure", row) is None
    return sound and idempotency.is_as_written(tx, tx.sealer, first)
