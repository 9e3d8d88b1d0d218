"""kill -9 before every single change that a snapshot, a restore and a compaction make to files."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from beetle import MemoryRuntime
from tests.running import ROOT
from tests.store.conftest import assert_clean, commit, lifecycle, replay, turn

BACKENDS = ("sqlite", "file")


def opened(store: Path, backend: str) -> MemoryRuntime:
    return MemoryRuntime.open(str(store), profile="dev-full", backend=backend)


def each_kill(folder: Path, action: str, backend: str, snapshot_id: str = "-") -> Iterator[int]:
    """Set the folder back, run the action until its n-th change, and yield; for every n."""
    start = folder.with_name("start")
    shutil.copytree(folder, start)
    command = [sys.executable, "-m", "tests.sdk.killed", action, str(folder / "b.db"), backend, snapshot_id]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdin is not None and worker.stdout is not None
        number = 0
        while True:
            number += 1
            shutil.rmtree(folder)
            shutil.copytree(start, folder)
            worker.stdin.write(f"{number}\n")
            worker.stdin.flush()
            answer = worker.stdout.readline().strip()
            assert answer in ("killed", "0"), answer
            if answer == "0":
                break
            yield number
        worker.stdin.close()
    assert number > 5, "the kills did not reach the action"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "store"
    made.mkdir()
    return made


def texts(memory: MemoryRuntime) -> list[str | None]:
    return [message.content for each in replay(memory) for message in each.messages]


@pytest.mark.parametrize(
    ("action", "backend"),
    [
        ("restore", "sqlite"),
        ("restore without links", "file"),
        pytest.param("restore", "file", marks=pytest.mark.slow),
        pytest.param("restore without links", "sqlite", marks=pytest.mark.slow),
    ],
)
def test_a_restore_can_be_killed_anywhere_and_leaves_the_old_store_or_the_new_one(
    folder: Path, action: str, backend: str
) -> None:
    store = folder / "b.db"
    with opened(store, backend) as memory:
        commit(memory, turn("t1", "old"))
        snapshot_id = memory.create_snapshot().snapshot.snapshot_id
        commit(memory, turn("t2", "new"))
    seen: set[int] = set()
    for number in each_kill(folder, action, backend, snapshot_id):
        with opened(store, backend) as memory:
            assert not memory.open_report.created, number
            held = texts(memory)
            assert held in (["old"], ["old", "new"]), number
            seen.add(len(held))
            assert_clean(memory)
            listed = memory.list_snapshots()
            assert [each.snapshot_id for each in listed.snapshots] == [snapshot_id] and not listed.broken
            # Nothing half-made is left; the old store is there exactly when the new one is in its place.
            assert len(listed.replaced) == (len(held) == 1), number
            commit(memory, turn("t9", "after"))
        names = {each.name for each in folder.iterdir()}
        assert not [name for name in names if ".unpacking-" in name or ".restore-" in name], number
        aside = folder / f"b.db.before-{snapshot_id}"
        if aside.exists():
            with opened(aside, backend) as before:
                assert texts(before) == ["old", "new"], number
    assert seen == {1, 2}, "kills came before and after the exchange"


def test_a_snapshot_can_be_killed_anywhere_and_is_whole_or_not_there(folder: Path) -> None:
    store = folder / "b.db"
    with opened(store, "sqlite") as memory:
        commit(memory, turn("t1", "kept"))
    seen: set[int] = set()
    for number in each_kill(folder, "create", "sqlite"):
        with opened(store, "sqlite") as memory:
            listed = memory.list_snapshots()
            assert not listed.broken, number
            seen.add(listed.total)
            for each in listed.snapshots:
                assert memory.verify_snapshot(snapshot_id=each.snapshot_id).valid, number
            memory.create_snapshot()
            left = [each.name for each in (folder / "b.db.snapshots").iterdir()]
            assert all(name.endswith(".beetle-snapshot") for name in left), (number, left)
    assert seen == {0, 1}


def test_a_compaction_can_be_killed_anywhere_and_loses_nothing(folder: Path) -> None:
    store = folder / "b.db"
    with opened(store, "sqlite") as memory:
        for number in range(40):
            commit(memory, turn(f"t{number}", "x" * 40_000))
        commit(memory, turn("kept", "the kettle is on"))
        lifecycle(memory, "delete_raw", *(f"t{number}" for number in range(40)))
    before = store.stat().st_size
    sizes: set[bool] = set()
    for number in each_kill(folder, "vacuum", "sqlite"):
        with opened(store, "sqlite") as memory:
            assert memory.inspect().counts.turns == 41, number
            assert [hit.excerpt for hit in memory.recall(query="kettle").hits] == ["the kettle is on"], number
            assert_clean(memory)
            assert not memory.list_snapshots().replaced, number
        sizes.add(store.stat().st_size < before // 2)
        names = {each.name for each in folder.iterdir()}
        assert names <= {"b.db", "b.db-wal", "b.db-shm", "b.db.lock", "b.db.identity"}, (number, names)
    assert sizes == {False, True}
