"""The runtime's own operations: hello, verify, recover, close, fixtures."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping

from beetle.contracts.codec import replace
from beetle.contracts.common import Lifecycle
from beetle.contracts.control import (
    HelloReport,
    HelloRequest,
    OperationSummary,
    StoreVerifyReport,
    StoreVerifyRequest,
    VerifyFinding,
)
from beetle.contracts.envelope import PROTOCOL
from beetle.contracts.errors import BeetleError, Forbidden, ServicesUnavailable
from beetle.contracts.harness import HarnessRunReport, HarnessRunRequest
from beetle.contracts.lifecycle import (
    MemoryCloseReport,
    MemoryCloseRequest,
    MemoryRecoverReport,
    MemoryRecoverRequest,
)
from beetle.contracts.operations import OPERATIONS
from beetle.runtime.areas import event_log, receipts
from beetle.runtime.pipeline.handlers import Apply, Handler, Plain, Read, Write
from beetle.runtime.pipeline.invocation import Invocation, log_apart
from beetle.runtime.planes.thought_rows import NAME as THOUGHTS
from beetle.store import erasures
from beetle.store.engine.transaction import Reading
from beetle.store.engine.write_transaction import WriteTransaction
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


def verify_store(invocation: Invocation, request: StoreVerifyRequest, tx: Reading) -> StoreVerifyReport:
    """Walk chains, cross-checks, index and, unless asked not to, every page; check a receipt where one is given."""
    # Seldom asked for: a daemon that only says hello holds none of the checks in memory.
    from beetle.runtime.areas import verification
    from beetle.runtime.areas.chains import verifying

    if invocation.caller.is_operator:
        checked, findings = verification.run(invocation, tx, pages=request.pages)
        if not any(each.check == THOUGHTS for each in findings):
            verifying.remember_all(invocation, tx)
    else:
        checked, findings = verification.run_space(invocation, tx)
    return StoreVerifyReport(
        clean=not findings,
        checked=checked,
        findings=tuple(VerifyFinding(check=f.check, subject=f.subject, problem=f.problem) for f in findings),
        event_log_head=event_log.log_state(invocation, tx).head,
        unsigned_events=verification.unsigned_events(invocation, tx) if invocation.caller.is_operator else None,
        receipt=None if request.receipt is None else receipts.check(invocation, tx, request.receipt),
    )


def recover(invocation: Invocation, request: MemoryRecoverRequest) -> MemoryRecoverReport:
    """Every step over the whole store; one event tells how many did something, and how many failed."""
    from beetle.runtime.areas import recovery

    lifecycle = invocation.shared.lifecycle
    with lifecycle.alone(invocation.operation.name), invocation.heavy_turn():
        receipts.ready(invocation)
        mode = lifecycle.mode_for(request)
        steps = recovery.run(invocation)
        failed = sum(each.outcome == "failed" for each in steps)
        done = sum(each.outcome == "done" for each in steps)
        row = invocation.own_event("lifecycle", "recovered", trigger=request.trigger, done=done, failed=failed)
        said = _logged(invocation, row)
    recovered = not failed and not any(each.left for each in steps)
    return MemoryRecoverReport(trigger=request.trigger, mode=mode, recovered=recovered, steps=steps, lifecycle=said)


def close(invocation: Invocation, request: MemoryCloseRequest) -> MemoryCloseReport:
    """Refuse what is new, finish what waits, empty the write-ahead log; then the process ends, if it said how."""
    shared = invocation.shared
    lifecycle, store = shared.lifecycle, shared.store
    if not lifecycle.begin_close():
        return _again(invocation, request)
    drained = store.writer.queued
    said = _logged(invocation, invocation.own_event("lifecycle", "closed", queued=drained))
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


def _logged(invocation: Invocation, event: Event) -> Lifecycle | None:
    """What happened goes on although it cannot be logged: the disk is full, or read-only."""
    try:
        return log_apart(invocation, event)
    except BeetleError as error:
        log.warning("%s could not be logged: %s", event.event, error.key, extra={"event": "event_not_logged"})
        return None


def run_harness(invocation: Invocation, request: HarnessRunRequest) -> Apply:
    """Run it before the transaction, which only logs that it was run: the writer waits for nothing."""
    if request.folder is not None and not invocation.caller.is_operator:
        raise Forbidden(
            reason=f"{invocation.caller.name} may not have the daemon read a folder",
            hint="leave folder out: a source checkout's own fixtures are run",
            path="$.args.folder",
        )
    harness = invocation.shared.dependencies.harness
    if harness is None:
        raise ServicesUnavailable(
            reason="this runtime was opened without a harness",
            hint="`beetle harness run` opens one that has it",
        )
    report = harness(request)

    def apply(tx: WriteTransaction) -> HarnessRunReport:
        counts = {"fixtures": len(report.fixtures), "benchmarks": len(report.benchmarks)}
        tx.log(invocation.event("memory", "harness_run", suite=request.suite, passed=report.passed, **counts))
        return report

    return apply


HANDLERS: Mapping[str, Handler] = {
    "harness.run": Write(run_harness),
    "memory.recover": Plain(recover),
    "memory.close": Plain(close),
    "store.verify": Read(verify_store),
    "hello": Plain(hello),
}
