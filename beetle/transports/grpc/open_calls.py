"""How many RPCs may be open: together, and on one connection."""

from __future__ import annotations

import threading
from collections import Counter

from beetle.contracts.errors import Overloaded
from beetle.transports.room import RETRY_MS


class OpenCalls:
    """RPCs from their first byte to the end of their work. One connection has at most half of the places."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.each = max(1, most // 2)
        self._guard = threading.Lock()
        self._open: Counter[str] = Counter()

    def take(self, peer: str) -> None:
        """One more of a peer (the address of its connection); `free` gives it back.

        Raises:
            Overloaded: there is no place for it.
        """
        with self._guard:
            if self._open.total() >= self.most:
                raise Overloaded(what="too many gRPC calls are open", maximum=self.most, retry_after_ms=RETRY_MS)
            if self._open[peer] >= self.each:
                what = "too many gRPC calls are open on this connection"
                raise Overloaded(what=what, maximum=self.each, retry_after_ms=RETRY_MS)
            self._open[peer] += 1

    def free(self, peer: str) -> None:
        """A call has ended."""
        with self._guard:
            self._open[peer] -= 1
            if not self._open[peer]:
                del self._open[peer]

    @property
    def count(self) -> int:
        """Calls that are open now."""
        with self._guard:
            return self._open.total()
