"""harness.run: what the composition root hands in runs it, in stores of its own."""

from __future__ import annotations

from beetle.contracts.errors import Forbidden, ServicesUnavailable
from beetle.contracts.harness import HarnessRunReport, HarnessRunRequest
from beetle.runtime.handling import Apply, Context
from beetle.store.writer import WriteTransaction


def run(context: Context, request: HarnessRunRequest) -> Apply:
    """Run it before the transaction, which only logs that it was run: the writer waits for nothing."""
    if request.folder is not None and not context.caller.is_operator:
        raise Forbidden(
            reason=f"{context.caller.name} may not have the daemon read a folder",
            hint="leave folder out: a source checkout's own fixtures are run",
            path="$.args.folder",
        )
    harness = context.shared.surroundings.harness
    if harness is None:
        raise ServicesUnavailable(
            reason="this runtime was opened without a harness",
            hint="`beetle harness run` opens one that has it",
        )
    report = harness(request)

    def apply(tx: WriteTransaction) -> HarnessRunReport:
        counts = {"fixtures": len(report.fixtures), "benchmarks": len(report.benchmarks)}
        tx.log(context.event("memory", "harness_run", suite=request.suite, passed=report.passed, **counts))
        return report

    return apply
