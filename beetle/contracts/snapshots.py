"""snapshot.create, list, verify, restore and prune: files of a whole store."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from beetle.contracts.common import Cursor, PageLimit, Report
from beetle.contracts.fields import Content, Id, Label, Open, OperatorOnly, Piece, Request

SnapshotFault = Literal[
    "unreadable", "header_broken", "other_version", "cut_short", "payload_changed", "too_large", "not_a_store",
    "newer_schema", "pages_damaged", "chain_broken", "head_differs", "counts_differ", "other_store", "other_device",
]  # fmt: skip
"""Why a snapshot is not to be trusted: its file cannot be read; its header is not what was written; another beetle made
it; bytes are missing; its payload is not what was written; it unpacks to more than it says; what comes out is no store;
this build cannot open it; SQLite finds a damaged page; the event log's chain does not hold; the log ends elsewhere, or
the planes hold other numbers, than the header says; it is of another store; it was made under another device
identity."""

SnapshotId = Annotated[Id, Meta(description="the snapshot's id")]


class SnapshotInfo(Piece, frozen=True, kw_only=True):
    """One snapshot as its header tells of it. `bytes` is its file, `store_bytes` the store that comes out of it.

    `counts` are rows of the whole store by plane; `event_log_head` is the hash of the event log's last row, its
    `event_log_rows`th. `own` says that it is of this very store.
    """

    snapshot_id: Open[str]
    created_at: Open[str]
    own: Open[bool]
    label: Content[str | None] = None
    profile: Open[str]
    backend: Open[str]
    version: Open[str]
    schema: Open[int]
    store_id: OperatorOnly[str | None] = None
    bytes: Open[int]
    store_bytes: Open[int]
    counts: OperatorOnly[dict[str, int] | None] = None
    event_log_rows: Open[int]
    event_log_head: Open[str]


class SnapshotCreateRequest(Request, frozen=True, kw_only=True):
    """Take a snapshot of the whole store while it is in use; what is acknowledged before it begins is in it."""

    label: Annotated[Label, Meta(min_length=1, description="a name for people")] | None = None


class SnapshotCreateReport(Report, frozen=True, kw_only=True):
    """`restarts` counts how often a write made the copy begin again, which a store with a write-ahead log never does.
    `ms` is how long it took."""

    snapshot: Open[SnapshotInfo]
    restarts: Open[int]
    ms: Open[float]


class SnapshotListRequest(Request, frozen=True, kw_only=True):
    """List the snapshots of this store, the newest first, and the stores that a restore has set aside."""

    limit: PageLimit = 50
    cursor: Cursor | None = None


class BrokenSnapshot(Piece, frozen=True, kw_only=True):
    """A file that is no whole snapshot. `bytes` is its size."""

    snapshot_id: Open[str]
    fault: Open[SnapshotFault]
    bytes: Open[int]


class ReplacedStore(Piece, frozen=True, kw_only=True):
    """A store that a restore has set aside, as it was then."""

    snapshot_id: Open[str]
    path: OperatorOnly[str | None]
    replaced_at: Open[str]
    bytes: Open[int]


class SnapshotListReport(Report, frozen=True, kw_only=True):
    """`total` and `bytes` are of all snapshots. `broken` and `replaced` stand on the first page alone."""

    folder: OperatorOnly[str | None]
    snapshots: Open[tuple[SnapshotInfo, ...]]
    total: Open[int]
    bytes: Open[int]
    broken: Open[tuple[BrokenSnapshot, ...]] = ()
    replaced: Open[tuple[ReplacedStore, ...]] = ()
    has_more: Open[bool] = False
    next_cursor: Open[str | None] = None


class SnapshotVerifyRequest(Request, frozen=True, kw_only=True):
    """Unpack a snapshot beside the store and check all of it: digests, pages, event log, counts, identity."""

    snapshot_id: SnapshotId


class SnapshotVerifyReport(Report, frozen=True, kw_only=True):
    """`valid` when there are no `reasons`; `checked` counts what was looked at. `snapshot` is its header, None where
    that cannot be read."""

    snapshot_id: Open[str]
    valid: Open[bool]
    reasons: Open[tuple[SnapshotFault, ...]]
    checked: Open[dict[str, int]]
    snapshot: Open[SnapshotInfo | None] = None


class SnapshotRestoreRequest(Request, frozen=True, kw_only=True):
    """Put a snapshot in the place of the store, which is kept beside it with what was written since.

    Everything is checked first, and a snapshot that is not whole changes nothing.
    """

    snapshot_id: SnapshotId
    dry_run: Annotated[bool, Meta(description="only check it and say what a restore would do")] = False
    other_store: Annotated[bool, Meta(description="allow a snapshot of another store or device")] = False


class SnapshotRestoreReport(Report, frozen=True, kw_only=True):
    """`events_behind` counts the rows of the event log that the store had and the snapshot has not. `kept_as` is where
    the store is that was there before. `identity` tells whether the device identity fits what is open now."""

    snapshot: Open[SnapshotInfo]
    dry_run: Open[bool]
    changed: Open[bool]
    events_behind: Open[int]
    kept_as: OperatorOnly[str | None] = None
    migrations_applied: Open[tuple[str, ...]] = ()
    identity: Open[str] = "usable"


class SnapshotPruneRequest(Request, frozen=True, kw_only=True):
    """Remove snapshots but for the newest ones; what was erased from the store since is gone with them."""

    keep: Annotated[int, Meta(ge=0, le=100_000, description="how many of the newest to keep")]
    replaced: Annotated[bool, Meta(description="also remove the stores that a restore has set aside")] = False
    dry_run: Annotated[bool, Meta(description="only say what would go")] = False


class SnapshotPruneReport(Report, frozen=True, kw_only=True):
    """What went, or in a dry run would; files that are no whole snapshot go with it. `freed_bytes` is their size."""

    dry_run: Open[bool]
    removed: Open[tuple[str, ...]]
    kept: Open[tuple[str, ...]]
    replaced: Open[int]
    freed_bytes: Open[int]
