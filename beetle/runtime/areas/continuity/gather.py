"""Reading what a scope holds into records, as much of it as a snapshot of some sort may carry."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, cast

from beetle.contracts.continuity_records import AliasRecord, CandidateRecord, PolicyRecord, Records
from beetle.contracts.governance import Privacy
from beetle.domain.continuity import counts_of
from beetle.domain.fingerprint import fingerprint_of
from beetle.domain.governance import SEALED, VISIBILITY
from beetle.named_tuple import NamedTuple
from beetle.runtime.planes import table
from beetle.runtime.planes.gather_derived import fact_text
from beetle.runtime.planes.gathering import Chat, Gathering, Open, Where
from beetle.store import candidates, continuity, policies, private
from beetle.store.candidates import Body, Waiting
from beetle.store.engine.transaction import Reading
from beetle.store.sight import Sight


class Gathered(NamedTuple):
    """What a scope holds, how much of that, and how much of what the scope holds is not in it."""

    records: Records
    counts: dict[str, int]
    left_out: Counter[str]
    turns: list[list[bytes]] | None = None
    """Fingerprints of each conversation's turns, where only these were wanted."""
    thoughts: dict[str, bytes] | None = None
    """As `turns`, of each chain's thoughts."""

    def fingerprint(self) -> str:
        """Of all of it."""
        return fingerprint_of(self.records, self.turns, self.thoughts)


def gather(gathering: Gathering) -> Gathered:
    """Everything, in the order in which one part names another."""
    if gathering.space is None:
        return Gathered(Records(), {}, gathering.left_out)
    space = gathering.space
    found: dict[str, Any] = {}
    exported = [plane.exported for plane in table.PLANES if plane.exported is not None]
    for each in sorted(exported, key=lambda each: each.place):
        found.update(each.gather(gathering, space))
    if gathering.chat is None:
        found["policies"] = tuple(_policies(gathering, space))
        found["candidates"] = tuple(_candidates(gathering, space))
        found["aliases"] = tuple(_aliases(gathering, space))
    records = Records(**found)
    turns = None if gathering.keep_turns else gathering.fingerprints
    counts = {**counts_of(records), **gathering.said}
    return Gathered(records, counts, gathering.left_out, turns, gathering.thoughts)


def state_fingerprint(tx: Reading, memory_space_id: str, chat: Chat | None = None, opened: Open | None = None) -> str:
    """SHA-256 (64 hex digits) of all that a memory space, or one chat of it, holds, whatever its visibility and state.

    Two stores that hold the same memory give the same, whatever their backends, row keys, ids and keys. Of private
    items and private candidates only the number and kinds count, unless `opened` gives their text. Background work,
    devices, idempotency keys, the event log and lifecycle steps are no part of it.

    Args:
        memory_space_id: such as `space:owner-default`; one that was never written to is empty.
        chat: only what belongs to this chat.
    """
    where = Where(memory_space_id, chat)
    return gather(Gathering(tx, where, "everything", opened, keep_turns=False)).fingerprint()


def _policies(gathering: Gathering, space: int) -> Iterator[PolicyRecord]:
    for row in policies.policies(gathering.tx, space):
        yield PolicyRecord(
            action=cast(Any, row.action), at=row.at, kind=cast(Any, row.kind), topic=row.topic,
            chat_id=row.chat_id, reason=row.reason,
        )  # fmt: skip


def _candidates(gathering: Gathering, space: int) -> Iterator[CandidateRecord]:
    rows = candidates.every(gathering.tx, space)
    if gathering.sort == "public":
        gathering.leave_out("candidates", sum(_is_known(gathering.sight, row) for row in rows))
        return
    places = {record_id: place for place, record_id in enumerate(gathering.items)}
    for row in rows:
        if gathering.sort == "private" and private.is_closed(gathering.tx, space, row.candidate, row.record_id):
            gathering.leave_out("closed")
            continue
        body = _body(gathering, row)
        yield CandidateRecord(
            candidate_id=row.candidate_id, target=cast(Any, row.target), kind=cast(Any, row.kind),
            privacy=cast(Any, row.privacy), authority=cast(Any, row.authority), reason=cast(Any, row.reason),
            chat_id=row.chat_id, at=row.at,
            text=None if body is None else fact_text(body.topic, body.content, body.keywords),
            record=None if row.record_id is None else places.get(row.record_id),
            confidence=row.confidence, extractor=row.extractor, evidence=row.evidence,
        )  # fmt: skip


def _body(gathering: Gathering, row: Waiting) -> Body | None:
    """What a candidate says; None where a private item holds it, or it is sealed and stays closed."""
    found = candidates.body_of(gathering.tx, row.candidate)
    if found is None:
        return None
    if found.sealed is None:
        return found.body
    return None if gathering.opened is None or found.closed else gathering.opened.waiting(row)


def _is_known(sight: Sight, row: Waiting) -> bool:
    """Whether a candidate that waits may be told of."""
    return sight.sealed if row.target in SEALED else sight.private or VISIBILITY[cast(Privacy, row.privacy)] == "shared"


def _aliases(gathering: Gathering, space: int) -> Iterator[AliasRecord]:
    if gathering.sort == "public":
        return
    for principal, agent_id, channel, chat_id, conversation in continuity.aliases(gathering.tx, space):
        if conversation in gathering.places:
            yield AliasRecord(
                principal=principal, agent_id=agent_id, channel=channel, chat_id=chat_id,
                conversation=gathering.places[conversation],
            )  # fmt: skip
