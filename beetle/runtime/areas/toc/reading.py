"""toc.root, toc.node, toc.browse."""

from __future__ import annotations

from collections.abc import Mapping

from beetle.contracts.toc import (
    BROWSE_LIMIT,
    TocBrowseReport,
    TocBrowseRequest,
    TocNodeReport,
    TocNodeRequest,
    TocRootReport,
    TocRootRequest,
)
from beetle.runtime.areas.toc.showing import shown
from beetle.runtime.pipeline.cursor import make_cursor, read_cursor
from beetle.runtime.pipeline.handlers import Handler, Read
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.pipeline.paging import Room
from beetle.store import evidence, toc
from beetle.store.engine.transaction import Reading

BEHIND_ALL = 2**62


def root(invocation: Invocation, request: TocRootRequest, tx: Reading) -> TocRootReport:
    """Years, newest first. The cursor stands behind a year's beginning."""
    space = evidence.find_space(tx, invocation.space_id)
    if space is None:
        return TocRootReport(nodes=())
    bound_to = invocation.bound()
    before = BEHIND_ALL if request.cursor is None else read_cursor(invocation.key, bound_to, request.cursor)
    rows = toc.years(tx, space, before, request.limit + 1)
    room = Room(invocation)
    nodes = room.fill(shown(invocation.key, tx, space, rows[: request.limit]))
    more = len(rows) > len(nodes)
    cursor = make_cursor(invocation.key, bound_to, rows[len(nodes) - 1].starts) if more else None
    return TocRootReport(nodes=nodes, has_more=more, next_cursor=cursor, profile_budget_applied=room.full)


def node(invocation: Invocation, request: TocNodeRequest, tx: Reading) -> TocNodeReport:
    """One node, or none."""
    space = evidence.find_space(tx, invocation.space_id)
    row = None if space is None else toc.node(tx, space, request.node_id)
    if space is None or row is None:
        return TocNodeReport(node=None)
    return TocNodeReport(node=shown(invocation.key, tx, space, [row])[0])


def browse(invocation: Invocation, request: TocBrowseRequest, tx: Reading) -> TocBrowseReport:
    """A page of children. The token is how many were shown, as seed 001 has it; what is none begins anew."""
    space = evidence.find_space(tx, invocation.space_id)
    row = None if space is None else toc.node(tx, space, request.parent_id)
    if space is None or row is None:
        return TocBrowseReport(children=())
    token = request.continuation_token or ""
    offset = int(token) if token.isascii() and token.isdigit() and len(token) < 10 else 0
    limit = limit_of(invocation, request.limit, BROWSE_LIMIT)
    rows = toc.children(tx, row.key, limit + 1, offset)
    room = Room(invocation)
    children = room.fill(shown(invocation.key, tx, space, rows[:limit]))
    more = len(rows) > len(children)
    return TocBrowseReport(
        children=children,
        continuation_token=str(offset + len(children)) if more else None,
        has_more=more,
        profile_budget_applied=room.full,
    )


def limit_of(invocation: Invocation, asked: int, default: int) -> int:
    """A limit where 0 or less means the default."""
    return asked if asked > 0 else min(default, invocation.shared.profile.budgets.page_limit)


HANDLERS: Mapping[str, Handler] = {"toc.root": Read(root), "toc.node": Read(node), "toc.browse": Read(browse)}
