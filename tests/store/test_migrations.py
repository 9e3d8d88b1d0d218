"""Opening: a fresh store, a store of another version, and files that are no store."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from beetle import MemoryRuntime
from beetle.contracts.errors import BeetleError, PrivacyDenied, StoreCorrupt
from beetle.domain.chain import chain_hash
from beetle.store import snapshot_file
from beetle.store.engine import migrate
from beetle.store.engine import store as engine_store
from beetle.store.engine.connection import APPLICATION_ID
from beetle.store.engine.progress import Progress
from tests.store.conftest import (
    DISK_BACKENDS,
    assert_clean,
    bytes_of,
    commit,
    files_of,
    found,
    lifecycle,
    open_runtime,
    replay,
    store_of,
    turn,
)
from tests.store.make_schema_fixture import FIXTURE, MIGRATION

WRITE_VERSION, SCHEMA_FORMAT = 18, 44
"""Where a header says by which rules the file is written, 1 or 2, and its rows, 1 to 4."""
RAW = {"SQLite format 3": 0}


def contents(path: str) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in files_of(path) if p.is_file() and not p.name.endswith((".lock", "-shm"))}


def refused(path: str, backend: str = "sqlite") -> BeetleError:
    with pytest.raises(BeetleError) as error:
        open_runtime(path, backend).close()
    return error.value


def edit(path: str, sql: str) -> None:
    connection = apsw.Connection(path)
    for _ in connection.execute(sql):
        pass
    connection.close()


@pytest.mark.parametrize("backend", [*DISK_BACKENDS, "in-memory"])
def test_a_fresh_store_has_every_migration_with_its_checksum(path: str, backend: str) -> None:
    with open_runtime(path, backend) as memory:
        known = migrate.available()
        assert known and memory.open_report.created
        assert memory.open_report.migrations_applied == tuple(each.name for each in known)
        with store_of(memory).read() as tx:
            ledger = list(tx.rows("SELECT number, name, sha256 FROM schema_migration ORDER BY number"))
            assert tx.value("PRAGMA application_id") == APPLICATION_ID
        assert ledger == [(m.number, m.name, hashlib.sha256(m.sql.encode()).hexdigest()) for m in known]
        assert_clean(memory)
    if backend != "in-memory":
        with open_runtime(path, backend) as memory:
            assert not memory.open_report.created and memory.open_report.migrations_applied == ()


@pytest.mark.parametrize("backend", DISK_BACKENDS)
@pytest.mark.parametrize(
    "change",
    [
        "INSERT INTO schema_migration VALUES (9999, '9999_later', 'ab', 1, '9.9')",
        "UPDATE schema_migration SET sha256 = 'ab' WHERE number = 1",
    ],
    ids=["newer", "altered"],
)
def test_a_schema_that_this_build_does_not_know_is_refused_and_left_as_it_is(
    path: str, backend: str, change: str
) -> None:
    with open_runtime(path, "sqlite") as memory:
        commit(memory, turn("t1", "kept"))
    edit(path, change)
    before = contents(path)
    assert refused(path, backend).key == "schema_mismatch"
    assert contents(path)["store.db"] == before["store.db"]


def test_a_refused_store_keeps_its_write_ahead_log(path: str) -> None:
    with open_runtime(path) as memory:
        commit(memory, turn("t1", "kept"))
        store_of(memory).write(lambda tx: tx.run("INSERT INTO schema_migration VALUES (9999, '9999_x', 'ab', 1, '9')"))
        crashed = Path(path).parent / "crashed" / "store.db"
        crashed.parent.mkdir()
        for name, data in contents(path).items():
            (crashed.parent / name).write_bytes(data)
    before = contents(os.fspath(crashed))
    assert before["store.db-wal"]
    assert refused(os.fspath(crashed)).key == "schema_mismatch"
    assert contents(os.fspath(crashed)) == before


def foreign(path: str, application: int = 0, mode: str = "delete") -> None:
    connection = apsw.Connection(path)
    connection.pragma("application_id", application)
    connection.pragma("journal_mode", mode)
    connection.execute("CREATE TABLE theirs (a)")
    connection.execute("INSERT INTO theirs VALUES ('precious')")
    connection.close()


@pytest.mark.parametrize("backend", DISK_BACKENDS)
@pytest.mark.parametrize(("application", "mode"), [(0, "delete"), (0, "wal"), (77, "delete"), (77, "wal")])
def test_another_programs_database_is_refused_and_left_as_it_is(
    path: str, backend: str, application: int, mode: str
) -> None:
    foreign(path, application, mode)
    before = contents(path)
    assert refused(path, backend).key == "schema_mismatch"
    assert contents(path) == before


@pytest.mark.parametrize("backend", DISK_BACKENDS)
@pytest.mark.parametrize("size", [1, 99, 100, 4095, 4096, 20_000])
def test_random_bytes_are_refused_and_left_as_they_are(path: str, backend: str, size: int) -> None:
    Path(path).write_bytes(hashlib.shake_256(b"noise").digest(size))
    before = contents(path)
    assert refused(path, backend).key == "store_corrupt"
    assert contents(path) == before


@pytest.mark.parametrize("backend", DISK_BACKENDS)
@pytest.mark.parametrize("left", [50, 100, 4096, 8192, -4096, -1])
def test_a_truncated_store_is_refused_and_left_as_it_is(path: str, backend: str, left: int) -> None:
    with open_runtime(path, "sqlite") as memory:
        commit(memory, turn("t1", "kept " * 2000))
    os.truncate(path, left if left > 0 else os.path.getsize(path) + left)
    before = contents(path)
    assert refused(path, backend).key == "store_corrupt"
    assert contents(path) == before


def wrote(path: str, at: int, data: bytes) -> None:
    with open(path, "r+b") as file:
        file.seek(at)
        file.write(data)


def test_a_header_of_a_format_that_sqlite_does_not_know_is_a_damaged_store(path: str) -> None:
    open_runtime(path).close()
    wrote(path, SCHEMA_FORMAT, b"\0\0\0\5")
    assert (error := refused(path)).key == "store_corrupt" and "does not know" in error.message
    with pytest.raises(StoreCorrupt, match="does not know"), snapshot_file.reading(path):
        pass


def test_a_header_of_a_format_that_sqlite_only_reads_is_a_damaged_store(path: str) -> None:
    open_runtime(path).close()
    wrote(path, WRITE_VERSION, b"\3")
    assert (error := refused(path)).key == "store_corrupt" and "only reads" in error.message
    with pytest.raises(StoreCorrupt, match="only reads"):
        snapshot_file.examine(path)


def test_a_copy_whose_index_cannot_be_opened_is_damaged(path: str) -> None:
    open_runtime(path).close()
    edit(path, "UPDATE recall_index_config SET v = 99 WHERE k = 'version'")
    progress = Progress()
    progress.plan(("pages", "event_log"))
    with pytest.raises(StoreCorrupt):
        snapshot_file.check(path, chain_hash, lambda: False, progress)


@pytest.mark.parametrize("backend", DISK_BACKENDS)
def test_a_directory_in_place_of_the_file_is_refused(path: str, backend: str) -> None:
    Path(path).mkdir()
    assert refused(path, backend).key == "store_read_only"
    assert not list(Path(path).iterdir())


@pytest.mark.parametrize("backend", DISK_BACKENDS)
def test_an_empty_file_becomes_a_store_since_a_crash_in_the_first_moment_leaves_one(path: str, backend: str) -> None:
    Path(path).touch()
    with open_runtime(path, backend) as memory:
        commit(memory, turn("t1", "first word"))
        assert found(memory, "first")


@pytest.mark.parametrize("backend", DISK_BACKENDS)
@pytest.mark.parametrize("beside", [".identity", ".snapshots"])
def test_an_empty_file_beside_what_a_store_has_made_is_a_store_that_was_lost(
    path: str, backend: str, beside: str
) -> None:
    with open_runtime(path, backend) as memory:
        commit(memory, turn("t1", "first word"))
        memory.create_snapshot()
    Path(path + "-wal").unlink(missing_ok=True)
    Path(path).write_bytes(b"")
    if beside == ".identity":
        shutil.rmtree(path + ".snapshots")
    else:
        Path(path + ".identity").unlink()
    # What an opening would sweep may be all that is left.
    for rest in (".before-c-0123456789abcdef", ".transfer-t-0123456789abcdef"):
        Path(path + rest).write_bytes(b"x")
    before = contents(path)
    error = refused(path, backend)
    assert error.key == "store_corrupt"
    assert path + beside in error.message
    assert "remove the empty file" in error.hint
    assert contents(path) == before
    Path(path).unlink()
    with open_runtime(path, backend) as memory:
        assert not found(memory, "first")


@pytest.mark.parametrize("missing", [True, False], ids=["missing", "empty"])
def test_an_empty_file_beside_a_write_ahead_log_is_damage(path: str, missing: bool) -> None:
    with open_runtime(path) as memory:
        commit(memory, turn("t1", "only in the log"))
        saved = contents(path)
    shutil.rmtree(Path(path).parent)
    Path(path).parent.mkdir()
    Path(path + "-wal").write_bytes(saved["store.db-wal"])
    if not missing:
        Path(path).touch()
    before = contents(path)
    assert refused(path).key == "store_corrupt"
    assert contents(path) == before


def test_a_migration_that_fails_half_way_leaves_nothing(path: str) -> None:
    with open_runtime(path) as memory:
        commit(memory, turn("t1", "kept"))
    sql = "CREATE TABLE half (a) STRICT; INSERT INTO no_such_table VALUES (1);"
    last = migrate.available()[-1].number
    bad = migrate.Migration(last + 1, f"{last + 1:04}_bad", sql, "ab")
    connection = apsw.Connection(path)
    before = list(connection.execute("SELECT * FROM sqlite_schema"))
    with pytest.raises(apsw.SQLError):
        migrate.migrate(connection, path, 1, "0", [*migrate.available(), bad])
    assert not connection.in_transaction
    assert list(connection.execute("SELECT * FROM sqlite_schema")) == before
    assert migrate.schema_number(connection) == last
    connection.close()


@pytest.mark.parametrize("backend", DISK_BACKENDS)
def test_a_store_moves_between_backends_with_all_it_holds(path: str, backend: str) -> None:
    for number, each in enumerate((backend, *DISK_BACKENDS, backend)):
        with open_runtime(path, each) as memory:
            commit(memory, turn(f"t{number}", f"word{number}"))
            assert all(found(memory, f"word{n}") for n in range(number + 1))
            assert_clean(memory)


FIXTURES = {1: FIXTURE} | {number: FIXTURE.with_name(f"schema_{number:04}.db") for number in (2, 3, 4)}


def test_every_older_schema_has_its_fixture() -> None:
    assert sorted(FIXTURES) == [each.number for each in migrate.available()][: len(FIXTURES)]
    assert {each.name for each in FIXTURE.parent.glob("schema_*.db")} == {each.name for each in FIXTURES.values()}


@pytest.mark.parametrize("schema", FIXTURES)
def test_an_older_schema_is_what_it_was_when_its_fixture_was_written(schema: int) -> None:
    now = {m.name: m.sha256 for m in migrate.available()}
    # Immutable: or SQLite would leave a log and its index beside the fixture.
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    connection = apsw.Connection(f"file:{FIXTURES[schema]}?immutable=1", flags=flags)
    written = dict(connection.execute("SELECT name, sha256 FROM schema_migration"))
    connection.close()
    assert len(written) == schema and MIGRATION in written
    assert written.items() <= now.items(), "a released migration was changed"


@pytest.mark.parametrize("backend", DISK_BACKENDS)
@pytest.mark.parametrize("schema", FIXTURES)
def test_a_store_of_an_older_schema_opens_verifies_recovers_and_recalls(path: str, backend: str, schema: int) -> None:
    assert FIXTURES[schema].stat().st_size < 450_000
    shutil.copy(FIXTURES[schema], path)
    with open_runtime(path, backend) as memory:
        assert memory.open_report.migrations_applied == tuple(m.name for m in migrate.available()[schema:])
        assert memory.recover().recovered
        assert_clean(memory)
        assert {each.turn_id: each.messages[0].state for each in replay(memory)} == {
            "t1": "live", "t2": "masked", "t3": "deleted", "t4": "live"
        }  # fmt: skip
        assert found(memory, "lighthouse") and not found(memory, "submarine") and not found(memory, "windmill")
        detail = memory.get_runtime_skill(name="tea")
        assert (detail.revision, len(detail.lineage)) == (2, 2) and found(memory, "kettle")
        if schema > 1:
            assert_governed(memory)
        lifecycle(memory, "unmask", "t2")
        assert found(memory, "submarine")
        lifecycle(memory, "delete_raw", "t1")
        # The store as it was before the migration has it, which the reports of erasures count, until it is pruned.
        assert memory.prune_snapshots(keep=0, replaced=True).replaced == 1
        assert b"lighthouse" not in bytes_of(path).lower()
        assert_clean(memory)


def kept_copies(path: str) -> list[Path]:
    return [each for each in files_of(path) if ".before-" in each.name]


@pytest.mark.parametrize("backend", DISK_BACKENDS)
def test_a_store_is_kept_as_it_was_before_a_migration(path: str, backend: str) -> None:
    shutil.copy(FIXTURES[4], path)
    with open_runtime(path, backend) as memory:
        (kept,) = kept_copies(path)
        assert kept.name.endswith(".before-m-0000000000000004") and kept.stat().st_mode & 0o777 == 0o600
        assert any(str(kept) in each for each in memory.open_report.findings)
        assert [each.path for each in memory.list_snapshots().replaced] == [str(kept)]
        report = lifecycle(memory, "delete_raw", "t1")
        assert report.replica_horizon is not None, "an erasure tells that a copy may hold the content"
    with open_runtime(path, backend) as memory:
        assert kept_copies(path) == [kept] and memory.open_report.findings == ()
    os.rename(kept, path)
    with open_runtime(path, backend) as memory:
        assert found(memory, "lighthouse")
        assert_clean(memory)


def test_without_room_a_store_is_migrated_and_tells_that_no_copy_was_kept(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(FIXTURES[4], path)
    monkeypatch.setattr(engine_store, "LOW_SPACE_BYTES", 2**60)
    with open_runtime(path) as memory:
        assert kept_copies(path) == []
        assert any("no copy was kept" in each for each in memory.open_report.findings)
        assert_clean(memory)


def test_a_newer_store_is_refused_with_the_way_back(path: str) -> None:
    shutil.copy(FIXTURES[4], path)
    with open_runtime(path) as memory:
        commit(memory, turn("t9", "written since"))
    edit(path, "INSERT INTO schema_migration VALUES (9999, '9999_later', 'ab', 1, '9.9')")
    error = refused(path)
    (kept,) = kept_copies(path)
    assert error.key == "schema_mismatch" and kept.name in error.hint
    command = error.hint[error.hint.index("cd ") :]
    assert subprocess.run(["sh", "-c", command], check=False).returncode == 0
    with open_runtime(path) as memory:
        assert found(memory, "lighthouse") and not found(memory, "since")
        assert_clean(memory)


def test_a_new_store_that_a_later_build_has_changed_is_called_newer(path: str) -> None:
    open_runtime(path).close()
    edit(path, "INSERT INTO schema_migration VALUES (9999, '9999_later', 'ab', 1, '9.9')")
    edit(path, "ALTER TABLE space ADD COLUMN later INTEGER")
    error = refused(path)
    assert error.key == "schema_mismatch" and "newer (migration 9999_later)" in error.message


def test_a_way_back_that_does_not_fit_into_a_hint_is_on_a_page(path: str) -> None:
    folder = Path(path).parent / ("x" * 160) / ("y" * 160)
    folder.mkdir(parents=True)
    long = str(folder / "store.db")
    shutil.copy(FIXTURES[4], long)
    open_runtime(long).close()
    edit(long, "INSERT INTO schema_migration VALUES (9999, '9999_later', 'ab', 1, '9.9')")
    assert "beetle help install" in refused(long).hint and "mv " not in refused(long).hint


def killed_at(path: str, step: int) -> int:
    """Open the store in a process that is killed at a step: odd ones before a migration commits, even ones behind."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    done = 0
    real = migrate.transaction

    @contextlib.contextmanager
    def dying(connection: apsw.Connection) -> Iterator[None]:
        nonlocal done
        done += 1
        with real(connection):
            yield
            if done == step:
                os.kill(os.getpid(), signal.SIGKILL)
        done += 1
        if done == step:
            os.kill(os.getpid(), signal.SIGKILL)

    migrate.transaction = dying
    with contextlib.suppress(BaseException):
        open_runtime(path).close()
    os._exit(0)


def test_a_process_that_is_killed_while_it_migrates_leaves_the_old_schema_or_the_next(path: str) -> None:
    last = migrate.available()[-1].number
    shutil.copy(FIXTURES[4], path)
    for step in range(1, 2 * (last - 4) + 1):
        os.unlink(path)
        for each in files_of(path):
            each.unlink()
        shutil.copy(FIXTURES[4], path)
        assert killed_at(path, step) == -signal.SIGKILL, step
        connection = apsw.Connection(path)
        assert migrate.schema_number(connection) == 4 + step // 2
        assert migrate.pending(connection, path, migrate.available()) == migrate.available()[4 + step // 2 :]
        connection.close()
        if step % 8 == 1:
            with open_runtime(path) as memory:
                assert found(memory, "lighthouse")
                assert_clean(memory)


BETWEEN = range(max(FIXTURES) + 1, migrate.available()[-1].number)


@pytest.mark.parametrize("schema", BETWEEN)
def test_a_store_that_stopped_at_any_schema_is_migrated_from_there(path: str, schema: int) -> None:
    """Of a schema without a fixture: the newest fixture's rows, as the migrations up to that schema leave them."""
    shutil.copy(FIXTURES[max(FIXTURES)], path)
    connection = apsw.Connection(path)
    migrate.apply(connection, migrate.available()[max(FIXTURES) : schema], 1, "0")
    connection.close()
    with open_runtime(path) as memory:
        assert memory.open_report.migrations_applied == tuple(m.name for m in migrate.available()[schema:])
        assert kept_copies(path)[0].name.endswith(f".before-m-{schema:016}")
        assert_clean(memory)
        assert_governed(memory)
        assert found(memory, "lighthouse") and not found(memory, "windmill")
        commit(memory, turn("t9", "written after the migration"))
        assert found(memory, "written")


def assert_governed(memory: MemoryRuntime) -> None:
    """The facts, policies and private material that `make_schema_fixture` has written; the key file is not there."""
    facts = memory.list_long_term(state="all", view="raw_owner").records
    assert sorted((each.topic or "", each.state, each.revision) for each in facts) == [
        ("", "deleted", 2), ("boat", "current", 1), ("harbour", "stale", 2), ("lamp", "current", 2)
    ]  # fmt: skip
    assert found(memory, "Fresnel") and not found(memory, "sail")
    assert [each.action for each in memory.long_term_policy(action="list").policies] == ["suppress"]
    assert [each.reason for each in memory.governance_report().deferred.waiting] == ["needs_assertion"]
    with pytest.raises(PrivacyDenied):
        memory.list_private()
