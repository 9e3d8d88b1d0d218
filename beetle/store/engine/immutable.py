"""A store on media that cannot be written: it is read as a file that never changes, and every write is refused."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NoReturn

import apsw

from beetle.contracts.errors import StoreReadOnly
from beetle.store.engine import migrate
from beetle.store.engine.connection import StoreSettings, check_file, close_connection, open_reader
from beetle.store.engine.presence import store_exists
from beetle.store.engine.transaction import Reading
from beetle.store.engine.write_queue import PendingWrite
from beetle.store.event_log import Head, Logged, read_head

REASON = "it is on read-only media; reads still work"


class RefusingWriter:
    """Stands where the writer stands."""

    queued = erased = 0
    erasures_put_off_s = 0.0

    def __init__(self, path: str, head: Head, pending_erasures: int, clock: Callable[[], int]) -> None:
        self._path = path
        self.erasure_clock = clock
        self.head = head
        self.erasures = pending_erasures
        self.on_commit: Callable[[list[Logged]], None] | None = None

    def write(
        self, run: Callable[..., Any], *, deadline: float | None = None, grows: bool = True, by: str = ""
    ) -> NoReturn:
        """Refuse.

        Raises:
            StoreReadOnly: always.
        """
        del run, deadline, grows, by
        raise StoreReadOnly(path=self._path, reason=REASON)

    def begin(self, write: PendingWrite, then: Callable[..., None]) -> NoReturn:
        """Refuse, as `write` does."""
        del then
        return self.write(write.run)

    def share(self, others_ask: Callable[[str], bool]) -> None:
        """Nothing: nobody writes."""
        del others_ask

    def finish_erasures(self, wait: float) -> bool:
        """Whether none is pending; waiting would not change it."""
        del wait
        return not self.erasures

    def cut_log(self, wait: float) -> bool:
        """There is no write-ahead log."""
        del wait
        return True

    def post(self, run: Callable[..., Any], **_: Any) -> bool:
        """Nothing: nobody would hear that it was refused."""
        return False

    def apart(self, run: Callable[..., Any]) -> NoReturn:
        """Refuse, as `write` does."""
        return self.write(run)

    @property
    def closed(self) -> bool:
        """It has nothing to close."""
        return False

    @property
    def ended(self) -> bool:
        """It takes no write at any time."""
        return True

    def undo(self) -> None:
        """There is nothing to take back."""

    def close(self, last: Callable[..., Any] | None = None) -> None:
        """Nothing is queued and nothing was changed."""
        del last


def open_immutable(settings: StoreSettings) -> apsw.Connection:
    """A connection to a store that was closed cleanly before its media became read-only.

    SQLite may read such a file without a lock and without its write-ahead log only because nothing is in that log.

    Raises:
        StoreReadOnly: there is no store, its log still holds commits, or its schema would have to be migrated.
        SchemaMismatch, StoreCorrupt: as for any store.
    """
    path = settings.path
    if not store_exists(path):
        raise StoreReadOnly(path=path, reason="its folder is on read-only media, and holds no store")
    for log in (path + "-wal", path + "-journal"):
        if os.path.exists(log) and os.path.getsize(log):
            raise StoreReadOnly(path=path, reason=f"its media is read-only, and {log} holds commits to be folded in")
    check_file(path)
    connection = open_reader(settings)
    try:
        if todo := migrate.pending(connection, path, migrate.available()):
            reason = f"its media is read-only, and migration {todo[0].name} is still to be applied"
            raise StoreReadOnly(path=path, reason=reason)
    except BaseException:
        close_connection(connection)
        raise
    return connection


def refusing_writer(
    settings: StoreSettings, connection: apsw.Connection, pending_erasures: int, clock: Callable[[], int]
) -> RefusingWriter:
    """The writer that refuses; `connection` is closed, for readers open their own."""
    head = read_head(Reading(connection))
    close_connection(connection)
    return RefusingWriter(settings.path, head, pending_erasures, clock)
