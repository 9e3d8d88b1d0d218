"""Rows of thoughts as the domain knows them."""

from __future__ import annotations

from beetle.domain.chains.ledger import Body, Relation, Thought
from beetle.store.thoughts import REFERS, ThoughtRow


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
