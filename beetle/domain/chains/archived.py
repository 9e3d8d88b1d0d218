"""Chains of a snapshot or an archive: whether they are what a store would have written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from beetle.contracts.continuity_records import ChainAgentRecord, ChainRecord, ThoughtRecord
from beetle.domain.chains import kinds, ledger, normal
from beetle.domain.chains.ledger import Body, Relation, Thought
from beetle.named_tuple import NamedTuple

Verify = Callable[[bytes, bytes, bytes], bool]
"""Whether a signature (second) of some bytes holds by a key (third)."""


class Fault(NamedTuple):
    """What is wrong, and where, below the list of chains."""

    path: str
    reason: str


def thought_of(each: ThoughtRecord, index: int, previous: str) -> Thought:
    """A thought at its place behind a hash."""
    return Thought(
        schema_version=each.schema_version,
        thought_id=each.thought_id,
        position=index,
        at=each.at,
        session_id=each.session_id,
        agent_id=each.agent_id,
        signing_key_id=each.signing_key_id,
        thought_type=each.thought_type,
        role=each.role,
        confidence=each.confidence,
        importance=each.importance,
        refs=tuple(link.index for link in each.links if link.kind == kinds.REFERS and link.index is not None),
        relations=tuple(
            Relation(link.kind, link.index, link.ref, link.valid_at, link.invalid_at)
            for link in each.links
            if link.kind != kinds.REFERS
        ),
        content_digest=each.digest.hex(),
        prev_hash=previous,
        hash=each.hash.hex(),
    )


def body_of(each: ThoughtRecord) -> Body | None:
    """What it says, None where that is gone."""
    said = each.body
    return None if said is None else Body(said.salt, said.content, said.tags, said.concepts, said.signature)


def first_fault(chains: Sequence[ChainRecord], is_signed: Verify) -> Fault | None:
    """The first thing that no store would have written, None where there is none."""
    known: dict[str, ChainRecord] = {}
    lines: dict[str, tuple[ThoughtRecord, ...]] = {}
    for place, each in enumerate(chains):
        path = f"[{place}]"
        if each.chain_key in known:
            return Fault(path, "a chain stands twice")
        before: tuple[ThoughtRecord, ...] = ()
        if each.parent is not None:
            if each.parent not in lines or not 1 <= each.shared <= len(lines[each.parent]):
                return Fault(path, "it branches off where no chain before it is")
            before = lines[each.parent][: each.shared]
        elif each.shared:
            return Fault(path, "it shares thoughts with no chain")
        fault = _agents_fault(each.agents, path) or _thoughts_fault(each, before, path, is_signed)
        if fault is not None:
            return fault
        known[each.chain_key] = each
        lines[each.chain_key] = (*before, *each.thoughts)
    return None


def _agents_fault(agents: Iterable[ChainAgentRecord], path: str) -> Fault | None:
    seen: set[str] = set()
    for place, each in enumerate(agents):
        keys = [key.key_id for key in each.keys]
        if each.agent_id in seen or len(set(keys)) != len(keys):
            return Fault(f"{path}.agents[{place}]", "an agent or one of its keys stands twice")
        seen.add(each.agent_id)
    return None


def _thoughts_fault(chain: ChainRecord, before: Sequence[ThoughtRecord], path: str, is_signed: Verify) -> Fault | None:
    agents = {each.agent_id: each for each in chain.agents}
    if not {each.agent_id for each in before} <= agents.keys():
        return Fault(path, "the registry does not know who wrote its thoughts")
    index, previous = len(before), before[-1].hash.hex() if before else ledger.NO_HASH
    for place, each in enumerate(chain.thoughts):
        thought, body = thought_of(each, index, previous), body_of(each)
        problem = (
            _form_problem(each, index)
            or ledger.problem_of(thought, body, index, previous)
            or _agent_problem(thought, body, agents.get(each.agent_id), is_signed)
        )
        if problem is not None:
            return Fault(f"{path}.thoughts[{place}]", problem)
        index, previous = index + 1, each.hash.hex()
    return None


def _form_problem(each: ThoughtRecord, index: int) -> str | None:
    """What is not as an append would have made it."""
    if each.schema_version != ledger.SCHEMA_VERSION:
        return "its schema_version is not known"
    if each.thought_type not in kinds.THOUGHT_TYPES or each.role not in kinds.THOUGHT_ROLES:
        return "its type or role is not known"
    if each.mark == "masked":
        return "what is masked is in no export"
    if (each.body is None) != (each.mark == "erased") or (each.mark is None) != (each.marked_at is None):
        return "it has its content unless it is erased, and the time of its mark where it has one"
    for link in each.links:
        named = [link.index is not None, link.ref is not None]
        if sum(named) != 1 or (link.kind == kinds.REFERS and link.index is None):
            return "a link leads to a thought or to a record"
        if link.index is not None and link.index >= index:
            return "it links to a thought that is not before it"
    if each.body is not None and any(
        labels != normal.labels(labels) for labels in (each.body.tags, each.body.concepts)
    ):
        return "its tags or concepts are not in their normal form"
    return None


def _agent_problem(thought: Thought, body: Body | None, agent: ChainAgentRecord | None, verify: Verify) -> str | None:
    """A signature is checked by the key that held when the thought was written: one that replaced it says nothing."""
    if agent is None:
        return "the registry does not know who wrote it"
    if body is None or body.signature is None:
        return None
    key = next((each for each in agent.keys if each.key_id == thought.signing_key_id), None)
    if key is None or key.added_at > thought.at:
        return None
    return None if verify(ledger.signable(thought, body), body.signature, key.key) else "its signature does not hold"
