"""The first start: what it unpacks, with others at the same time, killed at any moment, without room."""

from __future__ import annotations

import fcntl
import os
import resource
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import zstandard

from tests.launcher.packed import FILES, Maker, Packed, assert_failed, assert_same, left, said, start
from tests.launcher.traced import Traced


def test_the_tree_is_unpacked_as_it_was_packed(one: Packed, env: dict[str, str], place: Path) -> None:
    assert start(one.file, env=env).returncode == 0
    assert left(place) == [one.name]
    assert_same(place / one.name, one.tree)


def test_a_tree_of_many_sizes_is_unpacked_as_it_was_packed(maker: Maker, env: dict[str, str], place: Path) -> None:
    edges = [0, 1, 511, 512, 513, 262143, 262144, 262145, 5 << 20]
    files = {f"_internal/{'d/' * (size % 7)}{size}": os.urandom(size) for size in edges}
    files["_internal/" + "long/" * 20 + "n" * 99] = b"a name that needs both fields of the header"
    made = maker.pack(files=files)
    assert said(start(made.file, env=env).stdout).pid
    assert_same(place / made.name, made.tree)


def test_a_tree_of_any_length_is_unpacked_however_many_zeros_fill_up_its_archive(
    maker: Maker, env: dict[str, str], place: Path
) -> None:
    zeros: set[int] = set()
    for blocks in range(20):
        made = maker.pack(f"of-{blocks}", files={**FILES, "_internal/more": b"x" * 512 * blocks})
        front = len(maker.launcher.read_bytes())
        tar = zstandard.ZstdDecompressor().decompress(made.file.read_bytes()[front:])
        zeros.add((len(tar) - len(tar.rstrip(b"\0"))) // 512)
        assert said(start(made.file, env=env).stdout).pid
        assert_same(place / made.name, made.tree)
    assert max(zeros) == 21, "two end it, and nineteen fill it up"


@pytest.mark.parametrize("locks", [True, False], ids=["with the lock", "without locks"])
def test_ten_first_starts_at_once_all_answer_and_leave_one_tree(
    one: Packed, env: dict[str, str], place: Path, locks: bool
) -> None:
    place.mkdir(0o755)
    if not locks:
        (place / ".lock").mkdir()  # cannot be opened for writing: as on a file system that has none
    with open(place / ".lock" if locks else place / "gate", "w") as gate:
        fcntl.flock(gate, fcntl.LOCK_EX)
        running = [subprocess.Popen([one.file], env=env, stdout=subprocess.PIPE, text=True) for _ in range(10)]
    for process in running:
        out, _ = process.communicate(timeout=60)
        assert said(out).pid == process.pid
    (place / "gate").unlink(missing_ok=True)
    assert left(place) == [one.name]
    assert_same(place / one.name, one.tree)


def halting_points(one: Packed, env: dict[str, str], dense: bool) -> Iterator[int]:
    """The system calls of a first start: all, or some of them."""
    with Traced(one.file, env) as counted:
        last = sum(1 for _ in counted)
    assert last > 100
    yield from range(1, last + 1, 1 if dense else 7)


def kill_everywhere(one: Packed, place: Path, dense: bool) -> None:
    counted = {"BEETLE_CACHE": str(place / "counted")}
    for point in halting_points(one, counted, dense):
        here = place / str(point)
        env = {"BEETLE_CACHE": str(here)}
        with Traced(one.file, env) as killed:
            assert killed.run_to(point)
        assert set(left(here)) <= {one.name, f".unpack-{killed.process.pid}"}
        if one.name in left(here):
            assert_same(here / one.name, one.tree)
        assert said(start(one.file, env=env).stdout).exe == str(here / one.name / "beetle")
        # A start that finds the tree complete leaves the rest to the next that unpacks.
        assert left(here) == [one.name]
        assert_same(here / one.name, one.tree)


def test_kill_9_while_unpacking_costs_the_next_start_nothing(one: Packed, tmp_path: Path) -> None:
    kill_everywhere(one, tmp_path, dense=False)


@pytest.mark.slow
def test_kill_9_before_and_after_every_system_call_costs_the_next_start_nothing(one: Packed, tmp_path: Path) -> None:
    kill_everywhere(one, tmp_path, dense=True)


def stop_everywhere(one: Packed, place: Path, number: signal.Signals, dense: bool) -> None:
    for point in halting_points(one, {"BEETLE_CACHE": str(place / "counted")}, dense):
        here = place / str(point)
        with Traced(one.file, {"BEETLE_CACHE": str(here)}) as stopped:
            assert stopped.run_to(point)
            ended = stopped.end(number)
        assert (ended.returncode, ended.stdout, ended.stderr) == (-number, "", "")
        assert left(here) in ([], [one.name])
        if left(here):
            assert_same(here / one.name, one.tree)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_while_unpacking_leaves_nothing_half_made(one: Packed, tmp_path: Path, number: signal.Signals) -> None:
    stop_everywhere(one, tmp_path, number, dense=False)


@pytest.mark.slow
def test_a_stop_at_every_system_call_leaves_nothing_half_made(one: Packed, tmp_path: Path) -> None:
    stop_everywhere(one, tmp_path, signal.SIGTERM, dense=True)


def test_a_stop_while_waiting_for_another_start_ends_the_wait(one: Packed, env: dict[str, str], place: Path) -> None:
    place.mkdir(0o755)
    with open(place / ".lock", "w") as lock, Traced(one.file, env) as waiting:
        fcntl.flock(lock, fcntl.LOCK_EX)
        opened = str(place / ".lock")
        folder = f"/proc/{waiting.process.pid}/fd"
        for _ in waiting:
            if opened in (os.readlink(f"{folder}/{each}") for each in os.listdir(folder)):
                break
        assert waiting.end(signal.SIGTERM).returncode == -signal.SIGTERM
        assert left(place) == []


def test_too_large_a_file_for_the_users_limit_is_a_storage_error_and_leaves_nothing(
    one: Packed, env: dict[str, str], place: Path
) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))

    for handling in (signal.SIG_IGN, signal.SIG_DFL):

        def limited(handling: signal.Handlers = handling) -> None:
            signal.signal(signal.SIGXFSZ, handling)
            limit()

        assert_failed(start(one.file, env=env, preexec_fn=limited, restore_signals=False), 8, str(place))
        assert left(place) == []


def test_a_disk_without_room_is_a_storage_error_before_anything_is_written(maker: Maker, disk: Path) -> None:
    made = maker.pack(files={"_internal/large": bytes(30 << 20)})
    assert_failed(start(made.file, env={"BEETLE_CACHE": str(disk / "c")}), 8, "MiB needed")
    assert left(disk / "c") == []


def test_a_disk_without_inodes_is_a_storage_error(one: Packed, disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,nr_inodes=12", disk], check=True)
    assert_failed(start(one.file, env={"BEETLE_CACHE": str(disk)}), 8, "inodes needed")
    assert left(disk) == []


def test_a_disk_that_fills_up_while_unpacking_is_a_storage_error_and_leaves_nothing(maker: Maker, disk: Path) -> None:
    made = maker.pack(files={"_internal/large": os.urandom(8 << 20)})
    env = {"BEETLE_CACHE": str(disk)}
    filler = disk / "filler"
    with Traced(made.file, env) as unpacking:
        for _ in unpacking:
            if any(each.stat().st_size for each in disk.glob(".unpack-*/_internal/large")):
                break
        with pytest.raises(OSError, match="No space left"), open(filler, "wb", buffering=0) as file:
            while True:
                file.write(bytes(1 << 16))
        assert_failed(unpacking.end(), 8, "No space left on device")
    assert left(disk) == ["filler"]
    filler.unlink()
    assert said(start(made.file, env=env).stdout).pid


def test_a_first_start_needs_few_mebibytes_of_memory(maker: Maker, env: dict[str, str]) -> None:
    made = maker.pack(files={"_internal/large": os.urandom(8 << 20)})
    limit = 8 << 20
    ended = start(made.file, env=env, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
    assert said(ended.stdout).pid
