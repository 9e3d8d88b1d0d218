"""Snapshots in a folder of their own, on another disk or not: nobody else's, never made by us, full without harm."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from beetle import MemoryRuntime
from beetle.contracts.errors import FolderRefused, NoRoom, Overloaded
from beetle.runtime.areas.snapshots import snapshots, store_snapshots
from beetle.store.engine import exchange
from tests.store.conftest import commit, lifecycle, open_runtime, replay, store_of, turn


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "disk" / "snapshots"
    made.parent.mkdir(mode=0o755)
    made.mkdir(mode=0o700)
    return made


@pytest.fixture
def memory(tmp_path: Path, folder: Path) -> Iterator[MemoryRuntime]:
    with open_runtime(tmp_path / "own" / "b.db", snapshots=str(folder)) as opened:
        commit(opened, turn("t1", "kept"))
        yield opened


def beside(tmp_path: Path) -> list[str]:
    return sorted(each.name for each in (tmp_path / "own").iterdir() if ".snapshots" in each.name)


def test_everything_is_made_in_that_folder_and_another_store_finds_it_there(
    memory: MemoryRuntime, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: set[str] = set()
    monkeypatch.setattr(
        snapshots, "_check_continue", lambda _: lambda done, of: seen.update(each.suffix for each in folder.iterdir())
    )
    made = memory.create_snapshot().snapshot
    assert {".copy", ".part"} <= seen and beside(tmp_path) == []
    assert [each.name for each in folder.iterdir()] == [f"{made.snapshot_id}.beetle-snapshot"]
    assert memory.list_snapshots().folder == str(folder)
    commit(memory, turn("t2", "undone"))
    assert memory.restore_snapshot(snapshot_id=made.snapshot_id).changed
    assert [each.turn_id for each in replay(memory)] == ["t1"]
    with open_runtime(tmp_path / "fresh" / "c.db", snapshots=str(folder)) as fresh:
        (found,) = fresh.list_snapshots().snapshots
        assert (found.snapshot_id, found.own, found.kept_by) == (made.snapshot_id, False, ("other_store",))
        fresh.restore_snapshot(snapshot_id=made.snapshot_id, other_store=True)
        assert [each.turn_id for each in replay(fresh)] == ["t1"]


def away(folder: Path) -> None:
    folder.rmdir()


def link(folder: Path) -> None:
    aim = folder.parent / "aim"
    folder.rename(aim)
    folder.symlink_to(aim)


def readable(folder: Path) -> None:
    folder.chmod(0o750)


def parent(folder: Path) -> None:
    folder.parent.chmod(0o777)


def foreign(folder: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can give a folder away")
    os.chown(folder, 12345, 12345)


@pytest.mark.parametrize("spoil", [away, link, readable, parent, foreign])
def test_a_folder_that_is_not_there_or_not_ours_alone_is_refused_and_counted(
    memory: MemoryRuntime, folder: Path, tmp_path: Path, spoil: object
) -> None:
    assert callable(spoil)
    spoil(folder)
    for ask in (memory.create_snapshot, memory.list_snapshots, lambda: memory.prune_snapshots(keep=0)):
        with pytest.raises(FolderRefused) as refused:
            ask()
        assert str(folder) in refused.value.message and refused.value.hint
    job = memory.run_job(job_name="snapshot", wait=True).job
    assert (job.last_result, job.last_error_key) == ("failed", "store_read_only")
    assert beside(tmp_path) == [] and (spoil is not away or not folder.exists()), "nothing is made in its place"
    found = store_snapshots.folder_findings(store_of(memory))
    assert len(found) == 1 and str(folder) in found[0]
    erased = lifecycle(memory, "delete_raw", "t1")
    assert (erased.replica_horizon is not None, erased.copies_until) == (True, None), "copies may be there, unseen"


def test_the_usual_folder_is_not_followed_through_a_link_and_not_shared(tmp_path: Path, folder: Path) -> None:
    usual = tmp_path / "own" / "b.db.snapshots"
    with open_runtime(tmp_path / "own" / "b.db") as memory:
        usual.symlink_to(folder)
        with pytest.raises(FolderRefused):
            memory.create_snapshot()
        usual.unlink()
        usual.mkdir()
        usual.chmod(0o770)
        with pytest.raises(FolderRefused):
            memory.create_snapshot()
        assert list(folder.iterdir()) == list(usual.iterdir()) == []


def test_two_stores_take_turns_in_one_folder_and_neither_sweeps_what_the_other_makes(
    memory: MemoryRuntime, folder: Path, tmp_path: Path
) -> None:
    left = folder / "s-00000000000000aa.part"
    with exchange.making_in(str(folder)) as alone:
        assert alone
        left.touch()
        with open_runtime(tmp_path / "other" / "c.db", snapshots=str(folder)) as other:
            assert left.exists()
            with pytest.raises(Overloaded):
                other.create_snapshot()
    assert left.exists()
    memory.create_snapshot()
    assert not left.exists(), "what nobody makes is swept"


def test_without_room_the_job_says_so_and_what_is_there_stays(
    memory: MemoryRuntime, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = memory.create_snapshot().snapshot
    monkeypatch.setattr(store_snapshots, "free_bytes", lambda path: 1000 if path == str(folder) else 2**40)
    with pytest.raises(NoRoom) as refused:
        memory.create_snapshot()
    assert refused.value.key == "storage_full"
    assert refused.value.details["free"] == 1000 < refused.value.details["needed"]
    job = memory.run_job(job_name="snapshot", wait=True).job
    assert (job.last_result, job.last_error_key) == ("failed", "storage_full")
    assert "1000 bytes free" in (job.last_error or "")
    assert [each.name for each in folder.iterdir()] == [f"{kept.snapshot_id}.beetle-snapshot"]
    assert memory.verify_snapshot(snapshot_id=kept.snapshot_id).valid


def test_writes_go_on_while_the_job_rests(memory: MemoryRuntime, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two steps the job holds nothing that a writer or another reader of the whole store waits for."""
    resting, go_on = threading.Event(), threading.Event()
    made = snapshots._check_continue

    def stopping(invocation: object) -> object:
        look = made(invocation)  # type: ignore[arg-type]

        def rest(done: int, of: int) -> None:
            look(done, of)
            if not resting.is_set():
                resting.set()
                assert go_on.wait(30)

        return rest

    monkeypatch.setattr(snapshots, "_check_continue", stopping)
    job = threading.Thread(target=lambda: memory.run_job(job_name="snapshot", wait=True))
    job.start()
    try:
        assert resting.wait(30)
        commit(memory, turn("t2", "written meanwhile"))
        assert memory.verify_store().clean
    finally:
        go_on.set()
        job.join(30)
    assert memory.scheduler_status().jobs and memory.list_snapshots().total == 1
