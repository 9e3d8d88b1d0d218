"""Who spoke in a space, remembered between searches: else each reads a row of every conversation of the space."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable

from beetle.store.engine.transaction import Reading

LISTS, CHARACTERS = 32, 2_048
"""Lists that are remembered, and characters of one. A list of many names is read quickly, since it ends at a number."""
SEEN_SQL = "SELECT coalesce(max(seq), 0) FROM event_log"

Key = tuple[int, tuple[str, ...]]
"""A space, and the visibilities of the messages that count."""


class KnownSpeakers:
    """The lists of one store. A reader whose transaction began before a change sees what it would have read."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Each holds for every state behind the last change.
        self._lists: OrderedDict[Key, tuple[str, ...]] = OrderedDict()
        # A state with a higher number of the event log has all that was changed.
        self._changed = -1

    def note_change(self, seq: int) -> None:
        """The writer is about to commit a change of who spoke where; `seq` is the last number of the event log that a
        state without this commit may have."""
        with self._lock:
            self._changed = max(self._changed, seq)
            self._lists.clear()

    def of(self, tx: Reading, key: Key, read: Callable[[], tuple[str, ...]]) -> tuple[str, ...]:
        """The names of a space as the transaction sees them; `read` reads them from the store."""
        now: int = tx.value(SEEN_SQL)
        with self._lock:
            held = self._lists.get(key)
            # Told before the commit: whatever this transaction sees, its writer has told.
            if held is not None and now > self._changed:
                self._lists.move_to_end(key)
                return held
        names = read()
        with self._lock:
            if now > self._changed and sum(map(len, names)) <= CHARACTERS:
                self._lists[key] = names
                while len(self._lists) > LISTS:
                    self._lists.popitem(last=False)
        return names
