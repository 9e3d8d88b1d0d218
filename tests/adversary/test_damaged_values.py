"""Any value may be damaged: every operation answers, or says what is damaged, and `store.verify` answers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import apsw
import pytest

from beetle.contracts.errors import BeetleError, IntegrityViolation
from tests.building import Plain, candidate, candidates, message, step, talk, turn
from tests.built import ROOT
from tests.cases import CASES, PREPARATIONS, WORD, Prepared
from tests.conformance.doors import InProcess

OWNER, PROFILE = "owner-one", "dev-full"
WRONG = {"INTEGER": "'abc'", "TEXT": "CAST(x'ff41fe' AS TEXT)", "BLOB": "'abc'", "REAL": "'abc'", "ANY": "x'00'"}
"""For each declared type a value that it cannot have."""
LEFT_OUT = [
    ("chunk", "created_at"), ("thought", "at"), ("thought", "digest"), ("fact_body", "content"),
    ("fact_revision", "valid_from"), ("skill", "updated_at"), ("skill_revision", "citations"),
    ("conversation_speaker", "speaker"),
]  # fmt: skip
"""Columns of records that recall leaves out."""
MET_BY_WRITES = [
    ("fact", "topic_mac"), ("skill", "created_at"), ("skill_revision", "at"), ("chain", "length"), ("turn", "digest"),
    ("registry_version", "bytes"), ("chain_agent_key", "added_at"), ("proposal", "created_at"), ("row_seal", "seal"),
    ("candidate", "content_mac"), ("chunk", "tokens"), ("message", "turn"),
]  # fmt: skip
"""Columns of rows that writes read or change."""
TABLES = re.findall(r"CREATE TABLE (\w+)", (ROOT / "beetle/store/migrations/schema.sql").read_text())
SPOKEN = message("sp", f"the {WORD} speaks") | {"actor": {"speaker": "Mara"}}
TOGETHER = {"text": f"the {WORD} is kept", "said": f"the {WORD} is kept"}
Asked = list[tuple[str, Plain]]


class Whole:
    """A store with rows in most tables, as the bytes of its files, and every operation that there is a case for."""

    def __init__(self, folder: Path) -> None:
        door = InProcess(OWNER, folder / "b.db", PROFILE)
        prepared = Prepared(door.prepare)
        for name in PREPARATIONS:
            prepared[name]
        door.call(
            "transcript.commit", talk(*(turn(f"s{n}", f"the {WORD} says {n}") for n in range(9)), turn("sp", SPOKEN))
        )
        door.call("memory.write", candidates(candidate("w", f"{WORD} waits", authority="assistant_claimed")))
        door.call("memory.remember", TOGETHER)
        cases = [(each, each.op, each.request(prepared)) for each in CASES if each.op != "memory.close"]
        self.reads: Asked = [(op, args) for each, op, args in cases if each.row.effect == "read"]
        self.writes: Asked = [(op, args) for each, op, args in cases if each.row.effect == "write"]
        self.reads += [("memory.recall", {"query": WORD}), ("store.verify", {})]
        door.close()
        self.files = {name: (folder / name).read_bytes() for name in ("b.db", "b.db.identity")}

    @contextmanager
    def damaged(self, folder: Path, *places: tuple[str, str, str]) -> Iterator[tuple[InProcess, bool]]:
        """The store with a value in a column of every row of a table, and whether each has such rows."""
        for name, content in self.files.items():
            (folder / name).write_bytes(content)
            (folder / name).chmod(0o600)
        there = all([put_damaged(folder / "b.db", *each) for each in places])
        door = InProcess(OWNER, folder / "b.db", PROFILE)
        try:
            yield door, there
        finally:
            door.close()


def put_damaged(file: Path, table: str, column: str, value: str) -> bool:
    """Put a value where SQLite would not take it, as a flipped bit of a record does."""
    connection = apsw.Connection(str(file))
    (sql,) = next(connection.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (table,)))
    version = connection.pragma("schema_version")
    changed = 0
    for number, text in enumerate((_loose(sql), sql), version + 1):
        connection.pragma("writable_schema", True)
        connection.execute("UPDATE sqlite_schema SET sql = ? WHERE name = ?", (text, table))
        connection.pragma("schema_version", number)
        connection.close()
        connection = apsw.Connection(str(file))
        if text != sql:
            connection.execute(f'UPDATE OR IGNORE "{table}" SET "{column}" = {value}')
            changed = connection.changes()
    connection.close()
    return changed > 0


def _loose(sql: str) -> str:
    """A table's definition without what it demands of values."""
    loose = re.sub(r"\)\s*STRICT\s*(,\s*WITHOUT ROWID)?\s*$", lambda m: ")" + ("WITHOUT ROWID" * bool(m[1])), sql)
    loose = re.sub(r"CHECK \((?:[^()]|\([^()]*\))*\)", "", loose).replace("NOT NULL", "")
    loose = re.sub(r"(\w+\s+)INTEGER PRIMARY KEY", r"\1@", loose)
    loose = re.sub(r",\s*\)", ")", loose)
    return re.sub(r"\b(INTEGER|TEXT|REAL|ANY)\b", "BLOB", loose).replace("@", "INTEGER PRIMARY KEY")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    return Whole(tmp_path_factory.mktemp("whole"))


def columns_of(whole: Whole, folder: Path, table: str) -> dict[str, str]:
    """A table's columns with their types, but for a key that can be nothing but an integer."""
    file = folder / "columns.db"
    file.write_bytes(whole.files["b.db"])
    connection = apsw.Connection(str(file))
    rows = connection.execute("SELECT name, type, pk FROM pragma_table_info(?)", (table,)).fetchall()
    connection.close()
    return {str(name): str(kind) for name, kind, pk in rows if not (pk and kind == "INTEGER")}


def defects(door: InProcess, asked: Asked) -> set[str]:
    """The operations that answered with a defect of ours."""
    found: set[str] = set()
    for op, args in asked:
        try:
            door.call(op, args)
        except BeetleError as error:
            if error.key == "internal":
                found.add(op)
    return found


def test_damaged_records_are_left_out_of_recall_and_found_by_verify(whole: Whole, tmp_path: Path) -> None:
    places = [(table, column, WRONG[columns_of(whole, tmp_path, table)[column]]) for table, column in LEFT_OUT]
    with whole.damaged(tmp_path, *places) as (door, there):
        assert there
        assert {each["plane"] for each in door.call("memory.recall", {"query": WORD})["hits"]} == {"evidence"}
        assert defects(door, whole.reads) == set()
        assert not door.call("store.verify", {})["clean"]


@pytest.mark.parametrize("value", [2**63 - 1, -(2**63), "abc"])
def test_writes_go_on_beside_a_number_that_nothing_can_count_on_from(
    whole: Whole, tmp_path: Path, value: int | str
) -> None:
    said = f"'{value}'" if isinstance(value, str) else str(value)
    with whole.damaged(tmp_path, ("chunk", "revision", said)) as (door, there):
        assert there
        made = door.call("chunk.create", {"content": f"the {WORD} is new", "conversation_id": WORD})["chunk"]
        assert door.call("chunk.get", {"id": made["id"]})["chunk"]["content"] == made["content"]
        assert not door.call("store.verify", {})["clean"]


def test_writes_say_what_is_damaged(whole: Whole, tmp_path: Path) -> None:
    """In what they read in their transaction, before it and by what they change."""
    places = [(table, column, WRONG[columns_of(whole, tmp_path, table)[column]]) for table, column in MET_BY_WRITES]
    with whole.damaged(tmp_path, *places) as (door, there):
        assert there
        assert defects(door, whole.writes) == set()
        with pytest.raises(IntegrityViolation):
            door.call("skill.set_enabled", dict(whole.writes)["skill.set_enabled"])
        assert not door.call("store.verify", {})["clean"]


@pytest.mark.parametrize("value", ["'abc'", "9223372036854775807"])
def test_damaged_sums_of_seals_are_told_by_a_store_without_its_identity(
    whole: Whole, tmp_path: Path, value: str
) -> None:
    """It cannot tell whether they were sealed so."""
    with whole.damaged(tmp_path, ("table_seal", "rows", value)):
        pass
    (tmp_path / "b.db.identity").unlink()
    door = InProcess(OWNER, tmp_path / "b.db", PROFILE)
    with pytest.raises(IntegrityViolation, match="table_seal"):
        door.call("chunk.create", {"content": "new", "conversation_id": WORD})
    assert defects(door, [*whole.reads, *whole.writes]) == set()
    door.close()


def test_nothing_is_chained_to_an_event_that_cannot_be_read(whole: Whole, tmp_path: Path) -> None:
    with whole.damaged(tmp_path, ("event_log", "hash", "'abc'")) as (door, _):
        with pytest.raises(IntegrityViolation, match="event log"):
            door.call("memory.remember", TOGETHER)
        assert defects(door, [("memory.recover", {}), ("store.verify", {}), *whole.writes]) == set()


def test_what_recovery_cannot_compare_with_a_damaged_table_stays(whole: Whole, tmp_path: Path) -> None:
    """The root pages of two tables have changed places: the messages of ingested events have no readable turns."""
    for name, content in whole.files.items():
        (tmp_path / name).write_bytes(content)
        (tmp_path / name).chmod(0o600)
    file = tmp_path / "b.db"
    named = "SELECT message, event_id FROM event WHERE event_id <> ''"
    connection = apsw.Connection(str(file))
    before = connection.execute(named).fetchall()
    size = connection.pragma("page_size")
    root = "SELECT rootpage FROM sqlite_schema WHERE name IN ('turn', 'event_log')"
    first, second = (slice((page - 1) * size, page * size) for (page,) in connection.execute(root))
    connection.close()
    pages = bytearray(file.read_bytes())
    pages[first], pages[second] = pages[second], pages[first]
    file.write_bytes(pages)
    door = InProcess(OWNER, file, PROFILE)
    assert not door.call("store.verify", {})["clean"]
    with suppress(BeetleError):
        door.call("memory.recover", {})
    assert defects(door, [("memory.recover", {}), ("store.verify", {}), ("transcript.repair_safe", {})]) == set()
    door.close()
    connection = apsw.Connection(str(file))
    assert connection.execute(named).fetchall() == before != []
    connection.close()


@pytest.mark.parametrize("value", ["-9223372036854775808", "9223372036854775807", "'soon'", "x'00'"])
def test_an_erasure_is_told_beside_damaged_marks_of_a_replica(whole: Whole, tmp_path: Path, value: str) -> None:
    """As held by the replica for longer than anybody can say, until it has forgotten."""
    with whole.damaged(tmp_path):
        pass
    connection = apsw.Connection(str(tmp_path / "b.db"))
    connection.execute(f"INSERT INTO meta VALUES ('replica_keeps_until', {value}), ('replica_targets', '')")
    connection.close()
    door = InProcess(OWNER, tmp_path / "b.db", PROFILE)
    done = door.call("transcript.lifecycle", step("delete_raw", "s1"))
    assert (done["erasure"], done["replicated_until"]) == ("done", "9999-12-31T23:59:59.999999Z")
    assert defects(door, [("replication.status", {})]) == set()
    door.close()


@pytest.mark.slow
@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("null", [False, True], ids=["other", "null"])
def test_no_value_of_any_column_is_met_with_a_defect(whole: Whole, tmp_path: Path, table: str, null: bool) -> None:
    found: dict[str, set[str]] = {}
    for column, kind in columns_of(whole, tmp_path, table).items():
        try:
            with whole.damaged(tmp_path, (table, column, "NULL" if null else WRONG[kind])) as (door, there):
                if there and (failed := defects(door, whole.reads) | defects(door, whole.writes)):
                    found[column] = failed
        except BeetleError as error:
            assert error.key in ("store_corrupt", "schema_mismatch", "integrity_violation"), column
    assert found == {}
