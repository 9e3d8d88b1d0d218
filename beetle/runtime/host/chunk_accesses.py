"""Accesses of chunks that are not written yet.

A read writes nothing: it would wait for the writer, and a store that cannot be written could not be read. So a read
only notes that a chunk was accessed. What is noted is shown at once. It goes to the store in the transaction of the
next write of chunks in its space; by itself, when it is of many chunks; and when the store is closed. A process that
is killed loses the counts since then, and nothing else.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING

from beetle.contracts.errors import BeetleError
from beetle.named_tuple import NamedTuple
from beetle.store.engine.store import Store
from beetle.store.engine.transaction import Writing

if TYPE_CHECKING:
    from beetle.store.chunks import ChunkRow

MANY = 1_000
"""Chunks with noted accesses that are worth a write of their own."""
MOST = 10_000
"""Chunks of which accesses are noted while none can be written; of further ones none are."""


class Accesses(NamedTuple):
    """How often a chunk of a space was accessed, and when last (microseconds)."""

    space: int
    times: int
    last_at: int


class ChunkAccesses:
    """By the chunk's row, in the store's present epoch: a restore makes another one. For several threads."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._guard = threading.Lock()
        self._epoch = store.epoch
        self._noted: dict[int, Accesses] = {}

    def note(self, row: ChunkRow, at: int) -> None:
        """A chunk was accessed."""
        chunk = row.chunk
        with self._guard:
            self._follow()
            known = self._noted.get(chunk)
            if known is not None or len(self._noted) < MOST:
                self._noted[chunk] = Accesses(row.space, 1 if known is None else known.times + 1, at)
            due = known is None and len(self._noted) % MANY == 0
        if due:
            self._store.post(self._write_all)

    def added_to(self, row: ChunkRow) -> tuple[int, int | None]:
        """How often a chunk was accessed, and when last (microseconds): as its row says, and what is noted since."""
        from beetle.store.chunks import MOST_ACCESSES

        with self._guard:
            self._follow()
            noted = self._noted.get(row.chunk)
        times, last_at = (0, row.last_accessed) if noted is None else (noted.times, noted.last_at)
        return min(row.accesses + times, MOST_ACCESSES), last_at

    def write(self, tx: Writing, space: int) -> None:
        """Write down what is noted of a space, within a write of its chunks: nobody's write rests on another's."""
        with self._guard:
            self._follow()
            noted = {chunk: each for chunk, each in self._noted.items() if each.space == space}
            for chunk in noted:
                del self._noted[chunk]
        self._count(tx, noted)

    def _write_all(self, tx: Writing) -> None:
        with self._guard:
            self._follow()
            noted, self._noted = self._noted, {}
        self._count(tx, noted)

    def _count(self, tx: Writing, noted: Mapping[int, Accesses]) -> None:
        if not noted:
            return
        from beetle.store import chunks

        for chunk, each in noted.items():
            chunks.count_access(tx, chunk, each.times, each.last_at)

    def forget(self, chunk: int) -> None:
        """A chunk is gone."""
        with self._guard:
            self._noted.pop(chunk, None)

    def close(self) -> None:
        """Write down what is noted before the store is closed, where it can be written to."""
        if not self._noted:
            return
        try:
            self._store.write(self._write_all, grows=False)
        except BeetleError:
            # A store that is full or read-only keeps what it has; counts are no evidence.
            self._noted.clear()

    def _follow(self) -> None:
        if self._epoch != self._store.epoch:
            self._epoch = self._store.epoch
            self._noted.clear()
