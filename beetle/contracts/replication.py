"""replication.status: how far the copy of the store is that the sidecar keeps elsewhere."""

from __future__ import annotations

from typing import Literal, get_args

from beetle.contracts.common import Report
from beetle.contracts.fields import Open, OperatorOnly, Request
from beetle.contracts.operation import REPLICA, Operation

ReplicaState = Literal[
    "off", "refused", "starting", "replicating", "behind", "stalled", "waiting", "suspended", "paused", "stopped"
]
"""`off`: no replica is configured. `refused`: one is, and cannot be kept here, see `problem`. `starting`: the sidecar
runs and has not reached the target yet. `replicating`: what is written arrives. `behind`: it has not for a while.
`stalled`: the sidecar did not answer and is being replaced. `waiting`: it ended, and is started again after a while.
`suspended`: too much was waiting on this disk for a target that does not take it; it is tried again from time to time.
`paused`: beetle itself holds it for a moment, for an erasure or a restore. `stopped`: the daemon ends."""
REPLICA_STATES: tuple[ReplicaState, ...] = get_args(ReplicaState)
ReplicaProblem = Literal[
    "embedded", "profile", "backend", "read_only", "program", "secret", "place", "exited", "not_answering", "target",
    "staging_full", "disk_full",
]  # fmt: skip
"""`embedded`: no daemon has the store. `profile`: it leaves replication out, for want of memory. `backend`: the store
has no write-ahead log. `read_only`: it cannot be written. `program`: litestream is missing or another than the pinned
one. `secret`: a secret is missing or readable by others. `place`: the folder of its control socket cannot be made.
`exited`, `not_answering`: the sidecar ended, or hangs. `target`: it does not take what is sent. `staging_full`:
`local_bytes` is used up. `disk_full`: this disk is."""


class ReplicationStatusRequest(Request, frozen=True, kw_only=True):
    """Tell how far the replica is, and what keeps it from being further."""


class ReplicationStatusReport(Report, frozen=True, kw_only=True):
    """The replica now. Figures are None where they are not known: with no sidecar, or before its first answer.

    `lag_s` is how long ago the store was last known to be in the replica whole, 0 when nothing waits; `lag_bytes` is
    what waits in the write-ahead log and in `staged_bytes`, the files on this disk that were not sent; and
    `lag_transactions` counts litestream's, each of which holds all commits between two looks. `txid` is its last one,
    `replicated_txid` the last one at the target, `last_synced_at` when that was last seen to grow or to be the last.
    `writer_waits` counts how often a commit waited for the sidecar to follow, `writer_waited_s` for how long in all.
    `detail` and `hint` tell more of `problem`. `restarts` counts starts of the sidecar after the first. Snapshots in
    the replica are kept for `retention_h` hours.
    """

    state: Open[ReplicaState]
    since: Open[str | None] = None
    problem: Open[ReplicaProblem | None] = None
    detail: OperatorOnly[str | None] = None
    hint: OperatorOnly[str | None] = None
    target_kind: Open[str | None] = None
    target: OperatorOnly[str | None] = None
    lag_s: Open[float | None] = None
    lag_bytes: Open[int | None] = None
    lag_transactions: Open[int | None] = None
    txid: Open[int | None] = None
    replicated_txid: Open[int | None] = None
    last_synced_at: Open[str | None] = None
    restarts: Open[int] = 0
    wal_bytes: OperatorOnly[int | None] = None
    staged_bytes: OperatorOnly[int | None] = None
    writer_waits: OperatorOnly[int | None] = None
    writer_waited_s: OperatorOnly[float | None] = None
    pid: OperatorOnly[int | None] = None
    retention_h: Open[int | None] = None


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "replication.status", "replication_status", ReplicationStatusRequest, ReplicationStatusReport, "read",
        "replication",
        REPLICA, ("replica", "status"),
        "tell how far the replica is, and what keeps it from being further",
        shell=("beetle replica status",),
    ),
)  # fmt: skip
