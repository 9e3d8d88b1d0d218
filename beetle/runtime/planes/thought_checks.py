"""What verify looks at in chains: every thought from the first to the last, and what the event log tells of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from beetle.domain.chains import ledger
from beetle.runtime.host.thought_values import body_of, thought_of
from beetle.runtime.planes.thought_rows import NAME, ref_of
from beetle.store import chain_agents, chains, plane_thoughts, thoughts
from beetle.store.chains import ChainRow, Segment
from beetle.store.engine.transaction import Reading
from beetle.store.sight import Sight
from beetle.store.thoughts import REFERS, LinkRow, ThoughtRow
from beetle.store.verify import Finding

MOST = 100
"""Findings of a chain that are told."""
FAR = 2**62


def of_store(tx: Reading) -> Iterator[Finding]:
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
    yield from _stray_links(tx, None)
    for thought in plane_thoughts.stray(tx):
        yield Finding(NAME, f"thought row {thought}", "is of no chain")


def of_space(tx: Reading, space: int, sight: Sight) -> Iterator[Finding]:
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
    yield from _stray_links(tx, space)


def _stray_links(tx: Reading, space: int | None) -> Iterator[Finding]:
    for chain_key, position in plane_thoughts.stray_links(tx, space):
        yield Finding(NAME, ref_of(chain_key, position), "a link of it leads elsewhere than it says")


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
    # An agent may be registered before anything is written: the log tells of thoughts.
    if pin != (row.length, row.head.hex()) and (pin is not None or row.length):
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
    # The hash has of a ref its place alone.
    if any(each.kind == REFERS and each != LinkRow(REFERS, each.position, None, None, None) for each in row.links):
        yield "a ref of it holds what only relations have"


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
