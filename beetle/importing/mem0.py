"""`mem0`: what Memory.get_all, search and an export of mem0 answer: `results` or `memories`, or the bare list; and
`relations` of its graph.

From the API reference of mem0 (get memory; get memories, version 2), and the answers of its open-source `Memory` with a
graph.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import msgspec

from beetle.importing.items import Fact, Item, Items, LeftOut, Problem, Source, SourceLocation
from beetle.importing.lines import decoded, values
from beetle.importing.times import moment


class _Memory(msgspec.Struct):
    memory: str | None = None
    text: str | None = None
    data: str | None = None
    id: str | int | None = None
    user_id: str | None = None
    agent_id: str | None = None
    app_id: str | None = None
    run_id: str | None = None
    categories: list[str] | None = None
    created_at: datetime | float | None = None
    updated_at: datetime | float | None = None
    source: str | None = None
    relationship: str | None = None
    relation: str | None = None
    target: str | None = None
    destination: str | None = None


MEMORY = msgspec.json.Decoder(_Memory)
LISTS = {"results", "memories", "relations"}


def read(source: Source) -> Items:
    """A fact a memory, in a conversation for each user (or agent, app or run)."""
    for found in values(source, LISTS):
        if isinstance(found, Problem):
            yield found
        elif found.key is None or found.key in LISTS:
            yield from decoded(found.place, found.data, MEMORY, _memory)


def _memory(place: SourceLocation, found: _Memory) -> Iterator[Item]:
    relation = found.relationship or found.relation
    target = found.target or found.destination
    if found.source and relation and target:
        statement = f"{found.source} {relation.replace('_', ' ')} {target}"
        yield Fact(place, None, statement, "relationship")
        return
    text = found.memory or found.text or found.data
    if text is None:
        raise msgspec.ValidationError("a memory needs memory, text or data")
    if not text.strip():
        yield LeftOut("empty memory")
        return
    attrs = (("categories", " ".join(found.categories)),) if found.categories else ()
    at = moment(found.updated_at if found.updated_at is not None else found.created_at)
    source_id = None if found.id is None else str(found.id)
    whose = found.user_id or found.agent_id or found.app_id or found.run_id
    yield Fact(place, whose, text, at=at, source_id=source_id, attrs=attrs)
