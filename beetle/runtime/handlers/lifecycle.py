"""memory.recover and memory.close."""

from __future__ import annotations

import logging

from beetle.contracts.codec import replace
from beetle.contracts.common import Lifecycle
from beetle.contracts.errors import BeetleError
from beetle.contracts.lifecycle import (
    MemoryCloseReport,
    MemoryCloseRequest,
    MemoryRecoverReport,
    MemoryRecoverRequest,
)
from beetle.runtime import receipts, recovery
from beetle.runtime.handling import Context, stamped
from beetle.store.event_log import Event
from beetle.store.writer import WriteTransaction

log = logging.getLogger("beetle.lifecycle")

CLOSE_WAIT_S = 3.0
"""Longest wait of a close for readers that hold the write-ahead log."""


def recover(context: Context, request: MemoryRecoverRequest) -> MemoryRecoverReport:
    """Every step over the whole store; one event tells how many did something, and how many failed."""
    lifecycle = context.shared.lifecycle
    with lifecycle.alone(context.operation.name):
        receipts.ready(context)
        mode = lifecycle.mode_for(request)
        steps = recovery.run(context)
        failed = sum(each.outcome == "failed" for each in steps)
        done = sum(each.outcome == "done" for each in steps)
        row = context.own_event("lifecycle", "recovered", trigger=request.trigger, done=done, failed=failed)
        said = _logged(context, row)
    recovered = not failed and not any(each.left for each in steps)
    return MemoryRecoverReport(trigger=request.trigger, mode=mode, recovered=recovered, steps=steps, lifecycle=said)


def close(context: Context, request: MemoryCloseRequest) -> MemoryCloseReport:
    """Refuse what is new, finish what waits, empty the write-ahead log; then the process ends, if it said how."""
    shared = context.shared
    lifecycle, store = shared.lifecycle, shared.store
    if not lifecycle.begin_close():
        return _again(context, request)
    drained = store.writer.queued
    said = _logged(context, context.own_event("lifecycle", "closed", queued=drained))
    whole = _cut_log(context)
    if whole:
        store.writer.finish_erasures(CLOSE_WAIT_S)
    report = MemoryCloseReport(
        reason=request.reason,
        already=False,
        drained=drained,
        checkpointed=whole,
        wal_bytes=store.wal_bytes(),
        pending_erasures=store.writer.erasures,
        event_log_rows=store.head.seq,
        lifecycle=said,
    )
    lifecycle.closed_with = report
    log.info("closing, as %s asked", context.caller.name)
    lifecycle.end()
    return report


def _again(context: Context, request: MemoryCloseRequest) -> MemoryCloseReport:
    first, store = context.shared.lifecycle.closed_with, context.shared.store
    if first is not None:
        return replace(first, already=True, lifecycle=None)
    return MemoryCloseReport(
        reason=request.reason,
        already=True,
        drained=0,
        checkpointed=False,
        wal_bytes=store.wal_bytes(),
        pending_erasures=store.writer.erasures,
        event_log_rows=store.head.seq,
    )


def _cut_log(context: Context) -> bool:
    try:
        return context.shared.store.cut_log(CLOSE_WAIT_S)
    except BeetleError as error:
        log.warning("the write-ahead log stays as it is: %s", error.key)
        return False


def _logged(context: Context, event: Event) -> Lifecycle | None:
    """What happened goes on although it cannot be logged: the disk is full, or read-only."""

    def write(tx: WriteTransaction) -> Lifecycle:
        return stamped(context, tx, tx.log(event))

    try:
        return context.shared.store.write(write, grows=False)
    except BeetleError as error:
        log.warning("%s could not be logged: %s", event.event, error.key)
        return None
