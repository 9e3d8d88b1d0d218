"""Thought chains at size: append, search, head and traverse in p50 and p99, and the daemon's memory.

    python -m tests.bench.chains [--sizes 1000,100000,1000000] [--profile P] [--command BEETLE] [--asks N]

One chain is filled through the socket, a batch of appends to a transaction. At each size every operation is asked one
by one by a single client. Appends are on disk when they are acknowledged; the floor is one INSERT of the same text into
SQLite with the same journal and the same sync, in a loop without anything else. Ratios count; the figures depend on the
machine, and on what TMPDIR is: in memory a sync costs nothing.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw

from beetle.client import Client
from tests.bench.scale import WORDS
from tests.running import Daemon, quantiles, rss_mib

KEY = "long"
AGENTS = 8
TYPES = ("Plan", "Decision", "Finding", "Mistake", "LessonLearned", "ActionTaken", "Question", "Summary")
RARE_EVERY = 50_000
"""A thought among so many holds a word of its own."""
CHUNK = 50
Figures = tuple[float, float]
"""p50 and p99 in milliseconds."""


def thought(number: int) -> dict[str, Any]:
    """An append of about 170 characters, every fourth with a ref and every tenth with a relation to an earlier one."""
    rolls = random.Random(number)
    rare = f" needle{number // RARE_EVERY}" if number % RARE_EVERY == RARE_EVERY // 2 else ""
    arguments: dict[str, Any] = {
        "chain_key": KEY,
        "agent_id": f"agent-{number % AGENTS}",
        "thought_type": TYPES[number % len(TYPES)],
        "content": f"step {number}: {' '.join(rolls.choices(WORDS, k=24))}{rare}",
        "importance": rolls.random(),
        "tags": [rolls.choice(WORDS)],
        "concepts": [rolls.choice(WORDS)],
    }
    if number and not number % 4:
        arguments["refs"] = [rolls.randrange(number)]
    if number and not number % 10:
        arguments["relations"] = [{"kind": "supports", "index": rolls.randrange(number)}]
    return arguments


def fill(client: Client, start: int, stop: int, at_once: int) -> float:
    """Append thoughts `start` to `stop`, so many to a transaction; thoughts a second."""
    begun = time.perf_counter()
    for first in range(start, stop, at_once):
        numbers = range(first, min(first + at_once, stop))
        client.batch(requests=[{"op": "chain.append", "args": thought(each)} for each in numbers])
    return (stop - start) / (time.perf_counter() - begun)


def timed(asks: int, ask: Callable[[int], object]) -> Figures:
    """What a call takes, the first few left out."""
    times: list[float] = []
    for number in range(asks + 3):
        begun = time.perf_counter()
        ask(number)
        times.append((time.perf_counter() - begun) * 1000)
    return quantiles(times[3:])


def measure(client: Client, size: int, asks: int) -> dict[str, Figures]:
    """Every operation at a size; appends come last, since the chain grows by them."""
    rolls = random.Random(size)
    few = max(5, asks // 20)

    def search(**wanted: Any) -> object:
        return client.search_thoughts(chain_key=KEY, **wanted)

    def walk(**asked: Any) -> object:
        return client.traverse_thoughts(chain_key=KEY, chunk_size=CHUNK, **asked)

    figures = {
        "head": timed(asks, lambda _: client.chain_head(chain_key=KEY)),
        "search, newest of a type": timed(asks, lambda n: search(thought_types=[TYPES[n % len(TYPES)]], limit=10)),
        "search, a common word": timed(asks, lambda n: search(text=WORDS[n % len(WORDS)], limit=10)),
        "search, a word of one": timed(few, lambda _: search(text="needle0", limit=10)),
        "search, a word of none": timed(few, lambda _: search(text="not anywhere", limit=10)),
        "traverse, any place": timed(asks, lambda _: walk(anchor_index=rolls.randrange(size))),
        "traverse, back from head": timed(asks, lambda _: walk(direction="backward")),
        "thought by index": timed(
            asks, lambda _: client.get_thought(chain_key=KEY, thought_index=rolls.randrange(size))
        ),
        "recent context": timed(asks, lambda _: client.recent_context(chain_key=KEY)),
        "recall, three words": timed(
            asks, lambda _: client.recall(query=" ".join(rolls.sample(WORDS, 3)), planes=["thoughts"], limit=10)
        ),
    }
    figures["append"] = timed(asks, lambda n: client.append_thought(**thought(size + n)))
    return figures


def floor(asks: int, folder: Path) -> Figures:
    """The raw loop."""
    connection = apsw.Connection(str(folder / "floor.db"))
    connection.pragma("journal_mode", "wal")
    connection.pragma("synchronous", 2)
    connection.execute("CREATE TABLE note (note INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT")
    found = timed(asks, lambda n: connection.execute("INSERT INTO note (text) VALUES (?)", (thought(n)["content"],)))
    connection.close()
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="1000,10000,100000", help="thoughts, comma-separated (default: %(default)s)")
    parser.add_argument("--profile", default="profile-linux-device-standalone-memory")
    parser.add_argument("--command", default=None, help="the beetle to run (default: this checkout)")
    parser.add_argument("--asks", type=int, default=400, help="calls of each kind (default: %(default)s)")
    options = parser.parse_args()
    results: dict[int, dict[str, Any]] = {}
    with Daemon(profile=options.profile, command=options.command) as daemon, daemon.client(timeout=600) as client:
        at_once = client.hello().limits["batch_requests"]
        done = 0
        for size in (int(each) for each in options.sizes.split(",")):
            rate = fill(client, done, size, at_once)
            figures = measure(client, size, options.asks)
            raw = floor(options.asks, daemon.folder)
            (daemon.folder / "floor.db").unlink()
            done = client.chain_head(chain_key=KEY).thought_count
            rss, megabytes = rss_mib(daemon.pid), Path(daemon.store).stat().st_size / 1e6
            print(f"{size:,} thoughts: {rate:,.0f} a second in batches, store {megabytes:,.0f} MB, RSS {rss:.1f} MiB")
            for name, (p50, p99) in (*figures.items(), ("floor of append: raw SQLite", raw)):
                print(f"  {name:<28} {p50:>9.2f} {p99:>9.2f} ms")
            print(f"  append is {figures['append'][0] / raw[0]:.1f} times its floor at p50", flush=True)
            results[size] = {**figures, "floor": raw, "rate": rate, "rss_mib": rss, "megabytes": megabytes}
        begun = time.perf_counter()
        clean = client.verify_store().clean
        print(f"verify of {done:,} thoughts: {time.perf_counter() - begun:.1f} s, {'clean' if clean else 'NOT CLEAN'}")
    print(json.dumps(results))
    return 0 if clean else 1


if __name__ == "__main__":
    sys.exit(main())
