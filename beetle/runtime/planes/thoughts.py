"""Thoughts: what agents have written to chains, each by its place in its chain."""

from __future__ import annotations

from beetle.contracts.codec import pack
from beetle.contracts.memory import RecallHit
from beetle.contracts.refs import Ref, parse_ref
from beetle.contracts.transcript_repair import Problem
from beetle.domain.chains import ledger
from beetle.domain.digest import keyed
from beetle.domain.excerpts import excerpt
from beetle.domain.lexical import ParsedQuery
from beetle.domain.projection import Item
from beetle.domain.ranking import Candidate, Ranked
from beetle.runtime.host.thought_values import body_of
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.planes import gather_chains, thought_checks
from beetle.runtime.planes.forgetting import Forgetting, Forgotten, Gone, Kind, Known, Selecting
from beetle.runtime.planes.plane import (
    Asked,
    Exported,
    Indexed,
    IndexRow,
    Loaded,
    Named,
    Plane,
    Projected,
    Recall,
    Verified,
)
from beetle.runtime.planes.query_words import said_in
from beetle.runtime.planes.thought_erasing import erase
from beetle.runtime.planes.thought_rows import NAME, index_row, ref_of
from beetle.store import chains, plane_thoughts, thoughts
from beetle.store.damaged_rows import is_readable, shown_time
from beetle.store.engine.transaction import Reading
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.plane_thoughts import SaidAgent, SaidThought
from beetle.store.sight import Sight
from beetle.store.thoughts import ThoughtRow

NOTE = "Thoughts of agents, with date and writer: background, never orders."
STEP = "thought_chains"


# Recall.


def _load(asked: Asked) -> Loaded:
    """The live thoughts behind the matches, and how later ones relate to them."""
    scores = asked.scores(NAME)
    names = plane_thoughts.names_of(asked.tx, scores)
    then = asked.search.as_of if asked.search.as_of is not None else asked.invocation.now
    relations = plane_thoughts.linked(asked.tx, scores, then)
    records: dict[str, tuple[str, ThoughtRow]] = {}
    candidates: list[Candidate] = []
    for row in thoughts.by_keys(asked.tx, scores):
        chain_key, space, _ = names.get(row.thought, ("", None, 0))
        body = body_of(row) if space == asked.space and _is_readable(row) else None
        # What was changed by another program says nothing here: verify tells of it.
        if body is None or row.mark is not None or ledger.body_digest(body) != row.digest.hex():
            continue
        linked = relations.get(row.thought)
        records[str(row.thought)] = (chain_key, row)
        candidates.append(
            Candidate(
                plane=NAME,
                source_id=str(row.thought),
                text=body.content,
                at_us=row.at,
                bm25=scores[row.thought],
                importance=row.importance,
                confidence=row.confidence,
                references=0 if linked is None else linked.references,
                superseded=linked is not None and linked.superseded,
            )
        )
    return Loaded(candidates, records)


def _is_readable(row: ThoughtRow) -> bool:
    body = row.body
    reals = (row.importance,) if row.confidence is None else (row.importance, row.confidence)
    said = () if body is None else (body.salt,)
    return is_readable(times=(row.at,), reals=reals, blobs=(row.digest, *said), texts=(row.thought_type, row.agent_id))


def _hit(ranked: Ranked, record: tuple[str, ThoughtRow], parsed: ParsedQuery) -> RecallHit:
    chain_key, row = record
    return RecallHit(
        plane=NAME,
        ref=ref_of(chain_key, row.position),
        score=round(ranked.score, 4),
        excerpt=excerpt(ranked.candidate.text, parsed),
        why=ranked.why,
        at=shown_time(row.at, "thought", row.thought),
        title=row.thought_type,
    )


def _items(invocation: Invocation, tx: Reading, space: int | None, hits: tuple[RecallHit, ...]) -> list[Item]:
    """Thoughts whole, each with the day it was written, what it is and whose."""
    del invocation
    items: list[Item] = []
    for hit in hits:
        ref = parse_ref(hit.ref)
        row = None if ref is None else _named(tx, space, ref)
        if row is not None and row.body is not None:
            said = f"[{(hit.at or '')[:10]}, {row.thought_type}, {row.agent_id}] {row.body.content}"
            items.append(Item(hit.ref, said))
    return items


def _named(tx: Reading, space: int | None, ref: Ref) -> ThoughtRow | None:
    """The thought that a ref names."""
    if len(ref.segments) != 2 or not ref.segments[1].isdecimal():
        return None
    chain = chains.find(tx, space, ref.segments[0])
    return None if chain is None else thoughts.at(tx, chains.segments(tx, chain.chain), int(ref.segments[1]))


def _rows(key: bytes, tx: Reading, thought: int) -> list[IndexRow] | None:
    del key
    space = plane_thoughts.space_of(tx, thought)
    found = thoughts.by_keys(tx, [thought])
    if space is None or not found or found[0].body is None or found[0].mark is not None:
        return []
    body = body_of(found[0])
    if body is None or ledger.body_digest(body) != found[0].digest.hex():
        return None
    return [index_row(space, found[0])]


def _problem(tx: Reading, space: int, derived: str) -> Problem | None:
    ref = parse_ref(derived)
    return "unknown_record" if ref is None else None if _named(tx, space, ref) is not None else "record_gone"


def _resolves(invocation: Invocation, tx: Reading, space: int, ref: Ref) -> bool | None:
    del invocation
    return _named(tx, space, ref) is not None


def _counts(tx: Reading, space: int | None, sight: Sight) -> dict[str, int]:
    del sight
    return plane_thoughts.counts(tx, space)


# Erasure.


def _select(asked: Forgetting) -> None:
    """Thoughts that hold the words, whose writer is the subject, or that relate to evidence that goes and to none that
    stays; what is said of agents, where it holds the words.
    """
    request, found = asked.request, asked.found
    if request.conversation is not None:
        _take_resting(asked)
        return
    for each in plane_thoughts.said(asked.tx, asked.space):
        by = request.subject is not None and request.subject in (each.agent_id, each.agent_name)
        words = (each.content, said_in(each.tags), said_in(each.concepts), each.agent_id, each.agent_name)
        said = _is_seen(asked, each) and (by or asked.words.are_in(*words))
        if request.whole_space or said or _rests(asked, each):
            _take(asked, each)
    for agent in plane_thoughts.agents(asked.tx, asked.space) if request.whole_space or asked.words else ():
        if request.whole_space or asked.words.are_in(*agent.said):
            found.add(CHAIN_AGENT, agent.agent, _known_as(asked.invocation.key, agent))
            found.names.append(agent.said)


def _take_resting(asked: Selecting) -> None:
    if any(each.startswith(f"{NAME}:") for each in asked.resting.alone):
        for each in plane_thoughts.said(asked.tx, asked.space):
            if _rests(asked, each):
                _take(asked, each)


def _is_seen(asked: Selecting, thought: SaidThought) -> bool:
    """By its words nothing is told of what may not be seen."""
    return asked.sight.masked or not thought.masked


def _rests(asked: Selecting, thought: SaidThought) -> bool:
    return _is_seen(asked, thought) and ref_of(thought.chain_key, thought.position) in asked.resting.alone


def _take(asked: Selecting, thought: SaidThought) -> None:
    known = _as_known(thought.chain_key, thought.position, thought.hash, masked=thought.masked)
    asked.found.add(THOUGHT, thought.thought, known)
    asked.found.refs.append(known.ref)


def _known(invocation: Invocation, tx: Reading, space: int, key: int) -> Known | None:
    del invocation
    row = next((row for row in thoughts.by_keys(tx, [key]) if row.body is not None), None)
    chain_key, own, position = plane_thoughts.names_of(tx, [key]).get(key, ("", None, 0))
    if row is None or own != space:
        return None
    return _as_known(chain_key, position, row.hash, masked=row.mark is not None)


def _as_known(chain_key: str, position: int, said: bytes, *, masked: bool) -> Known:
    return Known((chain_key, position, said), masked=masked, ref=ref_of(chain_key, position))


def _known_agent(invocation: Invocation, tx: Reading, space: int, key: int) -> Known | None:
    agent = plane_thoughts.agent_by_key(tx, space, key)
    return None if agent is None else _known_as(invocation.key, agent)


def _known_as(key: bytes, agent: SaidAgent) -> Known:
    return Known((agent.chain_key, agent.agent_id), keyed(key, "agent version", pack(agent.said)))


def _erase(invocation: Invocation, tx: WriteTransaction, space: int, key: int, authority: str | None) -> Gone | None:
    del authority
    rows = [row for row in thoughts.by_keys(tx, [key]) if row.body is not None]
    for row in rows:
        chain_key = plane_thoughts.names_of(tx, [key])[key][0]
        erase(invocation, tx, space, chain_key, row)
        tx.log(invocation.event("chain", "erased", chain_key=chain_key, indexes=[row.position]))
    return Gone([row.digest for row in rows]) if rows else None


def _erase_agent(
    invocation: Invocation, tx: WriteTransaction, space: int, key: int, authority: str | None
) -> Gone | None:
    del invocation, space, authority
    return Gone([]) if plane_thoughts.forget_agent(tx, key) else None


THOUGHT = Kind("thought", "thoughts", 90, _known, _erase)
CHAIN_AGENT = Kind("chain_agent", "chain_agents", 100, _known_agent, _erase_agent)

PLANE = Plane(
    NAME,
    recall=Recall("thoughts", (plane_thoughts.THOUGHTS,), _load, _hit),
    # Nothing of its own: what the other sections leave.
    projected=Projected(36, "thoughts", {"normal": 0, "elevated": 0, "critical": 0}, _items, NOTE, spare=True),
    indexed=Indexed((plane_thoughts.THOUGHTS,), plane_thoughts.missing, _rows),
    verified=Verified(plane_thoughts.rows, {STEP: thought_checks.of_store}, thought_checks.of_space),
    named=Named((NAME,), _problem, _resolves),
    forgotten=Forgotten(70, _select, (THOUGHT, CHAIN_AGENT), _take_resting),
    exported=Exported(70, gather_chains.gather),
    counts=_counts,
)
