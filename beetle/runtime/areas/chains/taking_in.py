"""Chains of an archive: checked, and written with the places, times and hashes that they have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from beetle.contracts.continuity_records import ChainRecord
from beetle.contracts.errors import InvalidRequest
from beetle.domain.chains import archived, ledger
from beetle.runtime.areas import secrets
from beetle.runtime.areas.chains.writing import derive, grow, row_of
from beetle.runtime.host.identity import is_signed
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.planes.thought_erasing import hide, unindex
from beetle.runtime.planes.thought_rows import index_row
from beetle.store import chain_agents, chains, recall_index, thoughts
from beetle.store.chain_agents import AgentRow, KeyRow
from beetle.store.chains import ChainRow, Segment
from beetle.store.engine.write_transaction import WriteTransaction


def check(records: tuple[ChainRecord, ...], root: str) -> None:
    """Recompute every hash and signature, and hold every thought to what an append is held to.

    Raises:
        InvalidRequest: one is not as a store would have written it.
    """
    fault = archived.first_fault(records, is_signed)
    if fault is not None:
        raise InvalidRequest(
            reason=fault.reason, path=f"{root}.chains{fault.path}", hint="nothing was written; export it again"
        )


def words(records: Iterable[ChainRecord]) -> Iterator[secrets.Said]:
    """What the chains say, for the detector of secrets."""
    for place, each in enumerate(records):
        path = f"records.chains[{place}]"
        for number, thought in enumerate(each.thoughts):
            if thought.body is not None:
                yield from secrets.fields(
                    thought.body, f"{path}.thoughts[{number}].body", "content", "tags", "concepts"
                )
        for number, agent in enumerate(each.agents):
            yield from secrets.fields(
                agent, f"{path}.agents[{number}]", "display_name", "owner", "description", "aliases"
            )


def write(invocation: Invocation, tx: WriteTransaction, space: int, records: Iterable[ChainRecord]) -> None:
    """All chains, each behind the one that it branched from."""
    made: dict[str, ChainRow] = {}
    for each in records:
        made[each.chain_key] = _write(invocation, tx, space, each, None if each.parent is None else made[each.parent])


def _write(
    invocation: Invocation, tx: WriteTransaction, space: int, each: ChainRecord, parent: ChainRow | None
) -> ChainRow:
    before = [] if parent is None else _before(tx, parent, each.shared)
    last = thoughts.at(tx, before, each.shared - 1) if before else None
    row = chains.add(
        tx,
        ChainRow(
            0, space, each.chain_key, each.adapter, None if parent is None else parent.chain, each.shared,
            each.created_at, each.updated_at, each.shared, b"" if last is None else last.hash, 0,
        ),
    )  # fmt: skip
    agents = _write_agents(tx, row.chain, each, before)
    length, head = _write_thoughts(tx, row, each, agents, before)
    return grow(invocation, tx, row._replace(length=length, head=head), "imported")


def _before(tx: WriteTransaction, parent: ChainRow, shared: int) -> list[Segment]:
    """The segments that a branch shares with its parent."""
    line = chains.segments(tx, parent.chain)
    return [Segment(each.chain, each.first, min(each.until, shared)) for each in line if each.first < shared]


def _write_agents(tx: WriteTransaction, chain: int, each: ChainRecord, before: list[Segment]) -> dict[str, int]:
    made: dict[str, int] = {}
    for one in each.agents:
        row = AgentRow(0, chain, one.agent_id, one.display_name, one.owner, one.description, one.status)
        agent = chain_agents.add(tx, row).agent
        for alias in one.aliases:
            chain_agents.add_alias(tx, agent, alias)
        for key in one.keys:
            chain_agents.put_key(tx, agent, KeyRow(key.key_id, "ed25519", key.key, key.added_at, key.revoked_at))
        chain_agents.count_written(tx, agent, one.agent_id, before)
        made[one.agent_id] = agent
    return made


def _write_thoughts(
    tx: WriteTransaction, row: ChainRow, each: ChainRecord, agents: dict[str, int], before: list[Segment]
) -> tuple[int, bytes]:
    index, head = row.length, row.head
    for record in each.thoughts:
        thought = archived.thought_of(record, index, head.hex() or ledger.NO_HASH)
        made = row_of(row.chain, thought, archived.body_of(record))._replace(
            mark=record.mark, marked_at=record.marked_at
        )
        line = [*before, Segment(row.chain, row.shared, index)]
        targets = [None if link.position is None else thoughts.key_at(tx, line, link.position) for link in made.links]
        made = made._replace(thought=thoughts.add(tx, made, targets))
        derive(tx, row.space, row.chain_key, made)
        if made.body is not None:
            recall_index.add(tx, *index_row(row.space, made))
        chain_agents.act(tx, agents[record.agent_id], index, record.at)
        index, head = index + 1, record.hash
    return index, head


def clear(invocation: Invocation, tx: WriteTransaction, space: int) -> None:
    """Take all chains of a space away; the event log tells that they are gone."""
    for row in chains.of_space(tx, space):
        hide(invocation, tx, row.chain)
        for each in thoughts.between(tx, Segment(row.chain, row.shared, row.length), backwards=False):
            unindex(tx, space, row.chain_key, each)
        tx.log(invocation.event("chain", "removed", chain_key=row.chain_key))
    chains.remove_all(tx, space)
