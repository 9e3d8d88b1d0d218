"""The time index at size: events over five years, ingest, table of contents, and what reads it, beside raw SQLite.

    python -m tests.bench.timeline [--events 100000] [--profile P] [--command BEETLE]

Events are recombined halves of LoCoMo lines (or of made-up sentences where the data are not there), in sessions of 40,
a minute apart. The daemon gets them in batches and builds the table of contents; a late event is rolled up by itself.
The floor is one table of the same texts with an index by time and one by session, in process: one commit for each
batch, pages and neighbours by the index.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apsw

from beetle.client import Client
from beetle.contracts.errors import Conflict
from tests.bench.scale import material, text_of
from tests.running import Daemon, quantiles, rss_mib

BEGIN_MS = int(datetime(2021, 1, 1, tzinfo=UTC).timestamp() * 1000)
YEARS_MS = 5 * 365 * 86_400_000
SESSION_EVENTS = 40
STEP_MS = 60_000
BATCH = 200
PAGE, AROUND = 50, 3
READS = 1000
JOBS = ("outbox-processor", "segment-summarizer", "hourly-rollup")
Row = tuple[str, int, str, str]
"""Id, time in milliseconds, session and text of an event."""


def rows(lines: list[str], start: int, stop: int, total: int) -> list[Row]:
    """Events `start` to `stop` of so many: sessions begin at equal distances over the five years."""
    rolls = random.Random(start)
    distance = YEARS_MS // max(1, total // SESSION_EVENTS)
    return [
        (
            f"e{number:09}",
            BEGIN_MS + number // SESSION_EVENTS * distance + number % SESSION_EVENTS * STEP_MS,
            f"s{number // SESSION_EVENTS}",
            text_of(lines, rolls),
        )
        for number in range(start, stop)
    ]


def event(row: Row) -> dict[str, Any]:
    """The arguments of event.ingest."""
    event_id, at, session, text = row
    said = {"event_id": event_id, "timestamp_ms": at, "session_id": session, "text": text}
    return {"event": {**said, "event_type": "user_message"}}


def ingest(client: Client, lines: list[str], total: int) -> float:
    """Events a second, acknowledged."""
    spent = 0.0
    for start in range(0, total, BATCH):
        found = rows(lines, start, min(start + BATCH, total), total)
        requests = [{"op": "event.ingest", "args": event(each)} for each in found]
        began = time.perf_counter()
        client.call("batch", {"requests": requests})
        spent += time.perf_counter() - began
    return total / spent


def cpu_s(pid: int) -> float:
    """Seconds of processor time that a process has taken."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def timed(what: Callable[[], Any], pid: int) -> tuple[float, float, float]:
    """p50 and p99 in milliseconds, and milliseconds of the process's processor time for each read."""
    times: list[float] = []
    before = cpu_s(pid)
    for _ in range(READS):
        began = time.perf_counter()
        what()
        times.append((time.perf_counter() - began) * 1000)
    return *quantiles(times), (cpu_s(pid) - before) * 1000 / READS


def nodes_of(client: Client, rolls: random.Random) -> dict[str, list[str]]:
    """Ids of some nodes of each level, and of grips of some segments."""
    found: dict[str, list[str]] = {"grips": []}
    parents = [each.node_id for each in client.toc_root().nodes]
    for level in ("year", "month", "week", "day"):
        found[level] = parents
        below = [child for each in parents for child in client.toc_browse(parent_id=each, limit=20).children]
        chosen = rolls.sample(below, min(60, len(below)))
        parents = [each.node_id for each in chosen]
        found["grips"] = [grip for each in chosen for bullet in each.bullets for grip in bullet.grip_ids]
    return found


def beetle(daemon: Daemon, lines: list[str], total: int) -> dict[str, Any]:
    """Every figure of the daemon."""
    rolls = random.Random(5)
    told: dict[str, Any] = {}
    with daemon.client(timeout=3600) as client:
        before = cpu_s(daemon.pid)
        told["ingest"] = ingest(client, lines, total)
        told["ingest_cpu_s"] = cpu_s(daemon.pid) - before
        told["rss_ingest"] = rss_mib(daemon.pid)
        print(f"{total:,} events kept, {told['ingest']:,.0f} a second", file=sys.stderr, flush=True)
        began, before = time.perf_counter(), cpu_s(daemon.pid)
        report = client.rebuild_toc()
        told["build_cpu_s"] = cpu_s(daemon.pid) - before
        told["build_s"], told["nodes"] = time.perf_counter() - began, report.nodes
        told["rss_built"] = rss_mib(daemon.pid)
        print(f"{report.nodes:,} nodes built in {told['build_s']:.1f} s", file=sys.stderr, flush=True)
        told["late_s"] = late(client, total)
        last = BEGIN_MS + YEARS_MS

        def page() -> int:
            start = rolls.randrange(BEGIN_MS, last - YEARS_MS // 50)
            return len(client.event_range(from_timestamp_ms=start, to_timestamp_ms=last, limit=PAGE).events)

        assert page() == PAGE
        told["range"] = timed(page, daemon.pid)
        nodes = nodes_of(client, rolls)
        told["root"] = timed(client.toc_root, daemon.pid)
        for level in ("year", "month", "week", "day"):

            def browse(ids: list[str] = nodes[level]) -> None:
                client.toc_browse(parent_id=rolls.choice(ids))

            told[f"browse {level}"] = timed(browse, daemon.pid)
        told["expand"] = timed(lambda: client.expand_grip(grip_id=rolls.choice(nodes["grips"])), daemon.pid)
        told["rss"] = rss_mib(daemon.pid)
    told["bytes"] = sum(each.stat().st_size for each in Path(daemon.store).parent.glob(Path(daemon.store).name + "*"))
    return told


def late(client: Client, total: int) -> float:
    """Seconds from an event that comes years late to the year's node that counts it."""
    at = BEGIN_MS + YEARS_MS // 3
    client.call("event.ingest", event((f"late-{total}", at, "late", "The late train of the valley has come at last.")))
    began = time.perf_counter()
    for name in JOBS:
        while True:
            try:
                client.run_job(job_name=name, wait=True)
                break
            except Conflict:  # the clock has just started it
                time.sleep(0.05)
    return time.perf_counter() - began


def floor(lines: list[str], total: int, folder: Path) -> dict[str, Any]:
    """The same of one table."""
    connection = apsw.Connection(str(folder / "floor.db"))
    connection.pragma("journal_mode", "wal")
    connection.pragma("synchronous", 2)
    connection.execute(
        "CREATE TABLE event (event INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, at INTEGER NOT NULL,"
        " session TEXT NOT NULL, text TEXT NOT NULL) STRICT;"
        "CREATE INDEX by_time ON event (at, id); CREATE INDEX by_session ON event (session, at)"
    )
    spent = 0.0
    for start in range(0, total, BATCH):
        found = rows(lines, start, min(start + BATCH, total), total)
        began = time.perf_counter()
        with connection:
            connection.executemany("INSERT INTO event (id, at, session, text) VALUES (?, ?, ?, ?)", found)
        spent += time.perf_counter() - began
    rolls = random.Random(5)
    around = "SELECT * FROM event WHERE session = ? AND at BETWEEN ? AND ? ORDER BY at LIMIT ?"

    def page() -> None:
        start = rolls.randrange(BEGIN_MS, BEGIN_MS + YEARS_MS - YEARS_MS // 50)
        list(connection.execute("SELECT * FROM event WHERE at >= ? ORDER BY at, id LIMIT ?", (start, PAGE)))

    def expand() -> None:
        number = rolls.randrange(total // SESSION_EVENTS)
        at = BEGIN_MS + number * (YEARS_MS // max(1, total // SESSION_EVENTS)) + 20 * STEP_MS
        within = (f"s{number}", at - AROUND * STEP_MS, at + AROUND * STEP_MS, 2 * AROUND + 1)
        list(connection.execute(around, within))

    told = {"ingest": total / spent, "range": timed(page, os.getpid()), "expand": timed(expand, os.getpid())}
    connection.close()
    return {**told, "bytes": os.path.getsize(folder / "floor.db")}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=100_000, help="how many (default: %(default)s)")
    parser.add_argument("--profile", default="profile-server-linux-dev-full")
    parser.add_argument("--command", default=None, help="the beetle to run (default: this checkout)")
    options = parser.parse_args()
    lines, _ = material()
    with tempfile.TemporaryDirectory(prefix="beetle-floor-") as folder:
        raw = floor(lines, options.events, Path(folder))
    with Daemon(profile=options.profile, command=options.command) as daemon:
        ours = beetle(daemon, lines, options.events)
    print(f"{options.events:,} events over five years, {ours['nodes']:,} nodes; {options.profile}")
    each = ours["ingest_cpu_s"] * 1000 / options.events
    print(f"ingest      {ours['ingest']:>9,.0f} events/s ({each:.2f} ms of CPU each), raw SQLite {raw['ingest']:,.0f}")
    print(f"store       {ours['bytes'] / 1e6:>9,.1f} MB, raw SQLite {raw['bytes'] / 1e6:,.1f}")
    spent, late_s = ours["build_cpu_s"], ours["late_s"]
    print(f"build       {ours['build_s']:>9,.1f} s for all ({spent:.1f} s of CPU), {late_s:.2f} s for one late event")
    built, read = ours["rss_built"], ours["rss"]
    print(f"RSS         {ours['rss_ingest']:>9,.1f} MiB after ingest, {built:.1f} when built, {read:.1f} after reads")
    heads = ("p50 ms", "p99 ms", "CPU ms", "raw p50", "raw p99", "raw CPU")
    print(f"{'':<14} " + " ".join(f"{each:>8}" for each in heads))
    for name in ("range", "root", "browse year", "browse month", "browse week", "browse day", "expand"):
        figures = (*ours[name], *raw.get(name, ()))
        print(f"{name:<14} " + " ".join(f"{each:>8.3f}" for each in figures))
    print(json.dumps({"events": options.events, "beetle": ours, "floor": raw}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
