"""store.verify, memory.recover, harness.run: the whole store looked through, mended, and fixtures run beside it."""

from __future__ import annotations

from collections.abc import Mapping

from beetle.contracts.control import StoreVerifyReport, StoreVerifyRequest, VerifyFinding
from beetle.contracts.errors import Forbidden, ServicesUnavailable
from beetle.contracts.harness import HarnessRunReport, HarnessRunRequest
from beetle.contracts.lifecycle import MemoryRecoverReport, MemoryRecoverRequest
from beetle.runtime.areas import event_log, receipts
from beetle.runtime.areas.daemon import logged
from beetle.runtime.pipeline.handlers import Apply, Handler, Plain, Read, Write
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.planes.thought_rows import NAME as THOUGHTS
from beetle.store.engine.transaction import Reading
from beetle.store.engine.write_transaction import WriteTransaction


def verify_store(invocation: Invocation, request: StoreVerifyRequest, tx: Reading) -> StoreVerifyReport:
    """Walk chains, cross-checks, index and, unless asked not to, every page; check a receipt where one is given."""
    # Seldom asked for, where other operations of this prefix are not: they need none of the checks.
    from beetle.runtime.areas import verification
    from beetle.runtime.areas.chains import verifying
    from beetle.store import repairs

    if invocation.caller.is_operator:
        checked, findings = verification.run(invocation, tx, pages=request.pages)
        if not any(each.check == THOUGHTS for each in findings):
            verifying.remember_all(invocation, tx)
    else:
        checked, findings = verification.run_space(invocation, tx)
    known = repairs.known(tx, findings)
    return StoreVerifyReport(
        clean=not findings,
        checked=checked,
        findings=tuple(
            VerifyFinding(check=each.check, subject=each.subject, problem=each.problem, known=is_known)
            for each, is_known in zip(findings, known, strict=True)
        ),
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
        said = logged(invocation, row)
    recovered = not failed and not any(each.left for each in steps)
    return MemoryRecoverReport(trigger=request.trigger, mode=mode, recovered=recovered, steps=steps, lifecycle=said)


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
    "store.verify": Read(verify_store),
}
