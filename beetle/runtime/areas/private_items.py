"""private.list and private.get: the private plane, read as its owner."""

from __future__ import annotations

from collections.abc import Mapping

from beetle.contracts.codec import from_plain
from beetle.contracts.errors import NotFound
from beetle.contracts.private import (
    PrivateGetReport,
    PrivateGetRequest,
    PrivateItem,
    PrivateListReport,
    PrivateListRequest,
)
from beetle.runtime.pipeline.cursor import read_cursor
from beetle.runtime.pipeline.handlers import Handler, Read
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.pipeline.paging import page
from beetle.runtime.planes.sealed_items import content_of, require
from beetle.store import evidence
from beetle.store.damaged_rows import shown_time
from beetle.store.engine.transaction import Reading
from beetle.store.private import ItemRow, count_items, find_item, list_items

VISIBILITY = {"subject_private": "private", "soul_private": "soul"}


def list_private(invocation: Invocation, request: PrivateListRequest, tx: Reading) -> PrivateListReport:
    """In the order in which they were kept; the cursor stands at an item."""
    require(invocation)
    space = evidence.find_space(tx, invocation.space_id)
    bound_to = invocation.bound(request.plane)
    after = 0 if request.cursor is None else read_cursor(invocation.key, bound_to, request.cursor)
    rows = list_items(tx, space, after, request.plane, request.limit + 1)
    found = page(
        invocation,
        rows,
        request.limit,
        lambda row: from_plain({**_plain(row), "closed": bool(row.closed)}, PrivateItem),
        bound_to=bound_to,
        place=lambda row: row.item,
    )
    return PrivateListReport(
        total=count_items(tx, space, request.plane),
        items=found.entries,
        has_more=found.has_more,
        next_cursor=found.next_cursor,
        profile_budget_applied=found.cut,
    )


def get_private(invocation: Invocation, request: PrivateGetRequest, tx: Reading) -> PrivateGetReport:
    """One record with its content."""
    require(invocation)
    space = evidence.find_space(tx, invocation.space_id)
    row = find_item(tx, space, request.record_id)
    if space is None or row is None:
        raise NotFound(kind="private record", name=request.record_id, listing="`beetle private list` lists the records")
    content = content_of(invocation, tx, space, row)
    plain = {**_plain(row), "visibility": VISIBILITY[row.privacy], "content": content}
    return from_plain(plain, PrivateGetReport)


def _plain(row: ItemRow) -> dict[str, object]:
    return {
        "record_id": row.record_id,
        "plane": row.plane,
        "privacy": row.privacy,
        "authority": row.authority,
        "state": row.state,
        "length": row.length,
        "at": shown_time(row.at, "private_item", row.record_id),
        "candidate_id": row.candidate_id,
    }


HANDLERS: Mapping[str, Handler] = {
    "private.list": Read(list_private),
    "private.get": Read(get_private),
}
