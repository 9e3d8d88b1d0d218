"""snapshot.create, list, verify, restore and prune: files of a whole store."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

from beetle.contracts.common import Cursor, PageLimit, Report
from beetle.contracts.fields import Content, Id, Label, Open, OperatorOnly, Piece, Request
from beetle.contracts.operation import SNAPSHOT, Operation

SnapshotFault = Literal[
    "unreadable", "header_broken", "other_version", "cut_short", "payload_changed", "too_large", "not_a_store",
    "newer_schema", "schema_altered", "pages_damaged", "chain_broken", "head_differs", "counts_differ",
    "wrong_signature", "unsigned", "other_store", "other_device", "former_device",
]  # fmt: skip
"""Why a snapshot is not to be trusted: its file cannot be read; its header is not what was written; another beetle made
it; bytes are missing; its payload is not what was written; it unpacks to more than it says; what comes out is no store;
this build cannot open it; its schema is not what its migrations make; SQLite finds a damaged page; the event log's
chain does not hold; the log ends elsewhere, or the planes hold other numbers, than the header says; its header is not
what was signed; nobody signed it; it is of another store; it was made under another device identity; under
one that this store had before."""

KeptBy = Literal["newest", "hourly", "daily", "weekly", "hand", "other_store"]
"""Why a snapshot is not removed by itself: it is one of the last that the job `snapshot` has made, or its newest of an
hour, a day or a week; somebody made it, who alone removes it; it is of another store."""

SnapshotId = Annotated[Id, Meta(description="the snapshot's id")]


class SnapshotInfo(Piece, frozen=True, kw_only=True):
    """One snapshot as its header describes it. `bytes` is its file, `store_bytes` the store that comes out of it.

    `counts` are rows of the whole store by plane; `event_log_head` is the hash of the event log's last row, its
    `event_log_rows`th. `own` says that it is of this very store. `device` is the fingerprint of the device that its
    header names as its signer, null when it is unsigned; `snapshot.verify` checks the signature. `kept_by` says why
    it is kept: empty for one that the next run of the job `snapshot` removes.
    """

    snapshot_id: Open[str]
    created_at: Open[str]
    own: Open[bool]
    device: Open[str | None] = None
    label: Content[str | None] = None
    profile: Open[str]
    backend: Open[str]
    version: Open[str]
    schema: Open[int]
    store_id: OperatorOnly[str | None] = None
    bytes: OperatorOnly[int | None]
    store_bytes: OperatorOnly[int | None]
    counts: OperatorOnly[dict[str, int] | None] = None
    event_log_rows: OperatorOnly[int | None]
    event_log_head: OperatorOnly[str | None]
    kept_by: Open[tuple[KeptBy, ...]] = ()


class SnapshotCreateRequest(Request, frozen=True, kw_only=True):
    """Create a snapshot of the whole store while it is in use, with every write acknowledged before it."""

    label: Annotated[Label, Meta(min_length=1, description="display name")] | None = None


class SnapshotCreateReport(Report, frozen=True, kw_only=True):
    """`restarts` counts how often the copy began again: because something was erased meanwhile or, without a
    write-ahead log, because of any write. `ms` is how long it took."""

    snapshot: Open[SnapshotInfo]
    restarts: Open[int]
    ms: Open[float]


class SnapshotListRequest(Request, frozen=True, kw_only=True):
    """List the snapshots of this store, newest first, and the stores that a restore replaced."""

    limit: PageLimit = 50
    cursor: Cursor | None = None


class BrokenSnapshot(Piece, frozen=True, kw_only=True):
    """A file that is no whole snapshot. `bytes` is its size."""

    snapshot_id: Open[str]
    fault: Open[SnapshotFault]
    bytes: OperatorOnly[int | None]


class ReplacedStore(Piece, frozen=True, kw_only=True):
    """A store that a restore has set aside, as it was then."""

    snapshot_id: Open[str]
    path: OperatorOnly[str | None]
    replaced_at: Open[str]
    bytes: OperatorOnly[int | None]


class SnapshotListReport(Report, frozen=True, kw_only=True):
    """`total` and `bytes` are of all snapshots. `broken` and `replaced` are on the first page alone. `keep` is the
    policy of the job `snapshot`: how many of the last ones, hours, days and weeks it keeps."""

    folder: OperatorOnly[str | None]
    snapshots: Open[tuple[SnapshotInfo, ...]]
    total: Open[int]
    bytes: OperatorOnly[int | None]
    keep: Open[dict[str, int]] = field(default_factory=dict[str, int])
    broken: Open[tuple[BrokenSnapshot, ...]] = ()
    replaced: Open[tuple[ReplacedStore, ...]] = ()
    has_more: Open[bool] = False
    next_cursor: Open[str | None] = None


class SnapshotVerifyRequest(Request, frozen=True, kw_only=True):
    """Unpack a snapshot and check its digests, pages, event log, counts and identity."""

    snapshot_id: SnapshotId


class SnapshotVerifyReport(Report, frozen=True, kw_only=True):
    """`valid` when there are no `reasons`; `checked` counts what was looked at. `snapshot` is its header, None where
    that cannot be read."""

    snapshot_id: Open[str]
    valid: Open[bool]
    reasons: Open[tuple[SnapshotFault, ...]]
    checked: OperatorOnly[dict[str, int] | None]
    snapshot: Open[SnapshotInfo | None] = None


class SnapshotRestoreRequest(Request, frozen=True, kw_only=True):
    """Replace the store with a snapshot; the replaced store is kept beside it with all later writes.

    Everything is checked first, and a snapshot that is not whole changes nothing.
    """

    snapshot_id: SnapshotId
    dry_run: Annotated[
        bool, Meta(description="check the snapshot and report what a restore would do; change nothing")
    ] = False
    other_store: Annotated[
        bool, Meta(description="allow a snapshot of another store or device, or an unsigned one")
    ] = False
    keep_erased: Annotated[
        bool, Meta(description="bring back what was erased since the snapshot was made, instead of erasing it again")
    ] = False


class SnapshotRestoreReport(Report, frozen=True, kw_only=True):
    """`events_behind` counts the rows of the event log that the store had and the snapshot has not. `kept_as` is the
    path of the replaced store. `identity` says whether the device identity fits what is open now.
    `devices_suspended` counts the devices that are active in the snapshot and suspended after the restore, since the
    replaced store does not have them, or has them suspended.

    `erased` counts what the snapshot holds and was erased from the store since, `erased_refs` names its turns, facts,
    skills and chunks. It is erased again before the snapshot takes the store's place, unless `keep_erased` was given,
    which `kept_erased` repeats. The event log goes on from where it was: receipts of that time stay valid."""

    snapshot: Open[SnapshotInfo]
    dry_run: Open[bool]
    changed: Open[bool]
    events_behind: Open[int]
    kept_as: OperatorOnly[str | None] = None
    migrations_applied: Open[tuple[str, ...]] = ()
    identity: Open[str] = "usable"
    devices_suspended: Open[int] = 0
    erased: Open[dict[str, int]] = field(default_factory=dict[str, int])
    kept_erased: Open[bool] = False
    erased_refs: OperatorOnly[tuple[str, ...] | None] = ()


class SnapshotPruneRequest(Request, frozen=True, kw_only=True):
    """Remove all but the newest snapshots, with content in them that was erased from the store since."""

    keep: Annotated[int, Meta(ge=0, le=100_000, description="how many of the newest to keep")]
    replaced: Annotated[bool, Meta(description="also remove the stores that a restore has set aside")] = False
    dry_run: Annotated[bool, Meta(description="report what would be removed; remove nothing")] = False


class SnapshotPruneReport(Report, frozen=True, kw_only=True):
    """What went, or in a dry run would; files that are no whole snapshot go with it. `freed_bytes` is their size."""

    dry_run: Open[bool]
    removed: Open[tuple[str, ...]]
    kept: Open[tuple[str, ...]]
    replaced: Open[int]
    freed_bytes: Open[int]


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "snapshot.create", "create_snapshot", SnapshotCreateRequest, SnapshotCreateReport, "admin", "snapshot",
        SNAPSHOT, ("snapshot", "create"),
        "create a snapshot of the whole store while it is in use, with every write acknowledged before it",
        batch=False, grows=False, deadline_ms=3_600_000, word="label",
        example={"label": "before the update"},
        shell=("beetle snapshot create 'before the update'",),
        progress=True,
        idempotent=False,
    ),
    Operation(
        "snapshot.list", "list_snapshots", SnapshotListRequest, SnapshotListReport, "read", "snapshot", SNAPSHOT,
        ("snapshot", "list"),
        "list the snapshots of this store, newest first, and the stores that a restore replaced",
        batch=False,
    ),
    Operation(
        "snapshot.verify", "verify_snapshot", SnapshotVerifyRequest, SnapshotVerifyReport, "read", "snapshot",
        SNAPSHOT, ("snapshot", "verify"),
        "unpack a snapshot and check its digests, pages, event log, counts and identity",
        batch=False, heavy=True, deadline_ms=3_600_000, word="snapshot_id",
        example={"snapshot_id": "s-0123456789abcdef"},
        progress=True,
    ),
    Operation(
        "snapshot.restore", "restore_snapshot", SnapshotRestoreRequest, SnapshotRestoreReport, "admin", "snapshot",
        SNAPSHOT, ("snapshot", "restore"),
        "replace the store with a snapshot; the replaced store is kept beside it with all later writes",
        batch=False, grows=False, deadline_ms=3_600_000, word="snapshot_id",
        example={"snapshot_id": "s-0123456789abcdef"},
        shell=("beetle snapshot restore SNAPSHOT --dry-run", "beetle snapshot restore SNAPSHOT"),
        progress=True,
        destructive=True, idempotent=False,
    ),
    Operation(
        "snapshot.prune", "prune_snapshots", SnapshotPruneRequest, SnapshotPruneReport, "admin", "snapshot", SNAPSHOT,
        ("snapshot", "prune"),
        "remove all but the newest snapshots, with content in them that was erased from the store since",
        batch=False, grows=False,
        example={"keep": 3},
        shell=("beetle snapshot prune --keep 7",),
        destructive=True, idempotent=False,
    ),
)  # fmt: skip
