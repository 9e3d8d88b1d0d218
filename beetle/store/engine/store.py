"""One open store: its lock, its writer, its readers."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, TypeVar

import apsw

from beetle.contracts.codec import replace
from beetle.contracts.errors import Overloaded, StoreClosed, StoreCorrupt, StoreReadOnly
from beetle.contracts.store import StoreOpenReport
from beetle.store import private, recall_index
from beetle.store.clock_steps import ClockSteps, since_boot
from beetle.store.engine import exchange, migrate
from beetle.store.engine.commits import Commits
from beetle.store.engine.connection import (
    PAGE_SIZE,
    StoreSettings,
    close_connection,
    connect_writer,
    prepare_writer,
    store_bytes,
)
from beetle.store.engine.domain_functions import DomainFunctions
from beetle.store.engine.erasing import PENDING_SQL
from beetle.store.engine.failures import translate
from beetle.store.engine.follower import Follower, staging_folder
from beetle.store.engine.immutable import REASON, RefusingWriter, open_immutable, refusing_writer
from beetle.store.engine.lock import StoreLock
from beetle.store.engine.presence import has_content
from beetle.store.engine.readers import Readers
from beetle.store.engine.steps import Steps, complete
from beetle.store.engine.store_files import StoreFiles, files_of
from beetle.store.engine.transaction import Reading, Writing, transaction
from beetle.store.engine.turns import IsAbandoned
from beetle.store.engine.turnstile import Turnstile
from beetle.store.engine.write_queue import PendingWrite, QueuedWrite
from beetle.store.engine.write_transaction import Sealing, WriteTransaction
from beetle.store.engine.writer import Writer
from beetle.store.event_log import Head, Logged
from beetle.store.index_tail import IndexTail
from beetle.store.postings import PostingCache
from beetle.store.seals import Sealer

T = TypeVar("T")

LOW_SPACE_BYTES = 32 * 2**20
EXCHANGE_WAIT_S = 30.0
"""Longest wait for reads and writes that have begun before the files are exchanged."""
GET_META_SQL = "SELECT value FROM meta WHERE key = ?"
HAS_IDENTITY_SQL = "SELECT 1 FROM meta WHERE key IN ('store_id', 'store_key')"
PUT_META_SQL = "INSERT INTO meta VALUES (?, ?)"


class Store:
    """Reads through pooled read-only connections; writes through the one writer.

    `key` is the store's own 32-byte secret: digests, cursors and idempotency fingerprints are HMACs under it.
    `identity_check` is what it had recorded of its device identity when it was opened, as of `private.recorded_check`.
    """

    def __init__(
        self,
        settings: StoreSettings,
        *,
        clock: Callable[[], int],
        domain: DomainFunctions,
        version: str,
        elapsed: Callable[[], int] = since_boot,
    ) -> None:
        """Open or create the store.

        Args:
            clock: microseconds since the epoch.
            domain: what it is given to compute with.
            elapsed: microseconds since some moment, which no step of the clock moves.

        Raises:
            StoreLocked, StoreReadOnly, StorageFull, StoreCorrupt, SchemaMismatch.
        """
        if settings.backend == "in-memory":
            settings = settings._replace(path=f"beetle-{os.urandom(8).hex()}")
        else:
            # One name for one store, whatever links lead to it: a VFS of ours cannot follow them for SQLite.
            settings = settings._replace(path=os.path.realpath(settings.path))
        self._lock = None if settings.backend == "in-memory" else _lock(settings.path)
        if self._lock is not None and self._lock.immutable:
            settings = settings._replace(immutable=True)
        if settings.walled and os.path.isdir(staging_folder(settings.path)):
            settings = settings._replace(replicated=True)
        self.settings = settings
        # Without a WAL, a reader would wait for the writer inside SQLite, and time out; here it waits its turn.
        self.gate: AbstractContextManager[Any] = nullcontext() if settings.walled else threading.RLock()
        self._made_with = (clock, elapsed, domain, version)
        self._turnstile = Turnstile()
        self._changing = threading.Lock()
        self._closed = False
        self._before_close: list[Callable[[], None]] = []
        self._last: Callable[[WriteTransaction], Any] | None = None
        self.epoch = 0
        self._sealing: Sealing | None = None
        self._is_crowded: Callable[[str], bool] = lambda by: False
        self.files = StoreFiles(settings.path, ())
        self.follower = Follower(settings.wal_bytes)
        settled: list[str] = []
        try:
            try:
                if not settings.immutable and settings.backend != "in-memory":
                    settled = exchange.settle(settings.path, settings.snapshot_folder)
            except OSError as error:
                raise exchange.unwritable(settings.path, error) from error
            self._begin(settled, keeps=True)
        except BaseException:
            if self._lock is not None:
                self._lock.release()
            raise

    def _begin(self, settled: list[str], reseal: Callable[[], Sealing] | None = None, *, keeps: bool = False) -> None:
        """Open the files: the writer, the readers, and what is known of the store. On an error nothing stays open.

        Args:
            settled: what is told of the opening, to which more is added.
            keeps: a store that is migrated is kept as it was. One that a restore puts in place has its snapshot.
        """
        settings = self.settings
        clock, elapsed, domain, version = self._made_with
        connection: apsw.Connection | None = None
        try:
            created = settings.backend == "in-memory" or not has_content(settings.path)
            connection = open_immutable(settings) if settings.immutable else connect_writer(settings)
            applied = (
                [] if settings.immutable else self._prepare(connection, clock(), version, settled if keeps else None)
            )
            self.store_id, self.key = _identity(connection)
            functions = domain.of(self.key)
            postings = PostingCache(settings.index_cache_kib * 1024, IndexTail(functions.message_fields))
            self.identity_check = private.recorded_check(Reading(connection))
            if reseal is not None:
                self._sealing = reseal()
            self.schema = migrate.schema_number(connection)
            pending = connection.execute(PENDING_SQL).get
            self.open_report = self._report(connection, created, applied, pending, settled)
            self.writer: Writer | RefusingWriter
            if settings.immutable:
                self.writer = refusing_writer(settings, connection, pending, clock)
            else:
                if settings.backend != "in-memory":
                    self.files = files_of(settings.path, self.follower, walled=settings.walled)
                commits = Commits(
                    settings,
                    connection,
                    clock=clock,
                    functions=functions,
                    gate=self.gate,
                    files=self.files,
                    pending_erasures=pending,
                    sealing=self._sealing,
                )
                commits.postings, commits.clock_steps = postings, ClockSteps(clock, elapsed)
                self.writer = Writer(settings, connection, commits, gate=self.gate, files=self.files)
        except apsw.Error as error:
            known = translate(error, settings.path, connection.system_errno if connection is not None else 0)
            if connection is not None:
                close_connection(connection)
            self.files.close()
            raise known from error
        except BaseException:
            if connection is not None:
                close_connection(connection)
            self.files.close()
            raise
        self.readers = Readers(settings, self.gate, self.writer.undo, self.files, postings)
        self.readers.turns.is_crowded = self._is_crowded
        try:
            self.readers.open_one()
        except BaseException:
            self.writer.close()
            self.files.close()
            raise
        self.follower.begin()

    @contextmanager
    def read(
        self,
        deadline: float | None = None,
        is_abandoned: IsAbandoned | None = None,
        *,
        by: str = "",
        heavy: bool = False,
        breathe: Callable[[], None] | None = None,
    ) -> Generator[Reading]:
        """A read transaction; see `Readers.reading`, and `Readers.heavy`. It waits while the files are exchanged."""
        readers = self.readers.heavy if heavy else self.readers.reading
        with self._turnstile.passing("read", deadline), readers(deadline, is_abandoned, by, breathe) as tx:
            yield tx

    def write(
        self,
        run: Callable[[WriteTransaction], T],
        *,
        deadline: float | None = None,
        grows: bool = True,
        by: str = "",
    ) -> T:
        """Run a write and return its result once it is on disk; see `Writer.write`. It waits as a read does."""
        self._turnstile.enter("write", deadline)
        try:
            return self.writer.write(run, deadline=deadline, grows=grows, by=by)
        finally:
            self._turnstile.leave("write")

    def complete(self, steps: Steps[T]) -> T:
        """Run what stops at its writes, and wait for each; see `steps.complete`."""
        return complete(steps, self.do)

    def do(self, write: PendingWrite) -> Any:
        """Run a write; see `write`."""
        return self.write(write.run, deadline=write.deadline, grows=write.grows, by=write.by)

    def begin_write(self, write: PendingWrite, then: Callable[[], None]) -> QueuedWrite | None:
        """Have a write done; `then` is called on the thread that ends it, and must be quick. None where it would have
        to wait before it may be queued, because the files of the store are being exchanged. `go_on` must follow, of one
        or of several.

        Raises:
            BeetleError: as of `write`; it is not done.
        """
        if not self._turnstile.try_enter("write"):
            return None

        def ended(_: BaseException | None) -> None:
            self._turnstile.leave("write")
            then()

        try:
            return self.writer.begin(write, ended)
        except BaseException:
            self._turnstile.leave("write")
            raise

    def go_on(self) -> None:
        """Have what was begun committed, on this thread where that is brief. See `Writer.go_on`."""
        if isinstance(self.writer, Writer):
            self.writer.go_on()

    def writes_expected(self) -> tuple[int, float]:
        """How many writes are likely to come together, and for how many seconds a commit may wait for them."""
        return self.writer.expected() if isinstance(self.writer, Writer) else (1, 0.0)

    @property
    def writes_have_company(self) -> bool:
        """Whether several writes shared one of the last commits."""
        return isinstance(self.writer, Writer) and self.writer.has_company

    def withdraw(self, job: QueuedWrite) -> bool:
        """Take back what was begun; false where it runs, or has ended: then its outcome stands."""
        if not (isinstance(self.writer, Writer) and self.writer.withdraw(job)):
            return False
        self._turnstile.leave("write")
        return True

    def post(
        self,
        run: Callable[[WriteTransaction], Any],
        *,
        grows: bool = False,
        then: Callable[[BaseException | None], None] | None = None,
    ) -> bool:
        """Have a small write done that nobody waits for; see `Writer.post`."""
        return self.writer.post(run, grows=grows, then=then)

    def before_close(self, hook: Callable[[], None]) -> None:
        """Call `hook` when the store begins to close, while it can still be written."""
        self._before_close.append(hook)

    @property
    def sealer(self) -> Sealer | None:
        """What seals the rows that are written; None until it is known."""
        return None if self._sealing is None else self._sealing.sealer

    def seal_with(self, sealing: Sealing) -> None:
        """Seal every row that is written from now on, what `adopt` takes in first."""
        self._sealing = sealing
        if isinstance(self.writer, Writer):
            self.writer.commits.sealing = sealing

    def announce(self, socket: str | None) -> None:
        """Tell other processes, through the lock file, which socket to use."""
        if self._lock is not None:
            self._lock.announce(socket)

    def on_commit(self, hook: Callable[[list[Logged]], None]) -> None:
        """Call `hook` with the logged events of every commit, on the thread that made it: it must be quick."""
        self.writer.on_commit = hook

    def share_readers(self, is_crowded: Callable[[str], bool]) -> None:
        """Give a principal one reader at most while `is_crowded` says that others ask beside it."""
        self._is_crowded = self.readers.turns.is_crowded = is_crowded

    def at_close(self, last: Callable[[WriteTransaction], Any]) -> None:
        """Have a write done when the store is closed, behind all others."""
        self._last = last

    @property
    def head(self) -> Head:
        """The event log's head."""
        return self.writer.head

    def used_bytes(self) -> int:
        """Bytes of the file; of a store in memory, what it had when it was opened."""
        in_memory = self.settings.backend == "in-memory"
        return self.open_report.bytes if in_memory else store_bytes(self.settings.path)[0]

    def still_s(self) -> float:
        """For how many seconds the write in hand has not moved; 0 where there is none."""
        return self.writer.pulse.still_s() if isinstance(self.writer, Writer) else 0.0

    def wal_bytes(self) -> int:
        """Bytes of the write-ahead log's file."""
        return 0 if self.settings.backend == "in-memory" else store_bytes(self.settings.path)[1]

    def close(self) -> None:
        """Commit what is queued, checkpoint, release the lock. A second call does nothing."""
        with self._changing:
            if self._closed:
                return
            for hook in self._before_close:
                hook()
            self._closed = True
            self.follower.stop_waiting()
            # Readers first: an open reader would keep the writer from cutting the write-ahead log.
            try:
                self.readers.close()
                self.writer.close(self._last)
                self.files.close()
            finally:
                if self._lock is not None:
                    self._lock.release()

    def cut_log(self, wait: float) -> bool:
        """Fold the write-ahead log into the file and empty it; see `Writer.cut_log`. Not while it is followed."""
        if self.follower.attached:
            return False
        with self._turnstile.passing("write", None):
            return self.writer.cut_log(wait)

    @contextmanager
    def unfollowed(self, who: str) -> Generator[None]:
        """No other process follows the log for the length of the block.

        Raises:
            Overloaded: it did not let go of the store's files.
        """
        with self.follower.aside(who, EXCHANGE_WAIT_S) as away:
            if not away:
                raise Overloaded(what="the replica's sidecar is busy", maximum="none meanwhile", retry_after_ms=1000)
            yield

    @property
    def findings(self) -> tuple[str, ...]:
        """What its opening found, and what has become of its files since."""
        found = self.open_report.findings
        lost = self.files.lost
        return found if lost is None else (*found, f"{lost}: writes are refused until the daemon is started again")

    def add_findings(self, found: list[str]) -> None:
        """What was found and done behind the opening, for its report."""
        if found:
            self.open_report = replace(self.open_report, findings=(*self.open_report.findings, *found))

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._closed

    @contextmanager
    def held(self) -> Generator[None]:
        """No write runs for the length of the block, and the files stay where they are; reads go on.

        Raises:
            Overloaded: a write that had begun did not end.
            StoreReadOnly: the store was closed, or its files are not where they were.
        """
        with self._changing, self._turnstile.shut("write", EXCHANGE_WAIT_S):
            if self._closed:
                raise StoreClosed(path=self.settings.path, reason="was closed")
            self.files.check()
            yield

    def exchange(self, fresh: str, keep: str, reseal: Callable[[], Sealing] | None = None) -> None:
        """Put the file `fresh` in the store's place and go on with it; the caller is inside `held`.

        Reads wait meanwhile. When the new file cannot be opened, the old one is put back. `epoch` counts exchanges:
        what was remembered of the store before may not hold any more.

        Args:
            fresh: a whole store on the same filesystem, on disk, that nobody has open.
            keep: the name that the old store gets.
            reseal: what seals the new store from its first write on, which its writer may begin with by itself; called
                when `key` and `identity_check` are its own. Without it the new store has the key of the old one.

        Raises:
            Overloaded: a read that had begun did not end, or another program has the store open; nothing was changed.
            StoreReadOnly, StorageFull, StoreCorrupt, SchemaMismatch: the new file, or the folder, refused.
        """
        with self._turnstile.shut("read", EXCHANGE_WAIT_S):
            hook, sealing = self.writer.on_commit, self._sealing
            self.readers.close()
            self.writer.close()
            self.files.close()
            try:
                exchange.put_in_place(self.settings.path, fresh, keep)
                try:
                    self._begin([], reseal)
                except BaseException:
                    self._sealing = sealing
                    exchange.take_back(self.settings.path, keep)
                    raise
                self.epoch += 1
            finally:
                if self.writer.closed:
                    self._begin([])
                self.writer.on_commit = hook

    def _prepare(self, connection: apsw.Connection, now: int, version: str, told: list[str] | None) -> list[str]:
        """Refuse a schema that is not ours to change, then set the pragmas and migrate. Where something is to be
        `told`, a copy is made before."""
        todo = migrate.pending(connection, self.settings.path, migrate.available())
        if told is not None and todo and todo[0].number > 1 and self.settings.backend != "in-memory":
            from beetle.store.engine import before_migration

            told.append(before_migration.keep(connection, self.settings, todo[0].number - 1, LOW_SPACE_BYTES))
        prepare_writer(connection, self.settings)
        make = migrate.create if todo and todo[0].number == 1 else migrate.apply
        applied = make(connection, todo, now, version)
        with transaction(connection):
            recall_index.tune(Writing(connection), lean=self.settings.backend == "embedded")
        return applied

    def _report(
        self, connection: apsw.Connection, created: bool, applied: list[str], pending: int, settled: list[str]
    ) -> StoreOpenReport:
        settings = self.settings
        used = connection.pragma("page_count") * PAGE_SIZE
        free = None if settings.backend == "in-memory" else free_bytes(os.path.dirname(settings.path))
        findings = list(settled)
        if used > settings.store_bytes * 0.9:
            findings.append(f"the store uses {used} of its {settings.store_bytes} bytes")
        if free is not None and free < LOW_SPACE_BYTES:
            findings.append(f"the disk has {free} bytes left")
        if settings.immutable:
            findings.append(f"the store cannot be written: {REASON}")
        elif pending:
            findings.append(f"{pending} erasures were pending; they are finished now")
        return StoreOpenReport(
            path=None if settings.backend == "in-memory" else settings.path,
            backend=settings.backend,
            created=created,
            store_id=self.store_id,
            schema=self.schema,
            migrations_applied=tuple(applied),
            bytes=used,
            ceiling_bytes=settings.store_bytes,
            disk_free_bytes=free,
            pending_erasures=pending,
            findings=tuple(findings),
        )


def _lock(path: str) -> StoreLock:
    folder = os.path.dirname(path) or "."
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
    except OSError as error:
        raise StoreReadOnly(path=path, reason=f"its folder cannot be made ({error.strerror})") from error
    return StoreLock.acquire(path)


def _identity(connection: apsw.Connection) -> tuple[str, bytes]:
    """The store's id and key; made on the first opening."""
    if connection.execute(HAS_IDENTITY_SQL).get is None:
        with transaction(connection):
            connection.execute(PUT_META_SQL, ("store_id", os.urandom(16).hex()))
            connection.execute(PUT_META_SQL, ("store_key", os.urandom(32)))
    found = connection.execute(GET_META_SQL, ("store_id",)).get
    key = connection.execute(GET_META_SQL, ("store_key",)).get
    if not isinstance(found, str) or not isinstance(key, bytes) or len(key) != 32:
        raise StoreCorrupt(path=connection.filename, reason="its identity row is damaged")
    return found, key


def free_bytes(folder: str) -> int:
    """Bytes that this user may still write on the folder's filesystem."""
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize
