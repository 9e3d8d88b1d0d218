"""Imports of trees while others work in the same space: what those do stays, also when the process dies."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from beetle.contracts.common import WireScope
from beetle.contracts.errors import Conflict
from beetle.contracts.progress import ProgressStep
from beetle.open import Embedded, open_store
from beetle.runtime.host.caller import OWNER_VIEWS, Caller
from beetle.runtime.host.principals import OPERATOR_CAPABILITIES
from beetle.sdk import MemoryRuntime
from beetle.store.engine import progress
from beetle.store.engine.write_transaction import WriteTransaction
from tests.chunks.test_trees import CRASH, chunk, counts, of, take_in
from tests.faults.fault_vfs import FaultVFS
from tests.store.conftest import open_runtime, store_of
from tests.transports.serving import PATIENCE_S, until

BESIDE = """
import json, os, sys, threading
from beetle.contracts.errors import Conflict
from beetle.sdk import MemoryRuntime
store, tree, dies_at = sys.argv[1:]
def name(number):
    return f"chunk-2026-02-11-{number:08x}"
def change(step):
    folder = os.path.dirname(store)
    modes = [oct(os.stat(os.path.join(folder, each)).st_mode)[-3:] for each in os.listdir(folder) if ".import-" in each]
    first = 50 if step == "write" else 0
    erased = [memory.delete_chunk(id=name(first), permanent=True).erasure]
    memory.delete_chunk(id=name(first + 1))
    memory.update_chunk(id=name(first + 2), content="Changed by its owner")
    try:
        token = memory.forget(query=f"unforgettable{first}", dry_run=True).token
        erased.append(memory.forget(query=f"unforgettable{first}", token=token).erasure)
    except Conflict:
        erased.append(memory.delete_chunk(id=name(first + 3), permanent=True).erasure)
    print(json.dumps([modes, erased]), flush=True)
def on_progress(step):
    if step.name in ("write", "link") and not step.done:
        other = threading.Thread(target=change, args=(step.name,))
        other.start()
        other.join()
        if step.name == dies_at:
            os._exit(0)
with MemoryRuntime.open(store, profile="standalone") as memory:
    memory.import_chunk_tree(archive=open(f"{tree}.before", "rb").read())
    report = memory.call("chunk.import_tree", {"archive": open(tree, "rb").read()}, on_progress=on_progress)
    erasure = memory.delete_chunk(id=name(9), permanent=True).erasure
    print(json.dumps([[each.path[-7:-5] for each in report.refused], erasure]))
"""
STORED_BEFORE = range(50, 54)


@pytest.mark.parametrize("dies_at", ["write", "link", "-"])
def test_what_is_done_to_a_chunk_while_an_import_runs_is_not_undone(tmp_path: Path, dies_at: str) -> None:
    tree, store = tmp_path / "tree", tmp_path / "b.db"
    words = {3: " unforgettable0", 53: " unforgettable50"}
    tree.write_bytes(of(*(chunk(number, content=f"Note {number}{words.get(number, '')}") for number in range(60))))
    before = of(*(chunk(number, content=f"Before{words.get(number, '')}") for number in STORED_BEFORE))
    Path(f"{tree}.before").write_bytes(before)
    ran = subprocess.run(
        [sys.executable, "-c", BESIDE, str(store), str(tree), dies_at], env=os.environ, check=True, capture_output=True
    )
    told = [json.loads(each) for each in ran.stdout.splitlines()]
    # As long as the import runs, what it was given holds the text of what is erased.
    expected = [[["600"], ["pending", "pending"]]] * (1 if dies_at == "write" else 2)
    assert told == [*expected, *([[["32", "33", "34", "35"], "done"]] if dies_at == "-" else [])]
    with MemoryRuntime.open(str(store), profile="standalone") as memory:
        groups = [(50, "Before")] if dies_at == "write" else [(0, "Note 1"), (50, "Before")]
        for first, archived in groups:
            found = [memory.get_chunk(id=chunk(first + each)["id"]).chunk for each in range(4)]
            assert [each and (each.content, each.archived) for each in found] == [
                None, (archived, True), ("Changed by its owner", False), None,
            ]  # fmt: skip
        assert memory.chunk_stats().total_chunks == 60 - 3 * len(groups) - (dies_at == "-")
        assert memory.verify_store().clean
    assert [each.name for each in tmp_path.iterdir() if ".import-" in each.name] == []


@pytest.fixture
def every_file_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Progress of each file."""
    monkeypatch.setattr(progress, "BETWEEN_S", 0.0)


def in_another_thread(act: Callable[[], Any]) -> None:
    """Do something between two slices of what runs in this one."""
    other = threading.Thread(target=act)
    other.start()
    other.join()


@pytest.mark.parametrize("before", [0, 1])
def test_a_space_that_is_forgotten_while_an_import_runs_stays_empty(
    tmp_path: Path, every_file_told: None, before: int
) -> None:
    """The dry run is before the first slice, the real run behind it."""
    tokens: list[Any] = []
    with open_runtime(tmp_path / "b.db") as memory:
        if before:
            take_in(memory, of(chunk(100)))

        def forget() -> None:
            if tokens:
                tokens.append(memory.forget(whole_space=True, token=tokens[0]))
            else:
                tokens.append(memory.forget(whole_space=True, dry_run=True).token)

        def on_progress(step: ProgressStep) -> None:
            if step.name == "write" and len(tokens) < 2:
                in_another_thread(forget)

        with pytest.raises(Conflict, match="was emptied while the import ran"):
            memory.call("chunk.import_tree", {"archive": of(*map(chunk, range(60)))}, on_progress=on_progress)
        report = tokens[1]
        assert report.counts["chunks"] > before and report.erasure == "pending"
        assert memory.chunk_stats().total_chunks == 0
        assert counts(take_in(memory, of(*map(chunk, range(60))))) == (60, 0, 0, 0)
    assert [each.name for each in tmp_path.iterdir() if ".import-" in each.name] == []


def test_an_empty_space_that_is_forgotten_calls_the_import_off(tmp_path: Path) -> None:
    with open_runtime(tmp_path / "b.db") as memory:

        def forget() -> None:
            token = memory.forget(whole_space=True, dry_run=True).token
            assert memory.forget(whole_space=True, token=token).counts == {}

        def on_progress(step: ProgressStep) -> None:
            if step.name == "write" and not step.done:
                in_another_thread(forget)

        with pytest.raises(Conflict, match="was emptied while the import ran"):
            memory.call("chunk.import_tree", {"archive": of(*map(chunk, range(60)))}, on_progress=on_progress)
        assert memory.chunk_stats().total_chunks == 0


def test_what_an_import_writes_while_a_forgetting_waits_for_the_writer_is_forgotten_too(tmp_path: Path) -> None:
    """No event tells of a slice: what the look has found is not what is there when the forgetting is written."""
    with open_runtime(tmp_path / "b.db") as memory:
        take_in(memory, of(chunk(100)))
        writer, busy, done = store_of(memory).writer, threading.Event(), threading.Event()
        others: list[threading.Thread] = []

        def begin(act: Callable[[], Any], waiting: int) -> None:
            others.append(threading.Thread(target=act))
            others[-1].start()
            until(lambda: writer.queued >= waiting, f"{waiting} writes that wait")

        def hold(tx: WriteTransaction) -> None:
            busy.set()
            assert done.wait(PATIENCE_S)

        def forget() -> None:
            memory.forget(whole_space=True, token=token)

        def meanwhile() -> None:
            until(lambda: writer.queued == 1, "the first slice")
            begin(forget, 2)
            done.set()

        def on_progress(step: ProgressStep) -> None:
            nonlocal token
            if step.name == "write" and not token:
                token = memory.forget(whole_space=True, dry_run=True).token or ""
                begin(lambda: store_of(memory).write(hold), 0)
                assert busy.wait(PATIENCE_S)
                begin(meanwhile, 0)

        token = ""
        with pytest.raises(Conflict, match="was emptied while the import ran"):
            memory.call("chunk.import_tree", {"archive": of(*map(chunk, range(60)))}, on_progress=on_progress)
        for each in others:
            each.join()
        assert memory.chunk_stats().total_chunks == 0


@pytest.mark.parametrize("what", [{"query": "unforgettable59"}, {"conversation": {"conversation_id": "conv-abc123"}}])
def test_what_an_import_has_still_to_bring_is_not_said_to_be_forgotten(
    tmp_path: Path, every_file_told: None, what: dict[str, Any]
) -> None:
    tree = of(*(chunk(number, content=f"Note {number} unforgettable{number}") for number in range(60)))
    refusals: list[Conflict] = []
    with open_runtime(tmp_path / "b.db") as memory:

        def forget() -> None:
            assert memory.forget(subject="Rita", dry_run=True).counts == {}, "no chunk has a subject"
            for how in ({"dry_run": True}, {"token": before}):
                with pytest.raises(Conflict, match="an import of chunk files runs") as refused:
                    memory.forget(**what, **how)
                refusals.append(refused.value)

        def on_progress(step: ProgressStep) -> None:
            if step.name == "write" and len(refusals) < 4:
                in_another_thread(forget)

        before = memory.forget(**what, dry_run=True).token
        memory.call("chunk.import_tree", {"archive": tree}, on_progress=on_progress)
        assert len(refusals) == 4 and all("whole space" in each.hint for each in refusals)
        shown = memory.forget(**what, dry_run=True)
        assert memory.forget(**what, token=shown.token).counts["chunks"] == (1 if "query" in what else 60)
        assert not memory.recall(query="unforgettable59").hits


FILES = 60
ROW = "SELECT value FROM meta WHERE key GLOB 'chunk_import_*'"
SET_ROW = "UPDATE meta SET value = ? WHERE key GLOB 'chunk_import_*'"


@pytest.fixture(scope="module")
def died(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a store whose process died when an import was decided, before any of its files were written."""
    folder = tmp_path_factory.mktemp("died")
    tree = folder.parent / "died.tree"
    tree.write_bytes(of(*map(chunk, range(FILES))))
    subprocess.run([sys.executable, "-c", CRASH, str(folder / "b.db"), str(tree), "write"], env=os.environ, check=False)
    return folder


@pytest.fixture
def store(died: Path, tmp_path: Path) -> Iterator[Path]:
    """A copy of the store."""
    shutil.copytree(died, tmp_path, dirs_exist_ok=True)
    yield tmp_path / "b.db"


def kept_of(store: Path) -> list[Path]:
    return [each for each in store.parent.iterdir() if ".import-" in each.name]


def row_is(value: Any) -> Callable[[Path, Path], None]:
    def damage(store: Path, kept: Path) -> None:
        del kept
        with closing(sqlite3.connect(store)) as connection, connection:
            connection.execute(SET_ROW, (value,))

    return damage


def cut_to(size: int) -> Callable[[Path, Path], None]:
    return lambda store, kept: os.truncate(kept, size)


def whose_is_garbled(store: Path, kept: Path) -> None:
    data = bytearray(kept.read_bytes())
    data[5] = 0xC1
    kept.write_bytes(data)


def is_a_folder(store: Path, kept: Path) -> None:
    kept.unlink()
    kept.mkdir()


DAMAGE: dict[str, tuple[Callable[[Path, Path], None], str]] = {
    "no byte": (cut_to(0), f"{FILES} of its files"),
    "cut in its length": (cut_to(2), f"{FILES} of its files"),
    "cut in its head": (cut_to(6), f"{FILES} of its files"),
    "cut in its archive": (cut_to(400), f"{FILES} of its files"),
    "whose it is": (whose_is_garbled, f"{FILES} of its files"),
    "folder": (is_a_folder, f"{FILES} of its files"),
    "no file": (lambda store, kept: kept.unlink(), f"{FILES} of its files"),
    "of another space": (row_is("[99,0,0,60]"), f"{FILES} of its files"),
    "no numbers": (row_is('["a","b","c","d"]'), "nobody knows how many"),
    "a boolean": (row_is("[true,0,0,60]"), "nobody knows how many"),
    "null": (row_is("[1,null,0,60]"), "nobody knows how many"),
    "beyond bounds": (row_is("[1,0,-2,60]"), "nobody knows how many"),
    "no array": (row_is("{}"), "nobody knows how many"),
    "no text": (row_is(b"\xff"), "nobody knows how many"),
    "no JSON": (row_is("[1,"), "nobody knows how many"),
}
"""By what is damaged: how, and what is told of the files that are not in."""


@pytest.mark.parametrize("damage", DAMAGE)
def test_an_import_of_which_something_is_damaged_is_ended_by_the_next_opening(store: Path, damage: str) -> None:
    (kept,) = kept_of(store)
    apply, missing = DAMAGE[damage]
    apply(store, kept)
    name = kept.name.partition(".import-")[2]
    with MemoryRuntime.open(str(store), profile="standalone") as memory:
        (found,) = (each for each in memory.open_report.findings if name in each)
        assert "given up" in found and missing in found and "not in" in found
        made = memory.create_chunk(content="Another one", conversation_id="c").chunk
        assert memory.delete_chunk(id=made.id, permanent=True).erasure == "done"
        assert memory.chunk_stats().total_chunks == 0
        assert memory.verify_store().clean
    assert [each for each in kept_of(store) if each.is_file()] == []
    with closing(sqlite3.connect(store)) as connection:
        assert connection.execute(ROW).fetchall() == []


def test_an_import_whose_disk_is_full_goes_on_with_the_next_opening(store: Path) -> None:
    (kept,) = kept_of(store)
    name = kept.name.partition(".import-")[2]
    vfs = FaultVFS("full@1+")
    try:
        opened = open_store(str(store), "standalone", vfs=vfs.name)
        caller = Caller("embedded:test", "embedded", OPERATOR_CAPABILITIES, OWNER_VIEWS, "in_process")
        with MemoryRuntime(Embedded(opened, caller, WireScope())) as memory:
            (found,) = (each for each in memory.open_report.findings if name in each)
            assert "storage_full" in found and "goes on when the store is opened again" in found
            (named,) = (each for each in memory.verify_store().findings if name in each.subject)
            assert named.check == "chunks" and "could not be finished" in named.problem
            vfs.heal()
            made = memory.create_chunk(content="Another one", conversation_id="c").chunk
            assert memory.delete_chunk(id=made.id, permanent=True).erasure == "pending"
    finally:
        vfs.close()
    assert kept_of(store) == [kept]
    with MemoryRuntime.open(str(store), profile="standalone") as memory:
        assert f"import {name} of chunks, which was begun, is finished now" in memory.open_report.findings
        assert memory.chunk_stats().total_chunks == FILES
        assert memory.verify_store().clean


def test_verify_names_an_import_whose_row_is_damaged_while_the_store_is_open(store: Path) -> None:
    (kept,) = kept_of(store)
    row_is("[1,")(store, kept)
    with open_runtime(store) as memory:
        found = [each for each in memory.verify_store().findings if each.check == "chunks"]
        assert [each.subject for each in found] == [f"import {kept.name.partition('.import-')[2]}"]
        made = memory.create_chunk(content="Another one", conversation_id="c").chunk
        assert memory.delete_chunk(id=made.id, permanent=True).erasure == "pending"
