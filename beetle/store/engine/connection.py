"""Connections: how the four backends open one schema, and every pragma with its why.

Each pragma is its own call and is read back: of several statements in one `execute`, the binding runs the later ones
only as the rows of the earlier ones are read, so a pragma behind another can stay undone without an error.
"""

from __future__ import annotations

import errno
import logging
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import apsw

from beetle.contracts.errors import NoDescriptor, SchemaMismatch, StorageFull, StoreCorrupt, StoreReadOnly
from beetle.contracts.names import BackendName
from beetle.named_tuple import NamedTuple
from beetle.store.engine import log_sums
from beetle.store.engine.presence import SNAPSHOTS, left_beside_empty
from beetle.store.engine.scrub import scrubbing

log = logging.getLogger("beetle.store")

MAGIC = b"SQLite format 3\0"
MOST_WRITE_VERSION = 2
"""Of byte 18 of a header: a write-ahead log. SQLite only reads files of a higher one."""
HEADER_BYTES = 100
APPLICATION_ID = 0x42544C31  # "BTL1"
PAGE_SIZE = 4096
BUSY_MS = 5000
WRITER_CACHE_KIB = 384
"""The writer's page cache at least. What a group of writes changes must stand in it: pages that do not fit go to the
log before the commit, and once more with it."""
LOST = (
    "bring back a copy of it (`beetle help troubleshooting`), or remove the empty file: then a new store begins, or "
    "the replica's is restored where that is configured"
)
WRITES = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE


class StoreSettings(NamedTuple):
    """Where and how to open a store. Sizes in bytes unless the name says otherwise.

    `store_bytes` is the ceiling that writes respect; `write_queue` and `write_group` bound waiting writes and the
    writes of one commit. `background_share` is the percentage of a heavy read's time that it works while others read.
    `immutable` says that the media cannot be written: the file is read as one that never changes. `replicated`, that
    another process follows the write-ahead log, or has and may again. `snapshots` is the folder of snapshots, empty for
    the usual one.
    """

    path: str
    backend: BackendName = "sqlite"
    page_cache_kib: int = 1024
    index_cache_kib: int = 1024
    mmap_bytes: int = 0
    wal_bytes: int = 4 * 2**20
    store_bytes: int = 2**30
    readers: int = 4
    write_queue: int = 256
    write_group: int = 64
    vfs: str | None = None
    immutable: bool = False
    background_share: int = 100
    replicated: bool = False
    snapshots: str = ""

    @property
    def snapshot_folder(self) -> str:
        """Where its snapshots are."""
        return self.snapshots or self.path + SNAPSHOTS

    @property
    def walled(self) -> bool:
        """Whether readers and the writer work side by side (WAL)."""
        return self.backend in ("sqlite", "embedded")


def connect_writer(settings: StoreSettings) -> apsw.Connection:
    """The one connection that writes, before it has changed anything: `prepare_writer` comes next.

    Raises:
        SchemaMismatch: the file is a database of another program.
        StoreCorrupt: the file is no database, or not a whole one.
        StoreReadOnly: it is no file at all.
    """
    if settings.backend != "in-memory":
        check_file(settings.path)
        create_private(settings.path)
    # Without a write-ahead log the writer itself writes the database file; with one, the checkpointer does.
    through = scrubbing(settings.vfs) if settings.backend == "file" else settings.vfs
    connection = _connect(settings._replace(vfs=through), WRITES)
    with closed_on_error(connection):
        # Only the checkpointer writes from the write-ahead log to the file; a store that is refused stays as it is.
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        connection.set_busy_timeout(BUSY_MS)
        _refuse_foreign(connection, settings)
    return connection


def prepare_writer(connection: apsw.Connection, settings: StoreSettings) -> None:
    """Claim a new file and set every pragma.

    Raises:
        StoreReadOnly: a pragma that durability needs did not take.
    """
    if connection.pragma("application_id") != APPLICATION_ID:
        # EXTRA from the first moment: a journal of this that came back after a power cut would undo the whole store.
        _set(connection, settings, "synchronous", 3)
        _set(connection, settings, "page_size", PAGE_SIZE)
        _set(connection, settings, "application_id", APPLICATION_ID)
    for name, value in _writer_pragmas(settings):
        _set(connection, settings, name, value)


def open_checkpointer(settings: StoreSettings) -> apsw.Connection:
    """The connection that folds the write-ahead log into the file, scrubbing its pages on the way.

    It is one of its own because each call of a VFS of ours takes the interpreter's lock: commits are spared that.
    """
    through = settings._replace(vfs=scrubbing(settings.vfs), page_cache_kib=16)
    connection = _connect(through, apsw.SQLITE_OPEN_READWRITE)
    with closed_on_error(connection):
        _set(connection, through, "synchronous", 2)
        for name, value in _shared_pragmas(through):
            _set(connection, through, name, value)
    return connection


def open_reader(settings: StoreSettings) -> apsw.Connection:
    """A connection that can only read.

    Raises:
        NoDescriptor: none is left for it, or for the write-ahead log.
    """
    connection = _connect(settings, apsw.SQLITE_OPEN_READONLY)
    with closed_on_error(connection):
        connection.set_busy_timeout(BUSY_MS)
        _read_format(connection, settings)
        for name, value in _shared_pragmas(settings):
            _set(connection, settings, name, value)
        _set(connection, settings, "query_only", 1)
    return connection


@contextmanager
def closed_on_error(connection: apsw.Connection) -> Generator[None]:
    """A new connection is closed when an error ends the block.

    Raises:
        NoDescriptor: it was that none was left.
    """
    try:
        yield
    except BaseException as error:
        lacks = lacks_descriptor(error, connection)
        close_connection(connection)
        if lacks:
            raise NoDescriptor from error
        raise


def lacks_descriptor(error: BaseException, connection: apsw.Connection) -> bool:
    """Whether SQLite could not open a file since no descriptor was left."""
    return isinstance(error, apsw.CantOpenError) and connection.system_errno in NoDescriptor.ERRNOS


def close_connection(connection: apsw.Connection) -> None:
    """Close whatever happens: a disk that fails now must not hide the error that led here, nor keep the lock held."""
    try:
        connection.close(True)
    except apsw.Error as error:
        log.warning(
            "a connection was closed although its files could not be: %s",
            type(error).__name__,
            extra={"event": "connection_not_closed"},
        )


def create_private(path: str) -> None:
    """Make an empty file that only its owner can read, whose mode the files beside it take over, if none is there."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        return
    except OSError as error:
        NoDescriptor.refuse(error)
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StorageFull(path=path) from error
        raise StoreReadOnly(path=path, reason=f"the file cannot be made ({error.strerror})") from error


def check_file(path: str) -> None:
    """Refuse what cannot be a store of ours by the bytes of its header, before SQLite writes anything beside it.

    Where a journal or a write-ahead log stands beside the file, what SQLite makes of both counts, not the file alone.

    Raises:
        SchemaMismatch, StoreCorrupt, StoreReadOnly: as `connect_writer`.
    """
    try:
        with open(path, "rb", opener=_without_waiting) as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise StoreReadOnly(path=path, reason="it is no regular file", hint="choose another --store")
            header, size = file.read(HEADER_BYTES), found.st_size
    except FileNotFoundError:
        header, size = b"", 0
    except OSError as error:
        NoDescriptor.refuse(error)
        raise StoreReadOnly(path=path, reason=f"it cannot be opened as a file ({error.strerror})") from error
    beside = _size(path + "-wal") + _size(path + "-journal")
    if not size:
        # An empty file is what a crash in the first moments leaves. SQLite would drop a log that stands beside it.
        if _size(path + "-wal"):
            raise StoreCorrupt(path=path, reason="the file is missing or empty, but its write-ahead log exists")
        if (left := left_beside_empty(path)) is not None:
            raise StoreCorrupt(path=path, reason=f"the file is empty, but {left} shows that it was a store", hint=LOST)
        return
    owner = int.from_bytes(header[68:72], "big")
    if header[:16] == MAGIC and owner not in (0, APPLICATION_ID):
        raise _foreign(path)
    if beside:
        _check_log(path + "-wal")
        return
    if header[:16] != MAGIC or len(header) < HEADER_BYTES:
        raise StoreCorrupt(path=path, reason="it is not an SQLite database")
    if owner == 0:
        raise _foreign(path)
    check_write_version(path, header)
    # 1 stands for 65,536. Bytes 24 and 92 agree when the page count in the header is to be trusted.
    page = int.from_bytes(header[16:18], "big")
    pages = int.from_bytes(header[28:32], "big")
    if header[24:28] == header[92:96] and pages * (65_536 if page == 1 else page) > size:
        raise StoreCorrupt(path=path, reason=f"the file is cut short: {size} bytes of {pages} pages")


def _without_waiting(path: str, flags: int) -> int:
    # A pipe is opened to be refused; nobody waits for its other end.
    return os.open(path, flags | os.O_NONBLOCK)


def check_write_version(path: str, header: bytes) -> None:
    """Refuse a file that SQLite would only read, whatever its permissions.

    Raises:
        StoreCorrupt: its header says so.
    """
    if header[18] > MOST_WRITE_VERSION:
        raise StoreCorrupt(path=path, reason="its header tells of a format that SQLite only reads")


def _check_log(path: str) -> None:
    """Refuse a write-ahead log that SQLite would take for an empty one though commits stand in it. Zeros are what a
    power cut leaves of one that had just begun."""
    try:
        with open(path, "rb") as file:
            header = file.read(log_sums.HEADER_BYTES)
    except FileNotFoundError:
        return
    except OSError as error:
        NoDescriptor.refuse(error)
        raise StoreReadOnly(path=path, reason=f"it cannot be opened as a file ({error.strerror})") from error
    if len(header) == log_sums.HEADER_BYTES and any(header) and not log_sums.is_sound(header, PAGE_SIZE):
        raise StoreCorrupt(path=path, reason="the write-ahead log's header is damaged, and with it the commits behind")


def _connect(settings: StoreSettings, flags: int) -> apsw.Connection:
    if settings.backend == "in-memory":
        # A path of its own per store, with a leading slash, is what lets several connections share one memory database.
        connection = connect(f"file:/{settings.path}?vfs=memdb", flags=flags | apsw.SQLITE_OPEN_URI)
    elif settings.immutable:
        from urllib.parse import quote

        name = quote(os.path.abspath(settings.path))
        connection = connect(f"file:{name}?immutable=1", flags=flags | apsw.SQLITE_OPEN_URI)
    else:
        connection = connect(settings.path, flags=flags, vfs=settings.vfs)
    harden(connection)
    return connection


def connect(name: str, *, flags: int = WRITES, vfs: str | None = None) -> apsw.Connection:
    """A connection as SQLite opens it.

    Raises:
        NoDescriptor: none is left for it.
        CantOpenError: of apsw; for another reason.
    """
    try:
        return apsw.Connection(name, flags=flags, vfs=vfs)
    except apsw.CantOpenError:
        # There is no connection that could tell the system's own number of the error: it is asked for another one.
        try:
            os.close(os.eventfd(0))
        except OSError as error:
            NoDescriptor.refuse(error)
    # If it was that, one is free again.
    return apsw.Connection(name, flags=flags, vfs=vfs)


def harden(connection: apsw.Connection) -> None:
    """Trust nothing that the file says of its own schema.

    A hostile or damaged file must not run functions from its schema, nor may a bug of ours write the shadow tables. No
    migration makes a trigger or a view: one that was slipped in, while the store is open too, is not run.
    """
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_VIEW, 0)
    connection.config(apsw.SQLITE_DBCONFIG_DQS_DML, 0)
    connection.config(apsw.SQLITE_DBCONFIG_DQS_DDL, 0)


def _refuse_foreign(connection: apsw.Connection, settings: StoreSettings) -> None:
    """Accept our own file and a new one."""
    has_tables, owner = _read_format(connection, settings), connection.pragma("application_id")
    if owner != APPLICATION_ID and (owner or has_tables):
        raise _foreign(settings.path)


def _read_format(connection: apsw.Connection, settings: StoreSettings) -> bool:
    """Have SQLite read the file's header; whether there are tables.

    Raises:
        StoreCorrupt: it tells of a format that SQLite does not know.
    """
    try:
        return bool(connection.execute("SELECT EXISTS (SELECT 1 FROM sqlite_schema)").get)
    except apsw.SQLError as error:
        # Nothing is wrong with the statement.
        reason = "its header tells of a format that SQLite does not know"
        raise StoreCorrupt(path=settings.path, reason=reason) from error


def _foreign(path: str) -> SchemaMismatch:
    return SchemaMismatch(
        path=path,
        reason="this database belongs to another program",
        advice="give another --store; nothing was changed",
    )


def _shared_pragmas(settings: StoreSettings) -> list[tuple[str, Any]]:
    return [
        # Bounds the memory of this connection; negative is KiB.
        ("cache_size", -settings.page_cache_kib),
        # Mapped pages count as the daemon's memory and cannot be bounded on a small board.
        *([] if settings.backend == "in-memory" else [("mmap_size", settings.mmap_bytes)]),
        # A malformed cell is reported when it is read, instead of being followed.
        ("cell_size_check", 1),
        # What a savepoint must be able to undo, and what a sort spills, would go to files in the temp folder: content
        # outside the store, which no erasure reaches, and a second disk that can be full.
        ("temp_store", 2),
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
        # A WAL that once grew large is cut back when it is reset; one that is followed always, see `follower`.
        ("journal_size_limit", 0 if settings.replicated else settings.wal_bytes),
        # A backstop far above the ceiling that the writer itself enforces, which a single write must not reach: SQLite
        # would undo the whole group and call the disk full.
        ("max_page_count", settings.store_bytes // PAGE_SIZE + max(32_768, settings.store_bytes // PAGE_SIZE // 16)),
        *_shared_pragmas(settings._replace(page_cache_kib=max(settings.page_cache_kib, WRITER_CACHE_KIB))),
    ]


def _set(connection: apsw.Connection, settings: StoreSettings, name: str, value: Any) -> None:
    connection.pragma(name, value)
    if name == "wal_autocheckpoint":
        return  # answers through the hook that it installs, not as a value
    found = connection.pragma(name)
    if name == "max_page_count":
        value = max(value, connection.pragma("page_count"))  # never below what the file has already
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
