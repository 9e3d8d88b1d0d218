"""A time that is of no year, as a flipped bit makes one: its record is left out of lists and named, and no other is."""

from __future__ import annotations

import base64
import os
import shutil
from pathlib import Path

import apsw
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from beetle import MemoryRuntime
from beetle.contracts.errors import IntegrityViolation
from beetle.store.columns import TIMES
from tests.building import CONVERSATION, Plain, candidate, candidates, message, registry, skill, talk, turn, write
from tests.governance.keeping import keep, key_file
from tests.store.conftest import open_runtime

NAMES = ("one", "two")
WORDS = "the spare key hangs by the door"
LISTS: dict[str, tuple[str, Plain]] = {
    "devices": ("device.list", {}),
    "items": ("private.list", {}),
    "records": ("long_term.list", {}),
    "runtime_skills": ("skill.list", {}),
    "registries": ("tool_registry.list", {}),
    "candidates": ("governance.list", {}),
    "policies": ("long_term.policy", {"action": "list"}),
    "chunks": ("chunk.list", {}),
    "chains": ("chain.list", {}),
    "host_keys": ("host_key.list", {}),
    "conversations": ("transcript.conversations", {}),
}
"""By the field of the answer that has two entries, of which one is damaged."""
OTHERS: list[tuple[str, Plain]] = [
    ("skill_registry.list", {}), ("skill_registry.search", {"tags_any": ["a"]}), ("memory.inspect", {}),
    ("governance.report", {}), ("host.coverage", {}), ("console.overview", {}), ("evolve.list", {}),
    ("memory.recall", {"query": "spare key"}), ("event_log.read", {}), ("memory.replay", {"chat_id": "one"}),
    ("memory.export_space", {}),
    ("transcript.replay", {"conversation": {"channel_id": "local", "conversation_id": "two"}, "view": "host_ui"}),
    ("chunk.recall", {"query": "spare key"}),
]  # fmt: skip


def ask(memory: MemoryRuntime, op: str, args: Plain) -> Plain:
    return memory.call(op, args).to_dict()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with two records of each kind."""
    folder = tmp_path_factory.mktemp("whole")
    with open_runtime(folder / "store.db") as memory:
        for place, name in enumerate(NAMES):
            where = {**CONVERSATION, "conversation_id": name}
            ask(memory, "transcript.commit", talk(turn(f"t{name}", message(f"m{name}", WORDS)), conversation=where))
            known = candidate(f"k{name}", f"{WORDS} of {name}", topic=f"key {name}")
            waits = candidate(f"w{name}", f"sings {name}", topic=name, authority="assistant_claimed")
            ask(memory, "memory.write", candidates(known, waits))
            ask(memory, "memory.write", write(skill(name)))
            ask(memory, "tool_registry.upsert", registry(name))
            head = f"name: {name}\ndescription: d\ntags: [a]\ntriggers: [b]\nwarnings: [c]"
            upload = {"agent_id": "agent-main", "content": f"---\n{head}\n---\nboil it"}
            ask(memory, "skill_registry.upload", upload)
            ask(memory, "device.add", {"device_id": name, "label": name, "capabilities": ["recall"]})
            ask(memory, "long_term.policy", {"action": "pause", "topic": f"a {name}"})
            ask(memory, "chunk.create", {"content": f"{WORDS} {name}", "conversation_id": name})
            ask(memory, "chain.bootstrap", {"chain_key": name, "content": "begin"})
            said = {"host_session_id": name, "host_turn_index": 0, "role": "user", "content": WORDS, "host_kind": name}
            ask(memory, "turn.capture", said)
            public = Ed25519PrivateKey.from_private_bytes(bytes([place]) * 32).public_key().public_bytes_raw()
            ask(memory, "host_key.enroll", {"host_pubkey_b64": base64.b64encode(public).decode(), "label": name})
            keep(memory, f"of {name}", candidate_id=name)
    return folder


def damage(path: str, at: int) -> set[tuple[str, str]]:
    """Every time of the first row of each table becomes `at`; what is to be found."""
    connection = apsw.Connection(path)
    found: set[tuple[str, str]] = set()
    for each in TIMES:
        row = connection.execute(f"SELECT rowid, {each.key} FROM {each.table} ORDER BY rowid LIMIT 1").fetchone()
        if row is not None:
            for column in (*each.columns, *each.optional):
                connection.execute(f"UPDATE {each.table} SET {column} = ? WHERE rowid = ?", (at, row[0]))
                found.add((f"{each.table} {row[1]}", f"its {column} is no time"))
    connection.execute("UPDATE event_log SET at = ? WHERE seq = (SELECT max(seq) - 1 FROM event_log)", (at,))
    connection.close()
    return found


@pytest.mark.parametrize("at", [2**63 - 1, -(2**63)])
def test_a_record_whose_time_is_none_is_left_out_and_named_and_every_other_answer_goes_on(
    whole: Path, tmp_path: Path, at: int
) -> None:
    path = os.fspath(shutil.copytree(whole, tmp_path / "copy") / "store.db")
    with open_runtime(path) as memory:
        before = {field: len(ask(memory, op, args)[field]) for field, (op, args) in LISTS.items()}
        assert min(before.values()) > 1, before
        items = [each["record_id"] for each in ask(memory, "private.list", {})["items"]]
    told = damage(path, at)
    assert len({subject for subject, _ in told}) > 18
    with open_runtime(path) as memory:
        after = {field: len(ask(memory, op, args)[field]) for field, (op, args) in LISTS.items()}
        assert after == {field: count - 1 for field, count in before.items()}
        for op, args in OTHERS:
            assert ask(memory, op, args), op
        with pytest.raises(IntegrityViolation, match=f"private_item {items[0]} is damaged"):
            memory.get_private(record_id=items[0])
        assert memory.get_private(record_id=items[1]).content == "of two"
        named = {(each.subject, each.problem) for each in memory.verify_store().findings}
        assert told <= named, told - named
        # What is damaged can be taken away.
        memory.call("device.remove", {"device_id": "one"})
        memory.delete_private(record_id=items[0])


@pytest.mark.parametrize("key", ["'abc'", "7", "x'00'"])
def test_a_damaged_public_key_is_none_and_the_identity_can_be_renewed(tmp_path: Path, key: str) -> None:
    path = os.fspath(tmp_path / "store.db")
    with open_runtime(path) as memory:
        keep(memory, "a secret")
    connection = apsw.Connection(path)
    connection.execute(f"UPDATE meta SET value = {key} WHERE key = 'identity_key'")
    connection.close()
    with open_runtime(path) as memory:
        told = memory.inspect().operator
        assert told is not None and (told.identity.state, told.identity.device) == ("usable", None)
        key_file(path).unlink()
        shown = memory.renew_identity(dry_run=True)
        assert (shown.state, shown.former) == ("missing", None) and shown.found
        done = memory.renew_identity(token=shown.token, despite_findings=True)
        told = memory.inspect().operator
        assert told is not None and (told.identity.state, told.identity.device) == ("usable", done.device)


def test_a_page_goes_on_behind_what_is_left_out(tmp_path: Path) -> None:
    path = os.fspath(tmp_path / "store.db")
    with open_runtime(path) as memory:
        kept = [keep(memory, f"text {number}", candidate_id=f"c{number}") for number in range(6)]
    connection = apsw.Connection(path)
    connection.execute("UPDATE private_item SET at = 9223372036854775807 WHERE private_item IN (1, 2, 4, 6)")
    connection.close()
    found: list[str] = []
    with open_runtime(path) as memory:
        page = memory.list_private(limit=1)
        found += (each.record_id for each in page.items)
        while page.has_more:
            page = memory.list_private(limit=1, cursor=page.next_cursor)
            found += (each.record_id for each in page.items)
    assert found == [kept[2], kept[4]]
