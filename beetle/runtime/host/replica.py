"""Who can tell of the replica: nobody, until a daemon has begun to keep one."""

from __future__ import annotations

from collections.abc import Callable

from beetle.contracts.replication import ReplicationStatusReport

DAEMON_HINT = "only a daemon keeps a replica: `beetle start`"


class ReplicaBoard:
    """Where the composition root puts up who keeps the replica, and whoever is asked looks."""

    def __init__(self, *, configured: bool) -> None:
        self._configured = configured
        self._tell: Callable[[], ReplicationStatusReport] | None = None

    def put_up(self, tell: Callable[[], ReplicationStatusReport]) -> None:
        """From now on `tell` is asked; it answers within half a second."""
        self._tell = tell

    def status(self) -> ReplicationStatusReport:
        """How far the replica is."""
        if self._tell is not None:
            return self._tell()
        if self._configured:
            return ReplicationStatusReport(state="refused", problem="embedded", hint=DAEMON_HINT)
        return ReplicationStatusReport(state="off")
