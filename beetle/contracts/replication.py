"""replication.status, restore and forget: the copy of the store that the sidecar keeps elsewhere."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from msgspec import Meta, field

from beetle.contracts.common import Report
from beetle.contracts.fields import Open, OperatorOnly, Request, Time
from beetle.contracts.operation import REPLICA, Operation

ReplicaState = Literal[
    "off", "refused", "starting", "replicating", "behind", "stalled", "waiting", "suspended", "paused", "stopped"
]
"""`off`: no replica is configured. `refused`: one is, and cannot be kept here, see `problem`. `starting`: the sidecar
runs and has not reached the target yet. `replicating`: what is written arrives. `behind`: it has not for a while,
or is not there any more. `stalled`: the sidecar did not answer and is being replaced. `waiting`: it ended, and is
started again after a while. `suspended`: too much was waiting on this disk for a target that does not take it; it is
tried again from time to time. `paused`: beetle itself holds it for a moment, for an erasure or a restore. `stopped`:
the daemon ends."""
REPLICA_STATES: tuple[ReplicaState, ...] = get_args(ReplicaState)
ReplicaProblem = Literal[
    "embedded", "profile", "backend", "read_only", "program", "secret", "place", "exited", "not_answering", "target",
    "staging_full", "disk_full",
]  # fmt: skip
"""`embedded`: no daemon has the store. `profile`: it leaves replication out, for want of memory. `backend`: the store
has no write-ahead log. `read_only`: it cannot be written. `program`: litestream is missing or another than the pinned
one. `secret`: a secret is missing or readable by others. `place`: the folder of its control socket cannot be made.
`exited`, `not_answering`: the sidecar ended, or hangs. `target`: it does not take or keep what is sent. `staging_full`:
`local_bytes` is used up. `disk_full`: this disk is."""


class ReplicationStatusRequest(Request, frozen=True, kw_only=True):
    """Show how far the replica has got, and what holds it up."""


class ReplicationStatusReport(Report, frozen=True, kw_only=True):
    """The replica now. Figures are None where they are not known: with no sidecar, or before its first answer.

    `lag_s` is how long ago the store was last known to be in the replica whole, 0 when nothing waits; `lag_bytes` is
    what waits in the write-ahead log and in `staged_bytes`, the files on this disk that were not sent; and
    `lag_transactions` counts litestream's, each of which holds all commits between two looks. `txid` is its last one,
    `replicated_txid` the last one that can be restored from the target, `last_synced_at` when that was last seen to
    grow or to be the last. `writer_waits` counts how often a commit waited for the sidecar to follow, `writer_waited_s`
    for how long in all.
    `earlier_targets` are the targets that something was sent to before: it stays there, with what was erased since.
    `detail` and `hint` explain `problem`. `restarts` counts starts of the sidecar after the first. Snapshots in
    the replica are kept for `retention_h` hours. What others write moves the figures, so only operators see them.
    """

    state: Open[ReplicaState]
    since: Open[str | None] = None
    problem: Open[ReplicaProblem | None] = None
    detail: OperatorOnly[str | None] = None
    hint: OperatorOnly[str | None] = None
    target_kind: Open[str | None] = None
    target: OperatorOnly[str | None] = None
    lag_s: OperatorOnly[float | None] = None
    lag_bytes: OperatorOnly[int | None] = None
    lag_transactions: OperatorOnly[int | None] = None
    txid: OperatorOnly[int | None] = None
    replicated_txid: OperatorOnly[int | None] = None
    last_synced_at: OperatorOnly[str | None] = None
    restarts: OperatorOnly[int | None] = None
    wal_bytes: OperatorOnly[int | None] = None
    staged_bytes: OperatorOnly[int | None] = None
    writer_waits: OperatorOnly[int | None] = None
    writer_waited_s: OperatorOnly[float | None] = None
    pid: OperatorOnly[int | None] = None
    earlier_targets: OperatorOnly[tuple[str, ...] | None] = None
    retention_h: Open[int | None] = None


class ReplicationRestoreRequest(Request, frozen=True, kw_only=True):
    """Replace the store with its state in the replica, now or at an earlier time; the replaced store is kept beside it.

    Everything is checked first, and a replica that is not whole changes nothing.
    """

    at: Annotated[Time, Meta(description="the last state at or before this time; left out, the newest one")] | None = (
        None
    )
    to: (
        Annotated[
            str,
            Meta(
                min_length=2,
                max_length=4000,
                description="write the state to this new file instead (absolute path); the store stays as it is",
            ),
        ]
        | None
    ) = None
    dry_run: Annotated[
        bool, Meta(description="check the replica and report what a restore would do; change nothing")
    ] = False
    other_store: Annotated[bool, Meta(description="allow a replica of another store or device")] = False
    accept_older: Annotated[
        bool, Meta(description="take the newest state although the replica had a newer one: it was put back")
    ] = False
    keep_erased: Annotated[
        bool, Meta(description="bring back what was erased since that time, instead of erasing it again")
    ] = False


class ReplicationRestoreReport(Report, frozen=True, kw_only=True):
    """`txid` is the sidecar's last transaction in the restored state; the replica holds states from `first` to `last`.
    `schema`, `store_id`, `counts`, `bytes` and `event_log_rows` are of the restored state. All else is as in
    `snapshot.restore`; `kept_as` and `to` are where the replaced store, or the state that was written, stands.
    """

    dry_run: Open[bool]
    changed: Open[bool]
    txid: Open[int]
    first: Open[str]
    last: Open[str]
    schema: Open[int]
    store_id: OperatorOnly[str | None] = None
    bytes: OperatorOnly[int | None]
    counts: OperatorOnly[dict[str, int] | None] = None
    event_log_rows: OperatorOnly[int | None]
    events_behind: Open[int]
    kept_as: OperatorOnly[str | None] = None
    to: OperatorOnly[str | None] = None
    migrations_applied: Open[tuple[str, ...]] = ()
    identity: Open[str] = "usable"
    devices_suspended: Open[int] = 0
    erased: Open[dict[str, int]] = field(default_factory=dict[str, int])
    kept_erased: Open[bool] = False
    erased_refs: OperatorOnly[tuple[str, ...] | None] = ()


class ReplicationForgetRequest(Request, frozen=True, kw_only=True):
    """Send the whole store to the replica anew and remove what was sent before, with all that was erased since.

    No earlier state can be restored from the replica afterwards.
    """

    earlier_target: (
        Annotated[
            str,
            Meta(
                min_length=2,
                max_length=2000,
                description="instead: the URL of an earlier target, whose files you have removed yourself; it is not "
                "reported any more",
            ),
        ]
        | None
    ) = None


class ReplicationForgetReport(Report, frozen=True, kw_only=True):
    """`removed_files` of `removed_bytes` went; the replica holds states from transaction `txid` on, in `files` files.
    `replicated_until` is None, unless something was erased while this was done.
    """

    removed_files: Open[int]
    removed_bytes: OperatorOnly[int | None]
    files: Open[int]
    txid: Open[int]
    ms: Open[float]
    replicated_until: Open[str | None] = None


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "replication.status", "replication_status", ReplicationStatusRequest, ReplicationStatusReport, "read",
        "replication",
        REPLICA, ("replica", "status"),
        "show how far the replica has got, and what holds it up",
        shell=("beetle replica status",),
    ),
    Operation(
        "replication.restore", "restore_replica", ReplicationRestoreRequest, ReplicationRestoreReport, "admin",
        "replication",
        REPLICA, ("replica", "restore"),
        "replace the store with its state in the replica, now or at an earlier time; the replaced store is kept beside "
        "it",
        batch=False, grows=False, deadline_ms=3_600_000,
        example={"at": "2024-05-01T10:00:00Z", "dry_run": True},
        shell=("beetle replica restore --dry-run", "beetle replica restore --at 2024-05-01T10:00:00Z"),
        progress=True,
        destructive=True, idempotent=False,
    ),
    Operation(
        "replication.forget", "forget_replica", ReplicationForgetRequest, ReplicationForgetReport, "admin",
        "replication",
        REPLICA, ("replica", "forget"),
        "send the whole store to the replica anew and remove what was sent before, with all that was erased since",
        batch=False, grows=False, deadline_ms=3_600_000,
        shell=("beetle replica forget",),
        progress=True,
        destructive=True, idempotent=False,
    ),
)  # fmt: skip
