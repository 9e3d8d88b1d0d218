"""The replica as others see it: the sidecar itself is the daemon's business."""

from __future__ import annotations

import time
from collections.abc import Mapping

from beetle.contracts.codec import format_us
from beetle.contracts.errors import Overloaded
from beetle.contracts.replication import (
    ReplicationForgetReport,
    ReplicationForgetRequest,
    ReplicationStatusReport,
    ReplicationStatusRequest,
)
from beetle.runtime.areas.replica_restore import restore
from beetle.runtime.pipeline.handlers import Handler, Plain
from beetle.runtime.pipeline.invocation import Invocation, log_apart
from beetle.store import replica_marks
from beetle.store.engine import erasing

ERASURE_WAIT_S = 60.0


def status(invocation: Invocation, request: ReplicationStatusRequest) -> ReplicationStatusReport:
    """What who keeps the replica tells of it."""
    del request
    return invocation.shared.replica.status()


def forget(invocation: Invocation, request: ReplicationForgetRequest) -> ReplicationForgetReport:
    """Have all removed that was sent before now. From the mark on it is done, by the next daemon if not by this one."""
    del request
    shared, began = invocation.shared, time.monotonic()
    keeper, store = shared.replica.keeper(), shared.store
    invocation.progress.plan(("erasures", "forget"))
    with shared.lifecycle.alone(invocation.operation.name):
        invocation.progress.step("erasures")
        if not store.writer.finish_erasures(ERASURE_WAIT_S):
            raise Overloaded(what="an erasure is pending", maximum="none meanwhile", retry_after_ms=1000)
        with store.read() as tx:
            known = erasing.kept_until(tx)
        store.write(lambda tx: replica_marks.begin(tx, known), grows=False, by=invocation.caller.name)
        invocation.progress.step("forget")
        done = keeper.forget(lambda: invocation.must_end or shared.lifecycle.stopping, invocation.progress.at)
        told = {"files": done.removed_files, "bytes": done.removed_bytes}
        lifecycle = log_apart(
            invocation, invocation.own_event("replication", "replica_forgotten", **told), replica_marks.done
        )
        with store.read() as tx:
            left = erasing.kept_until(tx)
    return ReplicationForgetReport(
        removed_files=done.removed_files,
        removed_bytes=done.removed_bytes,
        files=done.files,
        txid=done.txid,
        ms=round((time.monotonic() - began) * 1000, 3),
        replicated_until=None if left is None or left <= invocation.now else format_us(left),
        lifecycle=lifecycle,
    )


HANDLERS: Mapping[str, Handler] = {
    "replication.status": Plain(status),
    "replication.restore": Plain(restore),
    "replication.forget": Plain(forget),
}
