"""Finding memory for a query: the recall index and what is in none, the ranking, the hits."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from beetle.contracts.memory import RecallHit, RecallTimings, WorkingRecall
from beetle.domain.lexical import search_terms
from beetle.domain.ranking import POOL, Candidate, rank
from beetle.named_tuple import NamedTuple
from beetle.runtime.areas.evidence.alias import current_conversation
from beetle.runtime.areas.recall import timing
from beetle.runtime.areas.recall.timing import Timed
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.pipeline.paging import Room
from beetle.runtime.pipeline.views import visible_kinds
from beetle.runtime.planes import table
from beetle.runtime.planes.evidence import NAME as EVIDENCE
from beetle.runtime.planes.plane import Asked, Recall, Search
from beetle.store import evidence, recall_index, transcripts
from beetle.store.damaged_rows import known_time
from beetle.store.engine.transaction import Reading
from beetle.store.indexed import Tables
from beetle.store.search_scope import SearchScope


class Answer(NamedTuple):
    hits: tuple[RecallHit, ...]
    working: WorkingRecall
    timings: RecallTimings
    clipped: bool
    """There was no room for all that the request's limit allows."""


def find(invocation: Invocation, tx: Reading, search: Search) -> Answer:
    """The best hits for a query that the viewer may see."""
    started = time.perf_counter()
    space = evidence.find_space(tx, invocation.space_id)
    timed = timing.read(tx, search, space)
    parsed = timed.parsed
    looked = _looked_through(invocation, search)
    current = current_conversation(invocation, tx, space, search.conversation or search.here)
    parts = ((each.tables, each.past if search.as_of is not None else ()) for each in looked.values())
    tables = tuple(each for now, past in parts for each in (*now, *past))
    phrases: dict[str, float] = {}
    every = timing.everything(tx, timed, search, space) if EVIDENCE in looked else {}
    if every:
        # Words such as "talk" say nothing of what was talked about, and stand at other times and in other planes too.
        parsed = parsed._replace(terms=(), phrases=())
        looked, found = {EVIDENCE: looked[EVIDENCE]}, {EVIDENCE: every}
    else:
        found = {} if space is None or not tables else _search(tx, timed, search, space, tables, phrases)
    searched = time.perf_counter()
    asked = Asked(invocation, tx, space, search, parsed, visible_kinds(search.viewer), found)
    candidates, records = _loaded(asked, looked)
    invocation.work.breathe()
    ready = time.perf_counter()
    shown = rank(
        parsed,
        candidates,
        phrases=phrases,
        current_conversation=current.conversation,
        matching=not search.neighbours,
        limit=search.limit,
    )
    for name, recall in looked.items():
        if recall.records is not None:
            ids = (each.candidate.source_id for each in shown if each.candidate.plane == name)
            records[name] = recall.records(asked, ids)
    room = Room(invocation)
    hits = room.fill(
        looked[each.candidate.plane].hit(each, record, parsed)
        for each in shown
        if (record := records[each.candidate.plane].get(each.candidate.source_id)) is not None
    )
    done = time.perf_counter()
    working = WorkingRecall(
        current_conversation=current.ref,
        current_by=current.by,
        planes=tuple(looked),
        candidates=len(candidates),
        terms=len(parsed.terms),
        time_from=known_time(timed.window and timed.window.since),
        time_until=known_time(timed.window and timed.window.until),
    )
    timings = RecallTimings(
        search=_ms(started, searched), load=_ms(searched, ready), rank=_ms(ready, done), total=_ms(started, done)
    )
    return Answer(hits, working, timings, room.full)


def _loaded(asked: Asked, looked: Mapping[str, Recall]) -> tuple[list[Candidate], dict[str, Mapping[str, Any]]]:
    """The candidates of all planes, and by plane what stands behind them. One that is in the index and of which the
    search found nothing is not asked."""
    candidates: list[Candidate] = []
    records: dict[str, Mapping[str, Any]] = {}
    for name, recall in looked.items():
        if recall.tables and not any(each.name in asked.found for each in (*recall.tables, *recall.past)):
            continue
        loaded = recall.load(asked)
        candidates += loaded.candidates
        records[name] = loaded.records
    return candidates, records


def _looked_through(invocation: Invocation, search: Search) -> dict[str, Recall]:
    """The planes that this search looks through, by their names."""
    return {
        plane.name: plane.recall
        for plane in table.PLANES
        if plane.recall is not None
        and (search.planes is None or plane.name in search.planes)
        and plane.recall.open_to(invocation, search)
    }


def _search(
    tx: Reading, timed: Timed, search: Search, space: int, tables: Tables, phrases: dict[str, float]
) -> dict[str, dict[int, float]]:
    """The scores of the index's best matches, by its own names and keys, and of those of the time that the query names,
    which may not be among the best of all times. `phrases` gets what those count that it was not asked for."""
    conversation: int | None = None
    if search.conversation is not None:
        row = evidence.find_conversation(tx, space, search.conversation.channel_id, search.conversation.conversation_id)
        # A conversation that is not there holds no evidence; what belongs to no conversation is still in view.
        conversation = -1 if row is None else row.conversation
    kinds = visible_kinds(search.viewer)
    terms = search_terms(timed.parsed, transcripts.speakers(tx, space, conversation, kinds))
    if not terms:
        return {}
    until = search.until
    if search.as_of is not None:
        until = search.as_of if until is None else min(until, search.as_of)
    scope = SearchScope(
        space=space,
        tables=tables,
        conversation=conversation,
        private="private" in kinds,
        since=search.since,
        until=until,
        as_of=search.as_of,
        label=search.label,
    )
    within: recall_index.Within | None = None
    if timed.window is not None:
        most = min(POOL, max(timed.pool, search.limit))
        within = recall_index.Within(timed.window.since, timed.window.until, most)
    answer = recall_index.search(tx, terms, scope, POOL, within)
    phrases.update(answer.phrases)
    found: dict[str, dict[int, float]] = {}
    for each in (*answer.within, *answer.matches):
        found.setdefault(each.plane, {})[each.key] = each.score
    return found


def _ms(start: float, end: float) -> float:
    return round((end - start) * 1000, 3)
