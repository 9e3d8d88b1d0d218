"""Where the console's operations run: at a daemon, or on a store that is open in this process."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from beetle.contracts.common import Report
from beetle.contracts.control import TOPIC_CAPABILITIES
from beetle.contracts.errors import Forbidden
from beetle.contracts.progress import PROGRESS_TOPIC, OnProgress

if TYPE_CHECKING:
    from beetle.client import Client, Events
    from beetle.open import Embedded

CLOSE_SECONDS = 1.0
LONG_SECONDS = 24 * 3600.0
"""How long what goes over a whole store may take, with all its tries."""


class Source(ABC):
    """One way to run operations. Its methods block: they are for threads, not for the screen's."""

    socket: str | None
    """The daemon's socket; None where there is no daemon."""

    @abstractmethod
    def call(self, operation: str, arguments: Any = None, on_progress: OnProgress | None = None) -> Report:
        """Run one operation; `arguments` is a request struct or a mapping of its fields.

        Args:
            on_progress: called with the progress, on any thread, if this caller may follow it.

        Raises:
            BeetleError: what it answered.
            OSError: the daemon is gone, or silent (TimeoutError).
        """

    @abstractmethod
    def follow(self) -> Events | None:
        """Events of every topic that this caller may follow; None where nobody else can change anything.

        Raises:
            BeetleError: it may follow none, or the daemon takes no more subscriptions.
            OSError: the daemon is gone, or silent (TimeoutError).
        """

    @abstractmethod
    def another(self) -> Source | None:
        """A source of the same for work that takes long, to be closed on its own; None where there is but one.

        Raises:
            OSError: the daemon is gone, or silent (TimeoutError).
        """

    @abstractmethod
    def close(self) -> None:
        """Begin to end it, and do not wait; a call in another thread ends with an error."""

    @abstractmethod
    def closed(self) -> None:
        """Wait until it has ended, though no longer than a moment."""


class DaemonSource(Source):
    """A daemon, over its socket."""

    def __init__(self, client: Client, *, may_be_told: bool = False) -> None:
        """`may_be_told` says that this caller may be told how far its work is; to follow events finds it out."""
        self._client = client
        self._may_be_told = may_be_told
        self._closing: threading.Thread | None = None
        self.socket = client.path

    def call(self, operation: str, arguments: Any = None, on_progress: OnProgress | None = None) -> Report:
        """See Source."""
        # Asked for without the right to it, it would be one refusal more in the event log.
        return self._client.call(operation, arguments, on_progress=on_progress if self._may_be_told else None)

    def follow(self) -> Events:
        """See Source."""
        try:
            events = self._client.subscribe(TOPIC_CAPABILITIES)
        except Forbidden:
            # One topic that a caller may not follow refuses them all, and the refusal names only the first.
            catalog = self._client.capabilities().capabilities
            allowed = [
                topic for topic, needed in TOPIC_CAPABILITIES.items() if needed in catalog and catalog[needed].visible
            ]
            if not allowed:
                raise
            events = self._client.subscribe(allowed)
            self._may_be_told = PROGRESS_TOPIC in allowed
        else:
            self._may_be_told = True
        return events

    def another(self) -> DaemonSource:
        """See Source."""
        return DaemonSource(self._client.another(LONG_SECONDS), may_be_told=self._may_be_told)

    def close(self) -> None:
        """See Source."""
        # A call that is just connecting holds the client for as long as a connection may take.
        self._closing = threading.Thread(target=self._client.close, name="beetle-console-close", daemon=True)
        self._closing.start()

    def closed(self) -> None:
        """See Source."""
        if self._closing is not None:
            self._closing.join(CLOSE_SECONDS)


class StoreSource(Source):
    """A store that this process holds."""

    socket = None

    def __init__(self, embedded: Embedded) -> None:
        self._embedded = embedded

    def call(self, operation: str, arguments: Any = None, on_progress: OnProgress | None = None) -> Report:
        """See Source."""
        return self._embedded.call(
            operation, {} if arguments is None else arguments, None, None, None, on_progress
        ).report

    def follow(self) -> None:
        """See Source."""

    def another(self) -> None:
        """See Source."""

    def close(self) -> None:
        """See Source."""
        self._embedded.release()

    def closed(self) -> None:
        """See Source: it has."""
