"""One process at a time holds a store, and a dead one holds nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from beetle.contracts.errors import StoreLocked
from beetle.store.engine.lock import StoreLock, holder_of
from tests.store.conftest import assert_clean, commit, found, open_runtime, store_of, turn

ROOT = Path(__file__).parents[2]
HOLD = """
import sys
from tests.store.conftest import commit, open_runtime, store_of, turn
memory = open_runtime(sys.argv[1])
store_of(memory).announce("/run/beetle.sock")
commit(memory, turn("t1", "written by the holder"))
print("held", flush=True)
sys.stdin.read()
"""
RACE = """
import sys
from beetle.contracts.errors import StoreLocked
from beetle.store.engine.lock import StoreLock
sys.stdin.readline()
try:
    lock = StoreLock.acquire(sys.argv[1])
except StoreLocked:
    print("locked", flush=True)
else:
    print("won", flush=True)
sys.stdin.read()
"""


def child(code: str, path: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    )


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_a_store_has_one_lock_by_whatever_link_it_is_reached(path: str, tmp_path: Path) -> None:
    (tmp_path / "folder").symlink_to(Path(path).parent)
    (tmp_path / "file.db").symlink_to(path)
    memory = open_runtime(str(tmp_path / "folder" / Path(path).name))
    commit(memory, turn("t1", "reached through a link"))
    for name in (path, str(tmp_path / "file.db"), str(tmp_path / "folder" / Path(path).name)):
        holder = holder_of(name)
        assert holder is not None, name
        assert holder.pid == os.getpid()
        with pytest.raises(StoreLocked):
            StoreLock.acquire(name)
    memory.close()
    assert not (tmp_path / "file.db.lock").exists()
    with open_runtime(str(tmp_path / "file.db")) as again:
        assert found(again, "reached") == {"evidence:local/c1/t1/t1-m0"}
        assert_clean(again)


def test_a_second_process_is_told_pid_and_socket_and_a_killed_holder_frees_the_store(path: str) -> None:
    with child(HOLD, path) as holder:
        assert line(holder) == "held"
        with pytest.raises(StoreLocked) as refused:
            open_runtime(path)
        assert refused.value.details["pid"] == holder.pid
        assert refused.value.details["socket"] == "/run/beetle.sock"
        assert "/run/beetle.sock" in refused.value.hint
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        assert os.path.exists(path + ".lock") and holder_of(path) is None
        with open_runtime(path) as memory:
            assert found(memory, "holder")
            assert_clean(memory)


def test_of_many_openers_at_once_exactly_one_wins(path: str) -> None:
    openers = [child(RACE, path) for _ in range(12)]
    try:
        for each in openers:
            assert each.stdin is not None
            each.stdin.write("go\n")
            each.stdin.flush()
        assert sorted(line(each) for each in openers) == ["locked"] * 11 + ["won"]
    finally:
        for each in openers:
            each.communicate()


def test_a_lock_file_left_behind_is_harmless_whatever_it_holds(path: str) -> None:
    for left in (b"", b"\xff\x00 no JSON", b'["a list"]', b'{"pid": "no number", "socket": 7}', b"{" * 10_000):
        Path(path + ".lock").write_bytes(left)
        assert holder_of(path) is None
        with open_runtime(path), pytest.raises(StoreLocked) as refused:
            StoreLock.acquire(path)
        assert refused.value.details["pid"] == os.getpid()


def test_the_holder_is_known_while_it_announces_a_longer_and_a_shorter_socket(path: str) -> None:
    with open_runtime(path) as memory:
        for socket in ("/run/a-long-name-of-a-socket.sock", "/s", None):
            store_of(memory).announce(socket)
            found_holder = holder_of(path)
            assert found_holder is not None
            assert (found_holder.pid, found_holder.socket) == (os.getpid(), socket)
        commit(memory, turn("t1", "x"))
    assert holder_of(path) is None
