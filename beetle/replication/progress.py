"""How far a replica is, from what its sidecar answers."""

from __future__ import annotations

from collections import deque

from beetle.replication.control import Position


class Progress:
    """Times in monotonic seconds. `synced` is when the store was last known to be at the target whole, and
    `synced_changes` how often it had changed by then."""

    def __init__(self) -> None:
        self.txid: int | None = None
        self.replicated: int | None = None
        self.synced: float | None = None
        self.synced_changes: int | None = None
        self._asked: deque[tuple[float, int, int]] = deque(maxlen=4096)

    def restarted(self) -> None:
        """Another sidecar begins: what the one before it had asked for is not known any more."""
        self._asked.clear()

    def note(self, asked_at: float, changes: int, position: Position) -> None:
        """All commits before `asked_at`, up to that number of changes, are in `position.txid`. A sidecar that has lost
        its target answers 0 for what is there."""
        self.txid = position.txid
        if position.replicated_txid:
            self.replicated = position.replicated_txid
        if not self._asked or self._asked[-1][1] != position.txid:
            self._asked.append((asked_at, position.txid, changes))
        else:
            self._asked[-1] = (asked_at, position.txid, changes)
        while self._asked and self.replicated is not None and self._asked[0][1] <= self.replicated:
            self.synced, _, self.synced_changes = self._asked.popleft()

    def lag_s(self, now: float, changes: int) -> float | None:
        """For how long what waits has waited at most; 0 when nothing does, None before the first answer."""
        if self.synced is not None and self.synced_changes == changes:
            return 0.0
        return None if self.synced is None else now - self.synced

    @property
    def waiting(self) -> int | None:
        """Transactions that are not at the target."""
        return None if self.txid is None or self.replicated is None else max(0, self.txid - self.replicated)
