"""Rows of thoughts as the domain, the recall index and refs know them."""

from __future__ import annotations

from beetle.contracts.refs import format_ref
from beetle.domain.chains.ledger import Body, Relation, Thought
from beetle.domain.lexical import thought_fields
from beetle.runtime.planes.plane import IndexRow
from beetle.store.recall_index import Entry
from beetle.store.thoughts import REFERS, ThoughtRow

NAME = "thoughts"


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
