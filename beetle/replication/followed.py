"""What the supervisor of a replica knows of the store that it follows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from beetle.named_tuple import NamedTuple


class Log(Protocol):
    """The store's side of it: see `beetle.store.engine.follower`."""

    soft: int
    commits: int
    attached: bool
    keeps_log: bool
    waits: int
    waited_s: float
    on_begin: Callable[[], None] | None
    on_end: Callable[[], None] | None
    on_overrun: Callable[[], None] | None
    on_ask: Callable[[bool], None] | None
    is_gone: Callable[[], bool]
    kept_until: Callable[[int], int] | None

    def excuse(self, seconds: float) -> None: ...


class Followed(NamedTuple):
    """A store that is replicated: its path, its log, how many rows its event log has, the bytes of its file, of its log
    and of the disk that are free."""

    path: str
    log: Log
    events: Callable[[], int]
    store_bytes: Callable[[], int]
    wal_bytes: Callable[[], int]
    free_bytes: Callable[[], int]
    touch: Callable[[], None] = lambda: None
    """Has something small written, soon."""
