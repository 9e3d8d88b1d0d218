"""Files of an open store that are removed, renamed or replaced: nothing is acknowledged into what nobody finds."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from beetle import MemoryRuntime
from beetle.client import Client
from beetle.contracts.errors import StoreReadOnly
from tests.running import ROOT, Daemon

PROFILE = "profile-linux-device-standalone-memory"
TALK = {"conversation_id": "talk"}
NOTICED_S = 30.0


def say(memory: Client | MemoryRuntime, turn_id: str) -> None:
    message = {"message_id": turn_id, "role": "user", "content": f"word of {turn_id}"}
    turn = {"turn_id": turn_id, "at": "2026-03-02T08:12:00Z", "messages": [message]}
    memory.commit_transcript(conversation=TALK, turns=[turn])  # type: ignore[arg-type]


def said(memory: Client | MemoryRuntime) -> list[str]:
    found = memory.replay_transcript(conversation=TALK, view="host_ui")  # type: ignore[arg-type]
    return [each.turn_id for each in found.turns]


def unlink(store: Path) -> None:
    store.unlink()


def rename(store: Path) -> None:
    store.rename(store.with_name("away.db"))


def replace(store: Path) -> None:
    """Another store, as a copy tool puts it there."""
    other = store.with_name("other.db")
    with MemoryRuntime.open(str(other), profile=PROFILE) as memory:
        say(memory, "another")
    other.rename(store)


def replace_lock(store: Path) -> None:
    lock = Path(f"{store}.lock")
    lock.unlink()
    lock.touch()


def unlink_lock(store: Path) -> None:
    Path(f"{store}.lock").unlink()


def unlink_log(store: Path) -> None:
    Path(f"{store}-wal").unlink()


def replace_log(store: Path) -> None:
    log = Path(f"{store}-wal")
    log.unlink()
    log.touch()


def unlink_index(store: Path) -> None:
    Path(f"{store}-shm").unlink()


def rename_folder(store: Path) -> None:
    store.parent.rename(store.parent.with_name("away"))


def replace_folder(store: Path) -> None:
    rename_folder(store)
    store.parent.mkdir()
    with MemoryRuntime.open(str(store), profile=PROFILE) as memory:
        say(memory, "another")


TRICKS = (
    unlink, rename, replace, unlink_lock, replace_lock, unlink_log, replace_log, unlink_index, rename_folder,
    replace_folder,
)  # fmt: skip
WALLESS = (unlink, rename, replace, unlink_lock, rename_folder)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    (tmp_path / "here").mkdir()
    return tmp_path / "here" / "store.db"


def inodes(folder: Path) -> dict[int, Path]:
    return {each.stat().st_ino: each for each in folder.rglob("*") if each.is_file()}


@pytest.mark.parametrize(
    ("trick", "backend"),
    [*((each, "sqlite") for each in TRICKS), *((each, "file") for each in WALLESS)],
    ids=lambda each: each if isinstance(each, str) else each.__name__,
)
def test_a_write_is_refused_and_nothing_that_was_acknowledged_is_lost(
    store: Path, trick: Callable[[Path], None], backend: str
) -> None:
    with MemoryRuntime.open(str(store), profile=PROFILE, backend=backend) as memory:
        say(memory, "t1")
        assert said(memory) == ["t1"]
        mine = store.stat().st_ino
        trick(store)
        for _ in range(2):
            with pytest.raises(StoreReadOnly) as refused:
                say(memory, "t2")
            assert "while it was open" in refused.value.message and "start it again" in refused.value.hint
        assert said(memory) == ["t1"], "reads go on"
        assert any("while it was open" in each for each in memory.inspect().operator.findings)
        with pytest.raises(StoreReadOnly):
            memory.create_snapshot()
        with pytest.raises(StoreReadOnly):
            memory.verify_store()
    if trick in (replace, replace_folder):
        with MemoryRuntime.open(str(store), profile=PROFILE) as another:
            assert said(another) == ["another"] and another.verify_store().clean
    if (left := inodes(store.parents[1]).get(mine)) is not None:
        with MemoryRuntime.open(str(left), profile=PROFILE) as again:
            assert said(again) == ["t1"] and again.verify_store().clean


def log_lines(daemon: Daemon) -> Iterator[str]:
    """The lines of a daemon's log as they come; ends the test when no more come for long."""
    with subprocess.Popen(["tail", "-n", "+1", "-f", daemon.folder / "log"], stdout=subprocess.PIPE, text=True) as tail:
        patience = threading.Timer(NOTICED_S, tail.kill)
        patience.start()
        try:
            assert tail.stdout is not None
            yield from tail.stdout
        finally:
            patience.cancel()
            tail.kill()


def run(*words: str) -> str:
    return subprocess.run([sys.executable, "-m", "beetle", *words], cwd=ROOT, capture_output=True, text=True).stdout


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    with Daemon(profile=PROFILE, folder=str(tmp_path)) as running:
        yield running


def test_an_idle_daemon_sees_it_and_says_so(daemon: Daemon) -> None:
    Path(daemon.store).rename(daemon.folder / "away.db")
    assert any("CRITICAL beetle.store: the store's file was removed or renamed" in each for each in log_lines(daemon))
    status = run("--socket", daemon.socket, "status")
    assert "Running" in status and "the store's file was removed or renamed while it was open" in status
    assert "the store's file was removed or renamed" in " ".join(run("--socket", daemon.socket, "doctor").split())


def test_a_log_that_was_unlinked_takes_nothing_acknowledged_with_it(daemon: Daemon) -> None:
    with daemon.client() as client:
        say(client, "t1")
        unlink_log(Path(daemon.store))
        with pytest.raises(StoreReadOnly):
            say(client, "t2")
    assert any("what was acknowledged is in the database file" in each for each in log_lines(daemon))
    with daemon.client() as client:
        assert said(client) == ["t1"]
    daemon.kill()
    daemon.start()
    with daemon.client() as client:
        assert said(client) == ["t1"] and client.verify_store().clean


def test_a_second_daemon_on_the_replaced_path_is_not_disturbed(daemon: Daemon, tmp_path: Path) -> None:
    """Its folder is moved away under a client that writes on and on, and another store stands in its place."""
    here, away = tmp_path / "data", tmp_path / "away"
    daemon.stop()
    here.mkdir()
    daemon.store = str(here / "b.db")
    daemon.start()
    acknowledged: list[str] = []

    def write_on() -> None:
        with daemon.client() as client, pytest.raises(StoreReadOnly):
            while True:
                say(client, f"t{len(acknowledged)}")
                acknowledged.append(f"t{len(acknowledged)}")
                if len(acknowledged) == 20:
                    under_way.set()

    under_way = threading.Event()
    writing = threading.Thread(target=write_on)
    writing.start()
    assert under_way.wait(NOTICED_S)
    here.rename(away)
    here.mkdir()
    second = Daemon(profile=PROFILE, folder=str(tmp_path))
    second.store, second.socket = daemon.store, str(tmp_path / "second.sock")
    with second:
        with second.client() as client:
            say(client, "another")
        writing.join(NOTICED_S)
        assert not writing.is_alive()
        daemon.stop()
        with second.client() as client:
            say(client, "one more")
            assert said(client) == ["another", "one more"] and client.verify_store().clean
    with MemoryRuntime.open(str(away / "b.db"), profile=PROFILE) as memory:
        assert memory.verify_store().clean
        assert memory.inspect().counts.turns >= len(acknowledged) >= 20
