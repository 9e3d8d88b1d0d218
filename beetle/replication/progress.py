"""How far a replica is, from what its sidecar answers."""

from __future__ import annotations

from collections import deque

from beetle.replication.control import Position


class Progress:
    """Times in monotonic seconds. `synced` is when the store was last known to be at the target whole."""

    def __init__(self) -> None:
        self.txid: int | None = None
        self.replicated: int | None = None
        self.synced: float | None = None
        self._asked: deque[tuple[float, int]] = deque(maxlen=4096)

    def restarted(self) -> None:
        """Another sidecar begins: what the one before it had asked for is not known any more."""
        self._asked.clear()

    def note(self, asked_at: float, position: Position) -> None:
        """All commits before `asked_at` are in `position.txid`; a sidecar that lost its target answers 0 for it."""
        self.txid = position.txid
        if position.replicated_txid:
            self.replicated = position.replicated_txid
        if not self._asked or self._asked[-1][1] != position.txid:
            self._asked.append((asked_at, position.txid))
        else:
            self._asked[-1] = (asked_at, position.txid)
        while self._asked and self.replicated is not None and self._asked[0][1] <= self.replicated:
            self.synced = self._asked.popleft()[0]

    def lag_s(self, now: float) -> float | None:
        """For how long what waits has waited at most; 0 when nothing does, None before the first answer."""
        if self.txid is not None and self.txid == self.replicated:
            return 0.0
        return None if self.synced is None else now - self.synced

    @property
    def waiting(self) -> int | None:
        """Transactions that are not at the target."""
        return None if self.txid is None or self.replicated is None else max(0, self.txid - self.replicated)
