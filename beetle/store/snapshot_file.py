"""Copies of a whole store: made while it is in use, and looked through before they are trusted."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import apsw

from beetle.contracts.errors import DeadlineExceeded, StoreCorrupt
from beetle.named_tuple import NamedTuple
from beetle.store import private, seal_checks
from beetle.store.engine import migrate
from beetle.store.engine.connection import (
    APPLICATION_ID,
    HEADER_BYTES,
    StoreSettings,
    check_write_version,
    close_connection,
    connect,
    create_private,
    harden,
    open_reader,
)
from beetle.store.engine.failures import translate
from beetle.store.engine.progress import Progress
from beetle.store.engine.scrub import scrubbing
from beetle.store.engine.store import GET_META_SQL
from beetle.store.engine.transaction import Reading, Writing, transaction
from beetle.store.event_log import ChainHash, Head, first_break, read_head
from beetle.store.recall_index import TOUCH_INDEX_SQL
from beetle.store.transports import TransportRow, set_transport

CheckContinue = Callable[[int, int], None]
"""Called between two pieces of long work with how much is done, and of how much; may end it by raising."""
PAGES_PER_STEP = 256
"""A MiB: a few milliseconds of work between two looks at whether to go on."""
RESTARTS = 3
"""How often a copy without a write-ahead log may begin again before writers wait for it."""
CACHE_KIB = 64
TICK_STEPS = 100_000
HAS_TABLE_SQL = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?"
HOLD_SQL = "SELECT count(*) FROM sqlite_schema"
QUICK_CHECK_SQL = "PRAGMA quick_check(10)"
COUNTED = {
    "spaces": ("space", "SELECT count(*) FROM space"),
    "conversations": ("conversation", "SELECT count(*) FROM conversation"),
    "turns": ("turn", "SELECT count(*) FROM turn"),
    "messages": ("message", "SELECT count(*) FROM message"),
    "runtime_skills": ("skill", "SELECT count(*) FROM skill"),
    "derived_refs": ("derived_ref", "SELECT count(*) FROM derived_ref"),
    "facts": ("fact", "SELECT count(*) FROM fact"),
    "waiting_candidates": ("candidate", "SELECT count(*) FROM candidate"),
    "policies": ("policy", "SELECT count(*) FROM policy"),
    "private_items": ("private_item", "SELECT count(*) FROM private_item"),
    "tool_observations": ("tool_observation", "SELECT count(*) FROM tool_observation"),
    "tool_registries": ("tool_registry", "SELECT count(*) FROM tool_registry"),
    "uploaded_skills": ("registry_skill", "SELECT count(*) FROM registry_skill"),
    "chains": ("chain", "SELECT count(*) FROM chain"),
    "thoughts": ("thought", "SELECT count(*) FROM thought"),
    "chunks": ("chunk", "SELECT count(*) FROM chunk"),
    "jobs": ("job", "SELECT count(*) FROM job"),
    "devices": ("device", "SELECT count(*) FROM device"),
    "proposals": ("proposal", "SELECT count(*) FROM proposal"),
}
"""What is counted of a whole store, and the table that an older schema may lack."""


SUSPEND_SQL = "UPDATE device SET state = 'suspended', generation = generation + 1 WHERE state = 'active'"
"""In a copy: a key that was taken back since the copy was made must not hold again for a moment."""


ACTIVE_SQL = "SELECT device_id FROM device WHERE state = 'active'"


class Copied(NamedTuple):
    """Pages of a copy, and how often it had to begin again."""

    pages: int
    restarts: int


class Facts(NamedTuple):
    """What a store says of itself. `identity` is by what it knows its device again, as of `private.recorded_check`."""

    schema: int
    store_id: str
    identity: str | None
    counts: dict[str, int]
    head: Head


def back_up(
    settings: StoreSettings, gate: AbstractContextManager[Any], target: str, check_continue: CheckContinue
) -> Copied:
    """Copy a store to a new file while it is in use; the file is complete when this returns, and not yet on disk.

    With a write-ahead log one read transaction is held from the first page to the last: the copy is of one moment,
    never begins again, and writers go on; only the log cannot be emptied meanwhile. Without one a write makes SQLite
    begin again; after some restarts the gate is held, so that writers wait for the rest.

    Args:
        gate: what keeps readers and the writer apart where there is no write-ahead log.
        check_continue: called between two steps with the pages copied and their total; what it raises ends the copy.

    Raises:
        BeetleError: the typed error of what SQLite answered.
    """
    source = target_connection = None
    try:
        create_private(target)
        with gate:
            source = open_reader(settings._replace(page_cache_kib=CACHE_KIB))
        # Its pages are scrubbed as those of the store's own file are.
        target_connection = connect(target, vfs=scrubbing(settings.vfs))
        target_connection.pragma("synchronous", 0)
        if settings.walled:
            source.execute("BEGIN")
            source.execute(HOLD_SQL).fetchall()
        copy = target_connection.backup("main", source, "main")
        try:
            copied = Copied(copy.page_count, _step_through(copy, gate, check_continue))
        finally:
            copy.close(True)
        # A file in WAL mode would want its log beside it.
        target_connection.pragma("journal_mode", "delete")
        return copied._replace(pages=target_connection.pragma("page_count"))
    except apsw.Error as error:
        used = target_connection or source
        raise translate(error, target, 0 if used is None else used.system_errno) from error
    finally:
        for connection in (target_connection, source):
            if connection is not None:
                close_connection(connection)


def _step_through(copy: apsw.Backup, gate: AbstractContextManager[Any], check_continue: CheckContinue) -> int:
    """Copy page by page; how often SQLite began again."""
    restarts = done = 0
    while not copy.done:
        with gate:
            copy.step(PAGES_PER_STEP)
            while restarts >= RESTARTS and not copy.done:
                copy.step(PAGES_PER_STEP)
                check_continue(copy.page_count - copy.remaining, copy.page_count)
        reached = copy.page_count - copy.remaining
        restarts += reached <= done and not copy.done
        done = reached
        check_continue(done, copy.page_count)
    return restarts


def compact_into(settings: StoreSettings, target: str) -> None:
    """Write the store anew, without free pages, into a file that must not be there; nobody writes meanwhile.

    Raises:
        BeetleError: the typed error of what SQLite answered.
    """
    create_private(target)
    # What it attaches is written through the same VFS: scrubbed, as the store's own file is.
    source = open_reader(settings._replace(vfs=scrubbing(settings.vfs)))
    try:
        # VACUUM INTO writes a file, which a connection that only reads its own refuses.
        source.pragma("query_only", 0)
        source.execute("VACUUM INTO ?", (target,))
    except apsw.Error as error:
        raise translate(error, target, source.system_errno) from error
    finally:
        close_connection(source)


def revoke_access(copy: str, closed: tuple[TransportRow, ...], principal: str) -> None:
    """Let no device into an unpacked copy, and close the transports that are closed now, before it is anyone's store.

    Raises:
        StorageFull, StoreReadOnly, StoreCorrupt: the copy could not be changed.
    """
    connection = connect(copy, flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        harden(connection)
        # Without a log beside it, the file alone is the whole copy.
        connection.pragma("journal_mode", "delete")
        if connection.execute(HAS_TABLE_SQL, ("device",)).get is None:
            return
        with transaction(connection):
            connection.execute(SUSPEND_SQL)
            tx = Writing(connection)
            for each in closed:
                set_transport(tx, each, principal)
            if connection.execute(HAS_TABLE_SQL, ("row_seal",)).get is not None:
                # Who opens it next seals them.
                for table in ("device", "transport"):
                    seal_checks.forget(tx, table)
    except apsw.Error as error:
        raise translate(error, copy, connection.system_errno) from error
    finally:
        close_connection(connection)


@contextmanager
def reading(path: str) -> Generator[Reading]:
    """A copy that nobody changes, read without a lock and without any file beside it."""
    connection = None
    try:
        # The first pragma reads the file's header, which may be anything.
        connection = open_reader(StoreSettings(path=path, immutable=True, page_cache_kib=1024))
        yield Reading(connection)
    except apsw.InterruptError:
        raise DeadlineExceeded.before("the copy was checked") from None
    except apsw.SQLError as error:
        # The statements are right, and so is the schema: an index does not open where its own rows are damaged.
        raise StoreCorrupt(path=path, reason="SQLite cannot open a table of it") from error
    except apsw.Error as error:
        raise translate(error, path) from error
    finally:
        if connection is not None:
            close_connection(connection)


def examine(path: str) -> Facts | None:
    """What a copy says of itself, None when it is no store of ours.

    Raises:
        SchemaMismatch: its schema is not one that this build can open.
        SchemaAltered: it is not what its migrations make.
        StoreCorrupt: SQLite cannot read it.
    """
    with reading(path) as tx:
        if tx.value("PRAGMA application_id") != APPLICATION_ID:
            return None
        with open(path, "rb") as file:
            check_write_version(path, file.read(HEADER_BYTES))
        migrate.pending(tx.connection, path, migrate.available())
        store_id, key = tx.value(GET_META_SQL, "store_id"), tx.value(GET_META_SQL, "store_key")
        if not isinstance(store_id, str) or not isinstance(key, bytes) or len(key) != 32:
            return None
        facts = facts_of(tx)
        if not isinstance(facts.head.hash, bytes):
            raise StoreCorrupt(path=path, reason="the last row of its event log is damaged")
        return facts


def key_of(tx: Reading) -> bytes:
    """The key of the store in a copy, which was examined before."""
    return tx.value(GET_META_SQL, "store_key")


def active_devices(path: str) -> set[str]:
    """The ids of the devices that could speak to the store in a copy; it was examined before.

    Raises:
        StoreCorrupt: SQLite cannot read it.
    """
    with reading(path) as tx:
        if tx.value(HAS_TABLE_SQL, "device") is None:
            return set()
        return {row[0] for row in tx.rows(ACTIVE_SQL)}


def facts_of(tx: Reading) -> Facts:
    """What a store of ours says of itself."""
    counts = {
        name: tx.value(sql) for name, (table, sql) in COUNTED.items() if tx.value(HAS_TABLE_SQL, table) is not None
    }
    return Facts(
        schema=migrate.schema_number(tx.connection),
        store_id=tx.value(GET_META_SQL, "store_id"),
        identity=private.recorded_check(tx),
        counts=counts,
        head=read_head(tx),
    )


class Checked(NamedTuple):
    """Pages and event-log rows that were looked at, and whether they are sound."""

    pages: int
    pages_sound: bool
    rows: int
    chain_sound: bool


def check(path: str, chain_hash: ChainHash, stopped: Callable[[], bool], progress: Progress) -> Checked:
    """Read every page of a copy, and walk its event log: the steps `pages` and `event_log`.

    Raises:
        StoreCorrupt: SQLite cannot read it.
        DeadlineExceeded: `stopped` became true.
    """
    with reading(path) as tx:
        tx.connection.set_progress_handler(stopped, TICK_STEPS)
        progress.step("pages")
        tx.row(TOUCH_INDEX_SQL)
        said = [row[0] for row in tx.rows(QUICK_CHECK_SQL)]
        progress.step("event_log", of=read_head(tx).seq)
        rows, broken = first_break(tx, chain_hash, progress.at)
        return Checked(tx.value("PRAGMA page_count"), said == ["ok"], rows, broken is None)
