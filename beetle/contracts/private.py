"""The private plane: private-garden and soul-candidate material, for its owner's eyes."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from beetle.contracts.common import Cursor, PageLimit, Report
from beetle.contracts.fields import Evidence, Id, Open, Piece, Request
from beetle.contracts.operation import PRIVATE, Operation

PrivatePlane = Literal["private_garden", "soul_candidate"]
PrivatePrivacy = Literal["subject_private", "soul_private"]


class PrivateListRequest(Request, frozen=True, kw_only=True):
    """List the private records in the order in which they were stored, without their content."""

    plane: Annotated[PrivatePlane, Meta(description="only this part of it")] | None = None
    limit: PageLimit = 50
    cursor: Cursor | None = None


class PrivateItem(Piece, frozen=True, kw_only=True):
    """A private record. `length` in characters; state `handoff` waits for the soul to take it over,
    `waiting` is a deferred candidate. `closed`: a former identity of the store has sealed it, and it cannot be read.
    """

    record_id: Open[str]
    plane: Open[PrivatePlane]
    privacy: Open[PrivatePrivacy]
    authority: Open[str]
    state: Open[Literal["kept", "handoff", "waiting"]]
    length: Open[int]
    at: Open[str]
    candidate_id: Open[str]
    closed: Open[bool] = False


class PrivateListReport(Report, frozen=True, kw_only=True):
    """`total` counts what the request asked for, not the page."""

    total: Open[int]
    items: Open[tuple[PrivateItem, ...]]
    has_more: Open[bool] = False
    next_cursor: Open[str | None] = None


class PrivateGetRequest(Request, frozen=True, kw_only=True):
    """Read one private record, with its content."""

    record_id: Annotated[Id, Meta(description="the record's id, as private.list gives it")]


class PrivateGetReport(Report, frozen=True, kw_only=True):
    """One private record. `content` is for the view raw_owner, and for no other."""

    record_id: Open[str]
    plane: Open[PrivatePlane]
    privacy: Open[PrivatePrivacy]
    visibility: Open[Literal["private", "soul"]]
    authority: Open[str]
    state: Open[Literal["kept", "handoff", "waiting"]]
    length: Open[int]
    at: Open[str]
    candidate_id: Open[str]
    content: Evidence[str | None]


class PrivateDeleteRequest(Request, frozen=True, kw_only=True):
    """Delete one private record, with the candidates that wait for it and its links to evidence."""

    record_id: Annotated[Id, Meta(description="the record's id, as private.list gives it")]
    dry_run: Annotated[bool, Meta(description="report what would be deleted; change nothing")] = False


class PrivateDeleteReport(Report, frozen=True, kw_only=True):
    """`waiting` counts the candidates that go with the record.

    `erasure` is `done` when no byte of it is left in the store's files, else `pending`; `replica_horizon` is the time
    of the newest copy of the store that may hold it still, None where there is none.
    """

    record_id: Open[str]
    plane: Open[PrivatePlane]
    dry_run: Open[bool]
    waiting: Open[int]
    erasure: Open[Literal["done", "pending"] | None] = None
    replica_horizon: Open[str | None] = None
    replicated_until: Open[str | None] = None
    copies_until: Open[str | None] = None
    audit_event_id: Open[int | None] = None
    receipt: Open[str | None] = None


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "private.list", "list_private", PrivateListRequest, PrivateListReport, "read", "private.read", PRIVATE,
        ("private", "list"),
        "list the private records in the order in which they were stored, without their content",
        batch=False, view="owner",
    ),
    Operation(
        "private.get", "get_private", PrivateGetRequest, PrivateGetReport, "read", "private.read", PRIVATE,
        ("private", "show"),
        "read one private record, with its content",
        batch=False, view="owner", word="record_id",
        example={"record_id": "p-1"},
    ),
    Operation(
        "private.delete", "delete_private", PrivateDeleteRequest, PrivateDeleteReport, "write", "private.read", PRIVATE,
        ("private", "delete"),
        "delete one private record, with the candidates that wait for it and its links to evidence",
        batch=False, grows=False, view="owner", word="record_id",
        example={"record_id": "p-1"},
        shell=("beetle private delete p-1 --dry-run",),
        destructive=True, idempotent=False,
    ),
)  # fmt: skip
