"""How much room a store has below its ceiling."""

from __future__ import annotations

from collections.abc import Callable

import apsw

from beetle.store.engine.connection import PAGE_SIZE, StoreSettings

TIGHT_BYTES = 64 * 2**20
"""So near to its ceiling a store looks after each write whether it went over; no single write is as large."""


class Room:
    """What a store uses, and whether it is near its ceiling. Used by the writer's thread alone."""

    def __init__(self, settings: StoreSettings, connection: apsw.Connection, written: Callable[[], int]) -> None:
        """`written`: how many pages commits have written since the opening, where there is a write-ahead log."""
        self._ceiling = settings.store_bytes
        self._walled = settings.walled
        self._connection = connection
        self._written = written
        self._used = self._looked_at = 0
        self.tight = True
        """Whether each write has to look whether it went over."""

    def look(self) -> int:
        """Bytes in use before a commit: as they were last looked at, where the pages written since cannot have brought
        the store near its ceiling."""
        written = self._written()
        most = self._used + (written - self._looked_at) * PAGE_SIZE + TIGHT_BYTES
        if self.tight or not self._walled or most > self._ceiling:
            self._used, self._looked_at = self.used(), written
            self.tight = self._used + TIGHT_BYTES > self._ceiling
        return self._used

    def used(self) -> int:
        """Bytes of the pages in use, as the transaction that runs sees them."""
        try:
            return (self._connection.pragma("page_count") - self._connection.pragma("freelist_count")) * PAGE_SIZE
        except apsw.Error:
            return 0  # a store that cannot be read will say so itself when it is written

    @property
    def is_over(self) -> bool:
        """Whether what is written now is more than the store may hold."""
        return self.used() > self._ceiling
