"""private.list and private.get: the private plane, in the view raw_owner."""

from __future__ import annotations

from beetle.contracts.codec import format_us, from_plain
from beetle.contracts.errors import NotFound
from beetle.contracts.private import (
    PrivateGetReport,
    PrivateGetRequest,
    PrivateItem,
    PrivateListReport,
    PrivateListRequest,
)
from beetle.runtime.cursor import make_cursor, read_cursor
from beetle.runtime.handling import Context
from beetle.runtime.private import content_of, require
from beetle.store import evidence
from beetle.store.private import ItemRow, count_items, find_item, list_items
from beetle.store.transaction import Reading

VISIBILITY = {"subject_private": "private", "soul_private": "soul"}


def list_private(context: Context, request: PrivateListRequest, tx: Reading) -> PrivateListReport:
    """In the order in which they were kept; the cursor stands at an item."""
    require(context)
    space = evidence.find_space(tx, context.space_id)
    bound_to = context.bound(request.plane)
    after = 0 if request.cursor is None else read_cursor(context.key, bound_to, request.cursor)
    rows = list_items(tx, space, after, request.plane, request.limit + 1)
    more = len(rows) > request.limit
    rows = rows[: request.limit]
    return PrivateListReport(
        total=count_items(tx, space, request.plane),
        items=tuple(from_plain(_plain(row), PrivateItem) for row in rows),
        has_more=more,
        next_cursor=make_cursor(context.key, bound_to, rows[-1].item) if more else None,
    )


def get_private(context: Context, request: PrivateGetRequest, tx: Reading) -> PrivateGetReport:
    """One record with its content."""
    require(context)
    space = evidence.find_space(tx, context.space_id)
    row = find_item(tx, space, request.record_id)
    if space is None or row is None:
        raise NotFound(
            kind="private record", name=request.record_id, listing="`beetle private list` shows what is there"
        )
    content = content_of(context, tx, space, row)
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
        "at": format_us(row.at),
        "candidate_id": row.candidate_id,
    }
