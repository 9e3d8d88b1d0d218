"""Brings what can be read of a damaged store into a new one, row by row, and tells what is gone.

Nothing is believed that no migration made: the schema is this build's own, and a row must fit its table. The recall
index is left empty: it is made anew from what it indexes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice
from typing import Any

import apsw

from beetle.contracts.errors import StorageFull, StoreCorrupt
from beetle.named_tuple import NamedTuple
from beetle.store import index_rebuild
from beetle.store.engine import exchange, migrate
from beetle.store.engine.connection import (
    StoreSettings,
    close_connection,
    connect_writer,
    prepare_writer,
    store_bytes,
)
from beetle.store.engine.damaged_file import (
    INTERIOR,
    KEY_INTERIOR,
    KEY_LEAF,
    LEAF,
    DamagedFile,
    Entry,
    Malformed,
    Tree,
)
from beetle.store.engine.failures import translate
from beetle.store.engine.lock import StoreLock
from beetle.store.engine.store import free_bytes
from beetle.store.engine.transaction import Writing, transaction
from beetle.store.index_tail import ALL_INDEXED_SQL
from beetle.store.indexed import is_key

LEDGER = "schema_migration"
TYPES: dict[str, tuple[type, ...]] = {
    "INTEGER": (int,), "REAL": (float, int), "TEXT": (str,), "BLOB": (bytes,), "ANY": (int, float, str, bytes),
}  # fmt: skip
TABLES_SQL = """
SELECT name, wr FROM pragma_table_list
WHERE schema = 'main' AND type = 'table' AND name NOT GLOB 'sqlite_*' ORDER BY name
"""
"""The recall index and its own tables are of other types."""
COLUMNS_SQL = """SELECT name, type, "notnull", dflt_value, pk FROM pragma_table_info(?) ORDER BY cid"""
KEEP_LEDGER_SQL = """
UPDATE schema_migration SET applied_at = ?, beetle_version = ? WHERE number = ? AND name = ? AND sha256 = ?
"""
TAIL = "index_tail"
NOT_BROUGHT = (LEDGER, "word_bitmap")
"""The new store has a ledger of its own, and an index that is filled again, of which no bitmaps were made."""
KEY_SQL = "SELECT key, value FROM meta WHERE key IN ('store_id', 'store_key')"
SPARE_BYTES = 8 * 2**20
"""Room that is left beside a second store."""
NAMED_AT_MOST = 100
LOOKED_AT = 50
"""Rows of a page without a parent by which its table is found."""
SCHEMA_COLUMNS, LEDGER_COLUMNS = 5, 5
Values = tuple[Any, ...]


class Column(NamedTuple):
    """A column of a table: `pk` its place in the primary key, 0 when it has none."""

    name: str
    type: str
    needed: bool
    default: str | None
    pk: int


class Table(NamedTuple):
    """A table as the migrations make it. `columns` in the order in which its records hold them; `key` is the one that
    is the rowid."""

    name: str
    rowids: bool
    columns: tuple[Column, ...]
    key: str | None

    @property
    def kinds(self) -> tuple[int, int]:
        return (LEAF, INTERIOR) if self.rowids else (KEY_LEAF, KEY_INTERIOR)

    def fits(self, entry: Entry) -> bool:
        """Whether it may be a row of this table."""
        if (entry.rowid is not None) != self.rowids or len(entry.values) > len(self.columns):
            return False
        if entry.rowid is not None and not is_key(entry.rowid):
            return False
        for column, value in zip(self.columns, entry.values, strict=False):
            if column.name == self.key:
                if value is not None:
                    return False
            elif value is None:
                if column.needed:
                    return False
            elif not isinstance(value, TYPES[column.type]):
                return False
        # Columns that were added later are not in older rows.
        rest = self.columns[len(entry.values) :]
        return bool(entry.values) and all(each.default is not None or not each.needed for each in rest)


class TableSalvaged(NamedTuple):
    """Rows of a table that were brought over; those that were seen and are gone; and whether more may be."""

    table: str
    saved: int
    lost: int
    torn: bool


class Salvaged(NamedTuple):
    """What was read of a damaged store. `damaged_pages` are the first pages with something that cannot be read;
    `unclear` pages have rows of which nobody can tell the table."""

    pages: int
    damaged_pages: tuple[int, ...]
    tables: tuple[TableSalvaged, ...]
    unclear: int
    notes: tuple[str, ...]

    @property
    def saved(self) -> int:
        return sum(each.saved for each in self.tables)

    @property
    def lost(self) -> int:
        return sum(each.lost for each in self.tables)

    @property
    def whole(self) -> bool:
        """Whether every row of every table was read."""
        return not self.unclear and not self.notes and not any(each.lost or each.torn for each in self.tables)


def new_id() -> str:
    """By which the files of one salvage are known."""
    return f"r-{os.urandom(8).hex()}"


def need_room(path: str) -> None:
    """Refuse to begin where there is no room for a second store.

    Raises:
        StorageFull: so it is.
    """
    if free_bytes(os.path.dirname(path) or ".") < sum(store_bytes(path)) + SPARE_BYTES:
        raise StorageFull(path=path)


def salvage_closed(path: str, now: int, version: str, *, dry_run: bool) -> tuple[Salvaged, str | None]:
    """Repair a store that nobody has open: what was saved of it, and where the damaged file stands now.

    Raises:
        StoreLocked: a process has it open.
        StoreCorrupt, StorageFull, StoreReadOnly: as `salvage`; the store is as it was.
    """
    path = os.path.realpath(path)
    lock = StoreLock.acquire(path)
    file_id = new_id()
    kinds = (exchange.UNPACKING, exchange.READY, exchange.BEFORE)
    making, ready, kept = (exchange.named(path, kind, file_id) for kind in kinds)
    try:
        exchange.settle(path, StoreSettings(path).snapshot_folder)
        need_room(path)
        done = salvage(path, making, now, version)
        if dry_run:
            return done, None
        exchange.make_ready(making, ready)
        exchange.put_aside(path, ready, kept)
        return done, kept
    except OSError as error:
        raise exchange.unwritable(path, error) from error
    finally:
        for left in (making, ready):
            with suppress(OSError):
                os.unlink(left)
        lock.release()


def salvage(path: str, target: str, now: int, version: str) -> Salvaged:
    """Read the damaged store at `path`, which stays as it is, and write a new one at `target`, not yet on disk.

    Args:
        now: microseconds since the epoch.

    Raises:
        StoreCorrupt: its key cannot be read; without it nothing of it can be told from a forgery.
        StorageFull, StoreReadOnly: the new file could not be written.
    """
    settings = StoreSettings(path=target, backend="file")
    connection = connect_writer(settings)
    file = DamagedFile(path)
    try:
        schema = file.tree(1)
        told = [each.values for each in file.entries(schema)]
        # Nobody waits for it: it is synced as a whole, once it is.
        prepare_writer(connection, settings)
        connection.pragma("synchronous", 0)
        connection.pragma("foreign_keys", 0)
        known = migrate.available()
        ledger = _ledger(file, told)
        newest = max((number for number in ledger if 1 <= number <= len(known)), default=len(known))
        migrate.apply(connection, known[:newest], now, version)
        return _Rescue(file, schema, told, connection, path).run(ledger, now)
    except apsw.Error as error:
        raise translate(error, target, connection.system_errno) from error
    finally:
        file.close()
        close_connection(connection)


def _ledger(file: DamagedFile, told: list[Values]) -> dict[int, Values]:
    """The migrations of which the store can still tell, by number."""
    root = _roots(told, "table").get(LEDGER)
    found = file.entries(file.tree(root)) if root is not None else ()
    return {each.rowid: each.values for each in found if each.rowid is not None and len(each.values) == LEDGER_COLUMNS}


def _roots(told: list[Values], kind: str) -> dict[str, int]:
    """The first page of each table, or of each index, of which the schema can still tell."""
    return {
        row[1]: row[3]
        for row in told
        if len(row) == SCHEMA_COLUMNS and row[0] == kind and isinstance(row[3], int) and row[3] > 1
    }


def _kinds(first: int) -> tuple[int, int]:
    """The kinds of pages of the tree that one with this first byte is of."""
    return (LEAF, INTERIOR) if first in (LEAF, INTERIOR) else (KEY_LEAF, KEY_INTERIOR)


class _Rescue:
    def __init__(
        self, file: DamagedFile, schema: Tree, told: list[Values], connection: apsw.Connection, path: str
    ) -> None:
        self._file, self._schema, self._told, self._connection, self._path = file, schema, told, connection, path
        self._tables = {each.name: each for each in _tables(connection)}
        roots = _roots(told, "table")
        self._trees: dict[str, Tree | None] = {
            name: file.tree(roots[name], table.kinds) if name in roots else None for name, table in self._tables.items()
        }
        self._unclear = 0
        owner: dict[int, Tree] = {}
        for tree in (each for each in self._trees.values() if each is not None):
            for page in tree.pages:
                if (other := owner.setdefault(page, tree)) is not tree:
                    # It hangs from both: a number that leads to it is damaged, and what that led to before is loose.
                    other.torn = tree.torn = True

    def run(self, ledger: Mapping[int, Values], now: int) -> Salvaged:
        """Bring everything over, in one transaction, and mark that the index has to be filled."""
        self._take_loose()
        told: list[TableSalvaged] = []
        with transaction(self._connection):
            for name, table in self._tables.items():
                if name not in NOT_BROUGHT:
                    told.append(self._bring(table))
            if TAIL in self._tables:
                # Its index is filled again with all of them: what a lost row said would be taken for nothing.
                self._connection.execute(ALL_INDEXED_SQL)
            index_rebuild.begin(Writing(self._connection), now)
            for number, values in ledger.items():
                if self._tables[LEDGER].fits(Entry(number, values)):
                    _, name, digest, at, version = values
                    self._connection.execute(KEEP_LEDGER_SQL, (at, version, number, name, digest))
        self._check_key()
        trees = [self._schema, *(each for name, each in self._trees.items() if each is not None)]
        damaged = sorted({page for each in trees for page in each.damaged})
        pages = tuple(damaged[:NAMED_AT_MOST])
        return Salvaged(self._file.pages, pages, tuple(told), self._unclear, tuple(self._file.notes))

    def _take_loose(self) -> None:
        """Pages whose parent cannot be read: each is of a table that lacks some, and that its rows fit."""
        known = set(self._schema.pages)
        for tree in self._trees.values():
            known |= tree.pages if tree is not None else set()
        others = _roots(self._told, "index") | _roots(self._told, "table")
        for root in (root for name, root in others.items() if name not in self._tables):
            with suppress(Malformed):
                known |= self._file.tree(root, _kinds(self._file.page(root)[0])).pages
        torn = [name for name, tree in self._trees.items() if tree is None or tree.torn]
        loose = self._file.loose(known) if torn else {}
        taken: set[int] = set()
        # From the top down: an interior page brings its leaves along.
        for number, kind in sorted(loose.items(), key=lambda each: each[1] not in (INTERIOR, KEY_INTERIOR)):
            if number not in taken:
                found = self._file.tree(number, _kinds(kind))
                taken |= found.pages
                self._give(found, torn)

    def _give(self, found: Tree, torn: list[str]) -> None:
        rows = list(islice(self._file.entries(found), LOOKED_AT))
        # Nine of ten: some may be damaged themselves.
        fitting = [
            name for name in torn if rows and sum(self._tables[name].fits(each) for each in rows) * 10 >= len(rows) * 9
        ]
        if len(fitting) != 1:
            self._unclear += bool(fitting)
            return
        tree = self._trees[fitting[0]]
        if tree is None:
            tree = self._trees[fitting[0]] = Tree(found.root)
            tree.torn = True
        tree.take(found)

    def _bring(self, table: Table) -> TableSalvaged:
        """Write a table's rows; one that its constraints refuse is gone."""
        self._connection.execute(f'DELETE FROM "{table.name}"')  # noqa: S608 - a name of the migrations
        tree = self._trees[table.name]
        if tree is None:
            return TableSalvaged(table.name, 0, 0, torn=True)
        saved = refused = tree.lost = 0
        for entry in self._file.entries(tree):
            if table.fits(entry) and self._insert(table, entry):
                saved += 1
            else:
                refused += 1
        return TableSalvaged(table.name, saved, tree.lost + refused, tree.torn)

    def _insert(self, table: Table, entry: Entry) -> bool:
        named = {each.name: value for each, value in zip(table.columns, entry.values, strict=False)}
        if table.rowids:
            named[table.key or "rowid"] = entry.rowid
        columns, places = ", ".join(f'"{name}"' for name in named), ", ".join("?" * len(named))
        sql = f'INSERT OR IGNORE INTO "{table.name}" ({columns}) VALUES ({places})'  # noqa: S608 - names of the migrations
        before = self._connection.total_changes()
        try:
            self._connection.execute(sql, tuple(named.values()))
        except apsw.ConstraintError:
            return False
        return self._connection.total_changes() > before

    def _check_key(self) -> None:
        found = dict(self._connection.execute(KEY_SQL))
        key = found.get("store_key")
        if not isinstance(found.get("store_id"), str) or not isinstance(key, bytes) or len(key) != 32:
            raise StoreCorrupt(path=self._path, reason="its key cannot be read any more; restore a snapshot")


def _tables(connection: apsw.Connection) -> Iterator[Table]:
    """Every table of the new store."""
    for name, without_rowids in list(connection.execute(TABLES_SQL)):
        columns = [Column(*row) for row in connection.execute(COLUMNS_SQL, (name,))]
        columns = [each._replace(needed=bool(each.needed)) for each in columns]
        if without_rowids:
            # As SQLite writes them: the primary key's first.
            keys = sorted((each for each in columns if each.pk), key=lambda each: each.pk)
            columns = [*(each._replace(needed=True) for each in keys), *(each for each in columns if not each.pk)]
        keys = [each for each in columns if each.pk]
        is_rowid = not without_rowids and len(keys) == 1 and keys[0].type == "INTEGER"
        yield Table(name, not without_rowids, tuple(columns), keys[0].name if is_rowid else None)
