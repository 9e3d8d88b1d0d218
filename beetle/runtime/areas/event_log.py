"""Reading the event log: an operator sees it as it stands, everybody else the events of its space that it may know of.

Numbers, hashes and counts of everybody else follow from those events alone. The log's own grow with every write of
every owner, and its chain runs through all of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import Any, cast

from beetle.contracts.codec import pack, to_us
from beetle.contracts.errors import Forbidden, InvalidRequest
from beetle.contracts.event_log import ChainLink, EventLogReadReport, EventLogReadRequest, EventRow
from beetle.contracts.memory import EventLogState
from beetle.domain.chain import chain_hash
from beetle.domain.digest import encode, keyed
from beetle.domain.governance import SEALED
from beetle.named_tuple import NamedTuple
from beetle.runtime.pipeline.cursor import make_cursor, read_cursor
from beetle.runtime.pipeline.handlers import Handler, Read
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.pipeline.paging import Room
from beetle.store.damaged_rows import shown_time, whole
from beetle.store.engine.transaction import Reading
from beetle.store.event_log import (
    GENESIS,
    EventFilter,
    LoggedRow,
    Numbered,
    chain_rows,
    read_head,
    read_rows,
    read_signed_head,
)
from beetle.store.event_places import last_places

TELLING = frozenset({"record_id", "reason", "ref", "waited_for"})
"""What a row of private material says that only who may read the private plane is shown."""
SCANNED_ROWS = 100_000
"""Most rows that one page looks at: the log is the whole store's, and a space's own rows may stand far apart in it."""


class Page(NamedTuple):
    """What one page found: its rows, how many it looked at, where the next one begins."""

    rows: list[Numbered]
    scanned: int
    position: int
    more: bool


def log_state(invocation: Invocation, tx: Reading) -> EventLogState:
    """How many events there are, and the hash of the last one, as far as the caller may know."""
    level = invocation.level
    if level is None:
        head = read_head(tx)
        # Of a damaged one the findings of a verification tell.
        known = head.hash if isinstance(head.hash, bytes) else GENESIS  # pyright: ignore[reportUnnecessaryIsInstance]
        return EventLogState(rows=head.seq, head=known.hex())
    wanted = EventFilter(invocation.space_id, level)
    rows = head_number(invocation, tx)
    last = read_rows(tx, wanted, (rows - 1, rows + 1), 1, backwards=True)
    return EventLogState(rows=rows, head=_hash(invocation, last[0]) if last else GENESIS.hex())


def head_number(invocation: Invocation, tx: Reading) -> int:
    """The number of the last event that the caller may know of; 0 without one."""
    level = invocation.level
    return read_head(tx).seq if level is None else last_places(tx, invocation.space_id).at(level)


def read(invocation: Invocation, request: EventLogReadRequest, tx: Reading) -> EventLogReadReport:
    """Rows of the caller's space, and for an operator the daemon's own; each is held against the row before it."""
    if request.chain:
        return _chain(invocation, request, tx)
    wanted = EventFilter(
        space=invocation.space_id,
        level=invocation.level,
        since=None if request.since is None else to_us(request.since),
        until=None if request.until is None else to_us(request.until),
        topics=request.topics,
        operation=request.operation,
        principal=request.principal,
    )
    bound_to = invocation.bound(wanted, request.after, request.before, request.newest_first)
    stands = None if request.cursor is None else read_cursor(invocation.key, bound_to, request.cursor)
    head = head_number(invocation, tx)
    first, last = request.after or 0, head + 1 if request.before is None else min(request.before, head + 1)
    if request.newest_first:
        page = _backwards(tx, wanted, first, last if stands is None else stands, request.limit)
    else:
        page = _forwards(tx, wanted, first if stands is None else stands, last, request.limit)
    room = Room(invocation)
    shown = room.fill(whole(page.rows, partial(_shown, invocation)))
    if room.full:
        page = _up_to(page, shown[-1].seq)
    broken = tuple(each.number for each in page.rows if chain_hash(each.previous, each.row[:-1]) != each.row.hash)
    return EventLogReadReport(
        rows=shown,
        verified=not broken,
        broken=broken,
        scanned=page.scanned,
        head=head,
        has_more=page.more,
        next_cursor=make_cursor(invocation.key, bound_to, page.position) if page.more else None,
        profile_budget_applied=room.full,
    )


def _chain(invocation: Invocation, request: EventLogReadRequest, tx: Reading) -> EventLogReadReport:
    """What proves the whole log, from a row on.

    Raises:
        Forbidden: the caller is no operator: the chain runs through what all owners do.
        InvalidRequest: a filter, with which there would be gaps.
    """
    if not invocation.caller.is_operator:
        raise Forbidden(
            reason=f"{invocation.caller.name} may not read the chain of all spaces",
            hint="leave chain out; an operator exports the chain",
            path="$.args.chain",
        )
    for name in ("before", "since", "until", "topics", "operation", "principal", "cursor"):
        if getattr(request, name) is not None:
            raise InvalidRequest(
                reason="the chain is read without a filter", hint="give after and limit alone", path=f"$.args.{name}"
            )
    head, kept = read_head(tx), read_signed_head(tx)
    rows = chain_rows(tx, request.after or 0, request.limit)
    links = Room(invocation).fill(_link(invocation, row) for row in rows)
    last = links[-1].seq if links else request.after or 0
    return EventLogReadReport(
        rows=(),
        verified=True,
        broken=(),
        scanned=len(links),
        head=head.seq,
        has_more=last < head.seq,
        chain=links,
        signed_head=None if kept is None else kept.text,
        profile_budget_applied=len(links) < len(rows),
    )


def _link(invocation: Invocation, row: LoggedRow) -> ChainLink:
    known = row.space in (None, invocation.space_id)
    told = known and (invocation.reads_private or _subject(row.subject).get("target") not in SEALED)
    return ChainLink(seq=row.seq, encoding=encode(pack(tuple(row[:-1]))) if told else None, hash=row.hash.hex())


def _forwards(tx: Reading, wanted: EventFilter, after: int, before: int, limit: int) -> Page:
    end = min(before, after + SCANNED_ROWS + 1)
    rows = read_rows(tx, wanted, (after, end), limit + 1, backwards=False)
    if len(rows) > limit:
        rows = rows[:limit]
        reached = rows[-1].number
        return Page(rows, reached - after, reached, True)
    return Page(rows, max(0, end - 1 - after), end - 1, end < before)


def _backwards(tx: Reading, wanted: EventFilter, after: int, before: int, limit: int) -> Page:
    end = max(after, before - SCANNED_ROWS - 1)
    rows = read_rows(tx, wanted, (end, before), limit + 1, backwards=True)
    if len(rows) > limit:
        rows = rows[:limit]
        reached = rows[-1].number
        return Page(rows, before - reached, reached, True)
    return Page(rows, max(0, before - 1 - end), end + 1, end > after)


def _up_to(page: Page, reached: int) -> Page:
    """The rows of a page up to one of them; more are behind it."""
    rows = next(place for place, each in enumerate(page.rows, 1) if each.number == reached)
    return Page(page.rows[:rows], page.scanned - abs(page.position - reached), reached, True)


def _shown(invocation: Invocation, each: Numbered) -> EventRow:
    row = each.row
    subject = _subject(row.subject)
    if not invocation.reads_private and subject.get("target") in SEALED:
        # With the record or the reason a guess could be checked: they tell which text is there already.
        subject = {name: value for name, value in subject.items() if name not in TELLING}
    return EventRow(
        seq=each.number,
        at=shown_time(row.at, "event_log", row.seq),
        daemon=row.space is None,
        topic=row.topic,
        event=row.event,
        operation=row.operation,
        principal=row.principal,
        subject=subject,
        hash=_hash(invocation, each),
    )


def _hash(invocation: Invocation, each: Numbered) -> str:
    """The chain's hash for an operator; a keyed digest of the row for others: the chain's covers what everybody did."""
    found = each.row.hash if invocation.level is None else row_digest(invocation.key, each.number, each.row)
    return found.hex()


def row_digest(key: bytes, number: int, row: LoggedRow) -> bytes:
    """What stands for a row by the number of its place in its space, and tells of no other row."""
    said = (number, row.at, row.space, row.topic, row.event, row.operation, row.principal, row.subject)
    return keyed(key, "event row", pack(said))


def _subject(text: str) -> dict[str, Any]:
    """Empty where the row was tampered with so that it can be read no more: its hash tells of that."""
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


HANDLERS: Mapping[str, Handler] = {
    "event_log.read": Read(read, refusals=True),
}
