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


class _Change:
    """What changes of what is noted once a transaction is committed."""

    def __init__(self, of: ChunkAccesses) -> None:
        self._of = of

    def __call__(self) -> None:
        self._of.follow(self)

    def make(self, noted: Noted) -> None:
        raise NotImplementedError


class _Accessed(_Change):
    """A chunk was accessed within a write, as by a batch."""

    def __init__(self, of: ChunkAccesses, chunk: Identity, at: int) -> None:
        super().__init__(of)
        self._chunk, self._at = chunk, at

    def make(self, noted: Noted) -> None:
        known = noted.get(self._chunk)
        if known is not None or len(noted) < MOST:
            noted[self._chunk] = Accesses(1 if known is None else known.times + 1, self._at)


class _Taken(_Change):
    """A transaction has written what was noted, or the chunk is gone."""

    def __init__(self, of: ChunkAccesses, counts: Mapping[Identity, Accesses]) -> None:
        super().__init__(of)
        self._counts = counts

    def make(self, noted: Noted) -> None:
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

    def note(self, row: ChunkRow, at: int, tx: Reading) -> None:
        """A chunk was accessed in a transaction; in that of a write, as of a batch, once it is committed."""
        accessed = _Accessed(self, row.identity, at)
        if isinstance(tx, WriteTransaction):
            tx.hooks.append(accessed)
        else:
            self.follow(accessed)

    def added_to(self, row: ChunkRow, tx: Reading) -> tuple[int, int | None]:
        """How often a chunk was accessed, and when last (microseconds): as its row says in a transaction, and what is
        noted since."""
        from beetle.store.chunks import MOST_ACCESSES

        with self._guard:
            self._follow()
            noted = self._noted.get(row.identity)
        left = _left(tx, {} if noted is None else {row.identity: noted}).get(row.identity)
        last_at = row.last_accessed if noted is None else noted.last_at
        if left is None:
            return min(row.accesses, MOST_ACCESSES), last_at
        return min(row.accesses + left.times, MOST_ACCESSES), left.last_at

    def write(self, tx: WriteTransaction, space: int) -> None:
        """Write down what is noted of a space, within a write of its chunks: nobody's write rests on another's."""
        with self._guard:
            self._follow()
            noted = dict(self._noted)
        self._count(tx, {chunk: each for chunk, each in _left(tx, noted).items() if chunk.space == space})

    def _write_all(self, tx: WriteTransaction) -> None:
        with self._guard:
            self._follow()
            noted = dict(self._noted)
        self._count(tx, _left(tx, noted))

    def _count(self, tx: WriteTransaction, left: Noted) -> None:
        if not left:
            return
        from beetle.store import chunks

        for chunk, each in left.items():
            chunks.count_access(tx, chunk, each.times, each.last_at)
        tx.hooks.append(_Taken(self, left))

    def forget(self, tx: WriteTransaction, rows: Iterable[ChunkRow]) -> None:
        """Chunks are gone, as soon as this transaction is committed: a file or an archive may bring them back."""
        tx.hooks.append(_Taken(self, {row.identity: Accesses(ALL, 0) for row in rows}))

    def follow(self, change: _Change) -> None:
        """Something was accessed, or stands in the store now, or is gone."""
        with self._guard:
            self._follow()
            before = len(self._noted)
            change.make(self._noted)
            due = len(self._noted) > before and len(self._noted) % MANY == 0
        if due:
            self._store.post(self._write_all)

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
    """What of the noted accesses, and of this transaction's own, its rows do not say."""
    if isinstance(tx, WriteTransaction):
        for hook in tx.hooks:
            if isinstance(hook, _Change):
                hook.make(noted)
    return noted
