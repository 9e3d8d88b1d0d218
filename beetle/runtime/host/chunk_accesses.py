"""Accesses of chunks that are not written yet.

A read writes nothing: it would wait for the writer, and a store that cannot be written could not be read. So a read
only notes that a chunk was accessed. What is noted is shown at once. It goes to the store in the transaction of the
next write of chunks in its space; by itself, when it is of many chunks; and when the store is closed. It stays noted
until that transaction is committed: one that is undone loses nothing. A process that is killed loses the counts since
then, and nothing else. A read may see, and note, a chunk that was erased meanwhile: that counts for no other chunk.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from beetle.contracts.errors import BeetleError
from beetle.named_tuple import NamedTuple
from beetle.store.engine.store import Store
from beetle.store.engine.transaction import Reading
from beetle.store.engine.write_transaction import WriteTransaction

if TYPE_CHECKING:
    from beetle.store.chunks import ChunkRow, Identity

MANY = 1_000
"""Chunks with noted accesses that are worth a write of their own."""
MOST = 10_000
"""Chunks of which accesses are noted while none can be written; of further ones none are."""
ALL = 2**63
"""More accesses than anybody makes."""


class Accesses(NamedTuple):
    """How often a chunk was accessed, and when last (microseconds)."""

    times: int
    last_at: int


Noted = dict["Identity", Accesses]


class _Taken:
    """What a transaction takes out of what is noted, once it is committed: it has written it, or the chunk is gone."""

    def __init__(self, of: ChunkAccesses, counts: Mapping[Identity, Accesses]) -> None:
        self._of = of
        self._counts = counts

    def __call__(self) -> None:
        self._of.take_out(self)

    def out_of(self, noted: Noted) -> None:
        for chunk in self._counts.keys() & noted.keys():
            left = noted[chunk].times - self._counts[chunk].times
            if left > 0:
                noted[chunk] = noted[chunk]._replace(times=left)
            else:
                del noted[chunk]


class ChunkAccesses:
    """Of the store's present epoch: a restore makes another one. For several threads."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._guard = threading.Lock()
        self._epoch = store.epoch
        self._noted: Noted = {}

    def note(self, row: ChunkRow, at: int) -> None:
        """A chunk was accessed."""
        chunk = row.identity
        with self._guard:
            self._follow()
            known = self._noted.get(chunk)
            if known is not None or len(self._noted) < MOST:
                self._noted[chunk] = Accesses(1 if known is None else known.times + 1, at)
            due = known is None and len(self._noted) % MANY == 0
        if due:
            self._store.post(self._write_all)

    def added_to(self, row: ChunkRow, tx: Reading) -> tuple[int, int | None]:
        """How often a chunk was accessed, and when last (microseconds): as its row says in a transaction, and what is
        noted since."""
        from beetle.store.chunks import MOST_ACCESSES

        with self._guard:
            self._follow()
            noted = self._noted.get(row.identity)
        if noted is None or not (left := _left(tx, {row.identity: noted})):
            return row.accesses, row.last_accessed
        return min(row.accesses + left[row.identity].times, MOST_ACCESSES), noted.last_at

    def write(self, tx: WriteTransaction, space: int) -> None:
        """Write down what is noted of a space, within a write of its chunks: nobody's write rests on another's."""
        with self._guard:
            self._follow()
            noted = {chunk: each for chunk, each in self._noted.items() if chunk.space == space}
        self._count(tx, noted)

    def _write_all(self, tx: WriteTransaction) -> None:
        with self._guard:
            self._follow()
            noted = dict(self._noted)
        self._count(tx, noted)

    def _count(self, tx: WriteTransaction, noted: Noted) -> None:
        if not noted:
            return
        from beetle.store import chunks

        left = _left(tx, noted)
        for chunk, each in left.items():
            chunks.count_access(tx, chunk, each.times, each.last_at)
        tx.hooks.append(_Taken(self, left))

    def forget(self, tx: WriteTransaction, rows: Iterable[ChunkRow]) -> None:
        """Chunks are gone, as soon as this transaction is committed: a file or an archive may bring them back."""
        tx.hooks.append(_Taken(self, {row.identity: Accesses(ALL, 0) for row in rows}))

    def take_out(self, taken: _Taken) -> None:
        """What was noted stands in the store now, or is of nothing."""
        with self._guard:
            taken.out_of(self._noted)

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


def _left(tx: Reading, noted: Noted) -> Noted:
    """What of the noted accesses the rows do not say as this transaction sees them."""
    if isinstance(tx, WriteTransaction):
        for hook in tx.hooks:
            if isinstance(hook, _Taken):
                hook.out_of(noted)
    return noted
