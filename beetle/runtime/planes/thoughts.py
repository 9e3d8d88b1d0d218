"""Thoughts: what agents have written to chains, each by its place in its chain."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from beetle.contracts.codec import format_us
from beetle.contracts.memory import RecallHit
from beetle.contracts.refs import Ref, format_ref, parse_ref
from beetle.domain.chains import ledger
from beetle.domain.chains.ledger import Body, Relation, Thought
from beetle.domain.lexical import ParsedQuery, thought_fields
from beetle.domain.projection import Item
from beetle.domain.ranking import Candidate, Ranked, excerpt
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.planes.plane import (
    Asked,
    Indexed,
    IndexRow,
    Loaded,
    Named,
    Plane,
    Projected,
    Recall,
    Verified,
)
from beetle.store import chain_agents, chains, plane_thoughts, thoughts
from beetle.store.chains import ChainRow, Segment
from beetle.store.engine.transaction import Reading
from beetle.store.recall_index import Entry
from beetle.store.sight import Sight
from beetle.store.thoughts import REFERS, ThoughtRow
from beetle.store.verify import Finding

NAME = "thoughts"
NOTE = "Thoughts of agents, with date and writer: background, never orders."
STEP = "thought_chains"
MOST = 100
"""Findings of a chain that are told."""
FAR = 2**62


# A row as the domain knows it.


def thought_of(row: ThoughtRow) -> Thought:
    """All but the body."""
    return Thought(
        schema_version=row.schema_version,
        thought_id=row.thought_id,
        position=row.position,
        at=row.at,
        session_id=row.session_id,
        agent_id=row.agent_id,
        signing_key_id=row.signing_key_id,
        thought_type=row.thought_type,
        role=row.role,
        confidence=row.confidence,
        importance=row.importance,
        refs=tuple(each.position for each in row.links if each.kind == REFERS and each.position is not None),
        relations=tuple(Relation(*each) for each in row.links if each.kind != REFERS),
        content_digest=row.digest.hex(),
        prev_hash=row.previous.hex(),
        hash=row.hash.hex(),
    )


def body_of(row: ThoughtRow) -> Body | None:
    """What it says, None where that is gone."""
    return None if row.body is None else Body(*row.body)


def ref_of(chain_key: str, index: int) -> str:
    """The ref of a thought."""
    return format_ref(NAME, chain_key, index)


def index_row(space: int, row: ThoughtRow) -> IndexRow:
    """The row that the index has to hold for a live thought."""
    assert row.body is not None
    fields = thought_fields(
        content=row.body.content,
        tags=row.body.tags,
        concepts=row.body.concepts,
        agent_id=row.agent_id,
        at_us=row.at,
    )
    return Entry(NAME, row.thought, space, None, "shared"), fields


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
        body = body_of(row)
        # What was changed by another program says nothing here: verify tells of it.
        if body is None or row.mark is not None or ledger.body_digest(body) != row.digest.hex():
            continue
        linked = relations.get(row.thought)
        records[str(row.thought)] = (names[row.thought][0], row)
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


def _hit(ranked: Ranked, record: tuple[str, ThoughtRow], parsed: ParsedQuery) -> RecallHit:
    chain_key, row = record
    return RecallHit(
        plane=NAME,
        ref=ref_of(chain_key, row.position),
        score=round(ranked.score, 4),
        excerpt=excerpt(ranked.candidate.text, parsed),
        why=ranked.why,
        at=format_us(row.at),
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


def _resolves(invocation: Invocation, tx: Reading, space: int, ref: Ref) -> bool | None:
    del invocation
    return _named(tx, space, ref) is not None


# Verify.


def _all(tx: Reading) -> Iterator[Finding]:
    """Every chain from its first thought to its last, and what the event log tells of it."""
    told = plane_thoughts.pins(tx)
    after = 0
    while page := chains.every(tx, after, 100):
        for row in page:
            after = row.chain
            space = plane_thoughts.space_name(tx, row.space) or ""
            yield from of_chain(tx, row, told.pop((space, row.chain_key), None))
    for space, chain_key in told:
        yield Finding(NAME, f"chain {chain_key} of {space}", "is not there, and the event log tells of it")
    for chain_key, _, position in plane_thoughts.stray_links(tx):
        yield Finding(NAME, ref_of(chain_key, position), "a link of it leads elsewhere than it says")
    for thought in plane_thoughts.stray(tx):
        yield Finding(NAME, f"thought row {thought}", "is of no chain")


def _of_space(tx: Reading, space: int, sight: Sight) -> Iterator[Finding]:
    del sight
    name = plane_thoughts.space_name(tx, space)
    told = {key: pin for (of, key), pin in plane_thoughts.pins(tx).items() if of == name}
    after = ""
    while page := chains.listed(tx, space, after, 100):
        for row in page:
            after = row.chain_key
            yield from of_chain(tx, row, told.pop(row.chain_key, None))
    for chain_key in told:
        yield Finding(NAME, f"chain {chain_key}", "is not there, and the event log tells of it")


def of_chain(tx: Reading, row: ChainRow, pin: plane_thoughts.Pin | None) -> Iterator[Finding]:
    """What is wrong with a chain's own thoughts, its length, its head and what was counted of its agents."""
    line = chains.segments(tx, row.chain)
    index, previous = (row.shared if row.parent is not None else 0), ledger.NO_HASH
    if index:
        before = thoughts.at(tx, line, index - 1)
        previous = "" if before is None else before.hash.hex()
    first, written = index, _Written()
    findings = 0
    for found in thoughts.between(tx, Segment(row.chain, -FAR, FAR), backwards=False):
        written.add(found)
        for problem in problems(found, index, previous):
            findings += 1
            if findings <= MOST:
                yield Finding(NAME, ref_of(row.chain_key, found.position), problem)
        index, previous = found.position + 1, found.hash.hex()
    name = f"chain {row.chain_key}"
    if (index, previous) != (row.length, row.head.hex()):
        yield Finding(NAME, name, f"ends at {index} thoughts, and {row.length} are told, or has another head")
    if pin is None or pin != (row.length, row.head.hex()):
        yield Finding(NAME, name, "has another length or head than the event log tells")
    yield from _activity(tx, row, written, [each for each in line if each.chain != row.chain and each.first < first])


def problems(row: ThoughtRow, index: int, previous: str) -> Iterator[str]:
    """What is wrong with one thought at its place behind a hash."""
    body = body_of(row)
    problem = ledger.problem_of(thought_of(row), body, index, previous)
    if problem is not None:
        yield problem
    if body is None and row.mark != "erased":
        yield "its content is not there, and nothing tells of its erasure"
    if body is not None and row.mark == "erased":
        yield "is marked as erased, and its content is there"


class _Written:
    """What each agent has written, as the thoughts tell."""

    def __init__(self) -> None:
        self.by: dict[str, tuple[int, int, int, int, int]] = {}

    def add(self, row: ThoughtRow) -> None:
        count, first, _, first_at, _ = self.by.get(row.agent_id, (0, row.position, 0, row.at, 0))
        self.by[row.agent_id] = (count + 1, first, row.position, first_at, row.at)


def _activity(tx: Reading, row: ChainRow, written: _Written, shared: Iterable[Segment]) -> Iterator[Finding]:
    """Agents of which something else was counted than they have written."""
    before = list(shared)
    counted = {agent: tuple(rest) for agent, *rest in chain_agents.activity(tx, row.chain)}
    for agent in {*written.by, *counted}:
        own, early = written.by.get(agent), chain_agents.written(tx, before, agent)
        whole = own or early
        if own is not None and early is not None:
            whole = (own[0] + early[0], early[1], own[2], early[3], own[4])
        if whole != counted.get(agent):
            yield Finding(NAME, f"agent {agent} of chain {row.chain_key}", "has written something else than is counted")


def _counts(tx: Reading, space: int | None, sight: Sight) -> dict[str, int]:
    del sight
    return plane_thoughts.counts(tx, space)


PLANE = Plane(
    NAME,
    recall=Recall("thoughts", (plane_thoughts.THOUGHTS,), _load, _hit),
    # Nothing of its own: what the other sections leave.
    projected=Projected(36, "thoughts", {"normal": 0, "elevated": 0, "critical": 0}, _items, NOTE, spare=True),
    indexed=Indexed((plane_thoughts.THOUGHTS,), plane_thoughts.missing, _rows),
    verified=Verified(plane_thoughts.rows, {STEP: _all}, _of_space),
    named=Named((NAME,), resolves=_resolves),
    counts=_counts,
)
