"""Questions that a model answered with nothing that can be used."""

from __future__ import annotations

import time

FIRST_S = 3600.0
MOST_S = 7 * 24 * 3600.0
MOST = 1000


class HeldBack:
    """Questions that are not asked again for a while, by a digest of what they are about: an hour, then twice as long
    each time, at most a week. A restart forgets them."""

    def __init__(self) -> None:
        self._until: dict[bytes, tuple[float, float]] = {}

    def holds(self, digest: bytes) -> bool:
        """Whether not to ask now."""
        return digest in self._until and time.monotonic() < self._until[digest][0]

    def put(self, digest: bytes) -> None:
        """The answer was worth nothing once more."""
        rest = min(self._until.pop(digest, (0.0, FIRST_S / 2))[1] * 2, MOST_S)
        self._until[digest] = (time.monotonic() + rest, rest)
        if len(self._until) > MOST:
            del self._until[next(iter(self._until))]
