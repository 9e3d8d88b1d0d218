"""Changing a copy of a store that nobody has open: migrated, and scrubbed as the store's own file is."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import apsw

from beetle.store.engine import migrate
from beetle.store.engine.connection import StoreSettings, close_connection, connect_writer, prepare_writer
from beetle.store.engine.domain_functions import DomainFunctions
from beetle.store.engine.failures import translate
from beetle.store.engine.transaction import Reading, transaction
from beetle.store.engine.write_transaction import Known, WriteTransaction
from beetle.store.event_log import Event, read_head
from beetle.store.seals import SUM_SQL, Changes, Sealer, shapes

KEY_SQL = "SELECT value FROM meta WHERE key = 'store_key'"


class Quiet(WriteTransaction):
    """A write that logs nothing: what it erases was told of when it was erased first."""

    __slots__ = ()

    def log(self, event: Event) -> int:
        """Nothing."""
        del event
        return 0


class Copy:
    """A copy to be changed, by one thread. `applied`: the migrations that it took."""

    def __init__(self, path: str, clock_us: int, version: str, domain: DomainFunctions, sealer: Sealer | None) -> None:
        """Open it; `sealer` seals what is changed.

        Raises:
            BeetleError: the typed error of what SQLite answered.
        """
        self._path = path
        self._now = clock_us
        self._domain = domain
        self._sealer = sealer
        settings = StoreSettings(path=path, backend="file")
        self._connection = connect_writer(settings)
        try:
            prepare_writer(self._connection, settings)
            self.applied = tuple(migrate.migrate(self._connection, path, clock_us, version))
        except apsw.Error as error:
            told = translate(error, path, self._connection.system_errno)
            self.close()
            raise told from error
        except BaseException:
            self.close()
            raise

    @contextmanager
    def writing(self) -> Generator[Quiet]:
        """One transaction.

        Raises:
            BeetleError: the typed error of what SQLite answered; nothing of it is written.
        """
        try:
            with transaction(self._connection):
                held = Reading(self._connection)
                functions = self._domain.of(held.value(KEY_SQL))
                known = Known(functions.message_fields)
                tx = Quiet(self._connection, read_head(held), functions.chain_hash, self._changes(), known)
                tx.now = self._now
                yield tx
                tx.settle()
                tx.end_index()
        except apsw.Error as error:
            raise translate(error, self._path, self._connection.system_errno) from error

    def _changes(self) -> Changes | None:
        """Nothing is sealed beside rows that are not: those of an older schema are all sealed when the store that they
        become is opened."""
        held = Reading(self._connection)
        if self._sealer is None or held.row(SUM_SQL, "schema_migration") is None:
            return None
        return Changes(self._sealer, shapes(held))

    def close(self) -> None:
        """Close it."""
        close_connection(self._connection)
