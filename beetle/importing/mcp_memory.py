"""`mcp-memory`: the file of the official MCP memory server: a line for each entity and each relation of its graph.

What its read_graph answers, an object with `entities` and `relations`, is read as well.

From the README of @modelcontextprotocol/server-memory (src/memory of modelcontextprotocol/servers), 2025.4 to 2.2.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from beetle.importing.items import Fact, Item, Items, LeftOut, Problem, Source, SourceLocation
from beetle.importing.lines import decoded, values


class _Record(msgspec.Struct, rename="camel"):
    type: str = ""
    name: str | None = None
    entity_type: str | None = None
    observations: list[str] | None = None
    source: str | None = msgspec.field(default=None, name="from")
    to: str | None = None
    relation_type: str | None = None


RECORD = msgspec.json.Decoder(_Record)
LISTS = {"entities", "relations"}


def read(source: Source) -> Items:
    """A fact an observation, which names its entity, and one a relation."""
    for found in values(source, LISTS):
        if isinstance(found, Problem):
            yield found
        elif found.key is None or found.key in LISTS:
            yield from decoded(found.place, found.data, RECORD, _record)


def _record(place: SourceLocation, found: _Record) -> Iterator[Item]:
    if found.name is not None:
        name = _words(found.name)
        attrs = (("entity type", found.entity_type),) if found.entity_type else ()
        if not found.observations:
            yield LeftOut("entity without observations")
        for observation in found.observations or ():
            if observation.strip():
                named = name.casefold() in observation.casefold()
                statement = observation if named else f"{name}: {observation}"
                yield Fact(place, None, statement, source_id=found.name, attrs=attrs)
    elif found.source and found.to and found.relation_type:
        statement = " ".join(_words(each) for each in (found.source, found.relation_type, found.to))
        yield Fact(place, None, statement, "relationship")
    else:
        raise msgspec.ValidationError("neither an entity with a name nor a relation with from, to and relationType")


def _words(name: str) -> str:
    return name.replace("_", " ")
