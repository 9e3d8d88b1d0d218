"""The event log's chain: whatever is changed in it afterwards is found, and at the right row."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from beetle.domain.chain import chain_hash
from beetle.store.engine.transaction import Reading
from beetle.store.event_log import first_break
from tests.store.conftest import commit, lifecycle, open_runtime, ticking, turn, write_skill

COLUMNS = ("seq", "at", "space", "topic", "event", "operation", "principal", "subject", "hash")


@pytest.fixture
def log(tmp_path: Path) -> Iterator[apsw.Connection]:
    """A copy of a real store's database, open for tampering."""
    path = tmp_path / "store.db"
    with open_runtime(path, now=ticking()) as memory:
        commit(memory, turn("t1", "one"), turn("t2", "two"))
        for number in range(6):
            write_skill(memory, f"s{number}", "do it")
        lifecycle(memory, "mask", "t1")
        memory._opened.release()  # closing would log a row of its own, of no space
    shutil.copy(path, tmp_path / "copy.db")
    connection = apsw.Connection(str(tmp_path / "copy.db"))
    yield connection
    connection.close()


def broken(connection: apsw.Connection) -> int | None:
    return first_break(Reading(connection), chain_hash)[1]


def flipped(value: Any, position: int) -> Any:
    if isinstance(value, int):
        return value ^ (1 << position)
    data = bytearray(value.encode() if isinstance(value, str) else value)
    data[position] ^= 1
    return data.decode() if isinstance(value, str) else bytes(data)


def test_any_flipped_byte_of_any_row_is_found_at_that_row(log: apsw.Connection) -> None:
    assert broken(log) is None
    rows = list(log.execute("SELECT * FROM event_log ORDER BY seq"))
    assert len(rows) == 8
    tried = 0
    for row in rows:
        for column, value in zip(COLUMNS[1:], row[1:], strict=True):
            size = 63 if isinstance(value, int) else len(value)
            for position in range(size):
                log.execute("BEGIN")
                log.execute(f"UPDATE event_log SET {column} = ? WHERE seq = ?", (flipped(value, position), row[0]))
                assert broken(log) == row[0], (row[0], column, position)
                log.execute("ROLLBACK")
                tried += 1
    assert tried > 1000 and broken(log) is None


@pytest.mark.parametrize("seq", range(1, 8))
def test_a_removed_row_is_found_where_it_stood(log: apsw.Connection, seq: int) -> None:
    log.execute("DELETE FROM event_log WHERE seq = ?", (seq,))
    assert broken(log) == seq


def test_reordered_rows_are_found_at_the_first_of_them(log: apsw.Connection) -> None:
    log.execute("UPDATE event_log SET seq = -seq WHERE seq IN (3, 4)")
    log.execute("UPDATE event_log SET seq = 7 + seq WHERE seq < 0")
    assert broken(log) == 3


def test_a_row_put_in_between_and_a_value_of_another_type_are_found(log: apsw.Connection) -> None:
    log.execute("BEGIN")
    log.execute("UPDATE event_log SET space = NULL WHERE seq = 5")
    assert broken(log) == 5
    log.execute("ROLLBACK")
    log.execute("INSERT INTO event_log SELECT 9, at, space, topic, event, operation, principal, subject, hash "
                "FROM event_log WHERE seq = 8")  # fmt: skip
    assert broken(log) == 9


def test_verify_names_the_row(tmp_path: Path, log: apsw.Connection) -> None:
    log.execute("UPDATE event_log SET principal = 'someone else' WHERE seq = 6")
    log.close()
    with open_runtime(tmp_path / "copy.db") as memory:
        report = memory.verify_store()
        assert not report.clean
        assert [(f.check, f.subject) for f in report.findings] == [("event_log", "row 6")]
