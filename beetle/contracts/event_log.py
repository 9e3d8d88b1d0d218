"""Reading the event log."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from beetle.contracts.common import Cursor, PageLimit, Report
from beetle.contracts.fields import Id, Open, OperatorOnly, Piece, Request, Time
from beetle.contracts.operation import CARE, Operation

Seq = Annotated[int, Meta(ge=0, le=2**62)]


class EventLogReadRequest(Request, frozen=True, kw_only=True):
    """Read the event log of this space; an operator reads the daemon's own rows with it."""

    after: Annotated[Seq, Meta(description="rows after this sequence number")] | None = None
    before: Annotated[Seq, Meta(description="rows before this sequence number")] | None = None
    since: Annotated[Time, Meta(description="not before this time")] | None = None
    until: Annotated[Time, Meta(description="not after this time")] | None = None
    topics: (
        Annotated[tuple[Annotated[str, Meta(min_length=1, max_length=64)], ...],
                  Meta(min_length=1, max_length=32, description="only these topics")]
        | None
    ) = None  # fmt: skip
    operation: Annotated[str, Meta(min_length=1, max_length=128, description="only rows of this operation")] | None = (
        None
    )
    principal: Annotated[Id, Meta(description="only rows of this principal")] | None = None
    newest_first: Annotated[bool, Meta(description="read from the end of the log backwards")] = False
    chain: Annotated[
        bool,
        Meta(description="read what proves the whole log: each row's encoding, the hashes of other spaces' rows, the "
                         "signed head; operators only"),
    ] = False  # fmt: skip
    limit: PageLimit = 50
    cursor: Cursor | None = None


class EventRow(Piece, frozen=True, kw_only=True):
    """One row: ids, kinds and counts. `daemon` marks a row of the daemon's own, which belongs to no space."""

    seq: Open[int]
    at: Open[str]
    daemon: Open[bool]
    topic: Open[str]
    event: Open[str]
    operation: Open[str]
    principal: Open[str]
    subject: Open[dict[str, Any]]
    hash: Open[str]


class ChainLink(Piece, frozen=True, kw_only=True):
    """One row of the whole log, as its hash was made: `encoding` is the base64url of its MessagePack. It is null for a
    row of another space, and for one that says what the caller may not know."""

    seq: OperatorOnly[int]
    encoding: OperatorOnly[str | None]
    hash: OperatorOnly[str]


class EventLogReadReport(Report, frozen=True, kw_only=True):
    """`chain` and `signed_head` answer a request for the chain: the rows behind `after`, of all spaces, in their order.
    `verified` says that every row of the page follows from the row before it in the log; `broken` names those that
    do not. `scanned` counts the rows that were looked at: a page may be empty and `has_more` all the same. `head` is
    the number of the last row. An operator sees the whole log's numbers and hashes; for others only the events that
    they may know of are counted, and a hash is a keyed digest of its row.
    """

    rows: Open[tuple[EventRow, ...]]
    verified: Open[bool]
    broken: Open[tuple[int, ...]]
    scanned: Open[int]
    head: Open[int]
    has_more: Open[bool] = False
    next_cursor: Open[str | None] = None
    chain: OperatorOnly[tuple[ChainLink, ...] | None] = None
    signed_head: OperatorOnly[str | None] = None


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "event_log.read", "read_event_log", EventLogReadRequest, EventLogReadReport, "read", "event_log", CARE,
        ("log",),
        "read the event log of this space; an operator reads the daemon's own rows with it",
        example={"topics": ["device", "lifecycle"]},
        shell=(
            "beetle log --topics device,lifecycle", "beetle log --follow", "beetle log --chain --limit 500 --json",
        ),
    ),
)  # fmt: skip
