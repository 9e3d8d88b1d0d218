"""A chain as a request finds it: what it is made of, who writes to it, and its thoughts as the caller may see them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

from beetle.contracts.chains import DEFAULT_CHAIN, ChainSummary, Thought, ThoughtRelation
from beetle.contracts.errors import NotFound
from beetle.domain.chains import ledger
from beetle.domain.chains.ledger import Body
from beetle.domain.chains.matching import Agent
from beetle.domain.chains.rendering import Said
from beetle.named_tuple import NamedTuple
from beetle.runtime.host.thought_values import body_of, thought_of
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.planes.thought_rows import ref_of
from beetle.store import chain_agents, chains, evidence, thoughts
from beetle.store.chain_agents import AgentRow
from beetle.store.chains import JSONL, ChainRow, Segment
from beetle.store.damaged_rows import shown_time
from beetle.store.engine.transaction import Reading
from beetle.store.thoughts import EVERYTHING, Prefilter, ThoughtRow

LISTING = "`beetle chain list` shows the chains of this space"


def key_of(given: str | None) -> str:
    """The key that a request means: without one, the default chain."""
    return (given or "").strip() or DEFAULT_CHAIN


def agent_of(row: AgentRow) -> Agent:
    """A record of the registry as the domain knows it."""
    return Agent(row.agent_id, row.display_name, row.owner, row.description, row.aliases, row.status)


class ThoughtLocator(NamedTuple):
    """What a request names a thought by: one of the three."""

    thought_id: str | None = None
    thought_hash: str | None = None
    position: int | None = None


class OpenChain:
    """A chain in one transaction. One that is not there is read as an empty one.

    Attributes:
        key: as the request means it.
        row: None where nothing was ever written to it.
        length: how many thoughts it has.
    """

    def __init__(self, invocation: Invocation, tx: Reading, given: str | None, row: ChainRow | None = None) -> None:
        """`row` where it is known already."""
        self.key = key_of(given)
        self._invocation = invocation
        self._tx = tx
        self.row = row or chains.find(tx, evidence.find_space(tx, invocation.space_id), self.key)
        self.length = 0 if self.row is None else self.row.length
        self._agents: dict[str, Agent] = {}

    @cached_property
    def line(self) -> list[Segment]:
        """The segments that it is made of, the oldest first."""
        return [] if self.row is None else chains.segments(self._tx, self.row.chain)

    def existing(self) -> ChainRow:
        """Its row.

        Raises:
            NotFound: nothing was ever written to it.
        """
        if self.row is None:
            raise NotFound(kind="chain", name=self.key, listing=LISTING)
        return self.row

    def walk(
        self, first: int, until: int, wanted: Prefilter = EVERYTHING, *, backwards: bool = False
    ) -> Iterator[ThoughtRow]:
        """The thoughts from `first` up to, without, `until` that a prefilter lets through."""
        for each in reversed(self.line) if backwards else self.line:
            part = Segment(each.chain, max(first, each.first), min(until, each.until))
            if part.first < part.until:
                yield from thoughts.between(self._tx, part, wanted, backwards=backwards)

    def at(self, index: int) -> ThoughtRow | None:
        """The thought at an index."""
        return thoughts.at(self._tx, self.line, index)

    def find(self, place: ThoughtLocator) -> ThoughtRow | None:
        """The thought that a place names."""
        if place.position is not None:
            return self.at(place.position)
        if place.thought_id is not None:
            found = thoughts.places_of_id(self._tx, place.thought_id.lower())
        else:
            found = thoughts.places_of_hash(self._tx, bytes.fromhex(place.thought_hash or ""))
        mine = (
            position
            for chain, position in found
            if any(each.chain == chain and each.first <= position < each.until for each in self.line)
        )
        index = next(mine, None)
        return None if index is None else self.at(index)

    def located(self, place: ThoughtLocator) -> ThoughtRow:
        """As `find`.

        Raises:
            NotFound: the chain has no such thought.
        """
        found = self.find(place)
        if found is None:
            named = next(str(each) for each in place if each is not None)
            raise NotFound(kind="thought", name=named, listing="`beetle chain traverse` walks through a chain")
        return found

    def agent(self, agent_id: str) -> Agent:
        """Who writes under an id, as the registry has it now."""
        if agent_id not in self._agents:
            found = None if self.row is None else chain_agents.find(self._tx, self.row.chain, agent_id)
            self._agents[agent_id] = Agent(agent_id, agent_id) if found is None else agent_of(found)
        return self._agents[agent_id]

    def knows(self, row: AgentRow) -> None:
        """The record of an agent is known already."""
        self._agents[row.agent_id] = agent_of(row)

    def every_agent(self) -> list[Agent]:
        """The whole registry."""
        return [] if self.row is None else [agent_of(each) for each in chain_agents.listed(self._tx, self.row.chain)]

    def body(self, row: ThoughtRow) -> Body | None:
        """What the caller may see of what a thought says: of a masked one the owner's own view shows it."""
        return None if row.mark == "masked" and self._invocation.view != "raw_owner" else body_of(row)

    def said(self, row: ThoughtRow) -> Said:
        """A thought to be rendered."""
        return Said(thought_of(row), self.body(row), self.agent(row.agent_id), row.mark or "live")

    def shown(self, row: ThoughtRow) -> Thought:
        """A thought as reports have it."""
        return Thought(**self.fields(row))

    def fields(self, row: ThoughtRow) -> dict[str, Any]:
        """What both kinds of reported thought have."""
        body, agent = self.body(row), self.agent(row.agent_id)
        return {
            "schema_version": row.schema_version,
            "id": row.thought_id,
            "index": row.position,
            "timestamp": ledger.timestamp(row.at),
            "session_id": row.session_id,
            "agent_id": row.agent_id,
            "agent_name": agent.display_name,
            "agent_owner": agent.owner,
            "signing_key_id": row.signing_key_id,
            "thought_signature": None if body is None or body.signature is None else tuple(body.signature),
            "thought_type": row.thought_type,
            "role": row.role,
            "content": None if body is None else body.content,
            "confidence": row.confidence,
            "importance": row.importance,
            "tags": None if body is None else body.tags,
            "concepts": None if body is None else body.concepts,
            "refs": thought_of(row).refs,
            "relations": tuple(
                ThoughtRelation(**ledger.relation_fields(each)) for each in thought_of(row).relations
            ),
            "content_digest": row.digest.hex(),
            "prev_hash": row.previous.hex(),
            "hash": row.hash.hex(),
            "state": row.mark or ("live" if row.body is not None else "damaged"),
            "ref": ref_of(self.key, row.position),
        }  # fmt: skip


def location(invocation: Invocation, chain_key: str, adapter: str) -> str:
    """Where a chain is: its mirror where it has one, else the store."""
    shared = invocation.shared
    if adapter != JSONL or not shared.mirrors.is_kept:
        return shared.store.settings.path
    return shared.mirrors.path((invocation.space_id, chain_key))


def summary(invocation: Invocation, tx: Reading, row: ChainRow) -> ChainSummary:
    """A chain as reports have it."""
    parent = None if row.parent is None else chains.by_key(tx, row.space, row.parent)
    return ChainSummary(
        chain_key=row.chain_key,
        version=ledger.SCHEMA_VERSION,
        storage_adapter=row.adapter,
        thought_count=row.length,
        agent_count=chains.count_agents(tx, row.chain),
        storage_location=location(invocation, row.chain_key, row.adapter),
        head_hash=row.head.hex() or None,
        created_at=shown_time(row.created_at, "chain", row.chain_key),
        updated_at=shown_time(row.updated_at, "chain", row.chain_key),
        branched_from=None if parent is None else parent.chain_key,
        shared_thoughts=row.shared,
    )
