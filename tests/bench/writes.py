"""What a write costs: acknowledged turns a second, CPU, pages and bytes to the disk, by statement and by tree.

    python -m tests.bench.writes [--turns N] [--profile P] [--command BEETLE] [--folder FOLDER]

Two floors are measured in the same run, before and after: a loop of the binding that syncs each row, and the same with
a row of a full-text index in each commit. Ratios count: figures in seconds depend on the machine and on what else it
does, pages and bytes do not. `--folder` puts stores and floors on the disk that is meant.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
import time
from collections import Counter
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from beetle.client import Client
from beetle.store.engine.store import Store
from tests.running import Daemon, quantiles, rss_mib
from tests.store.conftest import commit, open_runtime, store_of, ticking
from tests.wal import FRAME_BYTES, Written, written

TEXT = "note {} of writer {}: " + "the kettle is on and the cups are on the second shelf beside the window. " * 2
FLOOR_SQL = "CREATE TABLE note (note INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT"
INDEX_SQL = """
CREATE VIRTUAL TABLE words USING fts5(text, content = '', tokenize = 'porter unicode61 remove_diacritics 2')
"""
WARM = 1_000
"""Turns in the store before pages are counted, so that no tree is a single page."""
COMMITS = 100
TICKS = os.sysconf("SC_CLK_TCK")


class Rate(NamedTuple):
    """Acknowledged turns a second, milliseconds of a call, and of the daemon: CPU microseconds and disk bytes a turn.

    `disk_bytes` is what the kernel counted for the daemon; 0 where stores are in memory.
    """

    turns_s: float
    p50_ms: float
    p99_ms: float
    cpu_us: float
    disk_bytes: float


def turn(writer: int, number: int) -> dict[str, Any]:
    """A turn of one message of about 170 characters."""
    message = {"message_id": f"{writer}-{number}", "role": "user", "content": TEXT.format(number, writer)}
    return {"turn_id": f"{writer}-{number}", "at": "2026-01-02T03:04:05Z", "messages": [message]}


def floor(turns: int, folder: str | None, *, indexed: bool) -> float:
    """Rows a second of the raw loop."""
    with tempfile.TemporaryDirectory(prefix="beetle-floor-", dir=folder) as made:
        connection = apsw.Connection(str(Path(made) / "floor.db"))
        connection.pragma("journal_mode", "wal")
        connection.pragma("synchronous", 2)
        connection.execute(FLOOR_SQL)
        connection.execute(INDEX_SQL)
        started = time.perf_counter()
        for number in range(turns):
            text = TEXT.format(number, 0)
            with connection:
                connection.execute("INSERT INTO note (text) VALUES (?)", (text,))
                if indexed:
                    connection.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (number, text))
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


def _used(pid: int) -> tuple[float, int]:
    """CPU seconds of a process, user and system, and the bytes that it had written to disks."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    disk = [line for line in Path(f"/proc/{pid}/io").read_text().splitlines() if line.startswith("write_bytes")]
    return (int(fields[11]) + int(fields[12])) / TICKS, int(disk[0].split()[1])


def clients(daemon: Daemon, count: int, turns: int, first: int) -> Rate:
    """What so many client processes get, and what the daemon spends on them."""
    context = multiprocessing.get_context("spawn")
    start, told = context.Barrier(count + 1), context.Queue()
    processes = [
        context.Process(target=write, args=(daemon.socket, first + each, turns, start, told)) for each in range(count)
    ]
    for process in processes:
        process.start()
    start.wait()
    cpu, disk = _used(daemon.pid)
    results = [told.get() for _ in processes]
    cpu_after, disk_after = _used(daemon.pid)
    for process in processes:
        process.join()
    seconds = max(end for _, end, _ in results) - min(began for began, _, _ in results)
    p50, p99 = quantiles([each for _, _, times in results for each in times])
    every = count * turns
    return Rate(every / seconds, p50, p99, (cpu_after - cpu) * 1e6 / every, (disk_after - disk) / every)


class Statements:
    """CPU time of each statement of a connection, without those that it runs itself, as the full-text index does.

    SQLite's own profile counts whole milliseconds.
    """

    KINDS = apsw.SQLITE_TRACE_STMT | apsw.SQLITE_TRACE_PROFILE

    def __init__(self) -> None:
        self.spent, self.runs = Counter[str](), Counter[str]()
        self._open: list[list[Any]] = []

    def told(self, event: dict[str, Any]) -> None:
        """A statement begins or has ended."""
        now = time.thread_time_ns()
        if event["code"] == apsw.SQLITE_TRACE_STMT:
            self._open.append([event["id"], now, 0])
            return
        while self._open:
            one, began, inside = self._open.pop()
            if one == event["id"]:
                sql = " ".join(event["sql"].split())
                self.spent[sql] += now - began - inside
                self.runs[sql] += 1
                if self._open:
                    self._open[-1][2] += now - began
                return

    def watch(self, store: Store, on: bool) -> None:
        """Of the connection that writes."""
        store.writer.apart(lambda connection: connection.trace_v2(self.KINDS if on else 0, self.told if on else None))


def pages(folder: str | None) -> tuple[Written, Written, list[tuple[float, float, str]]]:
    """Pages of commits of one turn and of twenty; (microseconds, runs, SQL) a one-turn commit of each statement."""
    statements = Statements()
    with tempfile.TemporaryDirectory(prefix="beetle-pages-", dir=folder) as made:
        path = Path(made) / "store.db"
        with open_runtime(path, now=ticking(), wal_bytes=2**30) as memory:
            numbers = iter(range(10**9))

            def several(_: int, size: int) -> None:
                commit(memory, *(turn(0, next(numbers)) for _ in range(size)))

            for _ in range(WARM // 50):
                several(0, 50)
            one, twenty = (written(path, several, COMMITS, size) for size in (1, 20))
            statements.watch(store_of(memory), True)
            for _ in range(COMMITS):
                several(0, 1)
            statements.watch(store_of(memory), False)
    found = [
        (spent / 1000 / COMMITS, statements.runs[sql] / COMMITS, sql) for sql, spent in statements.spent.most_common()
    ]
    return one, twenty, found


def _show(floors: tuple[float, float], rates: dict[str, Rate], rss: float) -> None:
    row, indexed = floors
    heads = ("turns/s", "÷ row", "÷ index", "p50 ms", "p99 ms", "CPU µs", "disk B")
    print(" " * 16, *(f"{each:>8}" for each in heads))
    print(f"{'raw, a row':<16} {row:>8.0f} {1:>8.2f}")
    print(f"{'raw, and index':<16} {indexed:>8.0f} {indexed / row:>8.2f} {1:>8.2f}")
    for name, (rate, p50, p99, cpu, disk) in rates.items():
        of = f"{rate / row:>8.2f} {rate / indexed:>8.2f}"
        print(f"{name:<16} {rate:>8.0f} {of} {p50:>8.2f} {p99:>8.2f} {cpu:>8.0f} {disk:>8.0f}")
    print(f"daemon RSS {rss:.1f} MiB\n")


def _show_pages(one: Written, twenty: Written, statements: list[tuple[float, float, str]]) -> None:
    for what, found in (("one turn", one), ("twenty turns", twenty)):
        size = f"{found.pages:.1f} pages, {found.pages * FRAME_BYTES:.0f} bytes"
        print(f"a commit of {what}: {size}; {found.bytes_a_turn:.0f} bytes a turn")
        for name, count in found.trees.most_common():
            print(f"  {count / found.commits:>6.2f}  {name}")
    print(f"\nstatements of a one-turn commit, {sum(each[0] for each in statements):.0f} µs in SQLite:")
    for micros, runs, sql in statements:
        print(f"  {micros:>7.1f} µs {runs:>5.1f} times  {sql[:100]}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=2000, help="turns a client (default: %(default)s)")
    parser.add_argument("--profile", default="profile-linux-device-standalone-memory")
    parser.add_argument("--command", default=None, help="the beetle to run (default: this checkout)")
    parser.add_argument("--folder", default=None, help="where stores and floors are (default: the temporary folder)")
    options = parser.parse_args()
    before = [floor(options.turns, options.folder, indexed=each) for each in (False, True)]
    with (
        tempfile.TemporaryDirectory(prefix="beetle-writes-", dir=options.folder) as folder,
        Daemon(profile=options.profile, command=options.command, folder=folder) as daemon,
    ):
        rates = {"1 client": clients(daemon, 1, options.turns, 0)}
        rates["8 clients"] = clients(daemon, 8, options.turns, 1)
        rss = rss_mib(daemon.pid)
    after = [floor(options.turns, options.folder, indexed=each) for each in (False, True)]
    row, indexed = ((a + b) / 2 for a, b in zip(before, after, strict=True))
    _show((row, indexed), rates, rss)
    one, twenty, statements = pages(options.folder)
    _show_pages(one, twenty, statements)
    told = {name: found._asdict() for name, found in rates.items()}
    trees = {size: {"pages": found.pages, "bytes_a_turn": found.bytes_a_turn, "trees": dict(found.trees)}
             for size, found in (("one", one), ("twenty", twenty))}  # fmt: skip
    print(json.dumps({"floor": row, "floor_indexed": indexed, "rates": told, "commits": trees, "rss_mib": rss,
                      "statements": statements}))  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
