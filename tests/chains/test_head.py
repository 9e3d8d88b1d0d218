"""`chain.head` verifies a chain at a cost that does not grow with it, and remembers what it has verified."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from beetle import MemoryRuntime
from beetle.runtime.areas.chains import verifying
from tests.chains.test_kept import edit
from tests.store.conftest import open_runtime

KEY = "long"


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same in small: 4 newest, a step of 8."""
    monkeypatch.setattr(verifying, "WINDOW", 4)
    monkeypatch.setattr(verifying, "STEP", 8)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "b.db"


@pytest.fixture
def memory(path: Path) -> Iterator[MemoryRuntime]:
    with open_runtime(path) as opened:
        append(opened, 30)
        yield opened


def append(memory: MemoryRuntime, count: int, key: str = KEY) -> None:
    for number in range(count):
        memory.append_thought(chain_key=key, thought_type="Plan", content=f"thought {number}", agent_id="ada")


def heads(memory: MemoryRuntime, calls: int, key: str = KEY) -> list[tuple[bool, int]]:
    found: Any = [memory.chain_head(chain_key=key) for _ in range(calls)]
    return [(each.integrity_ok, each.verified_from) for each in found]


def test_each_call_reaches_further_until_the_beginning(memory: MemoryRuntime) -> None:
    assert heads(memory, 5) == [(True, 18), (True, 10), (True, 2), (True, 0), (True, 0)]
    append(memory, 3)
    assert heads(memory, 1) == [(True, 0)]
    # More came than a call recomputes: until it has caught up only the newest are known.
    append(memory, 20)
    assert heads(memory, 2) == [(True, 49), (True, 0)]


def test_a_break_is_found_by_the_call_that_comes_by_and_by_every_later_one(memory: MemoryRuntime, path: Path) -> None:
    edit(path, "UPDATE thought SET importance = 0.9 WHERE position = 5")
    assert heads(memory, 4) == [(True, 18), (True, 10), (False, 10), (False, 10)]


def test_a_break_among_the_newest_and_in_what_came_since(memory: MemoryRuntime, path: Path) -> None:
    assert heads(memory, 4)[-1] == (True, 0)
    append(memory, 8)
    edit(path, "UPDATE thought_body SET content = 'x' WHERE thought = 33")
    assert heads(memory, 1) == [(False, 34)]
    edit(path, "UPDATE thought_body SET content = 'x' WHERE thought = 37")
    assert heads(memory, 1) == [(False, 34)]


def test_erasing_and_masking_break_nothing(memory: MemoryRuntime) -> None:
    heads(memory, 2)
    action: Any
    for action, indexes in (("erase", [3, 12, 29]), ("mask", [4, 13, 28])):
        memory.thought_lifecycle(chain_key=KEY, action=action, indexes=indexes, reason="r")
    assert heads(memory, 3) == [(True, 2), (True, 0), (True, 0)]


def test_a_branch_is_verified_through_what_it_shares(memory: MemoryRuntime) -> None:
    memory.branch_chain(chain_key=KEY, new_chain_key="other", anchor_index=20)
    append(memory, 2, "other")
    assert heads(memory, 3, "other") == [(True, 11), (True, 3), (True, 0)]


def test_the_whole_walk_is_remembered_and_a_restore_forgets(memory: MemoryRuntime) -> None:
    taken = memory.create_snapshot(label="s").snapshot.snapshot_id
    assert memory.verify_store().clean
    assert heads(memory, 1) == [(True, 0)]
    append(memory, 1)
    memory.restore_snapshot(snapshot_id=taken)
    assert heads(memory, 1) == [(True, 18)]
