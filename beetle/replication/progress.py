"""How far a replica is, from what its sidecar answers."""

from __future__ import annotations

from collections import deque

from beetle.named_tuple import NamedTuple
from beetle.replication.control import Position


class Written(NamedTuple):
    """How far a store is. Not every commit has a row in the event log: the daemon's own notes and what it derives have
    none, and are to reach the target as well."""

    commits: int
    events: int


class Progress:
    """Times in monotonic seconds. `synced` is when the store was last known to be at the target whole, and
    `synced_store` how far it was by then. `arrived` is the last transaction that was sent; `limit` the last one that
    can be restored, where what was sent is not there any more."""

    def __init__(self) -> None:
        self.txid: int | None = None
        self.arrived: int | None = None
        self.limit: int | None = None
        self.synced: float | None = None
        self.synced_store: Written | None = None
        self._asked: deque[tuple[float, int, Written]] = deque(maxlen=4096)

    def restarted(self) -> None:
        """Another sidecar begins: what the one before it had asked for is not known any more."""
        self._asked.clear()

    def note(self, asked_at: float, store: Written, position: Position) -> None:
        """All commits before `asked_at`, up to those of `store`, are in `position.txid`. A sidecar that has lost
        its target answers 0 for what is there."""
        self.txid = position.txid
        if position.replicated_txid:
            self.arrived = position.replicated_txid
        if not self._asked or self._asked[-1][1] != position.txid:
            self._asked.append((asked_at, position.txid, store))
        else:
            self._asked[-1] = (asked_at, position.txid, store)
        while self._asked and self.replicated is not None and self._asked[0][1] <= self.replicated:
            self.synced, _, self.synced_store = self._asked.popleft()

    def lag_s(self, now: float, commits: int) -> float | None:
        """For how long what waits has waited at most; 0 when nothing does, None before the first answer."""
        if self.limit is None and self.synced_store is not None and self.synced_store.commits == commits:
            return 0.0
        return None if self.synced is None else now - self.synced

    @property
    def replicated(self) -> int | None:
        """The last transaction that can be restored."""
        return self.arrived if self.arrived is None or self.limit is None else min(self.arrived, self.limit)

    @property
    def waiting(self) -> int | None:
        """Transactions that are not at the target."""
        return None if self.txid is None or self.replicated is None else max(0, self.txid - self.replicated)
