"""Several processes at one folder of chunks, some of them killed: nothing acknowledged is lost, no file is half."""

from __future__ import annotations

import fcntl
import json
import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import pytest

from beetle.chunk_tree.document import ChunkDocument, read_chunk
from beetle.chunks import Chunk, ChunkStore
from beetle.contracts.errors import StoreLocked
from beetle.store.engine.lock import StoreLock, holder_of

PROFILE = "profile-desktop-linux-embedded-sdk"
CREATE = """
    import sys
    from beetle.chunks import ChunkStore
    store = ChunkStore(sys.argv[1], profile=sys.argv[2])
    name, first, last = sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
    for number in range(first, last):
        chunk = store.create_chunk(f"note {number} of {name}", "note", f"conv-{name}", 5, [f"tag-{number % 7}"])
        print(number, chunk.id, flush=True)
    store.close()
    """


def run(code: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def output(process: subprocess.Popen[str]) -> str:
    text, _ = process.communicate()
    assert process.returncode == 0
    return text


def store_file(base: Path) -> str:
    return str(base / ".beetle/store.db")


def check_in_step(base: Path, acknowledged: set[str]) -> None:
    """The tree says what the store says: every file whole, none too many, the indexes right."""
    with ChunkStore(base, profile=PROFILE) as store:
        chunks = {each.id: each for each in store.iter_chunks()}
    assert acknowledged <= chunks.keys()
    found: dict[str, ChunkDocument] = {}
    for path in (base / "chunks").rglob("*"):
        if path.is_file() and not path.name.startswith(".beetle-"):
            document = read_chunk(path.read_bytes(), str(path.relative_to(base)))
            assert isinstance(document, ChunkDocument)
            assert path.read_text() == chunks[document.id].to_json()
            found[document.id] = document
    assert found.keys() == chunks.keys()
    rows, tags, graph = (
        json.loads((base / f"index/{name}.json").read_bytes()) for name in ("metadata_index", "tag_index", "link_graph")
    )
    assert list(rows["entries"]) == list(chunks)
    assert {tag: set(ids) for tag, ids in tags["lists"].items()} == {
        tag: {each.id for each in chunks.values() if tag in each.tags} for tag in tags["lists"]
    }
    assert sum(map(len, tags["lists"].values())) == sum(len(set(each.tags)) for each in chunks.values())
    for chunk_id, chunk in chunks.items():
        assert sets(graph["forward"][chunk_id]) == sets(chunk.links.to_dict())


def sets(links: dict[str, Any]) -> dict[str, set[str]]:
    return {kind: set(ids) for kind, ids in links.items() if ids}


def test_two_processes_create_two_hundred_chunks_each(tmp_path: Path) -> None:
    both = [run(CREATE, tmp_path, PROFILE, name, 0, 200) for name in "ab"]
    said = [line.split() for each in both for line in output(each).splitlines()]
    assert len({chunk_id for _, chunk_id in said}) == 400
    check_in_step(tmp_path, {chunk_id for _, chunk_id in said})


@pytest.mark.slow
def test_two_processes_create_a_thousand_each_and_are_killed_again_and_again(tmp_path: Path) -> None:
    rng = random.Random(17)
    acknowledged: list[list[str]] = [[], []]
    kills = 0

    def work(place: int) -> None:
        nonlocal kills
        done = acknowledged[place]
        while len(done) < 1000:
            process = run(CREATE, tmp_path, PROFILE, "ab"[place], len(done), 1000)
            assert process.stdout is not None
            until = len(done) + rng.randrange(20, 250)
            for line in process.stdout:
                number, chunk_id = line.split()
                assert int(number) == len(done)
                done.append(chunk_id)
                if len(done) >= until and len(done) < 1000:
                    process.send_signal(signal.SIGKILL)
                    kills += 1
                    break
            # What it had acknowledged before the signal came.
            done += [line.split()[1] for line in process.stdout if line.endswith("\n")]
            process.stdout.close()
            process.wait()

    threads = [threading.Thread(target=work, args=(place,)) for place in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert kills > 4
    check_in_step(tmp_path, {chunk_id for each in acknowledged for chunk_id in each})


@pytest.mark.parametrize("at", [2, 4, 5])
def test_a_kill_between_the_store_and_a_file_leaves_nothing_half(tmp_path: Path, at: int) -> None:
    """The process kills itself in front of one of the renames that put a file in its place."""
    before = ChunkStore(tmp_path, profile=PROFILE)
    first = before.create_chunk("Before", "note", "conv", 1, ["t"])
    before.close()
    code = """
        import os, signal, sys
        replace, calls = os.replace, [0]
        def counted(*given, **more):
            calls[0] += 1
            if calls[0] == int(sys.argv[3]):
                os.kill(os.getpid(), signal.SIGKILL)
            replace(*given, **more)
        os.replace = counted
        from beetle.chunks import ChunkStore
        store = ChunkStore(sys.argv[1], profile=sys.argv[2])
        store.update_chunk(sys.argv[4], content="Behind", tokens=1)
        store.create_chunk("Created", "note", "other", 1, ["t"])
        store.delete_chunk(sys.argv[4])
        store.close()
        """
    process = run(code, tmp_path, PROFILE, at, first.id)
    process.communicate()
    assert process.returncode in (-signal.SIGKILL, 0)
    for path in tmp_path.rglob("*.json"):
        assert json.loads(path.read_bytes()), "every file is old or new"
    with ChunkStore(tmp_path, profile=PROFILE) as store:
        live, archived = store.list_chunks(), store.list_archived()
        assert len(live) + len(archived) in (1, 2) and first.id in (*live, *archived)
    check_in_step(tmp_path, set(live))
    assert [path.stem for path in (tmp_path / "archive").glob("*.json")] == archived


def test_a_process_that_keeps_calling_gives_way_to_another(tmp_path: Path) -> None:
    """The one writes as long as the other has not had its turn."""
    with ChunkStore(tmp_path, profile=PROFILE) as store:
        store.create_chunk("First", "note", "conv", 1)
        other = run(CREATE, tmp_path, PROFILE, "b", 0, 3)
        while not store.list_chunks("conv-b"):
            store.create_chunk("More", "note", "conv", 1)
        assert len(output(other).splitlines()) == 3
        assert len(store.list_chunks("conv-b")) == 3


def test_an_idle_process_gives_the_store_up(tmp_path: Path) -> None:
    store = ChunkStore(tmp_path, profile=PROFILE)
    chunk = store.create_chunk("Idle", "note", "conv", 1, ["t"])
    lock = os.open(store_file(tmp_path) + ".lock", os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX)
    os.close(lock)
    index = json.loads((tmp_path / "index/tag_index.json").read_bytes())
    assert index["lists"] == {"t": [chunk.id]}
    assert store.peek_chunk(chunk.id) == chunk


def test_a_store_that_a_daemon_serves_is_left_to_it(tmp_path: Path) -> None:
    with ChunkStore(tmp_path, profile=PROFILE) as store:
        store.create_chunk("Served", "note", "conv", 1)
    lock = StoreLock.acquire(store_file(tmp_path))
    try:
        lock.announce("/run/beetle/memory.sock")
        with pytest.raises(StoreLocked) as refused:
            store.list_chunks()
        assert "/run/beetle/memory.sock" in refused.value.message + refused.value.hint
    finally:
        lock.release()
    assert len(store.list_chunks()) == 1
    store.close()


def test_a_fork_takes_no_open_store_with_it(tmp_path: Path) -> None:
    store = ChunkStore(tmp_path, profile=PROFILE)
    store.create_chunk("Parent", "note", "conv", 1)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            made: Chunk = store.create_chunk("Child", "note", "conv", 1)
            status = 0 if made.links.follows else 2
        finally:
            os._exit(status)
    store.create_chunk("Parent again", "note", "conv", 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    store.close()
    assert holder_of(store_file(tmp_path)) is None
    check_in_step(tmp_path, set(store.list_chunks()))
    assert len(store.list_chunks()) == 3
    store.close()
