"""Operations asked for by several threads: each has a connection to the daemon while it asks; without a daemon the
store is open in this process as long as something is asked of it, so that a daemon or another process can have it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from beetle.contracts.errors import BeetleError, DaemonUnavailable, DeadlineExceeded, StoreLocked
from beetle.contracts.progress import OnProgress
from beetle.mcp.running import Cancelled, Running
from beetle.named_tuple import NamedTuple

if TYPE_CHECKING:
    from beetle.client import Client
    from beetle.contracts.common import Report
    from beetle.contracts.operation import Operation
    from beetle.open import Embedded

CALL_SECONDS = 60.0
WALK_SECONDS = 24 * 3600.0
"""For an operation that has a deadline of its own."""
PATIENCE_SECONDS = 10.0
"""For a daemon that starts again, and for another process to give the store back."""
AWAY_SECONDS = 2.0
"""So long a daemon that was there is waited for before the store is opened here."""
PAUSE_SECONDS = 0.1
IDLE_MOST = 8


class MemoryAccess(NamedTuple):
    """How the memory is reached. `find` takes seconds for one call and answers a connected client, or None when the
    store is free; `start` starts a daemon where that is wanted.
    """

    find: Callable[[float], Client | None]
    open_here: Callable[[], Embedded]
    start: Callable[[], None] | None = None


class NoAnswer(DeadlineExceeded):
    template = "{place} did not answer in time"
    hint_template = "it may still do the work: look before you ask again"


class Calls:
    """Runs operations; `log` is given a level and words for the host's log."""

    def __init__(self, access: MemoryAccess, log: Callable[[str, str], None]) -> None:
        self._access = access
        self._log = log
        self._guard = threading.Lock()
        self._idle: list[Client] = []
        self._embedded: Embedded | None = None
        self._users = 0
        self._had_daemon = False

    def call(self, row: Operation, arguments: Any, running: Running, on_progress: OnProgress | None = None) -> Report:
        """Run one operation, again where the daemon went away meanwhile: a write carries an idempotency key.

        Raises:
            BeetleError: what it answered, or that nobody does.
            Cancelled: the host wants it no more.
        """
        key = None if row.effect == "read" else os.urandom(16).hex()
        end = time.monotonic() + PATIENCE_SECONDS
        gone_at: float | None = None
        while True:
            try:
                if self._access.start is not None or gone_at is None or time.monotonic() > gone_at + AWAY_SECONDS:
                    return self._once(row, arguments, running, on_progress, key)
                if (client := self._connected(row)) is not None:
                    return self._ask(client, row, arguments, running, on_progress, key)
            except (ConnectionError, DaemonUnavailable, StoreLocked) as error:
                if running.cancelled:
                    raise Cancelled from None
                if gone_at is None and self._had_daemon and isinstance(error, ConnectionError):
                    self._log("warning", "the daemon went away; looking for it")
                    self._forget_clients()
                    gone_at, end = time.monotonic(), time.monotonic() + PATIENCE_SECONDS
                if not self._worth_waiting(error) or time.monotonic() > end:
                    raise _as_ours(error) from None
            running.pause(PAUSE_SECONDS)

    def ask_daemon(self, row: Operation, running: Running) -> Report | None:
        """What the daemon answers to an operation without arguments; None when there is none, or it refuses."""
        try:
            client = self._connected(row)
            return None if client is None else self._ask(client, row, {}, running, None, None)
        except (BeetleError, ConnectionError):
            return None

    def close(self) -> None:
        """Close the connections that wait for work."""
        self._forget_clients()

    def _worth_waiting(self, error: Exception) -> bool:
        # Nobody at a socket where nobody has ever been will not be waited for.
        return self._had_daemon or isinstance(error, StoreLocked)

    def _once(
        self, row: Operation, arguments: Any, running: Running, on_progress: OnProgress | None, key: str | None
    ) -> Report:
        client = self._connected(row)
        if client is None and self._access.start is not None:
            self._log("info", "no daemon answers; starting one")
            self._access.start()
            client = self._connected(row)
        if client is not None:
            return self._ask(client, row, arguments, running, on_progress, key)
        running.ends_by(_nothing)
        with self._opened_here() as embedded:
            outcome = embedded.call(
                row.name, arguments, None, key, None, on_progress, is_abandoned=lambda: running.cancelled
            )
        running.ends_by(None)
        if running.cancelled:
            raise Cancelled
        return outcome.report

    def _connected(self, row: Operation) -> Client | None:
        if row.deadline_ms is not None:
            # One of its own: its patience is another.
            return self._access.find(WALK_SECONDS)
        with self._guard:
            if self._idle:
                return self._idle.pop()
        return self._access.find(CALL_SECONDS)

    def _ask(
        self,
        client: Client,
        row: Operation,
        arguments: Any,
        running: Running,
        on_progress: OnProgress | None,
        key: str | None,
    ) -> Report:
        self._had_daemon = True
        whole = False
        try:
            running.ends_by(client.close)
            report = client.call(row.name, arguments, idempotency_key=key, on_progress=on_progress)
            whole = True
            return report
        except TimeoutError:
            raise NoAnswer(place=f"the daemon at {client.path}", deadline_ms=int(CALL_SECONDS * 1000)) from None
        except BeetleError as error:
            whole = not isinstance(error, ConnectionError)
            raise
        finally:
            running.ends_by(None)
            self._put_back(client, usable=whole and not running.cancelled and row.deadline_ms is None)

    def _put_back(self, client: Client, *, usable: bool) -> None:
        with self._guard:
            if usable and len(self._idle) < IDLE_MOST:
                self._idle.append(client)
                return
        client.close()

    def _forget_clients(self) -> None:
        with self._guard:
            idle, self._idle = self._idle, []
        for client in idle:
            client.close()

    @contextmanager
    def _opened_here(self) -> Generator[Embedded]:
        """The store, which is freed when the last call that uses it has ended."""
        with self._guard:
            if self._embedded is None:
                self._embedded = self._access.open_here()
            embedded = self._embedded
            self._users += 1
        try:
            yield embedded
        finally:
            with self._guard:
                self._users -= 1
                if not self._users:
                    self._embedded = None
                    embedded.release()


def _nothing() -> None:
    """What runs in this process looks itself whether it was cancelled."""


def _as_ours(error: Exception) -> BeetleError:
    return error if isinstance(error, BeetleError) else DaemonUnavailable(reason=f"the daemon went away: {error}")
