"""Many processes append to one chain while others read it, and the daemon is killed in between."""

from __future__ import annotations

import json
import selectors
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from threading import Event, Thread
from typing import Any

import pytest

from beetle.client import Client
from beetle.contracts.errors import BeetleError
from tests.chains.writer import KEY
from tests.running import ROOT, Daemon, quantiles

PROFILE = "profile-linux-device-standalone-memory"
Process = subprocess.Popen[str]


def started(daemon: Daemon, name: str, count: int) -> Process:
    words = [sys.executable, "-m", "tests.chains.writer", daemon.socket, name, str(count)]
    return subprocess.Popen(words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)


def told(writers: dict[str, Process]) -> Iterator[tuple[str, dict[str, Any]]]:
    """(writer, what it says) as it comes, until all have ended."""
    with selectors.DefaultSelector() as ready:
        for name, each in writers.items():
            assert each.stdout is not None
            ready.register(each.stdout, selectors.EVENT_READ, name)
        while ready.get_map():
            for found, _ in ready.select(120):
                line = found.fileobj.readline()  # type: ignore[union-attr]
                if line:
                    yield found.data, json.loads(line)
                else:
                    ready.unregister(found.fileobj)


def walked(daemon: Daemon) -> list[Any]:
    """The whole chain, by its exported pages."""
    found: list[Any] = []
    with daemon.client() as client:
        more: dict[str, Any] = {}
        while True:
            page = client.call("chain.export", {"chain_key": KEY, "limit": 200, **more})
            found += page.thoughts
            if not page.has_more:
                return found
            more = {"cursor": page.next_cursor}


def links_hold(thoughts: list[Any]) -> bool:
    before = ["", *(each.hash for each in thoughts)]
    return all(each.index == place and each.prev_hash == before[place] for place, each in enumerate(thoughts))


class Reader(Thread):
    """Reads the chain over and over by a connection of its own: each answer is whole, and no later one is shorter."""

    def __init__(self, daemon: Daemon) -> None:
        super().__init__(daemon=True)
        self.ended, self.restarted = Event(), Event()
        self.reads, self.seen, self.lost = 0, 0, False
        self.wrong: list[str] = []
        self._daemon = daemon

    def run(self) -> None:
        while not self.ended.is_set() and not self.wrong:
            try:
                with self._daemon.client() as client:
                    while not self.ended.is_set() and not self.wrong:
                        self._read(client)
            except BeetleError as error:
                if error.key != "daemon_unavailable" or self.lost or not self.restarted.wait(60):
                    self.wrong.append(str(error))
                self.lost = True

    def _read(self, client: Client) -> None:
        head = client.call("chain.head", {"chain_key": KEY})
        walk = client.call("chain.traverse", {"chain_key": KEY, "direction": "backward", "chunk_size": 20})
        found = client.call("chain.search", {"chain_key": KEY, "text": "WRITER-1 ", "limit": 3}).thoughts
        thoughts = walk.thoughts[::-1]
        if not head.integrity_ok or thoughts[-1].index < head.thought_count - 1 or head.thought_count < self.seen:
            self.wrong.append(f"head at {head.thought_count} of {self.seen}, walked from {thoughts[-1].index}")
        for before, after in pairwise(thoughts):
            if (after.index, after.prev_hash) != (before.index + 1, before.hash):
                self.wrong.append(f"thought {after.index} does not follow from {before.index}")
        if any(not each.content.startswith("writer-1 ") for each in found):
            self.wrong.append("found what does not fit")
        self.seen = head.thought_count
        self.reads += 1


@pytest.mark.parametrize(("processes", "count"), [(4, 8), pytest.param(8, 1000, marks=pytest.mark.slow)])
def test_nothing_that_was_acknowledged_is_lost(processes: int, count: int) -> None:
    names = [f"writer-{number}" for number in range(processes)]
    acknowledged: list[dict[str, Any]] = []
    with Daemon(profile=PROFILE) as daemon:
        with daemon.client() as client:
            client.call("chain.bootstrap", {"chain_key": KEY, "content": "begin"})
        readers = [Reader(daemon) for _ in range(2)]
        for reader in readers:
            reader.start()
        writers = {name: started(daemon, name, count) for name in names}
        killed, restarted = names[0], False
        try:
            for name, said in told(writers):
                if "lost" in said:
                    continue
                acknowledged.append({**said, "by": name})
                if sum(each["by"] == killed for each in acknowledged) == count // 4 and name == killed:
                    writers[killed].kill()
                if not restarted and len(acknowledged) == processes * count // 2:
                    restarted = True
                    assert links_hold(walked(daemon))
                    daemon.kill()
                    daemon.start()
                    for reader in readers:
                        reader.restarted.set()
                    for each in writers.values():
                        with suppress(BrokenPipeError):
                            print("go on", file=each.stdin, flush=True)
                elif not len(acknowledged) % (processes * count // 4):
                    assert links_hold(walked(daemon))
        finally:
            for reader in readers:
                reader.ended.set()
            for each in writers.values():
                each.kill()
                each.wait()
                with suppress(BrokenPipeError):
                    each.communicate()
        assert restarted
        for reader in readers:
            reader.join(60)
            assert not reader.wrong
            assert reader.reads
        found = walked(daemon)
        with daemon.client() as client:
            head = client.call("chain.head", {"chain_key": KEY})
            assert client.call("store.verify").clean
    assert links_hold(found)
    assert (head.thought_count, head.head_hash, head.integrity_ok) == (len(found), found[-1].hash, True)
    for each in acknowledged:
        assert (found[each["index"]].id, found[each["index"]].content) == (each["id"], each["said"])
    said = [each.content for each in found]
    assert len(set(said)) == len(said), "an append that was sent again counts once"
    assert {f"{name} {number}" for name in names[1:] for number in range(count)} <= set(said)
    p50, p99 = quantiles([each["ms"] for each in acknowledged])
    reads = sum(each.reads for each in readers)
    told_of = f"{processes} processes, {len(acknowledged)} appends acknowledged beside {3 * reads} reads"
    print(f"{told_of}: p50 {p50:.1f} ms, p99 {p99:.1f} ms")
