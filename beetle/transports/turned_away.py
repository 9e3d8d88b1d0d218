"""Connections for which there is no room: told why after a pause, and closed.

Who tries again as soon as it is refused would otherwise come back thousands of times a second, and each time take the
interpreter from a request that is at work.
"""

from __future__ import annotations

import socket
import time
from collections import deque

from beetle.contracts.codec import pack
from beetle.contracts.errors import Overloaded
from beetle.transports.messages import refused

PAUSE_S = 1.0
MOST = 256
"""Kept at once. Of more, the one that has waited longest is told at once."""


class TurnedAway:
    """Used by the accepting thread alone."""

    def __init__(self) -> None:
        # What each is told stands ready: its error would keep all that it was raised in.
        self._waiting: deque[tuple[float, socket.socket, bytes]] = deque()

    @property
    def next_ms(self) -> int | None:
        """Milliseconds until the next one is to be told; None when there is none."""
        if not self._waiting:
            return None
        return max(0, int((self._waiting[0][0] - time.monotonic()) * 1000) + 1)

    def add(self, peer: socket.socket, error: Overloaded) -> None:
        """Keep a connection until it is told `error`."""
        if len(self._waiting) >= MOST:
            self._tell()
        self._waiting.append((time.monotonic() + PAUSE_S, peer, pack(refused(None, error))))

    def end(self) -> None:
        """Tell and close those whose time it is."""
        now = time.monotonic()
        while self._waiting and self._waiting[0][0] <= now:
            self._tell()

    def close(self) -> None:
        """Tell and close all of them."""
        while self._waiting:
            self._tell()

    def _tell(self) -> None:
        """Without waiting: a peer that does not read is closed all the same."""
        _, peer, told = self._waiting.popleft()
        try:
            peer.setblocking(False)
            peer.send(told)
        except OSError:
            pass  # it has gone already
        finally:
            peer.close()
