"""What verify looks at in chunks: what each says and links, and that its tags find it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.planes.chunk_rows import NAME, conversation_digest, is_sound, ref_of, tag_digests
from beetle.store import chunk_imports, chunks, plane_chunks
from beetle.store.chunks import ChunkRow
from beetle.store.engine.transaction import Reading
from beetle.store.verify import Finding

MOST = 100
"""Findings that are told."""


def of_store(invocation: Invocation, tx: Reading) -> tuple[int, list[Finding]]:
    """Every chunk of every space: how many there are, and what is wrong with them."""
    walk = _Walk(invocation.key, tx)
    findings = list(walk.through(chunks.every(tx)))
    if walk.tags != plane_chunks.count_tags(tx):
        findings.append(Finding(NAME, "tags", "chunks are found by other tags than they have"))
    findings += [Finding(NAME, ref_of(each), "a link of it leads elsewhere") for each in plane_chunks.stray_links(tx)]
    findings += [Finding(NAME, f"{table} of row {row}", "is of no chunk") for table, row in plane_chunks.stray(tx)]
    findings += _imports(invocation, tx)
    return walk.rows, findings


def of_space(invocation: Invocation, tx: Reading, space: int) -> Iterator[Finding]:
    """The chunks of one space."""
    yield from _Walk(invocation.key, tx).through(chunks.of_space(tx, space))
    for each in plane_chunks.stray_links(tx, space):
        yield Finding(NAME, ref_of(each), "a link of it leads elsewhere")


def _imports(invocation: Invocation, tx: Reading) -> Iterator[Finding]:
    """Imports that stand still: those that run now are none of them."""
    for each in chunk_imports.unfinished(tx):
        if each.import_id in invocation.shared.left_imports:
            problem = "was begun, and could not be finished when the store was opened: open it again"
            yield Finding(NAME, f"import {each.import_id}", problem)
    for each in chunk_imports.unreadable(tx):
        problem = "was begun, and how far it is cannot be read: it is ended when the store is opened again"
        yield Finding(NAME, f"import {each.import_id}", problem)


class _Walk:
    """Looks at chunks one by one; counts them and their tags."""

    def __init__(self, key: bytes, tx: Reading) -> None:
        self._key = key
        self._tx = tx
        self.rows = 0
        self.tags = 0

    def through(self, rows: Iterable[ChunkRow]) -> Iterator[Finding]:
        told = 0
        for row in rows:
            self.rows += 1
            for problem in self._problems(row):
                told += 1
                if told <= MOST:
                    yield Finding(NAME, ref_of(row.chunk_id), problem)

    def _problems(self, row: ChunkRow) -> Iterator[str]:
        if not is_sound(self._key, row):
            yield "its content, its tags or its links are not what was written"
        tagged = frozenset(tag_digests(self._key, row.space, row.tags))
        self.tags += len(tagged)
        where = conversation_digest(self._key, row.space, row.conversation_id)
        if tagged and not plane_chunks.has_tags(self._tx, row.chunk, tagged, where):
            yield "it is not found by its tags"
