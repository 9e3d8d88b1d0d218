"""Forward-only migrations with a checksum ledger."""

from __future__ import annotations

import hashlib
import os
import re

import apsw

from beetle.contracts.errors import SchemaMismatch, StoreCorrupt
from beetle.named_tuple import NamedTuple
from beetle.store.engine import schema
from beetle.store.engine.schema import Difference, SchemaRow
from beetle.store.engine.transaction import transaction

FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "migrations")
NEW_STORE = "schema.sql"
"""What all migrations make of a new store, in one script: written by packaging/gen_reference.py."""

LEDGER_SQL = """
CREATE TABLE IF NOT EXISTS schema_migration (
  number         INTEGER PRIMARY KEY,
  name           TEXT NOT NULL UNIQUE,
  sha256         TEXT NOT NULL,
  applied_at     INTEGER NOT NULL,
  beetle_version TEXT NOT NULL
) STRICT
"""
LEDGER_TEXT = LEDGER_SQL.replace("IF NOT EXISTS ", "").strip().encode()
"""As SQLite keeps it, but for the blanks that it may keep behind it."""
APPLIED_SQL = "SELECT number, name, sha256 FROM schema_migration ORDER BY number"
RECORD_SQL = "INSERT INTO schema_migration VALUES (?, ?, ?, ?, ?)"


class Migration(NamedTuple):
    number: int
    name: str
    sql: str
    sha256: str


def available(folder: str | os.PathLike[str] = FOLDER) -> list[Migration]:
    """The migrations that this build holds, in order."""
    found: list[Migration] = []
    for name in sorted(os.listdir(folder)):
        if re.fullmatch(r"[0-9]{4}_.*\.sql", name):
            data = _read(folder, name)
            stem = name.removesuffix(".sql")
            found.append(Migration(int(name[:4]), stem, data.decode(), hashlib.sha256(data).hexdigest()))
    return found


def _read(folder: str | os.PathLike[str], name: str) -> bytes:
    with open(os.path.join(folder, name), "rb") as file:
        return file.read()


def pending(connection: apsw.Connection, path: str, known: list[Migration]) -> list[Migration]:
    """What is still to be applied; changes nothing.

    Raises:
        SchemaMismatch: the store has a migration that this build does not know, or knows with other content.
        SchemaAltered: its schema is not what its migrations make.
    """
    rows = schema.read(connection)
    if not rows:
        return known
    numbers = schema.numbers_of(rows)
    # A schema that is not known may be a newer one, if its ledger can be read as ours.
    if not numbers and not _has_ledger(rows):
        raise schema.altered(path, schema.differences(rows, made(known)))
    try:
        applied = _applied(connection, path, {m.number: m for m in known})
    except UnicodeDecodeError as error:
        raise StoreCorrupt(path=path, reason="what it tells of its migrations is damaged") from error
    if not numbers:
        raise schema.altered(path, schema.differences(rows, made(known, max(applied, default=0))))
    number = len(applied)
    if number not in numbers or applied != list(range(1, number + 1)):
        found = Difference("table schema_migration", f"tells of other migrations than those up to {numbers[-1]}")
        raise schema.altered(path, [found])
    return known[number:]


def _applied(connection: apsw.Connection, path: str, by_number: dict[int, Migration]) -> list[int]:
    """The numbers in the ledger, all of which this build knows."""
    applied: list[int] = []
    for number, name, sha256 in connection.execute(APPLIED_SQL):
        mine = by_number.get(number)
        if mine is None:
            from beetle.store.engine.before_migration import way_back

            raise SchemaMismatch(
                path=path,
                reason=f"its schema is newer (migration {name}) than this beetle knows",
                advice="use the beetle that wrote it, or a newer one; nothing was changed"
                + way_back(path, max(by_number, default=0)),
                store_schema=number,
                known_schema=max(by_number, default=0),
            )
        if mine.sha256 != sha256:
            raise SchemaMismatch(
                path=path,
                reason=f"migration {name} was applied with another content than this build holds",
                advice="this build or the store was altered; restore a good copy of either",
                migration=name,
            )
        applied.append(number)
    return applied


def differences(connection: apsw.Connection) -> list[Difference]:
    """How the schema of a store that is up to date differs from what the migrations make."""
    rows = schema.read(connection)
    known = available()
    if known[-1].number in schema.numbers_of(rows):
        return []
    return schema.differences(rows, made(known))


def made(known: list[Migration], number: int | None = None) -> list[SchemaRow]:
    """The schema that the migrations make up to a number, all of them when None."""
    connection = apsw.Connection(":memory:")
    try:
        migrate(connection, ":memory:", 0, "", known[:number])
        return schema.read(connection)
    finally:
        connection.close()


def _has_ledger(rows: list[SchemaRow]) -> bool:
    return any(row.type == b"table" and (row.sql or b"").rstrip() == LEDGER_TEXT for row in rows)


def migrate(
    connection: apsw.Connection, path: str, now: int, version: str, known: list[Migration] | None = None
) -> list[str]:
    """Apply what is pending, each migration and its ledger row in one transaction. Returns the names applied."""
    return apply(connection, pending(connection, path, available() if known is None else known), now, version)


def create(connection: apsw.Connection, known: list[Migration], now: int, version: str) -> list[str]:
    """Make the schema of a new store, as `apply` does with all migrations of this build, but in one transaction."""
    with transaction(connection):
        for _ in connection.execute(LEDGER_SQL + ";" + _read(FOLDER, NEW_STORE).decode()):
            pass
        connection.executemany(RECORD_SQL, [(m.number, m.name, m.sha256, now, version) for m in known])
    return [m.name for m in known]


def apply(connection: apsw.Connection, todo: list[Migration], now: int, version: str) -> list[str]:
    """Apply migrations that are pending, as `migrate` does."""
    for migration in todo:
        with transaction(connection):
            for _ in connection.execute(LEDGER_SQL):
                pass
            for _ in connection.execute(migration.sql):
                pass
            row = (migration.number, migration.name, migration.sha256, now, version)
            connection.execute(RECORD_SQL, row)
    return [m.name for m in todo]


def schema_number(connection: apsw.Connection) -> int:
    """The highest migration applied."""
    return connection.execute("SELECT coalesce(max(number), 0) FROM schema_migration").get
