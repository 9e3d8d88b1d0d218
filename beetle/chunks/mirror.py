"""What the three index files of a tree hold, kept in memory while it changes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from beetle.chunk_tree import indexes
from beetle.chunk_tree.archive import Member
from beetle.chunk_tree.document import ChunkDocument
from beetle.chunk_tree.folder import TreeFolder
from beetle.contracts.chunks import LINK_KINDS
from beetle.contracts.codec import to_us

MOST_INDEX_BYTES: Final = 2**31


class Mirror:
    """Every chunk that is not archived: its row, its tags, where its links lead. In the order of the index."""

    def __init__(self) -> None:
        self._rows: dict[str, indexes.Entry] = {}
        self._tags: dict[str, tuple[str, ...]] = {}
        self._links: dict[str, dict[str, tuple[str, ...]]] = {}

    @classmethod
    def read(cls, folder: TreeFolder) -> Mirror | None:
        """What the index files hold, much faster than asking the store; None if they are not as we write them."""
        mirror = cls()
        try:
            rows, tags, graph = (_parsed(folder, each) for each in indexes.INDEXES)
            for chunk_id, row in rows["entries"].items():
                created = to_us(datetime.fromisoformat(row["created"]))
                mirror._rows[chunk_id] = indexes.Entry(
                    chunk_id, row["type"], row["conversation_id"], created, row["confidence"]
                )
            for tag, ids in tags["lists"].items():
                for chunk_id in ids:
                    mirror._tags[chunk_id] = (*mirror._tags.get(chunk_id, ()), tag)
            for chunk_id, links in graph["forward"].items():
                mirror._links[chunk_id] = {kind: tuple(ids) for kind, ids in links.items()}
        except (ValueError, KeyError, TypeError, AttributeError):
            return None
        return mirror

    def __len__(self) -> int:
        return len(self._rows)

    def put(self, document: ChunkDocument) -> None:
        """A chunk as it is now."""
        before = self._links.get(document.id, {}).get("related_to", ())
        self._rows[document.id] = indexes.entry_of(document)
        self._tags[document.id] = document.tags
        self._links[document.id] = {kind: document.links[kind] for kind in LINK_KINDS if document.links[kind]}
        related = document.links["related_to"]
        for other in {*before} - {*related}:
            self._relate(other, document.id, add=False)
        for other in related:
            self._relate(other, document.id, add=True)

    def drop(self, chunk_id: str) -> None:
        """A chunk that was archived or deleted."""
        self._rows.pop(chunk_id, None)
        self._tags.pop(chunk_id, None)
        self._links.pop(chunk_id, None)

    def files(self, updated: int) -> dict[str, Iterator[str]]:
        """The index files, each piece by piece."""
        by_tag: dict[str, list[str]] = {}
        for chunk_id, tags in self._tags.items():
            for tag in tags:
                by_tag.setdefault(tag, []).append(chunk_id)
        reverse = indexes.reversed_links(self._links.items())
        return {
            indexes.METADATA_INDEX: indexes.metadata_index(self._rows.values(), updated),
            indexes.TAG_INDEX: indexes.tag_index(by_tag.items(), updated),
            indexes.LINK_GRAPH: indexes.link_graph(self._links.items(), reverse.items(), updated),
        }

    def _relate(self, chunk_id: str, other: str, *, add: bool) -> None:
        if chunk_id not in self._links:
            return
        links = self._links[chunk_id]
        now = links.get("related_to", ())
        if add != (other in now):
            links["related_to"] = (*now, other) if add else tuple(each for each in now if each != other)


def _parsed(folder: TreeFolder, place: str) -> Any:
    found = folder.read(place, MOST_INDEX_BYTES)
    if not isinstance(found, Member):
        raise ValueError(found.reason)
    return json.loads(found.data)
