"""The table of contents over evidence: toc.*, grip.expand, admin.rebuild_toc."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from msgspec import Meta

from beetle.contracts.codec import decode_json
from beetle.contracts.common import ConversationRef, Cursor, PageLimit, Report
from beetle.contracts.events import EventRecord
from beetle.contracts.fields import Content, Open, Part, Piece, Request, clipped
from beetle.contracts.operation import ADMIN, QUERY, RPC, Operation
from beetle.contracts.transcript import Query

TocLevel = Literal["year", "month", "week", "day", "segment"]
TOC_LEVELS: tuple[TocLevel, ...] = get_args(TocLevel)
"""From the top down, in the order of their numbers in protocols and in the store; the first is 1."""
TocField = Literal["title", "summary", "bullets", "keywords"]
TOC_FIELDS: tuple[TocField, ...] = get_args(TocField)
GRIP_SOURCE = "segment_summarizer"

NodeId = Annotated[
    str, Meta(min_length=1, max_length=256, description="id of a node: toc:year:2026, toc:week:2026-W05, …")
]
BROWSE_LIMIT = 20
"""So many children are on a page, unless others are asked for; a limit of 0 or less means it."""
ChildLimit = Annotated[int, Meta(extra=clipped("page_limit"), description="maximum number; 0 or less: 20")]
MatchLimit = Annotated[int, Meta(extra=clipped("page_limit"), description="maximum number; 0 or less: 10")]
Token = Annotated[
    str, Meta(max_length=64, description="continuation_token of the previous page; anything else starts at the first")
]
ContextEvents = Annotated[
    int, Meta(extra=clipped("page_limit"), description="events of the session around the excerpt; below 0 counts as 0")
]


class TocBullet(Piece, frozen=True, kw_only=True):
    """One key point of a node. Each of `grip_ids` leads to the events that hold it (`grip.expand`)."""

    text: Content[str | None]
    grip_ids: Open[tuple[str, ...]]


class TocNode(Piece, frozen=True, kw_only=True):
    """One period, or one segment of a session. Times in milliseconds since the epoch, UTC, both included.

    A week (ISO 8601) belongs to the month of its Thursday, a segment to the day of its first event. Years to days have
    their date as the title, a segment what it is about. `summary` is the bullets in one text; null without bullets.
    `child_node_ids` are the first 256 in order of time; `has_more_children` says that `toc.browse` knows more.
    `version` grows with each change. Bullets and keywords hold only shared, live content. `conversation` is a
    segment's session.
    """

    node_id: Open[str]
    level: Open[TocLevel]
    title: Content[str | None]
    summary: Content[str | None]
    bullets: Open[tuple[TocBullet, ...]]
    keywords: Content[tuple[str, ...] | None]
    child_node_ids: Open[tuple[str, ...]]
    start_time_ms: Open[int]
    end_time_ms: Open[int]
    version: Open[int]
    has_more_children: Open[bool] = False
    conversation: Open[ConversationRef | None] = None


class TocRootRequest(Request, frozen=True, kw_only=True):
    """List the years of the table of contents, newest first."""

    limit: PageLimit = 50
    cursor: Cursor | None = None


class TocRootReport(Report, frozen=True, kw_only=True):
    """Years that hold evidence, newest first."""

    nodes: Open[tuple[TocNode, ...]]
    has_more: Open[bool] = False
    next_cursor: Open[str | None] = None


class TocNodeRequest(Request, frozen=True, kw_only=True):
    """Show one node of the table of contents: a year, month, week, day or segment."""

    node_id: NodeId


class TocNodeReport(Report, frozen=True, kw_only=True):
    """`node` is null where there is none of that id."""

    node: Open[TocNode | None]


class TocBrowseRequest(Request, frozen=True, kw_only=True):
    """List the children of a node in order of time: months of a year, weeks, days, segments."""

    parent_id: NodeId
    limit: ChildLimit = BROWSE_LIMIT
    continuation_token: Token | None = None


class TocBrowseReport(Report, frozen=True, kw_only=True):
    """A page of children; none where the parent is unknown. `continuation_token` is present with `has_more` alone."""

    children: Open[tuple[TocNode, ...]]
    continuation_token: Open[str | None] = None
    has_more: Open[bool] = False


class TocMatch(Piece, frozen=True, kw_only=True):
    """One text of a node that matches. `score` is 1 for the best of the node."""

    field: Open[TocField]
    text: Content[str | None]
    grip_ids: Open[tuple[str, ...]]
    score: Open[float]


class TocSearchNodeRequest(Request, frozen=True, kw_only=True):
    """Find the title, summary, bullets and keywords of one node that match a query, best first."""

    node_id: NodeId
    query: Query
    fields: Annotated[
        tuple[TocField, ...], Meta(max_length=len(TOC_FIELDS), description="only these fields; none: all of them")
    ] = ()
    limit: MatchLimit = 10


class TocSearchNodeReport(Report, frozen=True, kw_only=True):
    """`matched` says whether anything did."""

    matched: Open[bool]
    matches: Open[tuple[TocMatch, ...]]
    has_more: Open[bool] = False


class TocSearchChildrenRequest(Request, frozen=True, kw_only=True):
    """Find the children of a node, or the nodes of a level, whose events recall finds for a query, best first."""

    query: Query
    parent_id: Annotated[NodeId, Meta(description="the node; without one, years or the level")] | None = None
    child_level: (
        Annotated[TocLevel, Meta(description="level of the nodes; default: the one below the parent, or years")] | None
    ) = None
    limit: MatchLimit = 10


class TocFound(Piece, frozen=True, kw_only=True):
    """A node that was found. `score` is 1 for the best; `matches` are the bullets whose events were found."""

    node: Open[TocNode]
    score: Open[float]
    matches: Open[tuple[TocMatch, ...]] = ()


class TocSearchChildrenReport(Report, frozen=True, kw_only=True):
    """Nodes by the recall scores of their events, best first."""

    nodes: Open[tuple[TocFound, ...]]
    has_more: Open[bool] = False


class Grip(Piece, frozen=True, kw_only=True):
    """What a bullet rests on: an excerpt of one session's events. `node_id` is its segment."""

    grip_id: Open[str]
    excerpt: Content[str | None]
    event_id_start: Open[str]
    event_id_end: Open[str]
    timestamp_ms: Open[int]
    source: Open[str]
    node_id: Open[str]
    conversation: Open[ConversationRef]


class GripExpandRequest(Request, frozen=True, kw_only=True):
    """Show the events that a bullet rests on, with the events of the same session before and after them."""

    grip_id: Annotated[str, Meta(min_length=1, max_length=256, description="id of the grip")]
    events_before: ContextEvents = 3
    events_after: ContextEvents = 3


class GripExpandReport(Report, frozen=True, kw_only=True):
    """All in the session's order of time. Without a grip of that id, null and no events."""

    grip: Open[Grip | None]
    events_before: Open[tuple[EventRecord, ...]] = ()
    excerpt_events: Open[tuple[EventRecord, ...]] = ()
    events_after: Open[tuple[EventRecord, ...]] = ()


class AdminRebuildTocRequest(Request, frozen=True, kw_only=True):
    """Make the table of contents of every space anew from its events; what is as it was stays untouched."""

    from_date: (
        Annotated[
            str, Meta(min_length=10, max_length=10, description="from this day on, YYYY-MM-DD in UTC; default: all")
        ]
        | None
    ) = None
    dry_run: Annotated[bool, Meta(description="count the days that would be made anew, and change nothing")] = False


class AdminRebuildTocReport(Report, frozen=True, kw_only=True):
    """`days` counts days of sessions that were, or would be, made anew, `nodes` what there is now, `changed_nodes`
    those that became others, came or went."""

    dry_run: Open[bool]
    days: Open[int]
    nodes: Open[int]
    changed_nodes: Open[int]


class WrittenBullet(Part, frozen=True, kw_only=True):
    """One bullet of an answer; `turns` are ids of the turns that it rests on."""

    text: Annotated[str, Meta(max_length=2000)]
    turns: Annotated[tuple[Annotated[str, Meta(max_length=16)], ...], Meta(max_length=64)] = ()


class SegmentAnswer(Part, frozen=True, kw_only=True):
    """All that a model may answer. Whatever else it says makes the whole answer worthless."""

    title: Annotated[str, Meta(max_length=400)]
    bullets: Annotated[tuple[WrittenBullet, ...], Meta(max_length=16)]
    keywords: Annotated[tuple[Annotated[str, Meta(max_length=200)], ...], Meta(max_length=64)] = ()


def decode_segment_answer(text: bytes) -> SegmentAnswer:
    """A model's answer about a segment, decoded strictly.

    Raises:
        InvalidRequest: it is anything but the one JSON object that was asked for. Its message may quote the answer.
    """
    return decode_json(text, SegmentAnswer)


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "toc.root", "toc_root", TocRootRequest, TocRootReport, "read", "toc", QUERY, ("query", "root"),
        "list the years of the table of contents, newest first",
        shell=("beetle query root",),
        exposed=RPC,
    ),
    Operation(
        "toc.node", "toc_node", TocNodeRequest, TocNodeReport, "read", "toc", QUERY, ("query", "node"),
        "show one node of the table of contents: a year, month, week, day or segment",
        word="node_id",
        example={"node_id": "toc:year:2026"},
        shell=("beetle query node toc:month:2026-01",),
        exposed=RPC,
    ),
    Operation(
        "toc.browse", "toc_browse", TocBrowseRequest, TocBrowseReport, "read", "toc", QUERY, ("query", "browse"),
        "list the children of a node in order of time: months of a year, weeks, days, segments",
        word="parent_id",
        example={"parent_id": "toc:year:2026", "limit": 5},
        shell=("beetle query browse toc:year:2026 --limit 5",),
        exposed=RPC,
    ),
    Operation(
        "toc.search_node", "toc_search_node", TocSearchNodeRequest, TocSearchNodeReport, "read", "toc", QUERY,
        ("query", "search-node"),
        "find the title, summary, bullets and keywords of one node that match a query, best first",
        word="node_id",
        example={"node_id": "toc:year:2026", "query": "spare key"},
        shell=("beetle query search-node toc:year:2026 --query 'spare key'",),
        exposed=RPC,
    ),
    Operation(
        "toc.search_children", "toc_search_children", TocSearchChildrenRequest, TocSearchChildrenReport, "read", "toc",
        QUERY, ("query", "search-children"),
        "find the children of a node, or the nodes of a level, whose events recall finds for a query, best first",
        word="query",
        example={"query": "spare key", "parent_id": "toc:year:2026"},
        shell=("beetle query search-children 'spare key' --child-level day",),
        exposed=RPC,
    ),
    Operation(
        "grip.expand", "expand_grip", GripExpandRequest, GripExpandReport, "read", "toc", QUERY, ("query", "expand"),
        "show the events that a bullet rests on, with the events of the same session before and after them",
        word="grip_id",
        example={"grip_id": "grip:01HXYZABC123", "events_before": 3, "events_after": 3},
        shell=("beetle query expand grip:01HXYZABC123 --events-before 5",),
        exposed=RPC,
    ),
    Operation(
        "admin.rebuild_toc", "rebuild_toc", AdminRebuildTocRequest, AdminRebuildTocReport, "admin", "admin", ADMIN,
        ("admin", "rebuild-toc"),
        "make the table of contents of every space anew from its events; what is as it was stays untouched",
        batch=False, grows=False, heavy=True, deadline_ms=3_600_000,
        example={"from_date": "2026-01-01", "dry_run": True},
        shell=("beetle admin rebuild-toc --dry-run", "beetle admin rebuild-toc --from-date 2026-01-01"),
        progress=True,
    ),
)  # fmt: skip
