"""Folding the write-ahead log into the database file."""

from __future__ import annotations

import logging
import os

import apsw

from beetle.contracts.errors import BeetleError
from beetle.store.engine.connection import PAGE_SIZE, StoreSettings, close_connection, open_checkpointer
from beetle.store.engine.failures import translate
from beetle.store.engine.follower import Follower
from beetle.store.engine.scrub import lend, scrub_file
from beetle.store.engine.store_files import StoreFiles

log = logging.getLogger("beetle.store")

BUSY_MS = 20
LOOK_BYTES = 4 * 2**20
"""Some milliseconds of work, for which a write waits."""
PASSIVE, TRUNCATE = apsw.SQLITE_CHECKPOINT_PASSIVE, apsw.SQLITE_CHECKPOINT_TRUNCATE


class Checkpoints:
    """A store's checkpoints; without a write-ahead log there is nothing to fold. Used by the writer's thread alone."""

    def __init__(self, settings: StoreSettings, connection: apsw.Connection, files: StoreFiles) -> None:
        self._settings = settings
        self.follower = files.follower or Follower(settings.wal_bytes)
        self._files = files
        self._wal_pages = 0
        self.written = 0
        """Pages that commits have written to the log since the opening; some count twice if it was folded."""
        self._saved = False
        self._connection = open_checkpointer(settings) if settings.walled else None
        if settings.walled:
            lend(settings.path, files.descriptor)
            connection.set_wal_hook(self._count_wal)

    def _count_wal(self, _connection: apsw.Connection, _database: str, pages: int) -> int:
        self.written += pages - self._wal_pages if pages > self._wal_pages else pages
        self._wal_pages = pages
        self.follower.commits += 1
        return apsw.SQLITE_OK

    @property
    def is_due(self) -> bool:
        """Whether `keep_small` has something to do."""
        return self.follower.attached or self._wal_pages * PAGE_SIZE > self._settings.wal_bytes // 2

    def keep_small(self) -> None:
        """Copy the log into the database once it is half its budget, and start it anew once it has outgrown it.

        Where it is followed, or will be again, it is never folded and left to begin anew in place: see `follower`.
        """
        used = self._wal_pages * PAGE_SIZE
        if self.follower.attached:
            self._give_way(used)
        elif used > self._settings.wal_bytes:
            self.attempt(TRUNCATE)
        elif used > self._settings.wal_bytes // 2 and not self._settings.replicated:
            self.attempt(PASSIVE)

    def _give_way(self, used: int) -> None:
        """Wait for the follower where the log is long; it folds it."""
        if pause := self.follower.pause(used):
            mark = self._mark()
            if self.follower.wait(pause, lambda: self._mark() != mark) and self.follower.attached:
                self._wal_pages = 0  # the next commit says how long it is now

    def _mark(self) -> bytes:
        """What is another in the log's header once it has begun anew."""
        try:
            with open(self._settings.path + "-wal", "rb", buffering=0) as file:
                return file.read(32)[12:24]
        except OSError:
            return b""

    def watch(self) -> None:
        """When the files are not where they were: fold what was acknowledged into the file that SQLite has open,
        wherever that is by now. Its log may have no name any more, or stand where another file would be taken to belong
        to it. Not while another process has that file open, which may have another log.
        """
        if self._files.is_lost() and not self._saved and self._files.alone():
            self._saved = self.attempt(TRUNCATE)
            if self._saved:
                log.warning(
                    "what was acknowledged is in the database file, wherever that is now",
                    extra={"event": "store_moved"},
                )

    def cut(self) -> bool:
        """Empty the log; whether it is empty now.

        Raises:
            StoreMoved: the store's files are not where they were.
            BeetleError: the typed error of what SQLite answered.
        """
        self._files.check()
        return not self.follower.attached and self._fold(TRUNCATE)

    def attempt(self, mode: int) -> bool:
        """Run a checkpoint; whether it did all that its mode asks. A log that is followed stays as it is."""
        if self.follower.attached:
            self._give_way(self._wal_pages * PAGE_SIZE)
            return False
        try:
            return self._fold(mode)
        except (apsw.Error, BeetleError) as error:
            log.warning(
                "checkpoint failed, the write-ahead log stays: %s",
                type(error).__name__,
                extra={"event": "checkpoint_failed"},
            )
            return False

    def _fold(self, mode: int) -> bool:
        """Run a checkpoint; whether it did all that its mode asks. The log stays as it is when it fails."""
        if self._connection is None:
            return True
        try:
            self._connection.set_busy_timeout(BUSY_MS)
            pages, moved = self._connection.wal_checkpoint(mode=mode)
        except apsw.BusyError:
            return False  # a reader holds an old state: the next round tries again
        except apsw.Error as error:
            raise translate(error, self._settings.path, self._connection.system_errno) from error
        if pages == moved:
            self._wal_pages = 0
        return True

    def file_bytes(self) -> int:
        """Bytes of the database file."""
        return 0 if self._files.descriptor is None else os.fstat(self._files.descriptor).st_size

    def look_through(self, start: int) -> int | None:
        """Scrub the next pages of the file, where others have written it; where to go on, None behind the last.

        Raises:
            OSError: the disk refused.
        """
        if self._connection is None or self._files.descriptor is None:
            return None
        return scrub_file(self._files.descriptor, self._connection.pragma("page_size"), start, LOOK_BYTES)

    def finish(self, *, erased: bool) -> None:
        """Fold all that is left, before the connections are closed. A follower ends first; one that was in step goes on
        in the same log later, so that stays where it is, folded; but not where it may hold what was erased."""
        stays = self.follower.end() and not erased
        if self._files.lost is None:
            if stays and self._connection is not None:
                # The last connection that closes would remove the log.
                self._connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            self.attempt(PASSIVE if stays else TRUNCATE)
        else:
            self.watch()

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            close_connection(self._connection)
            lend(self._settings.path, None)
