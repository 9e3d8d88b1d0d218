"""What a write costs: acknowledged turns a second, CPU, pages and bytes to the disk, by statement and by tree.

    python -m tests.bench.writes [--turns N] [--rounds N] [--profile P] [--command BEETLE] [--folder FOLDER]

Two floors are measured in the same run: a loop of the binding that syncs each row, and the same with a row of a
full-text index in each commit. They and the clients take turns, so that a slow minute of the machine falls on each;
a ratio is of one round, and medians of the rounds are told. Ratios count: figures in seconds depend on the machine and
on what else it does, pages and bytes do not. `--folder` puts stores and floors on the disk that is meant.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from collections import Counter
from contextlib import closing
from itertools import count, islice
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


class Floor:
    """A loop of the binding that syncs each row, with or without its row of a full-text index, on a file that grows."""

    def __init__(self, folder: str, *, indexed: bool) -> None:
        self._indexed = indexed
        self._numbers = count()
        self._connection = apsw.Connection(str(Path(folder) / f"floor-{indexed}.db"))
        self._connection.pragma("journal_mode", "wal")
        self._connection.pragma("synchronous", 2)
        self._connection.execute(FLOOR_SQL)
        self._connection.execute(INDEX_SQL)

    def rows_a_second(self, rows: int) -> float:
        started = time.perf_counter()
        for number in islice(self._numbers, rows):
            text = TEXT.format(number, 0)
            with self._connection:
                self._connection.execute("INSERT INTO note (text) VALUES (?)", (text,))
                if self._indexed:
                    self._connection.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (number, text))
        return rows / (time.perf_counter() - started)

    def close(self) -> None:
        self._connection.close()


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


def clients(daemon: Daemon, many: int, turns: int, first: int) -> Rate:
    """What so many client processes get, and what the daemon spends on them."""
    context = multiprocessing.get_context("spawn")
    start, told = context.Barrier(many + 1), context.Queue()
    processes = [
        context.Process(target=write, args=(daemon.socket, first + each, turns, start, told)) for each in range(many)
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
    every = many * turns
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


class Round(NamedTuple):
    """Of one round: rows a second of the floors, and what 1 and 8 clients got."""

    row: float
    indexed: float
    one: Rate
    eight: Rate


def rounds(options: argparse.Namespace, daemon: Daemon, folder: str) -> list[Round]:
    """So many rounds; each has its share of the turns."""
    turns, found = max(1, options.turns // options.rounds), list[Round]()
    with closing(Floor(folder, indexed=False)) as row, closing(Floor(folder, indexed=True)) as indexed:
        for first in islice(count(step=9), options.rounds):
            rows, before = row.rows_a_second(turns), indexed.rows_a_second(turns)
            one, eight = clients(daemon, 1, turns, first), clients(daemon, 8, turns, first + 1)
            found.append(Round(rows, (before + indexed.rows_a_second(turns)) / 2, one, eight))
    return found


def medians(found: list[Round]) -> dict[str, dict[str, float]]:
    """Of each number of clients: its rate and what it costs, and its ratios to the floors."""
    told: dict[str, dict[str, float]] = {}
    for name, rates in (("1 client", [each.one for each in found]), ("8 clients", [each.eight for each in found])):
        columns = zip(*rates, strict=True)
        told[name] = dict(zip(Rate._fields, map(statistics.median, columns), strict=True))
        pairs = list(zip(rates, found, strict=True))
        told[name]["of_row"] = statistics.median(rate.turns_s / each.row for rate, each in pairs)
        told[name]["of_indexed"] = statistics.median(rate.turns_s / each.indexed for rate, each in pairs)
    return told


def _show(row: float, indexed: float, told: dict[str, dict[str, float]], rss: float) -> None:
    heads = ("turns/s", "÷ row", "÷ index", "p50 ms", "p99 ms", "CPU µs", "disk B")
    print(" " * 16, *(f"{each:>8}" for each in heads))
    print(f"{'raw, a row':<16} {row:>8.0f} {1:>8.2f}")
    print(f"{'raw, and index':<16} {indexed:>8.0f} {indexed / row:>8.2f} {1:>8.2f}")
    for name, each in told.items():
        of = f"{each['of_row']:>8.2f} {each['of_indexed']:>8.2f} {each['p50_ms']:>8.2f} {each['p99_ms']:>8.2f}"
        print(f"{name:<16} {each['turns_s']:>8.0f} {of} {each['cpu_us']:>8.0f} {each['disk_bytes']:>8.0f}")
    print(f"daemon RSS {rss:.1f} MiB\n")


def _show_pages(one: Written, twenty: Written, statements: list[tuple[float, float, str]]) -> None:
    for what, found in (("one turn", one), ("twenty turns", twenty)):
        size = f"{found.pages:.1f} pages, {found.pages * FRAME_BYTES:.0f} bytes"
        print(f"a commit of {what}: {size}; {found.bytes_a_turn:.0f} bytes a turn")
        for name, written_pages in found.trees.most_common():
            print(f"  {written_pages / found.commits:>6.2f}  {name}")
    print(f"\nstatements of a one-turn commit, {sum(each[0] for each in statements):.0f} µs in SQLite:")
    for micros, runs, sql in statements:
        print(f"  {micros:>7.1f} µs {runs:>5.1f} times  {sql[:100]}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=2000, help="turns a client (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=8, help="in which they are written (default: %(default)s)")
    parser.add_argument("--profile", default="profile-linux-device-standalone-memory")
    parser.add_argument("--command", default=None, help="the beetle to run (default: this checkout)")
    parser.add_argument("--folder", default=None, help="where stores and floors are (default: the temporary folder)")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="beetle-writes-", dir=options.folder) as folder,
        Daemon(profile=options.profile, command=options.command, folder=folder) as daemon,
    ):
        found = rounds(options, daemon, folder)
        rss = rss_mib(daemon.pid)
    row = statistics.median(each.row for each in found)
    indexed = statistics.median(each.indexed for each in found)
    rates = medians(found)
    _show(row, indexed, rates, rss)
    one, twenty, statements = pages(options.folder)
    _show_pages(one, twenty, statements)
    trees = {size: {"pages": found.pages, "bytes_a_turn": found.bytes_a_turn, "trees": dict(found.trees)}
             for size, found in (("one", one), ("twenty", twenty))}  # fmt: skip
    print(json.dumps({"floor": row, "floor_indexed": indexed, "rates": rates, "commits": trees, "rss_mib": rss,
                      "statements": statements}))  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
