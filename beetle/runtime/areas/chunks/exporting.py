"""chunk.export_tree: the chunks of a space as the files of a tree, packed while they are read."""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import groupby
from operator import itemgetter
from typing import Any

from beetle.chunk_tree import indexes
from beetle.chunk_tree.archive import Packing
from beetle.chunk_tree.document import is_chunk_id, place_of, written
from beetle.contracts.chunk_trees import ChunkExportTreeReport, ChunkExportTreeRequest
from beetle.contracts.chunks import LINK_KINDS, MOST_LINKS
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
    damaged: set[str] = set()
    for row in progress.through(() if space is None else chunks.of_space(tx, space)):
        document = document_of(invocation, tx, row, chunk_trees.related_back(tx, row.chunk, row.space, row.chunk_id))
        if document is None:
            damaged.add(row.chunk_id)
        else:
            packing.add(place_of(document, archived=not row.is_live), written(document).encode())
    progress.step("indexes", of=len(indexes.INDEXES))
    for number, (path, pieces) in enumerate(_Indexes(tx, space, damaged).files(invocation.now)):
        progress.at(number)
        packing.add_pieces(path, pieces)
    return ChunkExportTreeReport(
        archive=packing.close(),
        chunks=live,
        archived_chunks=archived,
        damaged=len(damaged),
        revision=chunks.revision(tx, space),
    )


class _Indexes:
    """The index files of a space, without the chunks that are not in the archive; `damaged` are their ids."""

    def __init__(self, tx: Reading, space: int | None, damaged: Collection[str]) -> None:
        self._tx = tx
        self._space = space
        self._damaged = damaged
        self._unnamed = {each for each in damaged if not is_chunk_id(each)}

    def files(self, now: int) -> Iterator[tuple[str, Iterator[str]]]:
        """Each with its pieces."""
        tx, space = self._tx, self._space
        entries = map(indexes.Entry._make, chunk_trees.entries(tx, space))
        shown = (each for each in entries if each.id not in self._damaged)
        yield indexes.METADATA_INDEX, indexes.metadata_index(shown, now)
        yield indexes.TAG_INDEX, indexes.tag_index(self._tags(), now)
        ahead = self._links(chunk_trees.links_from(tx, space), self._unnamed)
        back = self._links(chunk_trees.links_to(tx, space), self._damaged)
        yield indexes.LINK_GRAPH, indexes.link_graph(ahead, back, now)

    def _tags(self) -> Iterable[tuple[str, list[str]]]:
        found: dict[str, list[str]] = {}
        for chunk_id, tags in chunk_trees.tags(self._tx, self._space):
            for tag in tags if chunk_id not in self._damaged else ():
                found.setdefault(tag, []).append(chunk_id)
        return sorted(found.items())

    def _links(
        self, rows: Iterator[tuple[Any, ...]], without: Collection[str]
    ) -> Iterator[tuple[str, dict[str, list[str]]]]:
        """The other ends of each chunk's links by their kind. `related_to` is the same ahead and back."""
        for (chunk, chunk_id), group in groupby(rows, itemgetter(0, 1)):
            if chunk_id in self._damaged:
                continue
            kinds: dict[str, list[str]] = {kind: [] for kind in LINK_KINDS}
            for _, _, kind, other in group:
                if kind in kinds and other is not None and other not in without:
                    kinds[kind].append(other)
            assert self._space is not None, "a chunk belongs to a space"
            related = chunk_trees.related(self._tx, chunk, self._space, chunk_id)
            kinds["related_to"] = [each for each in related if each not in self._unnamed][:MOST_LINKS]
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
