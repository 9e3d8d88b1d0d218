"""Imports of trees while others work in the same space: what those do stays, also when the process dies."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from beetle.contracts.errors import Conflict
from beetle.contracts.progress import ProgressStep
from beetle.sdk import MemoryRuntime
from tests.chunks.test_trees import chunk, counts, of, take_in
from tests.store.conftest import open_runtime

BESIDE = """
import json, os, sys, threading
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
    token = memory.forget(query=f"unforgettable{first}", dry_run=True).token
    erased.append(memory.forget(query=f"unforgettable{first}", token=token).erasure)
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


def test_a_space_that_is_forgotten_while_an_import_runs_stays_empty(tmp_path: Path) -> None:
    with open_runtime(tmp_path / "b.db") as memory:
        take_in(memory, of(chunk(100)))

        def forget() -> None:
            token = memory.forget(whole_space=True, dry_run=True).token
            memory.forget(whole_space=True, token=token)

        def on_progress(step: ProgressStep) -> None:
            if step.name == "write":
                other = threading.Thread(target=forget)
                other.start()
                other.join()

        with pytest.raises(Conflict, match="was emptied while the import ran"):
            memory.call("chunk.import_tree", {"archive": of(*map(chunk, range(60)))}, on_progress=on_progress)
        assert memory.chunk_stats().total_chunks == 0
        assert counts(take_in(memory, of(*map(chunk, range(60))))) == (60, 0, 0, 0)
    assert [each.name for each in tmp_path.iterdir() if ".import-" in each.name] == []
