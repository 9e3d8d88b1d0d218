"""Hosts of models side by side: each an MCP process that writes candidates, beside a console's requests and a CLI.

    python -m tests.bench.mcp [--hosts N] [--writes N] [--profile P] [--command BEETLE]

Each host calls memory_write_candidate with one candidate, waits for the answer, and calls again. Meanwhile a client
follows every event and asks what the console's overview asks, and a command line recalls, one process after another. In
the end every candidate that was acknowledged must be a current fact, and every event of the log must be in its chain.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, NamedTuple

from beetle.client import Client
from beetle.contracts.control import TOPIC_CAPABILITIES
from tests.mcp.host import Host
from tests.running import ROOT, Daemon, quantiles, rss_mib

PROFILE = "profile-linux-device-standalone-memory"
LOOKS_A_SECOND = 1.0
PAGE = 100
WORDS = ("kettle", "lamp", "pump", "strainer", "window", "bicycle", "viola", "ferry")


class Figures(NamedTuple):
    """What came of it. Times are in milliseconds; `lost` names acknowledged facts that are not there."""

    acknowledged: int
    lost: list[str]
    seconds: float
    write: tuple[float, float]
    look: tuple[float, float]
    cli: tuple[float, float]
    looks: int
    commands: int
    events: int
    clean: bool
    daemon_mib: float
    host_mib: float


class Beside:
    """Something that is done again and again until it is told to end, and how long each took."""

    def __init__(self, work: Callable[[], None], pause: float = 0.0) -> None:
        self.times: list[float] = []
        self._work = work
        self._pause = pause
        self._ended = threading.Event()
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        try:
            while not self.times or not self._ended.wait(self._pause):
                before = time.perf_counter()
                self._work()
                self.times.append((time.perf_counter() - before) * 1000)
        except Exception as error:  # noqa: BLE001 - told by the thread that waits for it
            self._error = error

    def __enter__(self) -> Beside:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        if self._error is not None:
            raise self._error


def candidate(host: int, number: int) -> dict[str, Any]:
    """A candidate that nothing else says: `host` is an authority that needs no message."""
    word = WORDS[(host + number) % len(WORDS)]
    return {
        "candidate_id": f"{host}-{number}", "authority": "host", "target": "long_term", "privacy": "public_runtime",
        "topic": f"{word} {host}-{number}", "content": f"The {word} number {number} of room {host} was looked after.",
    }  # fmt: skip


class Writer(threading.Thread):
    """One host: what was acknowledged to it, and how long each call took."""

    def __init__(self, host: Host, number: int, writes: int, start: threading.Barrier) -> None:
        super().__init__()
        self.refs: list[str] = []
        self.times: list[float] = []
        self.refused: list[str] = []
        self._host, self._number, self._writes, self._start = host, number, writes, start

    def run(self) -> None:
        self._start.wait()
        for number in range(self._writes):
            before = time.perf_counter()
            result = self._host.call("memory_write_candidate", candidates=[candidate(self._number, number)])
            self.times.append((time.perf_counter() - before) * 1000)
            if result["isError"] or result["structuredContent"]["accepted"] != 1:
                self.refused.append(json.dumps(result)[:300])
            else:
                self.refs.append(result["structuredContent"]["outcomes"][0]["ref"])


def facts(client: Client) -> set[str]:
    """The refs of all current facts."""
    found: set[str] = set()
    cursor: dict[str, str] = {}
    while True:
        page = client.list_long_term(limit=PAGE, **cursor)
        found |= {each.ref for each in page.records}
        if page.next_cursor is None:
            return found
        cursor = {"cursor": page.next_cursor}


def measure(hosts: int, writes: int, profile: str = PROFILE, command: str | None = None) -> Figures:
    """One run.

    Raises:
        AssertionError: a host was refused.
    """
    with Daemon(profile=profile, command=command) as daemon, ExitStack() as opened:
        connected = [opened.enter_context(Host("--socket", daemon.socket, "mcp")) for _ in range(hosts)]
        client = opened.enter_context(daemon.client())
        follower = opened.enter_context(daemon.client())
        events: list[str] = []
        followed = follower.subscribe(list(TOPIC_CAPABILITIES))
        listener = threading.Thread(target=lambda: events.extend(each.topic for each in followed))
        listener.start()
        start = threading.Barrier(hosts + 1)
        writers = [Writer(each, number, writes, start) for number, each in enumerate(connected)]
        for each in writers:
            each.start()
        recall = [sys.executable, "-m", "beetle", "--socket", daemon.socket, "recall", "pump"]
        console = Beside(lambda: _look(client), LOOKS_A_SECOND)
        line = Beside(lambda: subprocess.run(recall, cwd=ROOT, check=True, stdout=subprocess.DEVNULL) and None)
        with console, line:
            start.wait()
            began = time.monotonic()
            for each in writers:
                each.join()
            seconds = time.monotonic() - began
        host_mib = max(rss_mib(each.process.pid) for each in connected)
        daemon_mib = rss_mib(daemon.pid)
        assert all(each.end() == 0 for each in connected)
        acknowledged = {ref for each in writers for ref in each.refs}
        refused = [text for each in writers for text in each.refused]
        assert not refused, refused[:3]
        lost = sorted(acknowledged - facts(client))
        clean = client.verify_store().clean
        followed.close()
        listener.join()
    return Figures(
        acknowledged=len(acknowledged),
        lost=lost,
        seconds=seconds,
        write=quantiles([each for writer in writers for each in writer.times]),
        look=quantiles(console.times),
        cli=quantiles(line.times),
        looks=len(console.times),
        commands=len(line.times),
        events=len(events),
        clean=clean,
        daemon_mib=daemon_mib,
        host_mib=host_mib,
    )


def _look(client: Client) -> None:
    """What the console's overview asks."""
    client.console_overview()
    client.inspect()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=8, help="MCP processes (default: %(default)s)")
    parser.add_argument("--writes", type=int, default=1000, help="candidates each (default: %(default)s)")
    parser.add_argument("--profile", default=PROFILE)
    parser.add_argument("--command", default=None, help="the daemon to run (default: this checkout)")
    options = parser.parse_args()
    found = measure(options.hosts, options.writes, options.profile, options.command)
    print(f"{found.acknowledged} acknowledged in {found.seconds:.1f} s, {len(found.lost)} lost; clean: {found.clean}")
    print(f"{'':<18} {'n':>7} {'p50 ms':>9} {'p99 ms':>9}")
    for name, count, (p50, p99) in (
        ("write (MCP)", found.acknowledged, found.write),
        ("overview (client)", found.looks, found.look),
        ("recall (command)", found.commands, found.cli),
    ):
        print(f"{name:<18} {count:>7} {p50:>9.1f} {p99:>9.1f}")
    print(f"events followed {found.events}; RSS: daemon {found.daemon_mib:.1f} MiB, a host {found.host_mib:.1f} MiB")
    print(json.dumps(found._asdict()))
    whole = found.acknowledged == options.hosts * options.writes and not found.lost and found.clean
    return 0 if whole else 1


if __name__ == "__main__":
    sys.exit(main())
