"""What is masked, private, erased or another's stands in no bullet and no keyword, shown or stored."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from beetle import MemoryRuntime
from tests.building import message, talk, turn
from tests.toc.conftest import Plain, ask, build, event, everything, ingest, of, open_memory

CANARY = "zanzibarquartz"
SECRET = f"The {CANARY} kiln opens with a brass key under the third stone."
OTHER = "Glazing pottery needs patience, clay and a very hot kiln."
SESSION = {"channel_id": "event", "conversation_id": "s1"}


@pytest.fixture
def told(memory: MemoryRuntime) -> Iterator[MemoryRuntime]:
    ingest(memory, event("a", "2026-01-30T10:00:00Z", SECRET), event("b", "2026-01-30T10:05:00Z", OTHER))
    build(memory)
    assert CANARY in str(everything(memory))
    yield memory


def step(memory: MemoryRuntime, action: str) -> Plain:
    args = {"conversation": SESSION, "action": action, "turn_ids": ["a"], "reason": "a test"}
    return ask(memory, "transcript.lifecycle", args)


def test_masking_hides_at_once_and_unmasking_brings_back(told: MemoryRuntime) -> None:
    before = everything(told)
    step(told, "mask")
    assert CANARY not in str(everything(told))
    build(told)
    masked = everything(told)
    assert CANARY not in str(masked)
    assert all(each["bullets"] for each in masked.values())
    step(told, "unmask")
    build(told)
    assert everything(told) == before


def test_a_grip_of_a_masked_event_tells_nothing(told: MemoryRuntime) -> None:
    grips = [g for each in everything(told).values() for b in each["bullets"] for g in b["grip_ids"]]
    step(told, "mask")
    assert all(CANARY not in str(ask(told, "grip.expand", {"grip_id": each})) for each in grips)


def test_what_is_erased_is_gone_from_the_files(tmp_path: Path) -> None:
    path = tmp_path / "beetle.db"
    with open_memory(str(path)) as memory:
        ingest(memory, event("a", "2026-01-30T10:00:00Z", SECRET), event("b", "2026-01-30T10:05:00Z", OTHER))
        build(memory)
        assert step(memory, "delete_raw")["erasure"] == "done"
        held = b"".join(each.read_bytes() for each in tmp_path.iterdir() if each.is_file())
        assert CANARY.encode() not in held
        assert CANARY not in str(everything(memory))
        build(memory)
        after = everything(memory)
        assert ask(memory, "admin.rebuild_toc")["changed_nodes"] == 0
        assert everything(memory) == after


def test_forgetting_reaches_the_table_of_contents(told: MemoryRuntime) -> None:
    tried = ask(told, "memory.forget", {"query": CANARY, "dry_run": True})
    ask(told, "memory.forget", {"query": CANARY, "token": tried["token"]})
    assert CANARY not in str(everything(told))
    build(told)
    assert CANARY not in str(everything(told))
    assert "pottery" in str(everything(told))


def test_private_and_soul_material_is_in_no_node(memory: MemoryRuntime) -> None:
    said = [message(f"m{n}", SECRET, visibility=kind) for n, kind in enumerate(("private", "soul", "backend"))]
    ask(memory, "transcript.commit", talk(turn("t1", *said), turn("t2", OTHER)))
    build(memory)
    assert CANARY not in str(everything(memory))


def test_another_owner_and_what_a_view_may_not_see_change_no_byte() -> None:
    with open_memory() as alone, open_memory() as crowded:
        opened = crowded._opened._opened
        shared = turn("t1", OTHER)
        ask(alone, "transcript.commit", talk(shared))
        ask(crowded, "transcript.commit", talk(shared))
        private = message("p", SECRET, visibility="private")
        ask(crowded, "transcript.commit", talk(turn("t0", private), conversation={"conversation_id": "other"}))
        ask(of(opened, "owner-b"), "transcript.commit", talk(turn("t1", SECRET), turn("t2", OTHER)))
        build(alone)
        build(crowded)
        assert everything(crowded) == everything(alone)
        stranger = everything(of(opened, "owner-c"))
        assert stranger == {}


def test_what_a_view_may_not_see_gives_no_time_a_meaning(told: MemoryRuntime) -> None:
    elsewhere = {"conversation_id": "other"}
    hidden = message("p", SECRET, visibility="soul")
    ask(told, "transcript.commit", talk(turn("t0", hidden, at="2026-02-11T10:00:00Z"), conversation=elsewhere))
    asked = {"query": "the pottery kiln last week", "asked_at": "2026-02-18T10:00:00Z"}
    for where in ({}, {"conversation": elsewhere}):
        assert ask(told, "memory.recall", {**asked, **where})["working_recall"]["time_from"] is None
    ask(told, "transcript.commit", talk(turn("t1", OTHER, at="2026-02-12T10:00:00Z"), conversation=elsewhere))
    for where in ({}, {"conversation": elsewhere}):
        assert ask(told, "memory.recall", {**asked, **where})["working_recall"]["time_from"] is not None


def test_an_auditor_sees_ids_and_times_alone(told: MemoryRuntime) -> None:
    auditor = of(told._opened._opened, "owner-a", views=("operator_audit",))
    for each in everything(auditor).values():
        assert each["title"] is each["summary"] is each["keywords"] is None
        assert all(bullet["text"] is None for bullet in each["bullets"])


def test_verify_names_nodes_that_do_not_follow_from_the_events(told: MemoryRuntime) -> None:
    store = told._opened._opened.store
    assert ask(told, "store.verify")["findings"] == ()
    store.write(lambda tx: tx.run("UPDATE toc_node SET ends = ends + 1 WHERE level = 5"))
    found = ask(told, "store.verify")["findings"]
    assert [each["check"] for each in found] == ["toc"]
    ask(told, "admin.rebuild_toc")
    assert ask(told, "store.verify")["findings"] == ()
