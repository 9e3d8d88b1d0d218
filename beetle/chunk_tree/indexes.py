"""The index files of a tree: a cache beside the chunks' files, which are the truth. They are written piece by piece."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from beetle.chunk_tree.document import ChunkDocument, time_text
from beetle.named_tuple import NamedTuple

METADATA_INDEX: Final = "index/metadata_index.json"
TAG_INDEX: Final = "index/tag_index.json"
LINK_GRAPH: Final = "index/link_graph.json"
INDEXES: Final = (METADATA_INDEX, TAG_INDEX, LINK_GRAPH)
OTHER_LINK_GRAPH: Final = "index/link_graph_index.json"
"""What another writer of such trees calls it."""
REVERSED: Final = "_reverse"

Links = Mapping[str, Iterable[str]]


class Entry(NamedTuple):
    """One chunk in the index of metadata. `created` is in microseconds."""

    id: str
    type: str
    conversation_id: str
    created: int
    confidence: float


def entry_of(document: ChunkDocument) -> Entry:
    """What the index says of a chunk."""
    return Entry(document.id, document.type, document.conversation_id, document.created, document.confidence)


def metadata_index(entries: Iterable[Entry], updated: int) -> Iterator[str]:
    """Every chunk that is not archived: type, conversation, creation, confidence."""
    shown = ((each.id, {**each._asdict(), "created": time_text(each.created)}) for each in entries)
    rows = ((chunk_id, {name: value for name, value in row.items() if name != "id"}) for chunk_id, row in shown)
    yield from _file([("entries", rows), ("lists", ())], updated)


def tag_index(lists: Iterable[tuple[str, Iterable[str]]], updated: int) -> Iterator[str]:
    """The chunks of each tag, each once."""
    yield from _file([("entries", ()), ("lists", ((tag, list(dict.fromkeys(ids))) for tag, ids in lists))], updated)


def link_graph(
    forward: Iterable[tuple[str, Links]], reverse: Iterable[tuple[str, Links]], updated: int
) -> Iterator[str]:
    """Where each chunk's links lead, and what leads to it: by its id, then by type, in `reverse` with `_reverse`."""
    ahead = ((chunk_id, _kinds(links, "")) for chunk_id, links in forward)
    back = ((chunk_id, _kinds(links, REVERSED)) for chunk_id, links in reverse)
    yield from _file([("entries", ()), ("lists", ()), ("forward", ahead), ("reverse", back)], updated)


def reversed_links(links: Iterable[tuple[str, Links]]) -> dict[str, dict[str, list[str]]]:
    """What leads to each target, of what each chunk links to."""
    found: dict[str, dict[str, list[str]]] = {}
    for chunk_id, kinds in links:
        for kind, targets in kinds.items():
            for target in targets:
                found.setdefault(target, {}).setdefault(kind, []).append(chunk_id)
    return found


def _kinds(links: Links, ending: str) -> dict[str, list[str]]:
    lists = {f"{kind}{ending}": list(ids) for kind, ids in links.items()}
    return {kind: ids for kind, ids in lists.items() if ids}


def _file(parts: Iterable[tuple[str, Iterable[tuple[str, Any]]]], updated: int) -> Iterator[str]:
    """As json.dumps with an indent of two would write it, without ever holding all of it."""
    yield "{\n"
    for name, rows in parts:
        yield f'  "{name}": {{'
        before = "\n"
        for key, value in rows:
            text = json.dumps(value, indent=2, ensure_ascii=False).replace("\n", "\n    ")
            yield f"{before}    {json.dumps(key, ensure_ascii=False)}: {text}"
            before = ",\n"
        yield "},\n" if before == "\n" else "\n  },\n"
    yield f'  "updated": {json.dumps(time_text(updated))}\n}}'
