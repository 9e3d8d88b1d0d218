"""A full or read-only disk, and a store at its ceiling: typed errors, reads go on, nothing acknowledged is lost."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from beetle import MemoryRuntime
from beetle.contracts.errors import BeetleError, StorageFull, StoreBudgetExceeded, StoreReadOnly
from beetle.runtime.areas.snapshots import store_snapshots
from tests.faults.fault_vfs import FaultVFS
from tests.store.conftest import (
    DISK_BACKENDS,
    assert_clean,
    commit,
    delete_skill,
    found,
    held_snapshot,
    lifecycle,
    open_runtime,
    replay,
    turn,
    wait_for_erasures,
    write_skill,
)

FILLER = "filling words " * 600


def mount(folder: Path, options: str) -> bool:
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", os.fspath(folder)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A tmpfs of 3 MiB."""
    if os.getuid() != 0 or shutil.which("mount") is None:
        pytest.skip("only root can mount a small tmpfs; the fault VFS covers the same errors")
    folder = tmp_path / "disk"
    folder.mkdir()
    if not mount(folder, "size=3m"):
        pytest.skip("this container may not mount a tmpfs; the fault VFS covers the same errors")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", os.fspath(folder)], check=True)


def fill(memory: MemoryRuntime, error: type[BeetleError]) -> list[str]:
    """Commit until it is refused; the turns that were acknowledged."""
    kept: list[str] = []
    for number in range(2000):
        try:
            commit(memory, turn(f"f{number}", f"word{number} {FILLER}"))
        except error:
            return kept
        kept.append(f"f{number}")
    raise AssertionError("the disk was never full")


def assert_held(memory: MemoryRuntime, kept: list[str]) -> None:
    there = {each.turn_id for each in replay(memory)}
    assert set(kept) <= there
    number = kept[-1].removeprefix("f")
    assert any(f"/{kept[-1]}/" in ref for ref in found(memory, f"word{number}")), "the last one is not found"


@pytest.mark.parametrize("backend", DISK_BACKENDS)
def test_a_full_disk_refuses_writes_and_nothing_else(small_disk: Path, backend: str) -> None:
    path = small_disk / "store.db"
    ballast = small_disk / "ballast"
    with open_runtime(path, backend, wal_bytes=256 * 1024) as memory:
        ballast.write_bytes(bytes(300_000))
        kept = fill(memory, StorageFull)
        assert len(kept) > 5
        for _ in range(3):
            with pytest.raises(StorageFull):
                commit(memory, turn("more", FILLER * 20))
            assert_held(memory, kept)
        ballast.unlink()
        commit(memory, turn("f9999", "after space returned"))
        assert_held(memory, kept)
        assert_clean(memory)
        lifecycle(memory, "delete_raw", *kept[:4])
        wait_for_erasures(memory)
    with open_runtime(path, backend) as memory:
        assert_held(memory, kept)
        assert found(memory, "returned")
        assert_clean(memory)


@pytest.mark.parametrize("backend", DISK_BACKENDS)
def test_a_store_closed_on_a_full_disk_opens_again_with_all_it_acknowledged(small_disk: Path, backend: str) -> None:
    path = small_disk / "store.db"
    with open_runtime(path, backend, wal_bytes=64 * 1024) as memory:
        kept = fill(memory, StorageFull)
    assert kept
    # Still full: what reading needs is there all the same, or the error says what is wrong.
    try:
        with open_runtime(path, backend) as memory:
            assert_held(memory, kept)
    except BeetleError as error:
        assert error.key == "storage_full"
    subprocess.run(["mount", "-o", "remount,size=8m", os.fspath(small_disk)], check=True)
    with open_runtime(path, backend) as memory:
        assert_held(memory, kept)
        assert_clean(memory)
        commit(memory, turn("after", "room again"))


def test_a_disk_that_fills_up_under_a_snapshot_keeps_the_earlier_ones_and_no_part(
    small_disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There was room when it began: others have taken it meanwhile."""
    monkeypatch.setattr(store_snapshots, "free_bytes", lambda _: 2**40)
    folder = small_disk / "snapshots"
    folder.mkdir(mode=0o700)
    with open_runtime(tmp_path / "store.db", snapshots=str(folder)) as memory:
        commit(memory, turn("f1", "word1 before"))
        kept = memory.create_snapshot().snapshot
        for number in range(2, 90):
            commit(memory, turn(f"f{number}", f"word{number} {FILLER * 5}"))
        with pytest.raises(StorageFull):
            memory.create_snapshot()
        job = memory.run_job(job_name="snapshot", wait=True).job
        assert (job.last_result, job.last_error_key) == ("failed", "storage_full")
        assert [each.name for each in folder.iterdir()] == [f"{kept.snapshot_id}.beetle-snapshot"]
        assert memory.verify_snapshot(snapshot_id=kept.snapshot_id).valid
        assert_held(memory, ["f89"])


@pytest.mark.parametrize(("plan", "error"), [("full@1+", StorageFull), ("readonly@1+", StoreReadOnly)])
def test_a_recovery_says_that_the_disk_keeps_the_log_from_being_folded(
    path: str, plan: str, error: type[BeetleError]
) -> None:
    vfs = FaultVFS()
    try:
        with open_runtime(path, "sqlite", vfs=vfs.name) as memory:
            commit(memory, turn("f1", "word1 before"))
            vfs.arm(plan)
            (step,) = (each for each in memory.recover().steps if each.step == "checkpoint")
            assert (step.outcome, step.reason, step.error) == ("failed", "refused", error.key)
            vfs.heal()
            assert memory.recover().recovered
    finally:
        vfs.close()


def test_a_recovery_tells_a_full_disk_from_a_reader_that_holds_an_erasure_up(path: str) -> None:
    vfs = FaultVFS()
    try:
        with open_runtime(path, "sqlite", vfs=vfs.name) as memory:
            commit(memory, turn("f1", "word1 before"))
            with held_snapshot(memory):
                assert lifecycle(memory, "delete_raw", "f1").erasure == "pending"
                vfs.arm("full@1+")
            (step,) = (each for each in memory.recover().steps if each.step == "pending_erasures")
            assert (step.outcome, step.reason, step.error) == ("failed", "refused", "storage_full")
            vfs.heal()
            assert memory.recover().recovered
    finally:
        vfs.close()


@pytest.mark.parametrize("backend", DISK_BACKENDS)
@pytest.mark.parametrize(("plan", "error"), [("full@1+", StorageFull), ("readonly@1+", StoreReadOnly)])
def test_a_disk_that_refuses_writes_under_an_open_store(
    path: str, backend: str, plan: str, error: type[BeetleError]
) -> None:
    vfs = FaultVFS()
    try:
        with open_runtime(path, backend, vfs=vfs.name) as memory:
            commit(memory, turn("f1", "word1 before"))
            write_skill(memory, "s", "a procedure")
            vfs.arm(plan)
            for _ in range(3):
                for write in (
                    lambda: commit(memory, turn("f2", "refused")),
                    lambda: lifecycle(memory, "mask", "f1"),
                    lambda: delete_skill(memory, "s"),
                ):
                    with pytest.raises(error):
                        write()
                assert_held(memory, ["f1"])
            vfs.heal()
            commit(memory, turn("f2", "word2 after"))
            assert_held(memory, ["f1", "f2"])
            assert_clean(memory)
    finally:
        vfs.close()


@pytest.mark.parametrize("backend", ["sqlite", "embedded"])
def test_a_checkpoint_that_fails_neither_loses_nor_blocks_what_is_acknowledged(path: str, backend: str) -> None:
    vfs = FaultVFS()
    try:
        memory = open_runtime(path, backend, vfs=vfs.name, wal_bytes=32 * 1024)
        kept = [f"f{number}" for number in range(30)]
        vfs.only = path  # the write-ahead log still takes what is written, the database file does not
        vfs.arm("full@1+")
        for name in kept:
            commit(memory, turn(name, f"{name.replace('f', 'word')} {FILLER}"))
            assert_held(memory, [name])
        assert vfs.hits
        memory.close()
    finally:
        vfs.close()
    with open_runtime(path, backend) as memory:
        assert_held(memory, kept)
        assert_clean(memory)


@pytest.mark.parametrize("backend", [*DISK_BACKENDS, "in-memory"])
def test_at_its_ceiling_a_store_takes_deletions_and_then_writes_again(path: str, backend: str) -> None:
    with open_runtime(path, backend, store_bytes=1_000_000, wal_bytes=64 * 1024) as memory:
        write_skill(memory, "s", FILLER)
        kept = fill(memory, StoreBudgetExceeded)
        assert len(kept) > 20
        with pytest.raises(StoreBudgetExceeded):
            write_skill(memory, "s2", FILLER)
        assert_held(memory, kept)
        assert delete_skill(memory, "s").outcome == "deleted"
        lifecycle(memory, "mask", kept[0])
        assert lifecycle(memory, "delete_raw", *kept[:20]).erasure == "done"
        commit(memory, turn("after", "room again"))
        assert found(memory, "room")
        assert_clean(memory)


def test_one_write_larger_than_the_room_left_is_refused_whole(path: str) -> None:
    with open_runtime(path, store_bytes=800_000) as memory:
        commit(memory, turn("f1", "word1 here"))
        with pytest.raises(StoreBudgetExceeded):
            commit(memory, *(turn(f"big{number}", FILLER * 20) for number in range(20)))
        assert {each.turn_id for each in replay(memory)} == {"f1"}
        commit(memory, turn("f2", "word2 fits"))
        assert_held(memory, ["f1", "f2"])
        assert_clean(memory)


@pytest.mark.parametrize("backend", DISK_BACKENDS)
def test_a_read_only_disk_without_a_store_is_refused(small_disk: Path, backend: str) -> None:
    subprocess.run(["mount", "-o", "remount,ro", os.fspath(small_disk)], check=True)
    for path in (small_disk / "store.db", small_disk / "new" / "store.db"):
        with pytest.raises(StoreReadOnly):
            open_runtime(path, backend)
    assert not list(small_disk.iterdir())


@pytest.mark.parametrize("backend", DISK_BACKENDS)
def test_a_store_that_was_closed_cleanly_is_read_from_a_read_only_disk(small_disk: Path, backend: str) -> None:
    path = small_disk / "store.db"
    with open_runtime(path, backend) as memory:
        commit(memory, turn("f1", "word1 to be read"))
        write_skill(memory, "s", "a procedure")
    subprocess.run(["mount", "-o", "remount,ro", os.fspath(small_disk)], check=True)
    with open_runtime(path, backend) as memory:
        assert_held(memory, ["f1"])
        assert_clean(memory)
        assert any("read-only" in finding for finding in memory.open_report.findings)
        for write in (lambda: commit(memory, turn("f2", "x")), lambda: delete_skill(memory, "s")):
            with pytest.raises(StoreReadOnly):
                write()
        assert memory.inspect().counts.messages == 1
    subprocess.run(["mount", "-o", "remount,rw", os.fspath(small_disk)], check=True)
    with open_runtime(path, backend) as memory:
        commit(memory, turn("f2", "word2 again"))
        assert_held(memory, ["f1", "f2"])


def test_a_store_that_was_not_closed_is_refused_on_a_read_only_disk(small_disk: Path, tmp_path: Path) -> None:
    with open_runtime(tmp_path / "store.db") as memory:
        commit(memory, turn("f1", "word1 in the log"))
        for name in ("store.db", "store.db-wal"):
            shutil.copy(tmp_path / name, small_disk / name)
    subprocess.run(["mount", "-o", "remount,ro", os.fspath(small_disk)], check=True)
    with pytest.raises(StoreReadOnly) as refused:
        open_runtime(small_disk / "store.db")
    assert "commits to be folded in" in refused.value.message
