"""Who can tell of the replica and reach it: nobody, until a composition root has put somebody up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NoReturn, Protocol

from beetle.contracts.errors import ServicesUnavailable
from beetle.contracts.replication import ReplicationStatusReport

DAEMON_HINT = "only a daemon keeps a replica: `beetle start`"


class SentFile(Protocol):
    """A file of the replica: pages of the transactions from `min_txid` to `max_txid`. `created` is RFC 3339."""

    @property
    def level(self) -> int: ...
    @property
    def min_txid(self) -> int: ...
    @property
    def max_txid(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def created(self) -> str: ...


class Source(Protocol):
    """A replica to be restored from."""

    def files(self) -> Sequence[SentFile]:
        """Every file of it; empty where there is none.

        Raises:
            ServicesUnavailable: its target does not answer.
        """
        ...

    def write_state(self, to: str, at: str | None, most_bytes: int, timeout_s: float) -> int:
        """Write a state of it to a path where nothing is; its last transaction. `at` is RFC 3339, None for the newest.

        Raises:
            ServicesUnavailable: it could not be read whole, or is larger than `most_bytes`.
        """
        ...


class Forgotten(Protocol):
    """What was removed from a replica, and what it holds."""

    @property
    def removed_files(self) -> int: ...
    @property
    def removed_bytes(self) -> int: ...
    @property
    def files(self) -> int: ...
    @property
    def txid(self) -> int: ...


class Keeper(Protocol):
    """Who keeps the replica of an open store."""

    def status(self) -> ReplicationStatusReport:
        """How far it is; answers within half a second."""
        ...

    @property
    def synced_events(self) -> int | None:
        """How many rows of the event log are known to have reached the target; None before the first."""
        ...

    def forget(self, must_end: Callable[[], bool], at: Callable[[int, int], None]) -> Forgotten:
        """Remove all that was sent before now. It goes on by itself when `must_end` ends the wait.

        Args:
            at: is told how many of how many files are gone.

        Raises:
            ServicesUnavailable: the target did not let them be removed.
            DeadlineExceeded: `must_end` became true.
        """
        ...


class ReplicaBoard:
    """Where the composition root puts up who keeps the replica, and whoever is asked looks."""

    def __init__(self, *, url: str | None, source: Callable[[], Source] | None = None) -> None:
        """Begin with nobody.

        Args:
            url: of the replica that the configuration names; None where it names none.
            source: opens it to be restored from.
        """
        self.url = url
        self._source = source
        self._status: Callable[[], ReplicationStatusReport] | None = None
        self._keeper: Keeper | None = None

    def put_up(self, status: Callable[[], ReplicationStatusReport], keeper: Keeper | None = None) -> None:
        """From now on `tell` is asked; it answers within half a second."""
        self._status = status
        self._keeper = keeper

    def status(self) -> ReplicationStatusReport:
        """How far the replica is."""
        if self._status is not None:
            return self._status()
        if self.url is not None:
            return ReplicationStatusReport(state="refused", problem="embedded", hint=DAEMON_HINT)
        return ReplicationStatusReport(state="off")

    def source(self) -> Source:
        """The replica, to be restored from.

        Raises:
            ServicesUnavailable: none is configured, or its program or secrets cannot be used.
        """
        if self._source is None:
            _refuse_none()
        return self._source()

    @property
    def synced_events(self) -> int | None:
        """As of who keeps the replica; None where nobody does."""
        return None if self._keeper is None else self._keeper.synced_events

    def keeper(self) -> Keeper:
        """Who keeps it.

        Raises:
            ServicesUnavailable: none is configured, or it is not kept here.
        """
        if self._keeper is not None:
            return self._keeper
        if self.url is None:
            _refuse_none()
        told = self.status()
        raise ServicesUnavailable(reason=f"no replica is kept here ({told.problem})", hint=told.hint)


def _refuse_none() -> NoReturn:
    hint = "name one in the configuration: [replica] url, see `beetle help replication`"
    raise ServicesUnavailable(reason="no replica is configured", hint=hint)
