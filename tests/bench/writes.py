"""Acknowledged writes a second, with 1 and with 8 client processes, beside a raw SQLite loop in the same run.

    python -m tests.bench.writes [--turns N] [--profile P] [--command BEETLE]

The floor is one INSERT of the same text, one commit, one fsync, in a loop of the binding without anything else. Ratios
count; the figures themselves depend on the machine.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import tempfile
import time
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import apsw

from beetle.client import Client
from tests.running import Daemon, quantiles, rss_mib

TEXT = "note {} of writer {}: " + "the kettle is on and the cups are on the second shelf beside the window. " * 2


def turn(writer: int, number: int) -> dict[str, Any]:
    """A turn of one message of about 170 characters."""
    message = {"message_id": f"{writer}-{number}", "role": "user", "content": TEXT.format(number, writer)}
    return {"turn_id": f"{writer}-{number}", "at": "2026-01-02T03:04:05Z", "messages": [message]}


def floor(turns: int, folder: Path) -> float:
    """Rows a second of the raw loop."""
    connection = apsw.Connection(str(folder / "floor.db"))
    connection.pragma("journal_mode", "wal")
    connection.pragma("synchronous", 2)
    connection.execute("CREATE TABLE note (note INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT")
    started = time.perf_counter()
    for number in range(turns):
        connection.execute("INSERT INTO note (text) VALUES (?)", (TEXT.format(number, 0),))
    seconds = time.perf_counter() - started
    connection.close()
    return turns / seconds


def write(path: str, writer: int, turns: int, start: Barrier, told: Any) -> None:
    """One client process: commits turns one by one, tells when it began and ended and how long each took."""
    times: list[float] = []
    with Client(path) as client:
        where = {"conversation_id": f"w{writer}"}
        start.wait()
        began = time.monotonic()
        for number in range(turns):
            before = time.perf_counter()
            client.commit_transcript(conversation=where, turns=[turn(writer, number)])
            times.append((time.perf_counter() - before) * 1000)
        told.put((began, time.monotonic(), times))


def clients(daemon: Daemon, count: int, turns: int, first: int) -> tuple[float, float, float]:
    """Acknowledged turns a second over all clients, and p50 and p99 in milliseconds."""
    context = multiprocessing.get_context("spawn")
    start, told = context.Barrier(count), context.Queue()
    processes = [
        context.Process(target=write, args=(daemon.socket, first + each, turns, start, told)) for each in range(count)
    ]
    for process in processes:
        process.start()
    results = [told.get() for _ in processes]
    for process in processes:
        process.join()
    seconds = max(end for _, end, _ in results) - min(began for began, _, _ in results)
    p50, p99 = quantiles([each for _, _, times in results for each in times])
    return count * turns / seconds, p50, p99


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=2000, help="turns a client (default: %(default)s)")
    parser.add_argument("--profile", default="profile-linux-device-standalone-memory")
    parser.add_argument("--command", default=None, help="the beetle to run (default: this checkout)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="beetle-floor-") as folder:
        before = floor(options.turns * 2, Path(folder))
    with Daemon(profile=options.profile, command=options.command) as daemon:
        one = clients(daemon, 1, options.turns, 0)
        eight = clients(daemon, 8, options.turns, 1)
        rss = rss_mib(daemon.pid)
    with tempfile.TemporaryDirectory(prefix="beetle-floor-") as folder:
        after = floor(options.turns * 2, Path(folder))
    raw = (before + after) / 2
    print(f"{'':<16} {'writes/s':>9} {'of floor':>9} {'p50 ms':>8} {'p99 ms':>8}")
    print(f"{'raw SQLite':<16} {raw:>9.0f} {1:>9.2f}")
    for name, (rate, p50, p99) in (("1 client", one), ("8 clients", eight)):
        print(f"{name:<16} {rate:>9.0f} {rate / raw:>9.2f} {p50:>8.2f} {p99:>8.2f}")
    print(f"floor before {before:.0f}, after {after:.0f}; daemon RSS {rss:.1f} MiB")
    print(json.dumps({"floor": raw, "one": one, "eight": eight, "rss_mib": rss}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
