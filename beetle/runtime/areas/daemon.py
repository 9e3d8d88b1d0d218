"""hello and memory.close: a daemon has them from its start, so that they are answered whatever becomes of it."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping

from beetle.contracts.codec import replace
from beetle.contracts.common import Lifecycle
from beetle.contracts.control import HelloReport, HelloRequest, OperationSummary
from beetle.contracts.envelope import PROTOCOL
from beetle.contracts.errors import BeetleError
from beetle.contracts.lifecycle import MemoryCloseReport, MemoryCloseRequest
from beetle.contracts.operations import OPERATIONS
from beetle.runtime.pipeline.handlers import Handler, Plain
from beetle.runtime.pipeline.invocation import Invocation, log_apart
from beetle.store import erasures
from beetle.store.engine.transaction import Reading
from beetle.store.event_log import Event

LIMITS = (
    "frame_bytes", "nesting", "query_chars", "message_content_bytes", "skill_text_bytes", "commit_turns",
    "batch_requests", "recall_limit", "page_limit", "transcript_page_turns", "projection_chars", "host_refs_per_turn",
    "key_bytes", "connections", "first_frame_seconds", "begun_frame_seconds", "default_deadline_ms",
)  # fmt: skip
"""Budgets that a client can meet."""

log = logging.getLogger("beetle.lifecycle")

CLOSE_WAIT_S = 3.0
"""Longest wait of a close for readers that hold the write-ahead log."""


def hello(invocation: Invocation, request: HelloRequest) -> HelloReport:
    """The server, the caller and the available operations."""
    del request
    shared = invocation.shared
    budgets = shared.profile.budgets
    return HelloReport(
        server="beetle",
        version=shared.version,
        protocol=PROTOCOL,
        profile=shared.profile.name,
        principal=invocation.caller.name,
        limits={name: getattr(budgets, name) for name in LIMITS},
        operations=tuple(
            OperationSummary(name=row.name, effect=row.effect, visible=shared.catalog.visible(row, invocation.caller))
            for row in OPERATIONS
        ),
        pid=os.getpid(),
        uptime_s=shared.uptime_s,
    )


def close(invocation: Invocation, request: MemoryCloseRequest) -> MemoryCloseReport:
    """Refuse what is new, finish what waits, empty the write-ahead log; then the process ends, if it said how."""
    shared = invocation.shared
    lifecycle, store = shared.lifecycle, shared.store
    if not lifecycle.begin_close():
        return _again(invocation, request)
    drained = store.writer.queued
    said = logged(invocation, invocation.own_event("lifecycle", "closed", queued=drained))
    shared.heads.sign()
    whole = _cut_log(invocation)
    if whole:
        store.writer.finish_erasures(CLOSE_WAIT_S)
    report = MemoryCloseReport(
        reason=request.reason,
        already=False,
        drained=drained,
        checkpointed=whole,
        wal_bytes=store.wal_bytes(),
        pending_erasures=_pending_erasures(invocation),
        event_log_rows=store.head.seq,
        lifecycle=said,
    )
    lifecycle.closed_with = report
    log.info("closing, as %s asked", invocation.caller.name, extra={"event": "closing"})
    lifecycle.end()
    return report


def _again(invocation: Invocation, request: MemoryCloseRequest) -> MemoryCloseReport:
    first, store = invocation.shared.lifecycle.closed_with, invocation.shared.store
    if first is not None:
        return replace(first, already=True, lifecycle=None)
    return MemoryCloseReport(
        reason=request.reason,
        already=True,
        drained=0,
        checkpointed=False,
        wal_bytes=store.wal_bytes(),
        pending_erasures=_pending_erasures(invocation),
        event_log_rows=store.head.seq,
    )


def _pending_erasures(invocation: Invocation) -> int:
    """Erasures whose bytes may be in the write-ahead log, or that are not finished."""
    with invocation.shared.store.read() as tx:
        return max(invocation.shared.store.writer.erasures, erasures.count(tx))


def _cut_log(invocation: Invocation) -> bool:
    try:
        return invocation.shared.store.cut_log(CLOSE_WAIT_S)
    except BeetleError as error:
        log.warning("the write-ahead log stays as it is: %s", error.key, extra={"event": "log_not_cut"})
        return False


def logged(invocation: Invocation, event: Event) -> Lifecycle | None:
    """What happened goes on although it cannot be logged: the disk is full, or read-only."""
    try:
        return log_apart(invocation, event)
    except BeetleError as error:
        log.warning("%s could not be logged: %s", event.event, error.key, extra={"event": "event_not_logged"})
        return None


def _closed_again(
    invocation: Invocation, request: MemoryCloseRequest, tx: Reading, first: MemoryCloseReport
) -> MemoryCloseReport:
    del invocation, tx
    return replace(first, reason=request.reason)


HANDLERS: Mapping[str, Handler] = {
    "hello": Plain(hello),
    "memory.close": Plain(close, _closed_again),
}
