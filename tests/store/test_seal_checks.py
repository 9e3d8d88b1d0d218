"""Rows are compared with their seals, whatever was taken, added or changed, without holding either in memory."""

from __future__ import annotations

import gc
import tracemalloc

import apsw
import pytest

from beetle.store import seal_checks, snapshot_file
from beetle.store.engine.progress import Progress
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.seals import Sealer
from tests.store.conftest import open_runtime, store_of
from tests.store.make_schema_fixture import FIXTURE

MANY = 3_000
ROW_BYTES = 80
"""For each row, of memory: less than its seal, its name and a place in a table would take."""


def put_many(tx: WriteTransaction) -> None:
    for number in range(MANY):
        tx.run("INSERT INTO meta VALUES (?, 'a value')", f"key {number}")


def found(tx: WriteTransaction) -> list[str]:
    assert tx.sealer is not None
    return sorted(each.problem for each in seal_checks.broken(tx, tx.sealer, Progress()) if each.table == "meta")


def test_many_rows_are_compared_in_a_small_memory(path: str) -> None:
    with open_runtime(path) as memory:
        store = store_of(memory)
        store.write(put_many)
        assert store.write(found) == []
        gc.collect()
        tracemalloc.start()
        assert store.write(found) == []
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < MANY * ROW_BYTES


@pytest.mark.parametrize(
    ("sql", "problems"),
    [
        ("DELETE FROM meta WHERE key = 'key 7'", [seal_checks.REMOVED]),
        ("UPDATE meta SET value = 'another' WHERE key = 'key 7'", [seal_checks.CHANGED]),
        ("INSERT INTO meta VALUES ('mine', 'x')", [seal_checks.ADDED]),
        ("UPDATE meta SET key = 'mine' WHERE key = 'key 7'", [seal_checks.ADDED, seal_checks.REMOVED]),
        ("DELETE FROM row_seal WHERE row = (SELECT max(row) FROM row_seal WHERE of = 'meta')",
         [seal_checks.SUM_CHANGED, seal_checks.ADDED]),
        ("UPDATE row_seal SET row = x'00' WHERE row = (SELECT max(row) FROM row_seal WHERE of = 'meta')",
         [seal_checks.ADDED, seal_checks.REMOVED]),
    ],
)  # fmt: skip
def test_what_another_program_did_to_rows_and_seals_is_told(path: str, sql: str, problems: list[str]) -> None:
    with open_runtime(path) as memory:
        store_of(memory).write(put_many)
    other = apsw.Connection(path)
    other.execute(sql)
    other.close()
    with open_runtime(path) as memory:
        assert store_of(memory).write(found) == sorted(problems)


def test_a_store_of_before_there_were_seals_proves_nothing() -> None:
    with snapshot_file.reading(str(FIXTURE)) as tx:
        found = list(seal_checks.broken(tx, Sealer(b"k" * 32, b"w" * 32), Progress()))
    assert [(each.table, each.problem) for each in found] == [("row_seal", seal_checks.NO_SEALS)]
