"""Connections: how the four backends open one schema, and every pragma with its why.

Each pragma is its own call and is read back: of several statements in one `execute`, the binding runs the later ones
only as the rows of the earlier ones are read, so a pragma behind another can stay undone without an error.
"""

from __future__ import annotations

import os
from typing import Any, Literal, NamedTuple

import apsw

from beetle.contracts.errors import SchemaMismatch, StoreReadOnly

APPLICATION_ID = 0x42544C31  # "BTL1"
PAGE_SIZE = 4096
BUSY_MS = 5000
Backend = Literal["in-memory", "sqlite", "file", "embedded"]
BACKENDS: tuple[Backend, ...] = ("in-memory", "sqlite", "file", "embedded")


class StoreSettings(NamedTuple):
    """Where and how to open a store. Sizes in bytes unless the name says otherwise.

    `store_bytes` is the ceiling that writes respect; `write_queue` and `write_group` bound waiting writes and the
    writes of one commit.
    """

    path: str
    backend: Backend = "sqlite"
    page_cache_kib: int = 1024
    mmap_bytes: int = 0
    wal_bytes: int = 4 * 2**20
    store_bytes: int = 2**30
    readers: int = 4
    write_queue: int = 256
    write_group: int = 64
    idempotency_keys: int = 10_000
    vfs: str | None = None

    @property
    def walled(self) -> bool:
        """Whether readers and the writer work side by side (WAL)."""
        return self.backend in ("sqlite", "embedded")


def open_writer(settings: StoreSettings) -> apsw.Connection:
    """The one connection that writes.

    Raises:
        SchemaMismatch: the file is a database of another program.
        StoreReadOnly: a pragma that durability needs did not take.
    """
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
    connection = _connect(settings, flags)
    connection.set_busy_timeout(BUSY_MS)
    _own(connection, settings)
    for name, value in _writer_pragmas(settings):
        _set(connection, settings, name, value)
    return connection


def open_reader(settings: StoreSettings) -> apsw.Connection:
    """A connection that can only read."""
    connection = _connect(settings, apsw.SQLITE_OPEN_READONLY)
    connection.set_busy_timeout(BUSY_MS)
    for name, value in _shared_pragmas(settings):
        _set(connection, settings, name, value)
    _set(connection, settings, "query_only", 1)
    return connection


def _connect(settings: StoreSettings, flags: int) -> apsw.Connection:
    if settings.backend == "in-memory":
        # A path of its own per store, with a leading slash, is what lets several connections share one memory database.
        connection = apsw.Connection(f"file:/{settings.path}?vfs=memdb", flags=flags | apsw.SQLITE_OPEN_URI)
    elif settings.vfs is None:
        connection = apsw.Connection(settings.path, flags=flags)
    else:
        connection = apsw.Connection(settings.path, flags=flags, vfs=settings.vfs)
    # A hostile or damaged file must not run functions from its schema, nor may a bug of ours write the shadow tables.
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
    connection.config(apsw.SQLITE_DBCONFIG_DQS_DML, 0)
    connection.config(apsw.SQLITE_DBCONFIG_DQS_DDL, 0)
    return connection


def _own(connection: apsw.Connection, settings: StoreSettings) -> None:
    """Claim a new file, accept our own, refuse another program's."""
    found = connection.pragma("application_id")
    if found == APPLICATION_ID:
        return
    if found != 0 or connection.execute("SELECT count(*) FROM sqlite_schema").get:
        raise SchemaMismatch(
            path=settings.path,
            reason="this database belongs to another program",
            advice="give another --store; nothing was changed",
        )
    _set(connection, settings, "page_size", PAGE_SIZE)
    _set(connection, settings, "application_id", APPLICATION_ID)


def _shared_pragmas(settings: StoreSettings) -> list[tuple[str, Any]]:
    return [
        # Bounds the memory of this connection; negative is KiB.
        ("cache_size", -settings.page_cache_kib),
        # Mapped pages count as the daemon's memory and cannot be bounded on a small board.
        *([] if settings.backend == "in-memory" else [("mmap_size", settings.mmap_bytes)]),
        # A malformed cell is reported when it is read, instead of being followed.
        ("cell_size_check", 1),
    ]


def _writer_pragmas(settings: StoreSettings) -> list[tuple[str, Any]]:
    journal = {"in-memory": "memory", "sqlite": "wal", "file": "delete", "embedded": "wal"}[settings.backend]
    return [
        ("journal_mode", journal),
        # A write is acknowledged only when the commit is on disk: FULL syncs the WAL at each commit; in rollback mode
        # EXTRA also syncs the folder after the journal is removed, without which a power cut may undo the commit.
        ("synchronous", 2 if settings.walled else 3),
        ("foreign_keys", 1),
        # Freed space is zeroed, freed pages included (FAST leaves those): erasure depends on it.
        ("secure_delete", 1),
        # The writer decides when to checkpoint, after it has acknowledged.
        ("wal_autocheckpoint", 0),
        # A WAL that once grew large is cut back when it is reset.
        ("journal_size_limit", settings.wal_bytes),
        # A backstop above the ceiling that the writer itself enforces: deletes need a few pages to work with.
        ("max_page_count", settings.store_bytes // PAGE_SIZE + max(64, settings.store_bytes // PAGE_SIZE // 16)),
        *_shared_pragmas(settings),
    ]


def _set(connection: apsw.Connection, settings: StoreSettings, name: str, value: Any) -> None:
    connection.pragma(name, value)
    if name == "wal_autocheckpoint":
        return  # answers through the hook that it installs, not as a value
    found = connection.pragma(name)
    if name == "max_page_count":
        return  # never below what the file has already
    if found != value and not (settings.backend == "in-memory" and name in ("mmap_size", "synchronous")):
        raise StoreReadOnly(path=settings.path, reason=f"SQLite kept {name} at {found!r} instead of {value!r}")


def store_bytes(path: str) -> tuple[int, int]:
    """Bytes of the database file and of its WAL, 0 for what is not there."""
    return _size(path), _size(path + "-wal")


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0
