"""A recall and a projection in words: why a hit stands where it stands, and where the block's characters went."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from beetle.contracts.errors import BeetleError
from beetle.contracts.memory import MemoryProjectionReport, MemoryRecallReport, RecallHit
from beetle_tui.memory.section import NOT_SHOWN
from beetle_tui.prose import Block, section
from beetle_tui.split import remark, value, written
from beetle_tui.text import bar, count, moment

MEANS = {
    "lexical": "it matched by itself",
    "neighbour": "a neighbour lent to it",
    "session": "its session holds much of what was found",
    "phrase": "it holds a phrase of the query",
    "speaker": "the query names its speaker",
    "date": "it is of a date in the query",
    "current_conversation": "it is of the current conversation",
    "title": "its title holds a term",
    "first_person": "its speaker was asked for, and says I",
    "time_expression": "a time was asked for, and it names one",
    "importance": "its writer gave it weight",
    "confidence": "its writer was sure of it",
    "referenced": "later thoughts build on it",
}
"""What each signal says; one that is not known here is shown by its name."""
FOUND_BY = {
    "named": "as the request names it",
    "remembered": "as it is remembered",
    "chat_id": "by its chat id",
    "untrusted": "none: two conversations claim the chat id",
    "withheld": "none: nothing of it is live",
    "nothing": "none",
}


class Tried(NamedTuple):
    """What came of one query. `waited_ms` are the round trips, recall's and projection's, as the console saw them."""

    query: str
    found: MemoryRecallReport
    block: MemoryProjectionReport | BeetleError
    waited_ms: tuple[float, float]


def foot(tried: Tried) -> str:
    """What stands below the hits: how many were ranked, and how long it took."""
    working, spent = tried.found.working_recall, tried.found.timings_ms
    return (
        f"{count(working.candidates, 'candidate')}; {spent.total:.1f} ms: "
        f"search {spent.search:.1f}, load {spent.load:.1f}, rank {spent.rank:.1f}"
    )


def hit_blocks(hit: RecallHit, plain: bool) -> Iterator[Block]:
    """A hit: its text, its signals, what it is."""
    if hit.title:
        yield from written(hit.title)
    yield from remark(NOT_SHOWN) if hit.excerpt is None else written(hit.excerpt)
    yield from section("Why it stands here")
    yield value("Score", f"{bar(hit.score, plain)}  {hit.score:.3f} of the best one's")
    for each in hit.why:
        yield value(
            each if len(each) <= 12 else "",
            MEANS.get(each, each) if len(each) <= 12 else f"{each}: {MEANS.get(each, '')}",
        )
    yield from section("About it")
    yield value("Ref", hit.ref, hit.ref)
    yield value("Plane", hit.plane)
    if hit.at is not None:
        yield value("At", moment(hit.at))
    if hit.conversation is not None:
        yield value("Conversation", f"{hit.conversation.channel_id}/{hit.conversation.conversation_id}")
    for label, text in (("Turn", hit.turn_id), ("Message", hit.message_id), ("Session", hit.session_id)):
        if text is not None:
            yield value(label, text)
    yield value("Visibility", f"{hit.visibility}, {hit.state}")


def search_blocks(tried: Tried) -> Iterator[Block]:
    """How the query was answered, where there is no hit to show."""
    working = tried.found.working_recall
    yield from remark("No memory holds words of this query in the planes and at the time that are chosen.")
    yield from section("How it was looked for")
    yield from _search(tried)
    yield value("Candidates", f"{working.candidates:,}")


def _search(tried: Tried) -> Iterator[Block]:
    working = tried.found.working_recall
    current = working.current_conversation
    named = "" if current is None else f"{current.channel_id}/{current.conversation_id}, "
    yield value("Terms", f"{working.terms:,}")
    yield value("Planes", ", ".join(working.planes) or "none")
    yield value("Current", f"{named}{FOUND_BY[working.current_by]}")


def block_blocks(tried: Tried, plain: bool) -> Iterator[Block]:
    """The projected block: its budget, its sections, its text; then how recall went, and tool hints."""
    block = tried.block
    if isinstance(block, BeetleError):
        yield from remark(f"{block.key}: {block.message}\n{block.hint or ''}")
    else:
        yield from _budget(block, plain)
        yield from section("As a model gets it")
        if block.system_memory_block is None:
            yield from remark(NOT_SHOWN)
        elif not block.system_memory_block:
            yield from remark("Empty: nothing fits, or there is nothing.")
        else:
            yield from written(block.system_memory_block)
    yield from section("Tool hints")
    yield from _hints(tried)
    yield from section("How it was looked for")
    yield from _search(tried)
    spent = tried.found.timings_ms
    yield value("Recall", f"{spent.total:.1f} ms in the store, {tried.waited_ms[0]:.1f} ms with the way")
    yield value("Projection", f"{tried.waited_ms[1]:.1f} ms with the way")


def _budget(block: MemoryProjectionReport, plain: bool) -> Iterator[Block]:
    audit = block.audit
    share = audit.characters / audit.budget if audit.budget else 0.0
    yield value("Block", f"{bar(share, plain)}  {audit.characters:,} of {audit.budget:,} characters")
    for each in block.sections:
        share = each.characters / each.budget if each.budget else float(each.characters > 0)
        left = f", {each.omitted:,} left out" if each.omitted else ""
        lent = ", with room that others left" if each.characters > each.budget else ""
        used = f"{each.characters:,} of {each.budget:,}{lent}; {count(each.items, 'item')}{left}"
        yield value(each.name, f"{bar(share, plain)}  {used}")
    yield value("Pressure", audit.pressure)
    yield value("Planes", ", ".join(audit.source_planes) or "none")
    if audit.withheld:
        yield value("Withheld", f"{count(audit.withheld, 'item')} by the privacy gate")
    yield from remark("It is built as of now and over every plane, whatever narrows the hits.")


def _hints(tried: Tried) -> Iterator[Block]:
    status = tried.found.tool_experience_status
    if not tried.found.agent_tool_hints:
        yield from remark(f"None: {status.reason}.")
    for each in tried.found.agent_tool_hints:
        yield value(f"{each.score:.2f}", f"{each.tool_id} of {each.registry_id}: {each.reason or NOT_SHOWN}")
