"""A deletion names every copy that may still hold what it erased, half-made ones too; none turns up afterwards."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from beetle.contracts.codec import to_plain
from beetle.contracts.common import MemoryIdentity, MemoryScope
from beetle.contracts.progress import ProgressStep
from beetle.open import Embedded, open_embedded
from beetle.runtime.areas.snapshots import snapshots
from beetle.runtime.areas.snapshots.file_form import PAYLOAD_AT
from beetle.store.event_log import Logged
from tests.building import Plain, step, talk, turn
from tests.conformance.doors import PROFILE
from tests.running import ROOT

BACKENDS = ("sqlite", "file")
TURNS = 12
OURS = (
    ".snapshots/s-00000000000000aa.copy", ".snapshots/s-00000000000000aa.copy-journal",
    ".snapshots/s-00000000000000bb.part", ".unpacking-u-00000000000000cc", ".restore-s-00000000000000dd",
)  # fmt: skip
NOT_OURS = (
    ".snapshots/s-00000000000000.part", ".snapshots/notes.part", ".snapshots/s-00000000000000AA.copy", ".part",
    ".unpacking-me",
)  # fmt: skip


def opened(store: Path, backend: str = "sqlite") -> Embedded:
    identity, scope = MemoryIdentity(), MemoryScope()
    return open_embedded(store=str(store), profile=PROFILE, backend=backend, identity=identity, scope=scope)


def call(
    memory: Embedded, op: str, args: Plain | None = None, told: Callable[[ProgressStep], None] | None = None
) -> Any:
    return memory.call(op, args or {}, None, None, None, told).report


def horizon(memory: Embedded) -> str | None:
    return call(memory, "memory.inspect").runtime.replica_horizon


def erase(memory: Embedded, turn_id: str) -> Plain:
    return to_plain(call(memory, "transcript.lifecycle", step("delete_raw", turn_id)))


def payload(store: Path, snapshot: Any) -> bytes:
    file = Path(f"{store}.snapshots") / f"{snapshot.snapshot_id}.beetle-snapshot"
    return zlib.decompress(file.read_bytes()[PAYLOAD_AT:])


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture(params=BACKENDS)
def memory(store: Path, request: pytest.FixtureRequest) -> Iterator[Embedded]:
    made = opened(store, request.param)
    call(made, "transcript.commit", talk(*(turn(f"t{n}", f"zq{n}qz " + "word " * 4000) for n in range(TURNS))))
    yield made
    made.release()


@pytest.mark.parametrize("name", OURS)
def test_a_half_made_copy_is_counted_and_swept_when_the_store_is_opened(store: Path, name: str) -> None:
    memory = opened(store)
    call(memory, "transcript.commit", talk(turn("t1", "erased")))
    Path(f"{store}.snapshots").mkdir()
    left = Path(f"{store}{name}")
    left.write_text("what a crash has left")
    assert erase(memory, "t1")["replica_horizon"] is not None and horizon(memory) is not None
    memory.release()
    memory = opened(store)
    assert not left.exists() and horizon(memory) is None
    memory.release()


def test_what_is_not_ours_is_left_alone(store: Path, tmp_path: Path) -> None:
    folder = Path(f"{store}.snapshots")
    folder.mkdir()
    kept = [Path(f"{store}{name}") for name in NOT_OURS]
    for each in kept:
        each.write_text("kept")
    aim = tmp_path / "aim"
    aim.write_text("kept")
    for name in OURS:
        hostile = Path(f"{store}{name}")
        if name.endswith(("part", "dd")):
            hostile.mkdir()
        else:
            hostile.symlink_to(aim)
        kept.append(hostile)
    memory = opened(store)
    assert all(each.is_symlink() or each.exists() for each in kept) and aim.read_text() == "kept"
    assert horizon(memory) is None
    memory.release()


def test_a_folder_that_cannot_be_swept_is_told_and_counted(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(f"{store}.snapshots")
    folder.mkdir()
    (folder / "s-00000000000000aa.part").touch()
    unlink = os.unlink

    def refused(path: Any, **more: Any) -> None:
        if str(path).endswith(".part"):
            raise PermissionError(13, "Permission denied")
        unlink(path, **more)

    monkeypatch.setattr(os, "unlink", refused)
    memory = opened(store)
    assert any("cannot be removed" in each for each in memory.open_report.findings)
    assert horizon(memory) is not None
    memory.release()


KILLED = """
import os, signal, sys
from pathlib import Path
from beetle.runtime.areas.snapshots import snapshots
from tests.adversary.test_horizon import call, opened
folder = Path(sys.argv[1] + ".snapshots")
def kill(done, of):
    if list(folder.glob("*" + sys.argv[2])):
        os.kill(os.getpid(), signal.SIGKILL)
snapshots._check_continue = lambda invocation: kill
call(opened(Path(sys.argv[1])), "snapshot.create")
"""


@pytest.mark.parametrize("moment", [".copy", ".part"])
def test_a_snapshot_that_was_killed_leaves_nothing_that_is_not_counted(store: Path, moment: str) -> None:
    memory = opened(store)
    call(memory, "transcript.commit", talk(turn("t1", "erased")))
    memory.release()
    killed = subprocess.run([sys.executable, "-c", KILLED, str(store), moment], cwd=ROOT, check=False)
    assert killed.returncode == -signal.SIGKILL
    left = list(Path(f"{store}.snapshots").iterdir())
    assert left
    again = opened(store)
    assert not any(each.exists() for each in left) and any("cut short" in each for each in again.open_report.findings)
    assert erase(again, "t1")["replica_horizon"] is None
    again.release()


def test_an_erasure_restarts_the_snapshot_that_is_being_made(memory: Embedded, store: Path) -> None:
    reports: list[Plain] = []

    def at(progress: ProgressStep) -> None:
        if progress.name == "compress" and not reports:
            reports.append(erase(memory, "t1"))

    made = call(memory, "snapshot.create", told=at)
    assert made.restarts >= 1
    content = payload(store, made.snapshot)
    assert b"zq1qz" not in content and b"zq2qz" in content
    assert reports[0]["replica_horizon"] is not None, "it was in the copy that was being made then"
    assert made.snapshot.created_at > reports[0]["replica_horizon"], "and is in none of later"
    assert call(memory, "snapshot.verify", {"snapshot_id": made.snapshot.snapshot_id}).valid


@pytest.mark.parametrize("by", ["snapshot.create", "scheduler.run"])
def test_an_erasure_does_not_wait_for_the_copy_to_end(store: Path, monkeypatch: pytest.MonkeyPatch, by: str) -> None:
    memory = opened(store)
    call(memory, "transcript.commit", talk(*(turn(f"t{n}", f"zq{n}qz " + "word " * 8000) for n in range(50))))
    reports: list[Plain] = []
    erasing = threading.Thread(target=lambda: reports.append(erase(memory, "t1")))
    committed = threading.Event()

    def commit(logged: list[Logged]) -> None:
        # A job that runs writes down that it does.
        if any(each.event.topic == "transcript" for each in logged):
            committed.set()

    memory._opened.store.on_commit(commit)

    def look(done: int, of: int) -> None:
        if erasing.ident is None:
            assert 0 < done < of
            erasing.start()
            assert committed.wait(30)

    monkeypatch.setattr(snapshots, "_check_continue", lambda _: look)
    made = call(memory, by, {"job_name": "snapshot", "wait": True} if by == "scheduler.run" else {})
    erasing.join(30)
    assert reports[0]["erasure"] == "done" and getattr(made, "restarts", 1) == 1
    (snapshot,) = call(memory, "snapshot.list").snapshots
    assert b"zq1qz" not in payload(store, snapshot) and b"zq2qz" in payload(store, snapshot)
    memory.release()


def test_erasures_that_come_again_and_again_do_not_keep_it_from_being_made(memory: Embedded, store: Path) -> None:
    reports: list[Plain] = []

    def at(progress: ProgressStep) -> None:
        if progress.name == "compress" and not progress.done:
            reports.append(erase(memory, f"t{len(reports)}"))

    made = call(memory, "snapshot.create", told=at)
    content = payload(store, made.snapshot)
    last = len(reports) - 1
    assert last >= 3 and f"zq{last}qz".encode() in content and f"zq{last - 1}qz".encode() not in content
    assert reports[last]["replica_horizon"] >= made.snapshot.created_at
    assert horizon(memory) == made.snapshot.created_at
