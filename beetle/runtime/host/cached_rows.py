"""Rows that every request is judged by, kept in memory and read anew after a commit that changed them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from beetle.store.engine.store import Store
from beetle.store.engine.transaction import Reading

T = TypeVar("T")


class CachedRows(Generic[T]):
    """`changed` is called after the commit and before whoever wrote hears of it: who asks next, asks the new rows."""

    def __init__(self, store: Store, load: Callable[[Reading], T]) -> None:
        self._store = store
        self._load = load
        self._guard = threading.Lock()
        self._changes = 0
        self._read: tuple[tuple[int, int], T] | None = None

    def changed(self) -> None:
        """What is kept may no longer be what is stored. Quick: the writer's thread calls it."""
        with self._guard:
            self._changes += 1

    @property
    def are_read(self) -> bool:
        """Whether `get` has them without a look at the store."""
        with self._guard:
            return self._read is not None and self._read[0] == (self._store.epoch, self._changes)

    def get(self) -> T:
        """The rows as the last commit left them, also when another file has taken the store's place.

        Raises:
            BeetleError: they had changed, and could not be read.
        """
        with self._guard:
            stands, read = (self._store.epoch, self._changes), self._read
        if read is not None and read[0] == stands:
            return read[1]
        with self._store.read() as tx:
            found = self._load(tx)
        with self._guard:
            # What was read before a later change must not outlive what was read behind it.
            if self._read is None or self._read[0] <= stands:
                self._read = (stands, found)
        return found
