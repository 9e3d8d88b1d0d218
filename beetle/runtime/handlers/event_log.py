"""event_log.read."""

from __future__ import annotations

import json
from typing import Any, NamedTuple, cast

from beetle.contracts.codec import format_us, to_us
from beetle.contracts.event_log import EventLogReadReport, EventLogReadRequest, EventRow
from beetle.memory.chain import chain_hash
from beetle.runtime.cursor import make_cursor, read_cursor
from beetle.runtime.handling import Context
from beetle.store.event_log import LoggedRow, Wanted, read_head, read_rows
from beetle.store.transaction import Reading

SCANNED_ROWS = 100_000
"""Most rows that one page looks at: the log is the whole store's, and a space's own rows may stand far apart in it."""


class Page(NamedTuple):
    """What one page found: rows with the hash in front of each, how many it looked at, where the next one begins."""

    rows: list[tuple[LoggedRow, bytes]]
    scanned: int
    position: int
    more: bool


def read(context: Context, request: EventLogReadRequest, tx: Reading) -> EventLogReadReport:
    """Rows of the caller's space, and for an operator the daemon's own; each is held against the row before it."""
    wanted = Wanted(
        space=context.space_id,
        own=context.caller.is_operator,
        since=None if request.since is None else to_us(request.since),
        until=None if request.until is None else to_us(request.until),
        topics=request.topics,
        operation=request.operation,
        principal=request.principal,
    )
    bound_to = context.bound(wanted, request.after, request.before, request.newest_first)
    stands = None if request.cursor is None else read_cursor(context.key, bound_to, request.cursor)
    head = read_head(tx).seq
    first, last = request.after or 0, head + 1 if request.before is None else min(request.before, head + 1)
    if request.newest_first:
        page = _backwards(tx, wanted, first, last if stands is None else stands, request.limit)
    else:
        page = _forwards(tx, wanted, first if stands is None else stands, last, request.limit)
    broken = tuple(row.seq for row, previous in page.rows if not _follows(row, previous))
    return EventLogReadReport(
        rows=tuple(_shown(row) for row, _ in page.rows),
        verified=not broken,
        broken=broken,
        scanned=page.scanned,
        head=head,
        has_more=page.more,
        next_cursor=make_cursor(context.key, bound_to, page.position) if page.more else None,
    )


def _forwards(tx: Reading, wanted: Wanted, after: int, before: int, limit: int) -> Page:
    end = min(before, after + SCANNED_ROWS + 1)
    rows = read_rows(tx, wanted, (after, end), limit + 1, backwards=False)
    if len(rows) > limit:
        rows = rows[:limit]
        reached = rows[-1][0].seq
        return Page(rows, reached - after, reached, True)
    return Page(rows, max(0, end - 1 - after), end - 1, end < before)


def _backwards(tx: Reading, wanted: Wanted, after: int, before: int, limit: int) -> Page:
    end = max(after, before - SCANNED_ROWS - 1)
    rows = read_rows(tx, wanted, (end, before), limit + 1, backwards=True)
    if len(rows) > limit:
        rows = rows[:limit]
        reached = rows[-1][0].seq
        return Page(rows, before - reached, reached, True)
    return Page(rows, max(0, before - 1 - end), end + 1, end > after)


def _follows(row: LoggedRow, previous: bytes) -> bool:
    return chain_hash(previous, row[:-1]) == row.hash


def _shown(row: LoggedRow) -> EventRow:
    return EventRow(
        seq=row.seq,
        at=format_us(row.at),
        daemon=row.space is None,
        topic=row.topic,
        event=row.event,
        operation=row.operation,
        principal=row.principal,
        subject=_subject(row.subject),
        hash=row.hash.hex(),
    )


def _subject(text: str) -> dict[str, Any]:
    """Empty where the row was tampered with so that it can be read no more: its hash tells of that."""
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}
