"""Finding memory for a query: the recall index, the neighbouring turns, the ranking."""

from __future__ import annotations

import time
from typing import NamedTuple

from beetle.contracts.codec import format_us, replace
from beetle.contracts.common import Conversation, ConversationRef
from beetle.contracts.memory import RecallHit, RecallTimings, WorkingRecall
from beetle.contracts.refs import format_ref
from beetle.memory.lexical import BM25_WEIGHTS, ParsedQuery, match_expression, parse_query
from beetle.memory.ranking import POOL, Candidate, Ranked, excerpt, neighbours_wanted, rank
from beetle.runtime import agent_skills
from beetle.runtime.alias import current_conversation
from beetle.runtime.handling import Context
from beetle.runtime.skill_folder import SkillFolder
from beetle.runtime.views import Viewer, visible_kinds
from beetle.store import evidence, long_term, recall_index, skills, transcripts
from beetle.store.long_term import Shown
from beetle.store.recall_index import PAST, Found, SearchScope
from beetle.store.skills import RevisionRow, SkillRow
from beetle.store.transaction import Reading
from beetle.store.transcripts import EvidenceRow

SEARCHED = ("evidence", "procedural", "long_term")
"""Planes that have index rows."""


class Search(NamedTuple):
    """What to look for, where, and for whose eyes. Times in microseconds, both ends included.

    `conversation` narrows the search to one; `here` only says which one counts as current. Agent Skills have no time:
    they are looked through only where none is named.
    """

    query: str
    limit: int
    viewer: Viewer
    conversation: Conversation | None = None
    planes: tuple[str, ...] | None = None
    since: int | None = None
    until: int | None = None
    as_of: int | None = None
    here: Conversation | None = None
    agent_skills: bool = True


class Answer(NamedTuple):
    hits: tuple[RecallHit, ...]
    working: WorkingRecall
    timings: RecallTimings


class _Skill(NamedTuple):
    row: SkillRow
    revision: RevisionRow


class _Loaded(NamedTuple):
    """Candidates with what they stand for."""

    candidates: list[Candidate]
    messages: dict[int, EvidenceRow]
    skills: dict[int, _Skill]
    facts: dict[int, Shown]
    agent_skills: dict[str, SkillFolder]


def find(context: Context, tx: Reading, search: Search) -> Answer:
    """The best hits for a query that the viewer may see."""
    started = time.perf_counter()
    parsed = parse_query(search.query)
    space = evidence.find_space(tx, context.space_id)
    planes = tuple(p for p in SEARCHED if search.planes is None or p in search.planes)
    mounted = _looks_at_agent_skills(context, search)
    current = current_conversation(context, tx, space, search.conversation or search.here)
    working = WorkingRecall(
        current_conversation=current.ref,
        current_by=current.by,
        planes=(*planes, agent_skills.PLANE) if mounted else planes,
        terms=len(parsed.terms),
    )
    found = _search(tx, parsed, search, space, planes) if space is not None and planes else []
    searched = time.perf_counter()
    loaded = _load(tx, found, search)
    if mounted:
        best = max((each.score for each in found), default=0.0)
        further, found_skills = agent_skills.candidates(context, search.query, parsed, best)
        loaded = loaded._replace(candidates=[*loaded.candidates, *further], agent_skills=found_skills)
    ready = time.perf_counter()
    ranked = rank(parsed, loaded.candidates, current_conversation=current.conversation)
    hits = tuple(_hit(each, loaded, parsed) for each in ranked[: search.limit])
    done = time.perf_counter()
    timings = RecallTimings(
        search=_ms(started, searched), load=_ms(searched, ready), rank=_ms(ready, done), total=_ms(started, done)
    )
    return Answer(hits, _with_candidates(working, len(loaded.candidates)), timings)


def _search(tx: Reading, parsed: ParsedQuery, search: Search, space: int, planes: tuple[str, ...]) -> list[Found]:
    conversation: int | None = None
    if search.conversation is not None:
        row = evidence.find_conversation(tx, space, search.conversation.channel_id, search.conversation.conversation_id)
        # A conversation that is not there holds no evidence; what belongs to no conversation is still in view.
        conversation = -1 if row is None else row.conversation
    speakers = transcripts.speakers(tx, space, conversation, visible_kinds(search.viewer))
    expression = match_expression(parsed, speakers)
    if expression is None:
        return []
    until = search.until
    if search.as_of is not None:
        until = search.as_of if until is None else min(until, search.as_of)
    scope = SearchScope(
        space=space,
        conversation=conversation,
        private="private" in visible_kinds(search.viewer),
        planes=planes,
        since=search.since,
        until=until,
        as_of=search.as_of,
    )
    return recall_index.search(tx, expression, scope, BM25_WEIGHTS[:3], POOL)


def _load(tx: Reading, found: list[Found], search: Search) -> _Loaded:
    """The records behind the index hits, and the neighbouring turns that lend to them or borrow from them."""
    scores = {(each.plane, each.key): each.score for each in found}
    kinds = visible_kinds(search.viewer)
    messages: dict[int, EvidenceRow] = {}
    candidates: list[Candidate] = []
    for row in transcripts.evidence_by_key(tx, [each.key for each in found if each.plane == "evidence"]):
        if row.visibility in kinds:
            messages[row.message] = row
            candidates.append(_evidence(row, scores["evidence", row.message]))
    for row in transcripts.evidence_by_place(tx, neighbours_wanted(candidates)):
        if row.visibility in kinds and row.message not in messages and _in_time(row.at, search):
            messages[row.message] = row
            candidates.append(_evidence(row, 0.0))
    shown: dict[int, _Skill] = {}
    for skill in skills.skills_by_key(tx, [each.key for each in found if each.plane == "procedural"]):
        revision = (
            skills.revision_of(tx, skill.skill, skill.revision)
            if search.as_of is None
            else skills.revision_as_of(tx, skill.skill, search.as_of)
        )
        if revision is not None:
            shown[skill.skill] = _Skill(skill, revision)
            candidates.append(_procedural(skill, revision, scores["procedural", skill.skill]))
    facts = {each.body.body: each for each in _facts(tx, found, search) if fact_visibility(each) in kinds}
    candidates.extend(_fact(each, _fact_score(each, scores)) for each in facts.values())
    return _Loaded(candidates, messages, shown, facts, {})


def _looks_at_agent_skills(context: Context, search: Search) -> bool:
    timed = search.since is not None or search.until is not None or search.as_of is not None
    wanted = search.planes is None or agent_skills.PLANE in search.planes
    return search.agent_skills and wanted and not timed and agent_skills.mounted(context)


def _facts(tx: Reading, found: list[Found], search: Search) -> list[Shown]:
    """The facts behind the index hits, each with the text that counts: the current one, or what was current then."""
    keys = [each.key for each in found if each.plane == "long_term"]
    if search.as_of is None:
        return [each for each in long_term.shown_by_key(tx, keys) if each.row.state == "current"]
    past = long_term.facts_of_bodies(tx, [each.key for each in found if each.plane == PAST])
    rows = long_term.facts_by_key(tx, {*keys, *(fact for fact, _ in past)})
    then = (long_term.shown_at(tx, row, search.as_of) for row in rows)
    return [each for each in then if each is not None]


def fact_visibility(shown: Shown) -> str:
    """How private a text of a fact is: as private as the record is now, or as the text was when it last held."""
    return "private" if "private" in (shown.row.visibility, shown.body.visibility) else shown.row.visibility


def _fact_score(shown: Shown, scores: dict[tuple[str, int], float]) -> float:
    """The score of the index row of this text: a current one stands under its record, an earlier one under itself."""
    past = scores.get((PAST, shown.body.body))
    return scores.get(("long_term", shown.row.fact), 0.0) if past is None else past


def _in_time(at: int, search: Search) -> bool:
    ends = [end for end in (search.until, search.as_of) if end is not None]
    return (search.since is None or at >= search.since) and all(at <= end for end in ends)


def _evidence(row: EvidenceRow, score: float) -> Candidate:
    return Candidate(
        plane="evidence",
        source_id=str(row.message),
        text=row.content,
        at_us=row.at,
        bm25=score,
        conversation=row.conversation,
        sequence=row.ordinal,
        speaker=row.speaker,
        archived=bool(row.archived),
    )


def _procedural(skill: SkillRow, revision: RevisionRow, score: float) -> Candidate:
    text = f"{revision.summary}\n{revision.content}"
    return Candidate(
        plane="procedural",
        source_id=str(skill.skill),
        text=text,
        at_us=skill.updated_at,
        bm25=score,
        title=revision.title,
    )


def _fact(shown: Shown, score: float) -> Candidate:
    body = shown.body
    return Candidate(
        plane="long_term",
        source_id=str(body.body),
        text=f"{body.topic}\n{body.content}",
        at_us=body.learned_at,
        bm25=score,
        title=body.topic,
    )


def _hit(ranked: Ranked, loaded: _Loaded, parsed: ParsedQuery) -> RecallHit:
    candidate = ranked.candidate
    if candidate.plane == agent_skills.PLANE:
        return agent_skills.hit(ranked, loaded.agent_skills[candidate.source_id], parsed)
    score = round(ranked.score, 4)
    if candidate.plane == "procedural":
        skill = loaded.skills[int(candidate.source_id)]
        return RecallHit(
            plane="procedural",
            ref=format_ref("procedural", skill.row.name),
            score=score,
            excerpt=excerpt(candidate.text, parsed),
            why=ranked.why,
            at=format_us(skill.row.updated_at),
            title=skill.revision.title,
        )
    if candidate.plane == "long_term":
        fact = loaded.facts[int(candidate.source_id)]
        return RecallHit(
            plane="long_term",
            ref=format_ref("long_term", fact.row.record_id),
            score=score,
            excerpt=excerpt(fact.body.content, parsed),
            why=ranked.why,
            at=format_us(fact.body.learned_at),
            title=fact.body.topic,
            visibility=fact_visibility(fact),  # type: ignore[arg-type] - the column is checked by the schema
        )
    row = loaded.messages[int(candidate.source_id)]
    return RecallHit(
        plane="evidence",
        ref=format_ref("evidence", row.channel_id, row.conversation_id, row.turn_id, row.message_id),
        score=score,
        excerpt=excerpt(row.content, parsed),
        why=ranked.why,
        at=format_us(row.at),
        title=row.speaker,
        conversation=ConversationRef(channel_id=row.channel_id, conversation_id=row.conversation_id),
        turn_id=row.turn_id,
        message_id=row.message_id,
        visibility=row.visibility,  # type: ignore[arg-type] - the column is checked by the schema
        state=row.state,  # type: ignore[arg-type] - likewise
    )


def _with_candidates(working: WorkingRecall, count: int) -> WorkingRecall:
    return replace(working, candidates=count)


def _ms(start: float, end: float) -> float:
    return round((end - start) * 1000, 3)
