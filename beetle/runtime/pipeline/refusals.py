"""Refusals in the event log: the first of a kind at once, the rest of its minute as one row with a count.

Who is refused waits for nothing: the rows are written aside. A caller that is refused ten thousand times a second fills
neither the store nor the memory, and takes nothing of what is told of others: each principal has its own few kinds.
"""

from __future__ import annotations

import logging
import threading
import time
from itertools import islice

from beetle.contracts.errors import BeetleError
from beetle.contracts.operations import BY_NAME
from beetle.domain.digest import keyed
from beetle.named_tuple import NamedTuple
from beetle.runtime.host.caller import Caller
from beetle.store.engine.store import Store
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.event_log import Event

log = logging.getLogger("beetle.refusals")

WINDOW_S = 60.0
KINDS = 16
"""Most kinds of refusal of one principal that are counted apart in a minute; the others are counted together."""
STRANGERS = 256
"""Most users without a principal who are told apart in a minute."""
OTHERS = "others"
ROWS = 64
"""Rows of one write; others write in between."""
RETRY_S = 1.0
CLOSE_S = 5.0


class Kind(NamedTuple):
    principal: str
    operation: str
    error: str


class _Window:
    """The kinds of one principal: since when each is counted, and how many were held back."""

    __slots__ = ("held", "since")

    def __init__(self) -> None:
        self.since: dict[Kind, float] = {}
        self.held: dict[Kind, int] = {}


class Refusals:
    """Counts refusals and writes them down."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._changed = threading.Condition()
        self._windows: dict[str, _Window] = {}
        self._strangers = 0
        self._swept = time.monotonic()
        self._pending: dict[Kind, int] = {}
        self._writing: list[tuple[Kind, int]] = []
        self._posted = False
        self._failed: float | None = None
        # Of what was put in `_pending`: how much, how much the present write covers, and how much is on disk.
        self._put = self._covered = self._written = 0
        self.count = 0
        store.before_close(self.finish)

    def note(self, caller: Caller, operation: str, error: str) -> None:
        """One refusal. It waits for no write, and never raises: the caller's own error is what it must see."""
        now = time.monotonic()
        with self._changed:
            self.count += 1
            if now - self._swept >= WINDOW_S:
                self._sweep(now)
            principal = self._counted_as(caller)
            window = self._windows.setdefault(principal, _Window())
            self._let_go(window, now)
            kind = Kind(principal, self._named(operation), error)
            if kind not in window.since and len(window.since) >= KINDS:
                kind = Kind(principal, OTHERS, error)
            if kind in window.since:
                window.held[kind] = window.held.get(kind, 0) + 1
            else:
                window.since[kind] = now
                self._add(kind, 1)
            if self._failed is None or now - self._failed >= RETRY_S:
                self._post()

    def flush(self, seconds: float) -> bool:
        """Wait until every row that was due is on disk; false when that could not be, or took longer."""
        now = time.monotonic()
        with self._changed:
            if now - self._swept >= WINDOW_S:
                self._sweep(now)
            due = self._put
            self._failed = None
            self._post()
            self._changed.wait_for(
                lambda: self._written >= due or self._failed is not None or not self._posted, seconds
            )
            return self._written >= due

    def finish(self) -> None:
        """Nothing more is answered: what was held back is written too."""
        with self._changed:
            for window in self._windows.values():
                self._let_go(window, float("inf"))
        if not self.flush(CLOSE_S):
            log.warning("refusals could not be logged before the store was closed", extra={"event": "refusals_lost"})

    def _named(self, operation: str) -> str:
        """The operation; a digest where there is none of that name, for a stranger's words stand in no log."""
        if operation in BY_NAME:
            return operation
        digest = keyed(self._store.key, "operation", operation.encode(errors="surrogatepass"))
        return f"unknown:{digest.hex()[:16]}"

    def _counted_as(self, caller: Caller) -> str:
        """Its name; strangers of whom there are too many share one."""
        if caller.kind != "unknown" or caller.name in self._windows:
            return caller.name
        if self._strangers >= STRANGERS:
            return f"uid:{OTHERS}"
        self._strangers += 1
        return caller.name

    def _sweep(self, now: float) -> None:
        """Let go what whoever is refused no more had held back, and forget who has nothing left."""
        self._swept = now
        for window in self._windows.values():
            self._let_go(window, now)
        self._windows = {name: window for name, window in self._windows.items() if window.since}
        self._strangers = sum(name.startswith("uid:") for name in self._windows)

    def _let_go(self, window: _Window, now: float) -> None:
        """What was held back of the kinds whose time is over is due now."""
        for kind, since in list(window.since.items()):
            if now - since >= WINDOW_S:
                del window.since[kind]
                if held := window.held.pop(kind, 0):
                    self._add(kind, held)

    def _add(self, kind: Kind, count: int) -> None:
        self._pending[kind] = self._pending.get(kind, 0) + count
        self._put += 1

    def _post(self) -> None:
        """Have what is due written, unless that waits already."""
        if self._pending and not self._posted:
            self._posted = self._store.post(self._write, grows=True, then=self._settle)

    def _write(self, tx: WriteTransaction) -> None:
        """On the writer's thread, perhaps a second time."""
        with self._changed:
            self._writing = list(islice(self._pending.items(), ROWS))
            self._covered = self._put if len(self._writing) == len(self._pending) else self._written
        for kind, count in self._writing:
            subject = {"error": kind.error, "count": count}
            tx.log(Event("lifecycle", "refused", kind.operation, kind.principal, None, subject))

    def _settle(self, error: BaseException | None) -> None:
        """On the writer's thread: what was written is not due any more; what was not is kept."""
        with self._changed:
            self._posted = False
            if error is None:
                for kind, count in self._writing:
                    self._pending[kind] -= count
                    if not self._pending[kind]:
                        del self._pending[kind]
                self._written = self._covered
                self._failed = None
                self._post()
            else:
                if self._failed is None:
                    why = error.key if isinstance(error, BeetleError) else type(error).__name__
                    log.warning("refusals could not be logged yet: %s", why, extra={"event": "refusals_not_logged"})
                self._failed = time.monotonic()
            self._writing = []
            self._changed.notify_all()
