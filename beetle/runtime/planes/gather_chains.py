"""Chains as a snapshot or an archive holds them: a chain with its agents, and every thought of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from beetle.contracts.continuity_records import (
    ChainAgentRecord,
    ChainKeyRecord,
    ChainRecord,
    ThoughtBodyRecord,
    ThoughtLinkRecord,
    ThoughtRecord,
)
from beetle.domain.chains import ledger
from beetle.domain.fingerprint import thoughts_fingerprint
from beetle.runtime.planes.gathering import Gathering
from beetle.runtime.planes.thought_checks import problems
from beetle.store import chain_agents, chains, thoughts
from beetle.store.chains import ChainRow, Segment
from beetle.store.engine.transaction import Reading
from beetle.store.thoughts import ThoughtRow


class _DamagedError(Exception):
    """A thought of the chain is not what was written."""


def gather(gathering: Gathering, space: int) -> dict[str, Any]:
    """A chat has none of its own. A chain that does not verify stays behind whole, and so do its branches."""
    if gathering.chat is not None:
        return {}
    found: dict[int, ChainRecord] = {}
    for row in chains.of_space(gathering.tx, space):
        if row.parent is not None and row.parent not in found:
            gathering.leave_out("chains")
            continue
        try:
            found[row.chain] = _chain(gathering, row, None if row.parent is None else found[row.parent].chain_key)
        except _DamagedError:
            gathering.leave_out("chains")
    return {"chains": tuple(found.values())}


def _chain(gathering: Gathering, row: ChainRow, parent: str | None) -> ChainRecord:
    reading = _Reading(gathering, row)
    kept: tuple[ThoughtRecord, ...] = ()
    if gathering.keep_turns:
        kept = tuple(reading.thoughts())
    else:
        gathering.thoughts[row.chain_key] = thoughts_fingerprint(reading.thoughts())
        gathering.said["thoughts"] += row.length - row.shared
    gathering.leave_out("masked_thoughts", reading.withheld)
    return ChainRecord(
        chain_key=row.chain_key, adapter=cast(Any, row.adapter), created_at=row.created_at, updated_at=row.updated_at,
        thoughts=kept, agents=tuple(_agents(gathering.tx, row.chain)), parent=parent, shared=row.shared,
    )  # fmt: skip


class _Reading:
    """One walk through a chain's own thoughts; `withheld` counts those whose content may not leave."""

    def __init__(self, gathering: Gathering, row: ChainRow) -> None:
        self.gathering = gathering
        self.row = row
        self.withheld = 0

    def thoughts(self) -> Iterator[ThoughtRecord]:
        """In their order.

        Raises:
            _DamagedError: one does not follow from the one before, or the chain ends elsewhere than it says.
        """
        row, tx = self.row, self.gathering.tx
        index, previous = row.shared, ledger.NO_HASH
        if index:
            before = thoughts.at(tx, chains.segments(tx, row.chain), index - 1)
            previous = ledger.NO_HASH if before is None else before.hash.hex()
        for each in thoughts.between(tx, Segment(row.chain, row.shared, row.length), backwards=False):
            if any(True for _ in problems(each, index, previous)):
                raise _DamagedError
            index, previous = index + 1, each.hash.hex()
            yield self._thought(each)
        if (index, previous) != (row.length, row.head.hex()):
            raise _DamagedError

    def _thought(self, row: ThoughtRow) -> ThoughtRecord:
        body, mark = row.body, row.mark
        if mark == "masked" and self.gathering.sort != "everything":
            # No export shows what is masked. Where it comes from it can be unmasked, elsewhere it is not there.
            body, mark = None, "erased"
            self.withheld += 1
        if body is not None:
            self.gathering.spend(len(body.content))
        return ThoughtRecord(
            thought_id=row.thought_id, at=row.at, agent_id=row.agent_id, thought_type=row.thought_type, role=row.role,
            importance=row.importance, digest=row.digest, hash=row.hash, schema_version=row.schema_version,
            session_id=row.session_id, signing_key_id=row.signing_key_id, confidence=row.confidence,
            body=None if body is None else ThoughtBodyRecord(**body._asdict()),
            mark=cast(Any, mark), marked_at=row.marked_at,
            links=tuple(
                ThoughtLinkRecord(kind=cast(Any, each.kind), index=each.position, ref=each.ref,
                                  valid_at=each.valid_at, invalid_at=each.invalid_at)
                for each in row.links
            ),
        )  # fmt: skip


def _agents(tx: Reading, chain: int) -> Iterator[ChainAgentRecord]:
    for row in chain_agents.listed(tx, chain):
        keys = (
            ChainKeyRecord(key_id=key.key_id, key=key.public_key, added_at=key.added_at, revoked_at=key.revoked_at)
            for key in chain_agents.keys_of(tx, row.agent)
        )
        yield ChainAgentRecord(
            agent_id=row.agent_id, display_name=row.display_name, status=cast(Any, row.status), owner=row.owner,
            description=row.description, aliases=row.aliases, keys=tuple(keys),
        )  # fmt: skip
