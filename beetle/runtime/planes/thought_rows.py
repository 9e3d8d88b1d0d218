"""Rows of thoughts as the domain, the recall index and refs know them."""

from __future__ import annotations

from typing import Final

from beetle.contracts.refs import format_ref
from beetle.domain.lexical import thought_fields
from beetle.runtime.planes.plane import IndexRow
from beetle.store.recall_index import Entry
from beetle.store.thoughts import ThoughtRow

NAME: Final = "thoughts"


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
