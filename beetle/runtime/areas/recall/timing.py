"""The time that a query speaks of, as recall uses it: more candidates from then, and a bonus for them."""

from __future__ import annotations

from beetle.domain.lexical import ParsedQuery, parse_query, search_terms
from beetle.domain.time_words import Anchor, Window, anchor_of, asks_for_all, window_at, window_of, without
from beetle.named_tuple import NamedTuple
from beetle.runtime.pipeline.views import visible_kinds
from beetle.runtime.planes.evidence import TABLES
from beetle.runtime.planes.plane import Search
from beetle.store import evidence, recall_index, toc
from beetle.store.engine.transaction import Reading
from beetle.store.search_scope import SearchScope

ANCHORED = 0.25
"""What a time counts that was itself found by recall."""
NAMED_POOL, ANCHORED_POOL = 56, 28
"""Index hits to fetch of a time that the query names, and of one that was itself found by recall, beside those of all
times. Rows are looked at until so many are of the time: of a short time, thousands.

Recall at 10 of the development half among 100,000 other turns, each question with "last week" and asked a week later:
.8497 with 56, .8502 with 112, .8473 with 32. Of the 22 questions with an event's time 14, 28 and 112 measure the same.
"""
ALL_OF_A_TIME = 64
"""Bullets that answer a query for all of a time."""


class Timed(NamedTuple):
    """A query as it is looked for, and the time that it names; None where it names none that holds events."""

    parsed: ParsedQuery
    window: Window | None
    everything: bool = False
    """Whether it asks for all that was said then."""
    conversation: int | None = None
    """Where that was, when the query is of one conversation."""
    pool: int = NAMED_POOL
    """How many hits of that time are fetched at the least."""


def read(tx: Reading, search: Search, space: int | None) -> Timed:
    """What a query says of time. A time in which nothing was said counts for nothing: the words may mean another."""
    plain = Timed(parse_query(search.query), None)
    if space is None or search.asked_at is None or search.timed:
        return plain
    conversation = _conversation(tx, search, space)
    window = window_of(search.query, search.asked_at)
    if window is not None:
        # What the viewer may not see gives no time a meaning: the report would say that it is there.
        if not toc.has_events(tx, space, conversation, window.since, window.until, visible_kinds(search.viewer)):
            return plain
        # A month by its name is a date too, whatever the year.
        left = without(search.query, window.words)
        rest = plain.parsed if left is None else parse_query(left)
        found = (plain.parsed if plain.parsed.dates else rest)._replace(window=(window.since, window.until))
        return Timed(found, window, left is None or asks_for_all(rest.terms), conversation)
    anchor = anchor_of(search.query)
    at = None if anchor is None else _time_of(tx, search, space, conversation, anchor)
    if anchor is None or at is None:
        return plain
    window = window_at(anchor, at)
    found = plain.parsed._replace(window=(window.since, window.until), window_share=ANCHORED)
    return Timed(found, window, pool=ANCHORED_POOL)


def _time_of(tx: Reading, search: Search, space: int, conversation: int | None, anchor: Anchor) -> int | None:
    """When it was that a query dates itself by: the time of the message that matches it best."""
    parsed = parse_query(anchor.what)
    terms = search_terms(parsed) if parsed.terms else ()
    if not terms:
        return None
    kinds = visible_kinds(search.viewer)
    scope = SearchScope(space=space, tables=TABLES, conversation=conversation, private="private" in kinds)
    found = recall_index.search(tx, terms, scope, 1).matches
    return toc.time_of(tx, space, found[0].key) if found else None


def everything(tx: Reading, timed: Timed, search: Search, space: int | None) -> dict[int, float]:
    """The messages that answer a query for all of a time: those behind its bullets, the better the longer the period
    that chose them, and those that no segment holds yet. None where the query asks for something else, or where its
    time has no bullets yet."""
    if space is None or timed.window is None or not timed.everything or search.label is not None:
        return {}
    since, until = timed.window.since // 1000, timed.window.until // 1000
    if timed.conversation is not None:
        found = dict.fromkeys(toc.bullets_of(tx, timed.conversation, since, until, ALL_OF_A_TIME), 1.0)
        fresh = toc.unsegmented_of(tx, timed.conversation, timed.window.since, timed.window.until, ALL_OF_A_TIME)
        return {**dict.fromkeys(fresh, 1.0), **found} if found else {}
    found: dict[int, float] = {}
    for level in range(1, toc.SEGMENT + 1):
        left = ALL_OF_A_TIME - len(found)
        for message in toc.bullets_between(tx, space, level, since, until, left) if left > 0 else ():
            found.setdefault(message, 1.0 / level)
    if found:
        # What was said since the table of contents was last brought up to date belongs to the time as well.
        for message in toc.unsegmented_between(tx, space, since, until, ALL_OF_A_TIME):
            found.setdefault(message, 1.0 / toc.SEGMENT)
    return found


def _conversation(tx: Reading, search: Search, space: int) -> int | None:
    if search.conversation is None:
        return None
    row = evidence.find_conversation(tx, space, search.conversation.channel_id, search.conversation.conversation_id)
    return -1 if row is None else row.conversation
