"""A store's schema is what its migrations make: whatever was slipped in is refused, named, and never run."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from beetle.__main__ import main
from beetle.contracts.errors import SchemaMismatch, StoreReadOnly
from beetle.store.engine import migrate, schema
from tests.store.conftest import (
    DISK_BACKENDS,
    commit,
    files_of,
    found,
    lifecycle,
    open_runtime,
    replay,
    store_of,
    turn,
)
from tests.store.schema_digests import digests

KEEPS = """
CREATE TRIGGER keep BEFORE DELETE ON body BEGIN
  INSERT INTO meta VALUES ('kept ' || old.message, old.content);
END
"""
CHANGES: dict[str, tuple[str, str]] = {
    "trigger": (KEEPS, "trigger keep is not of the schema"),
    "view": ("CREATE VIEW everything AS SELECT content FROM body", "view everything is not of the schema"),
    "table": ("CREATE TABLE copied (content TEXT)", "table copied is not of the schema"),
    "index": ("CREATE INDEX by_content ON body (content)", "index by_content is not of the schema"),
    "statistics": ("ANALYZE", "table sqlite_stat1 is not of the schema"),
    "column": ("ALTER TABLE device ADD COLUMN extra TEXT", "table device was altered"),
    "dropped index": ("DROP INDEX turn_late", "index turn_late is missing from the schema"),
    "dropped table": ("DROP TABLE pending_erasure", "table pending_erasure is missing from the schema"),
    "dropped ledger": ("DROP TABLE schema_migration", "table schema_migration is missing from the schema"),
    "ledger cut": (
        "DELETE FROM schema_migration WHERE number = 3",
        "table schema_migration tells of other migrations than those up to",
    ),
    "shadow table": (
        "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = sql || ' ' WHERE name = 'recall_index_docsize'",
        "table recall_index_docsize was altered",
    ),
}  # fmt: skip


def edit(path: str | Path, sql: str) -> None:
    connection = apsw.Connection(str(path))
    for _ in connection.execute(sql):
        pass
    connection.close()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("schema") / "whole.db"
    with open_runtime(path) as memory:
        commit(memory, turn("t1", "the key is blue"))
    return path


@pytest.fixture
def path(whole: Path, tmp_path: Path) -> Iterator[str]:
    path = tmp_path / "store.db"
    shutil.copy(whole, path)
    shutil.copy(f"{whole}.identity", f"{path}.identity")
    yield str(path)


@pytest.mark.parametrize("change", CHANGES)
def test_a_schema_that_no_migration_made_is_refused_named_and_left_alone(path: str, change: str) -> None:
    sql, named = CHANGES[change]
    edit(path, sql)
    before = Path(path).read_bytes()
    with pytest.raises(SchemaMismatch) as refused:
        open_runtime(path).close()
    assert named in refused.value.message and refused.value.message.isprintable()
    assert refused.value.key == "schema_mismatch" and "snapshot" in refused.value.hint
    assert Path(path).read_bytes() == before


@pytest.mark.parametrize("backend", DISK_BACKENDS)
def test_every_backend_refuses_it(path: str, backend: str) -> None:
    edit(path, KEEPS)
    with pytest.raises(SchemaMismatch):
        open_runtime(path, backend).close()


def test_verify_and_doctor_on_the_command_line_say_what_is_wrong(
    path: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", os.path.dirname(path))
    edit(path, KEEPS)
    options = ["--store", path, "--socket", path + ".socket", "--profile", "standalone"]
    for word, code in (("verify", 9), ("doctor", 9)):
        assert main([*options, word]) == code
        told = capsys.readouterr()
        assert "trigger keep is not of the schema" in told.out + told.err, word


def test_what_is_slipped_into_an_open_store_is_found_and_never_run(path: str) -> None:
    with open_runtime(path) as memory:
        assert memory.verify_store().clean
        edit(path, KEEPS)
        (finding,) = memory.verify_store(pages=False).findings
        assert (finding.check, finding.subject) == ("schema", "trigger keep")
        lifecycle(memory, "delete_raw", "t1")
        assert not any(b"blue" in each.read_bytes() for each in files_of(path))
        with pytest.raises(SchemaMismatch):
            memory.create_snapshot()
    with pytest.raises(SchemaMismatch):
        open_runtime(path).close()


def test_the_digests_that_are_kept_are_those_of_the_migrations() -> None:
    assert digests() == schema.DIGESTS


def test_the_script_of_a_new_store_leaves_what_the_migrations_leave() -> None:
    known = migrate.available()
    made = [apsw.Connection(":memory:") for _ in range(2)]
    migrate.create(made[0], known, 7, "1")
    migrate.apply(made[1], known, 7, "1")
    assert schema.read(made[0]) == schema.read(made[1])
    tables = [row.name.decode() for row in schema.read(made[0]) if row.type == b"table"]
    kept = [{name: sorted(each.execute(f"SELECT * FROM {name}")) for name in tables} for each in made]
    assert kept[0] == kept[1] and len(kept[0]["schema_migration"]) == len(known)


RELEASED = (1, 2, 3, 4)
"""Schemas that stores may have been left with, of which one is kept."""


@pytest.mark.parametrize("number", RELEASED)
def test_an_upgraded_store_has_the_schema_of_a_fresh_one(tmp_path: Path, number: int) -> None:
    path = tmp_path / "old.db"
    shutil.copy(Path(__file__).parents[1] / "data" / f"schema_{number:04}.db", path)
    with open_runtime(path) as memory, store_of(memory).read() as tx:
        assert len(migrate.available()) in schema.numbers_of(schema.read(tx.connection))
        assert replay(memory) and found(memory, "lighthouse")


def test_no_connection_trusts_the_schema(path: str) -> None:
    """What SQLite itself says of the connections that a store opens."""
    with open_runtime(path) as memory:
        store = store_of(memory)
        with store.read() as tx, store.read(heavy=True) as other:
            for connection in (tx.connection, other.connection):
                check_hardened(connection)
        store.writer.apart(check_hardened)


def check_hardened(connection: apsw.Connection) -> None:
    for name, wanted in (("DEFENSIVE", 1), ("TRUSTED_SCHEMA", 0), ("ENABLE_TRIGGER", 0), ("ENABLE_VIEW", 0)):
        assert connection.config(getattr(apsw, f"SQLITE_DBCONFIG_{name}"), -1) == wanted, name
    assert connection.pragma("cell_size_check") == 1


@pytest.mark.parametrize("backend", DISK_BACKENDS)
def test_what_is_no_file_is_refused_and_not_waited_for(tmp_path: Path, backend: str) -> None:
    path = str(tmp_path / "other.db")
    os.mkfifo(path)
    with pytest.raises(StoreReadOnly, match="no regular file"):
        open_runtime(path, backend)
    os.unlink(path)
    os.mkdir(path)
    with pytest.raises(StoreReadOnly):
        open_runtime(path, backend)
