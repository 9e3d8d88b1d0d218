"""A recall index that a failing disk or another program damaged: nothing is told to be erased that is not, verify names
the damage, recover mends it, and no commit is lost."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import apsw
import pytest

from beetle import MemoryRuntime
from beetle.contracts.errors import IntegrityViolation, StoreCorrupt
from beetle.open import UNFILLED
from beetle.store import recover
from tests.governance.judging import candidate
from tests.store.conftest import (
    CONVERSATION,
    assert_clean,
    bytes_of,
    commit,
    delete_skill,
    found,
    lifecycle,
    open_runtime,
    store_of,
    turn,
    write_skill,
)

SECRETS = ("zqtellerqz", "zqwrenchqz", "zqfactorqz", "zqchunkerqz", "zqthinkerqz")
TURNS = 60


class Refs:
    fact = chunk = ""


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a record of each plane, all in the index."""
    path = tmp_path_factory.mktemp("kept") / "b.db"
    with open_runtime(path) as memory:
        said = [turn(f"t{number}", f"the lamp of number{number} burns, lorem ipsum dolor") for number in range(TURNS)]
        commit(memory, *said, turn("odd", f"the {SECRETS[0]} is mine"))
        write_skill(memory, "tea", f"turn the {SECRETS[1]}")
        one = candidate("c", f"the {SECRETS[2]} is known", topic="work")
        Refs.fact = memory.write(kind="candidates", candidates=[one]).outcomes[0].ref or ""
        Refs.chunk = memory.create_chunk(content=f"the {SECRETS[3]} is kept", conversation_id="c").chunk.id
        memory.append_thought(chain_key="plan", thought_type="Idea", content=f"the {SECRETS[4]} is thought")
        store_of(memory).write(lambda tx: tx.write_index())
    return path


@pytest.fixture
def path(kept: Path, tmp_path: Path) -> Path:
    for end in ("", ".identity"):
        shutil.copy(f"{kept}{end}", f"{tmp_path / 'b.db'}{end}")
    return tmp_path / "b.db"


def damage(path: Path, *statements: str) -> None:
    connection = apsw.Connection(str(path))
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
    for each in statements:
        connection.execute(each)
    connection.close()


def problems(memory: MemoryRuntime) -> set[tuple[str, str]]:
    return {(each.check, each.problem) for each in memory.verify_store().findings}


ERASURES: tuple[Callable[[MemoryRuntime], Any], ...] = (
    lambda memory: lifecycle(memory, "delete_raw", "odd"),
    lambda memory: delete_skill(memory, "tea"),
    lambda memory: memory.mutate_long_term(action="delete", ref=Refs.fact),
    lambda memory: memory.delete_chunk(id=Refs.chunk, permanent=True),
    lambda memory: memory.thought_lifecycle(chain_key="plan", action="erase", indexes=(0,), reason="asked"),
)
ODD_ROW = "DELETE FROM recall_index_docsize WHERE id & 15 OR id = (SELECT max(message) << 4 FROM message)"
MISSING = "is missing from the index"
UNFOUND = "does not find every term that it has"


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("DELETE FROM recall_index_idx", UNFOUND),
        ("UPDATE recall_index_idx SET pgno = NULL", UNFOUND),
        ("DELETE FROM recall_index_docsize", MISSING),
        (ODD_ROW, MISSING),
    ],
)
def test_what_a_damaged_index_holds_is_not_told_to_be_erased(path: Path, statement: str, problem: str) -> None:
    damage(path, statement)
    refused: list[tuple[str, Callable[[MemoryRuntime], Any]]] = []
    with open_runtime(path) as memory:
        assert ("recall_index", problem) in problems(memory)
        for secret, erase in zip(SECRETS, ERASURES, strict=True):
            try:
                erase(memory)
            except IntegrityViolation:
                refused.append((secret, erase))
            else:
                assert secret not in terms(path)
        assert refused
        assert memory.recover().recovered
        assert_clean(memory)
        for secret, erase in refused:
            assert found(memory, secret)
            erase(memory)
        assert memory.recover().recovered
        assert_clean(memory)
    for secret in SECRETS:
        assert_erased(path, secret)


def terms(path: Path) -> set[str]:
    """What stands on the index's pages."""
    connection = apsw.Connection(str(path))
    connection.execute("CREATE VIRTUAL TABLE temp.term USING fts5vocab(main, recall_index, 'row')")
    held = {str(term) for (term,) in connection.execute("SELECT term FROM temp.term")}
    connection.close()
    return held


def assert_erased(path: Path, secret: str) -> None:
    # FTS5 writes of a term what the one before it does not begin with.
    assert secret[2:-2].encode() not in bytes_of(path)


def test_a_row_whose_terms_alone_are_left_is_put_back_once(path: Path) -> None:
    damage(path, ODD_ROW)
    with open_runtime(path) as memory:
        memory.repair_transcript_safe(conversation=CONVERSATION)
        lifecycle(memory, "delete_raw", "odd")
        memory.recover()
        assert_clean(memory)
    assert_erased(path, SECRETS[0])


def test_a_rebuild_that_was_cut_short_keeps_nothing_from_being_erased(path: Path) -> None:
    with open_runtime(path) as memory:
        store_of(memory).write(recover.empty_index, grows=False)
        for erase in ERASURES:
            erase(memory)
        assert memory.recover().recovered
        assert_clean(memory)


def test_an_opening_says_that_the_index_is_not_filled_and_a_job_fills_it(path: Path) -> None:
    with open_runtime(path) as memory:
        store_of(memory).write(recover.empty_index, grows=False)
        assert not found(memory, "number7")
    with MemoryRuntime.open(str(path), profile="dev-full") as memory:
        assert UNFILLED in memory.open_report.findings
    with open_runtime(path) as memory:
        assert memory.run_job("optimize", wait=True).job.last_result == "success"
    with MemoryRuntime.open(str(path), profile="dev-full") as memory:
        assert UNFILLED not in memory.open_report.findings
    with open_runtime(path) as memory:
        assert found(memory, "number7")
        assert_clean(memory)


def test_the_job_fills_no_index_beside_another_long_task(path: Path) -> None:
    with open_runtime(path) as memory:
        store_of(memory).write(recover.empty_index, grows=False)
        with memory._opened._opened.dispatcher.shared.lifecycle.alone("memory.recover"):
            job = memory.run_job("optimize", wait=True).job
        assert (job.last_result, job.error_count) == ("failed", 1)
        assert not found(memory, "number7")
        assert memory.run_job("optimize", wait=True).job.last_result == "success"
        assert found(memory, "number7")


@pytest.mark.parametrize("table", ["message", "turn"])
def test_a_recovery_does_not_count_up_to_a_damaged_number(path: Path, table: str) -> None:
    for each in ("message", "body") if table == "message" else ("turn",):
        damage(path, f"UPDATE {each} SET {table} = 1 << 58 WHERE {table} = (SELECT max({table}) FROM {each})")
    with open_runtime(path) as memory:
        assert {each.step for each in memory.recover().steps if each.outcome == "failed"} <= {"transcripts"}
        assert found(memory, SECRETS[1])


@pytest.mark.parametrize("number", ["9223372036854775807", "1 << 59", "(1 << 59) - 1", "-3"])
def test_a_message_whose_number_no_message_has_is_left_out_and_named(path: Path, number: str) -> None:
    for each in ("message", "body"):
        damage(path, f"UPDATE {each} SET message = {number} WHERE message = (SELECT max(message) FROM {each})")
    with open_runtime(path) as memory:
        assert found(memory, SECRETS[1]) and found(memory, "number7")
        assert ("seals", "has a number that no row has") in problems(memory)
        commit(memory, turn("more", "said behind the damage"))
        assert found(memory, "behind")
        assert {each.step for each in memory.recover().steps if each.outcome == "failed"} <= {"transcripts"}
        report = memory.repair_store()
        assert {each.table for each in report.tables} == {"message", "body"}
        assert found(memory, "behind") and found(memory, "number7")
        assert ("seals", "has a number that no row has") not in problems(memory)


def test_a_message_beside_a_content_whose_message_is_lost_is_taken(path: Path) -> None:
    with open_runtime(path) as memory:
        commit(memory, turn("tail", "said while the others were in"))
    damage(path, "UPDATE message SET message = 1 << 60 WHERE message = (SELECT max(message) FROM message)")
    with open_runtime(path) as memory:
        commit(memory, turn("more", "said behind the damage"))
        assert found(memory, "behind")


@pytest.mark.parametrize("said", ["'abc'", "x'ff'", "9223372036854775807", "-5", "1.5", "NULL"])
def test_how_far_the_index_is_says_nothing_where_that_is_damaged(path: Path, said: str) -> None:
    with open_runtime(path) as memory:
        commit(memory, turn("tail", "said while the others were in"))
    _unchecked(path, "index_tail", f"UPDATE index_tail SET indexed_to = {said}")
    with open_runtime(path) as memory:
        assert found(memory, "number7") and found(memory, "while")
        assert ("recall_index", "does not say how far the index is") in problems(memory)
        commit(memory, turn("more", "said behind the damage"))
        assert found(memory, "number7") and found(memory, "while") and found(memory, "behind")
        assert memory.recover().recovered
        assert found(memory, "number7") and found(memory, "while") and found(memory, "behind")
        assert_clean(memory)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE recall_index_config SET v = 0",
        "DELETE FROM recall_index_config",
        "UPDATE recall_index_data SET block = x'' WHERE id = 10",
        "UPDATE recall_index_data SET block = NULL WHERE id = 10",
        "UPDATE recall_index_data SET block = x'' WHERE id = 1",
    ],
)
def test_an_index_that_cannot_be_read_is_a_damaged_store_until_a_recovery(path: Path, statement: str) -> None:
    damage(path, statement)
    with open_runtime(path) as memory:
        commit(memory, turn("more", "said behind the damage"))
        for ask in (*ERASURES, lambda memory: memory.recall("number7"), lambda memory: memory.admin_compact()):
            with suppress(StoreCorrupt, IntegrityViolation):
                ask(memory)
        with suppress(StoreCorrupt):
            assert not memory.verify_store().clean
        assert memory.recover().recovered
        assert_clean(memory)
        assert found(memory, "number7") and found(memory, "behind")
        commit(memory, *(turn(f"last{each}", f"said later {each}") for each in range(130)))
        lifecycle(memory, "delete_raw", "t7")
        assert not found(memory, "number7") and found(memory, "later")
        assert_clean(memory)


@pytest.mark.parametrize("row", ["9223372036854775807", "-16", "-9223372036854775808", "1 << 40"])
def test_a_row_of_no_record_is_found_by_nobody_and_taken_out(path: Path, row: str) -> None:
    values = f"({row}, 'number7', '', '', 's1 c1 p0 vshared')"
    damage(path, f"INSERT INTO recall_index (rowid, text, names, time, scope) VALUES {values}")
    with open_runtime(path) as memory:
        assert found(memory, "number7") and memory.recall("number7", since="2020-01-01T00:00:00Z")
        memory.forget(query="number7 nowhere", dry_run=True)
        assert not memory.verify_store().clean
        assert memory.recover().recovered
        assert_clean(memory)
        assert found(memory, "number7")


def _unchecked(path: Path, table: str, statement: str) -> None:
    """As `damage`, in a table whose columns take anything meanwhile."""
    connection = apsw.Connection(str(path))
    made = connection.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (table,)).get
    version = connection.pragma("schema_version")
    for sql, number in ((made.replace(") STRICT", ")").replace("INTEGER NOT NULL", ""), version + 1), (made, version)):
        connection.pragma("writable_schema", True)
        connection.execute("UPDATE sqlite_schema SET sql = ? WHERE name = ?", (sql, table))
        connection.pragma("schema_version", number)
        connection.close()
        if number > version:
            damage(path, statement)
        connection = apsw.Connection(str(path))
    connection.close()
