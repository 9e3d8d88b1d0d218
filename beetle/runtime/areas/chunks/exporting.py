"""chunk.export_tree: the chunks of a space as the files of a tree, packed while they are read."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from operator import itemgetter
from typing import Any

from beetle.chunk_tree import indexes
from beetle.chunk_tree.archive import Packing
from beetle.chunk_tree.document import place_of, written
from beetle.contracts.chunk_trees import ChunkExportTreeReport, ChunkExportTreeRequest
from beetle.contracts.chunks import LINK_KINDS
from beetle.contracts.errors import PayloadTooLarge
from beetle.runtime.areas.chunks.tree_rows import document_of
from beetle.runtime.pipeline.handlers import Handler, Read
from beetle.runtime.pipeline.invocation import Invocation
from beetle.store import chunk_trees, chunks, evidence
from beetle.store.engine.transaction import Reading

STEPS = ("chunks", "indexes")


def export_tree(invocation: Invocation, request: ChunkExportTreeRequest, tx: Reading) -> ChunkExportTreeReport:
    """All chunks of the space.

    Raises:
        PayloadTooLarge: the archive is over the profile's export_bytes.
    """
    space = evidence.find_space(tx, invocation.space_id)
    packing = _Packing(invocation.shared.profile.budgets.export_bytes)
    live, archived = chunk_trees.count(tx, space)
    progress = invocation.progress
    progress.plan(STEPS)
    progress.step("chunks", of=live + archived)
    damaged = 0
    for row in progress.through(() if space is None else chunks.of_space(tx, space)):
        document = document_of(invocation, tx, row, chunk_trees.related_back(tx, row.chunk, row.space, row.chunk_id))
        if document is None:
            damaged += 1
        else:
            packing.add(place_of(document, archived=not row.is_live), written(document).encode())
    progress.step("indexes", of=len(indexes.INDEXES))
    for number, (path, pieces) in enumerate(_indexes(tx, space, invocation.now)):
        progress.at(number)
        packing.add_pieces(path, pieces)
    return ChunkExportTreeReport(
        archive=packing.close(),
        chunks=live,
        archived_chunks=archived,
        damaged=damaged,
        revision=chunks.revision(tx, space),
    )


def _indexes(tx: Reading, space: int | None, now: int) -> Iterator[tuple[str, Iterator[str]]]:
    """The index files, each with its pieces."""
    entries = map(indexes.Entry._make, chunk_trees.entries(tx, space))
    yield indexes.METADATA_INDEX, indexes.metadata_index(entries, now)
    yield indexes.TAG_INDEX, indexes.tag_index(_tags(tx, space), now)
    ahead, back = (
        _links(tx, space, rows) for rows in (chunk_trees.links_from(tx, space), chunk_trees.links_to(tx, space))
    )
    yield indexes.LINK_GRAPH, indexes.link_graph(ahead, back, now)


def _tags(tx: Reading, space: int | None) -> Iterable[tuple[str, list[str]]]:
    found: dict[str, list[str]] = {}
    for chunk_id, tags in chunk_trees.tags(tx, space):
        for tag in tags:
            found.setdefault(tag, []).append(chunk_id)
    return sorted(found.items())


def _links(
    tx: Reading, space: int | None, rows: Iterator[tuple[Any, ...]]
) -> Iterator[tuple[str, dict[str, list[str]]]]:
    """The other ends of each chunk's links by their kind. `related_to` is the same ahead and back."""
    for (chunk, chunk_id), group in groupby(rows, itemgetter(0, 1)):
        kinds: dict[str, list[str]] = {kind: [] for kind in LINK_KINDS}
        for _, _, kind, other in group:
            if kind is not None and other is not None:
                kinds[kind].append(other)
        assert space is not None, "a chunk belongs to a space"
        kinds["related_to"] = chunk_trees.related(tx, chunk, space, chunk_id)
        if any(kinds.values()):
            yield chunk_id, kinds


class _Packing(Packing):
    """An archive of at most so many bytes."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def write(self, data: bytes) -> None:
        """The next bytes.

        Raises:
            PayloadTooLarge: more may not leave.
        """
        super().write(data)
        if self.bytes > self._most:
            raise PayloadTooLarge(
                what="what is to be taken out", maximum=self._most, unit="bytes", limit="export_bytes",
                hint="use a profile with a larger export_bytes",
            )  # fmt: skip

    def add_pieces(self, path: str, pieces: Iterable[str]) -> None:
        """A file whose size is known when it is complete: until then it is kept compressed."""
        deflate, kept, size = zlib.compressobj(1), list[bytes](), 0
        for each in pieces:
            data = each.encode()
            size += len(data)
            if ready := deflate.compress(data):
                kept.append(ready)
        kept.append(deflate.flush())
        self.begin(path, size)
        inflate = zlib.decompressobj()
        for each in kept:
            self.write(inflate.decompress(each))
        self.end(size)


HANDLERS: Mapping[str, Handler] = {"chunk.export_tree": Read(export_tree)}
