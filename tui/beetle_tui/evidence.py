"""Reads evidence for the console: conversations, the turns of one, messages by their words, one turn whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

from beetle.contracts.codec import to_plain
from beetle.contracts.common import Conversation, ConversationRef
from beetle.contracts.names import ViewName
from beetle.contracts.transcript import (
    ConversationSummary,
    MemoryTranscriptConversationsReport,
    MemoryTranscriptConversationsRequest,
    MemoryTranscriptSearchReport,
    MemoryTranscriptSearchRequest,
    MemoryTranscriptTimelineReport,
    MemoryTranscriptTimelineRequest,
    SearchHit,
    TimelineAnchor,
    TranscriptRedactionReportItem,
    TranscriptTurn,
)
from beetle_tui.exporting import Pages, json_line
from beetle_tui.link import Link
from beetle_tui.rows import Batch, CursorRows, NumberedRows
from beetle_tui.turns import TurnRow, rows_between

TURNS_READ = 50
"""Turns of a page: they come whole, and only a line of each is kept."""
HITS_READ = 200
"""Messages that a search is asked for; the profile may answer with fewer."""
SEARCHED: tuple[ViewName, ...] = ("host_ui", "model_context")
"""Views that the daemon searches through: a hit alone tells of content."""


class Search(NamedTuple):
    """What is looked for: everywhere, or in one conversation."""

    query: str
    where: Conversation | None
    view: ViewName


def conversation(named: ConversationSummary | ConversationRef) -> Conversation:
    """A conversation of a report, as requests name it."""
    return Conversation(channel_id=named.channel_id, conversation_id=named.conversation_id)


def name_of(where: Conversation) -> str:
    """A conversation as people name it."""
    return f"{where.channel_id}/{where.conversation_id}"


def conversation_rows(link: Link, query: str) -> CursorRows[ConversationSummary]:
    """Every conversation, or those whose id or channel holds the query."""

    async def fetch(cursor: str | None, limit: int) -> Batch[ConversationSummary]:
        request = MemoryTranscriptConversationsRequest(query=query or None, limit=limit, cursor=cursor)
        report = cast(MemoryTranscriptConversationsReport, await link.call("transcript.conversations", request))
        return Batch(report.conversations, report.next_cursor)

    return CursorRows(fetch)


async def timeline(
    link: Link, where: Conversation, view: ViewName, anchor: TimelineAnchor | None, limit: int
) -> MemoryTranscriptTimelineReport:
    """Turns at an anchor; without one, the latest.

    Raises:
        BeetleError: see transcript.timeline.
    """
    request = MemoryTranscriptTimelineRequest(
        conversation=where, view=view, anchor="latest" if anchor is None else anchor, limit=limit
    )
    return cast(MemoryTranscriptTimelineReport, await link.call("transcript.timeline", request))


def turn_rows(link: Link, where: Conversation, view: ViewName, count: int) -> NumberedRows[TurnRow]:
    """The turns of a conversation; row n is the turn with the number n + 1, `count` the number of the last one."""

    async def fetch(start: int, size: int) -> Batch[TurnRow]:
        pages: list[MemoryTranscriptTimelineReport] = []
        reached = start
        # A profile may answer with fewer turns than a page has rows.
        while reached < start + size:
            anchor = TimelineAnchor(after=reached)
            page = await timeline(link, where, view, anchor, start + size - reached)
            if not page.turns:
                break
            pages.append(page)
            reached = page.turns[-1].sequence
            if not page.has_after:
                break
        return Batch(rows_between(pages, start + 1, start + size if pages and pages[-1].has_after else reached))

    return NumberedRows(fetch, count, TURNS_READ)


def hit_rows(link: Link, search: Search) -> NumberedRows[SearchHit]:
    """Messages by their words, best first."""

    async def fetch(start: int, size: int) -> Batch[SearchHit]:
        del start
        request = MemoryTranscriptSearchRequest(
            query=search.query, view=search.view, conversation=search.where, limit=size
        )
        report = cast(MemoryTranscriptSearchReport, await link.call("transcript.search", request))
        return Batch(report.hits, total=len(report.hits))

    return NumberedRows(fetch, 0, HITS_READ)


def plain_turn(turn: TranscriptTurn, redactions: Sequence[TranscriptRedactionReportItem]) -> dict[str, Any]:
    """A turn for a file, with what its view withholds of it."""
    withheld = [to_plain(each) for each in redactions if each.turn_id == turn.turn_id]
    return {**to_plain(turn), "redactions": withheld}


async def turn_lines(link: Link, where: Conversation, view: ViewName) -> Pages:
    """Every turn of a conversation, whole, as lines of a file.

    Raises:
        BeetleError: see transcript.timeline.
    """
    reached = 0
    while True:
        page = await timeline(link, where, view, TimelineAnchor(after=reached), TURNS_READ)
        yield [json_line(plain_turn(each, page.redactions)) for each in page.turns]
        if not page.turns or not page.has_after:
            return
        reached = page.turns[-1].sequence
