"""The replica as others see it: the sidecar itself is the daemon's business."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

import msgspec

from beetle.contracts.codec import format_us
from beetle.contracts.errors import Conflict, InvalidRequest, Overloaded
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
    """What who keeps the replica tells of it, and where earlier ones are."""
    del request
    return msgspec.structs.replace(invocation.shared.replica.status(), earlier_targets=_earlier(invocation))


def _earlier(invocation: Invocation) -> tuple[str, ...]:
    """The targets of which nothing is known but that something was sent there."""
    with invocation.reading() as tx:
        known = replica_marks.targets(tx)
    return tuple(each for each in known if each != invocation.shared.replica.url)


def forget(invocation: Invocation, request: ReplicationForgetRequest) -> ReplicationForgetReport:
    """Have all removed that was sent before now. From the mark on it is done, by the next daemon if not by this one."""
    if request.earlier_target is not None:
        return _leave(invocation, request.earlier_target)
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
        replicated_until=None if left is None else format_us(left),
        lifecycle=lifecycle,
    )


def _leave(invocation: Invocation, url: str) -> ReplicationForgetReport:
    """Tell no more of a target that somebody has emptied."""
    began = time.monotonic()
    earlier = _earlier(invocation)
    if url not in earlier:
        listed = f"earlier targets are {', '.join(earlier)}" if earlier else "there is no earlier target"
        hint = f"{listed}; without earlier_target, the replica that is kept now forgets"
        raise InvalidRequest(reason="nothing is known of that target", path="$.args.earlier_target", hint=hint)
    if (left := _left_in(url)) is not None:
        raise Conflict(reason=f"{left} is still there", hint="remove the files of the earlier replica first")
    told = {"files": 0, "bytes": 0}
    lifecycle = log_apart(
        invocation,
        invocation.own_event("replication", "replica_forgotten", **told),
        lambda tx: replica_marks.leave(tx, url),
    )
    return ReplicationForgetReport(
        removed_files=0, removed_bytes=0, files=0, txid=0, ms=round((time.monotonic() - began) * 1000, 3),
        lifecycle=lifecycle,
    )  # fmt: skip


def _left_in(url: str) -> str | None:
    """A file of a replica in a target that is a folder; None where there is none, or the target is elsewhere."""
    parts = urlsplit(url)
    if parts.scheme != "file":
        return None
    for folder, _, names in os.walk(unquote(parts.path)):
        for name in names:
            if name.endswith(".ltx"):
                return os.path.join(folder, name)
    return None


HANDLERS: Mapping[str, Handler] = {
    "replication.status": Plain(status),
    "replication.restore": Plain(restore),
    "replication.forget": Plain(forget),
}
