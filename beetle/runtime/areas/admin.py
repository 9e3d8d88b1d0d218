"""admin.stats and admin.compact."""

from __future__ import annotations

from collections.abc import Mapping

from beetle.contracts.admin import (
    AdminCompactReport,
    AdminCompactRequest,
    AdminStatsReport,
    AdminStatsRequest,
    FamilyStats,
)
from beetle.contracts.codec import from_plain
from beetle.contracts.lifecycle import StepName
from beetle.runtime.areas import recovery
from beetle.runtime.pipeline.handlers import Handler, Plain, Read
from beetle.runtime.pipeline.invocation import Invocation, log_apart
from beetle.store import admin
from beetle.store.engine.transaction import Reading


def stats(invocation: Invocation, request: AdminStatsRequest, tx: Reading) -> AdminStatsReport:
    """The store's rows and bytes by kind, for an operator; others are told that it is not theirs."""
    del request
    if not invocation.caller.is_operator:
        return AdminStatsReport(path=None, bytes=None, wal_bytes=None, free_bytes=None, families=None)
    store = invocation.shared.store
    size = admin.file_size(tx)
    return AdminStatsReport(
        path=store.settings.path,
        bytes=size.bytes,
        wal_bytes=store.wal_bytes(),
        free_bytes=size.free,
        families=tuple(from_plain(each._asdict(), FamilyStats) for each in admin.families(tx)),
    )


def compact(invocation: Invocation, request: AdminCompactRequest) -> AdminCompactReport:
    """Steps of a recovery: the log is folded in, the index merged, the file written anew where that pays."""
    names: list[StepName] = ["checkpoint", "optimize", "vacuum"]
    if request.cf not in (None, "events"):
        names.remove("optimize")
    with invocation.shared.lifecycle.alone(invocation.operation.name):
        before = _bytes(invocation)
        steps = recovery.run(invocation, names)
        after = _bytes(invocation)
    done = sum(each.outcome == "done" for each in steps)
    lifecycle = log_apart(invocation, invocation.own_event("lifecycle", "compacted", done=done))
    return AdminCompactReport(steps=steps, bytes_before=before, bytes_after=after, lifecycle=lifecycle)


def _bytes(invocation: Invocation) -> int:
    with invocation.reading() as tx:
        return admin.file_size(tx).bytes


HANDLERS: Mapping[str, Handler] = {"admin.stats": Read(stats), "admin.compact": Plain(compact)}
