"""Writes beetle/store/migrations/schema.sql: what all migrations leave in a new store, in one script.

A new store is made by it rather than by each migration after the other, which takes four times as long: every ALTER
TABLE has SQLite read the whole schema again. See gen_reference.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import apsw

from beetle.store.engine import migrate

SCRIPT = Path(migrate.FOLDER) / migrate.NEW_STORE
HEAD = "-- Written by packaging/gen_reference.py from the migrations. Add a migration, then run it again.\n"
OBJECTS_SQL = """
SELECT type, name, sql FROM sqlite_schema
WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite!_%' ESCAPE '!' ORDER BY rowid
"""
MADE_BY_ITSELF = "schema_migration"
"""The ledger, each row of which tells who applied a migration, and when."""
FULL_TEXT = re.compile(r"CREATE VIRTUAL TABLE (\w+) USING fts5", re.IGNORECASE)


def schema_script() -> str:
    """The script."""
    connection = apsw.Connection(":memory:")
    try:
        migrate.migrate(connection, ":memory:", 0, "")
        return HEAD + "".join(f"{each};\n" for each in _statements(connection))
    finally:
        connection.close()


def _statements(connection: apsw.Connection) -> Iterator[str]:
    objects = list(connection.execute(OBJECTS_SQL))
    full_text = [found[1] for _, _, sql in objects if (found := FULL_TEXT.match(sql))]
    shadows = tuple(f"{name}_{part}" for name in full_text for part in ("data", "idx", "content", "docsize", "config"))
    for kind, name, sql in objects:
        if name in shadows or name == MADE_BY_ITSELF:
            continue
        yield sql
        if kind == "table" and name not in full_text:
            yield from _rows(connection, name)
    for name in full_text:
        for key, value in connection.execute(f"SELECT k, v FROM {name}_config WHERE k <> 'version'"):  # noqa: S608
            yield f"INSERT INTO {name} ({name}, rank) VALUES ('{key}', {value})"  # noqa: S608


def _rows(connection: apsw.Connection, table: str) -> Iterator[str]:
    for row in connection.execute(f"SELECT * FROM {table}"):  # noqa: S608
        yield f"INSERT INTO {table} VALUES ({', '.join(apsw.format_sql_value(each) for each in row)})"  # noqa: S608
