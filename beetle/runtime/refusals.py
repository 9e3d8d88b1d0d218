"""Refusals in the event log: the first of a kind at once, the rest of its minute as one row with a count.

A caller that is refused ten thousand times a second must not be able to fill the store with rows about it.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import NamedTuple

from beetle.contracts.errors import BeetleError
from beetle.runtime.caller import Caller
from beetle.store.event_log import Event
from beetle.store.store import Store
from beetle.store.writer import WriteTransaction

log = logging.getLogger("beetle.refusals")

WINDOW_S = 60.0
KINDS = 256
"""Most kinds of refusal counted apart at a time."""


class Kind(NamedTuple):
    principal: str
    operation: str
    error: str


class Refusals:
    """Counts refusals and writes them down."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._guard = threading.Lock()
        self._since: dict[Kind, float] = {}
        self._held: dict[Kind, int] = {}
        self.count = 0

    def note(self, caller: Caller, operation: str, error: str) -> None:
        """One refusal. Never raises for a store that cannot be written: the caller's own error is what it must see."""
        kind = Kind(caller.name, operation[:128], error)
        rows = self._due(kind, time.monotonic())
        if not rows:
            return

        def write(tx: WriteTransaction) -> None:
            for each, count in rows.items():
                subject = {"error": each.error, "count": count}
                tx.log(Event("lifecycle", "refused", each.operation, each.principal, None, subject))

        try:
            self._store.write(write, grows=False)
        except BeetleError as failure:
            log.warning("refusals of %s could not be logged: %s", caller.name, failure.key)

    def _due(self, kind: Kind, now: float) -> dict[Kind, int]:
        """What is to be written now: this refusal if it is the first of its window, and what older windows held."""
        with self._guard:
            self.count += 1
            rows: dict[Kind, int] = {}
            for each, since in list(self._since.items()):
                if now - since >= WINDOW_S:
                    del self._since[each]
                    if held := self._held.pop(each, 0):
                        rows[each] = held
            if kind in self._since:
                self._held[kind] = self._held.get(kind, 0) + 1
            elif len(self._since) < KINDS:
                self._since[kind] = now
                rows[kind] = rows.get(kind, 0) + 1
            return rows
