"""A column that holds JSON may be edited or flip a bit: one damaged record, named, and every other answer goes on."""

from __future__ import annotations

import re
from pathlib import Path

import apsw
import pytest

from beetle.contracts.errors import BeetleError, IntegrityViolation
from beetle.open import Opened, open_store
from beetle.store.columns import COLUMNS
from tests.adversary.test_damaged_text import READS, RECOVER, WORDS, call
from tests.building import Plain, candidate, candidates, message, registry, skill, step, talk, turn, write
from tests.conformance.doors import PROFILE

DAMAGE = ("", "[1", "{}", "[]", "[null]", "null", "7", '{"summary": 7}', "[" * 5000)
TOOL = {
    "tool_id": "kettle", "title": "Kettle", "summary": "boils", "schema_fingerprint": "s1",
    "permission_tags": ["home"], "risk_tags": ["heat"],
}  # fmt: skip
MORE: list[tuple[str, Plain]] = [
    ("tool_registry.list", {}), ("tool_registry.get", {"registry_id": "home"}), ("governance.list", {}),
    ("skill_registry.list", {}), ("skill_registry.search", {"tags_any": ["a"]}),
    ("skill_registry.read", {"skill_id": "tea"}),
    ("device.list", {}), ("evolve.list", {}), ("console.overview", {}), ("memory.inspect", {}),
]  # fmt: skip


def prepare(opened: Opened) -> None:
    call(opened, "transcript.commit", talk(turn("t1", message("m1", WORDS)), turn("t2", message("m2", "it is blue"))))
    known = candidate("c1", WORDS, topic="key", evidence_refs=["evidence:local/talk/t1"])
    waits = candidate("c2", "sings", topic="song", authority="assistant_claimed")
    call(opened, "memory.write", candidates(known, waits))
    (fact,) = call(opened, "long_term.list", {})["records"]
    change = {"action": "correct", "ref": fact["ref"], "keywords": ["hook"], "reason": "more words"}
    call(opened, "long_term.mutate", change)
    call(opened, "memory.write", write(skill("tea", citations=["evidence:local/talk/t1"])))
    call(opened, "tool_registry.upsert", registry("home", TOOL))
    head = "name: Tea\ndescription: d\ntags: [a]\ntriggers: [b]\nwarnings: [c]"
    call(opened, "skill_registry.upload", {"agent_id": "agent-main", "content": f"---\n{head}\n---\nboil it"})


def failures(opened: Opened, *asked: tuple[str, Plain]) -> dict[str, str]:
    failed: dict[str, str] = {}
    for op, args in asked:
        try:
            call(opened, op, args)
        except BeetleError as error:
            if error.key in ("internal", "store_corrupt"):
                failed[op] = error.key
    return failed


@pytest.mark.parametrize("text", DAMAGE, ids=range(len(DAMAGE)))
def test_every_answer_goes_on_and_the_record_is_named(tmp_path: Path, text: str) -> None:
    path = str(tmp_path / "store.db")
    opened = open_store(path, PROFILE)
    prepare(opened)
    opened.store.close()
    connection = apsw.Connection(path)
    there: set[str] = set()
    for each in COLUMNS:
        connection.execute(f"UPDATE {each.table} SET {each.column} = ?", (text,))
        if connection.changes():
            there.add(each.check)
    connection.close()
    assert there >= {"long_term", "procedural", "candidates", "tool_registries", "skill_registry"}
    opened = open_store(path, PROFILE)
    assert failures(opened, *READS, *MORE) == {}
    found = {
        each["check"] for each in call(opened, "store.verify", {})["findings"] if "cannot be read" in each["problem"]
    }
    assert found == (set() if text == "[]" else there)
    erase = ("transcript.lifecycle", step("delete_raw", "t1"))
    assert failures(opened, RECOVER, ("governance.list", {}), erase, *READS) == {}
    assert "long_term" not in {each["check"] for each in call(opened, "store.verify", {})["findings"]}
    opened.store.close()


def test_what_the_index_may_hold_of_damaged_keywords_is_erased_by_recovery(tmp_path: Path) -> None:
    path = str(tmp_path / "store.db")
    opened = open_store(path, PROFILE)
    prepare(opened)
    opened.store.close()
    connection = apsw.Connection(path)
    connection.execute("UPDATE fact_body SET keywords = '[\"hoo'")
    connection.close()
    opened = open_store(path, PROFILE)
    (fact,) = call(opened, "long_term.list", {})["records"]
    forget = {"action": "delete", "ref": fact["ref"], "reason": "asked for"}
    with pytest.raises(IntegrityViolation, match="keywords"):
        call(opened, "long_term.mutate", forget)
    call(opened, *RECOVER)
    assert call(opened, "store.verify", {})["clean"]
    call(opened, "long_term.mutate", forget)
    assert call(opened, "store.verify", {})["clean"]
    opened.store.close()
    assert b"hook" not in Path(path).read_bytes()


def test_an_altered_fact_is_left_out_and_named(tmp_path: Path) -> None:
    path = str(tmp_path / "store.db")
    opened = open_store(path, PROFILE)
    prepare(opened)
    asked = {"query": "spare key hangs", "planes": ["long_term"]}
    assert call(opened, "memory.recall", asked)["hits"]
    opened.store.close()
    connection = apsw.Connection(path)
    connection.execute("UPDATE fact_body SET content = replace(content, 'key', 'kez')")
    connection.close()
    opened = open_store(path, PROFILE)
    assert call(opened, "memory.recall", asked)["hits"] == []
    block = call(
        opened, "memory.project", {"user_query": "spare key", "system_max_len": 2000, "recent_messages_limit": 0}
    )
    assert "kez" not in block["system_memory_block"]
    found = call(opened, "store.verify", {})["findings"]
    assert any(each["check"] == "long_term" and "not what was written" in each["problem"] for each in found)
    opened.store.close()


def make_null(path: str, table: str, column: str, where: str) -> None:
    """One value is NULL, as a flipped bit of its record makes it, whatever the schema says."""
    connection = apsw.Connection(path)
    (sql,) = next(connection.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (table,)))
    version = connection.pragma("schema_version")
    for number, text in enumerate((re.sub(rf"(\b{column}\s+\w+) NOT NULL", r"\1", sql), sql), version + 1):
        connection.pragma("writable_schema", True)
        connection.execute("UPDATE sqlite_schema SET sql = ? WHERE name = ?", (text, table))
        connection.pragma("schema_version", number)
        connection.close()
        connection = apsw.Connection(path)
        if text != sql:
            connection.execute(f"UPDATE {table} SET {column} = NULL WHERE {where}")
    connection.close()


@pytest.mark.parametrize(
    ("table", "column", "found"), [("body", "content", {"m2"}), ("turn", "archived", {"m1", "m2"})]
)
def test_a_value_that_reads_as_null_leaves_recall_to_the_others(
    tmp_path: Path, table: str, column: str, found: set[str]
) -> None:
    path = str(tmp_path / "store.db")
    opened = open_store(path, PROFILE)
    turns = (turn("t1", message("m1", "the kettle is blue")), turn("t2", message("m2", "the kettle is on")))
    call(opened, "transcript.commit", talk(*turns))
    opened.store.write(lambda tx: tx.write_index())
    opened.store.close()
    make_null(path, table, column, f"{'message' if table == 'body' else 'turn'} = 1")
    opened = open_store(path, PROFILE)
    try:
        hits = call(opened, "memory.recall", {"query": "kettle", "planes": ["evidence"]})["hits"]
        assert {each["message_id"] for each in hits} == found
    finally:
        opened.store.close()
