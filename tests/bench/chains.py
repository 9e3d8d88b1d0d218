"""Thought chains at size: append, search, head and traverse in p50 and p99, and the daemon's memory.

    python -m tests.bench.chains [--sizes 1000,100000,1000000] [--folder DIR] [--profile P] [--command BEETLE]

One chain is filled in process with the rows that an import writes, thousands to a transaction; --folder keeps it, and
a later run fills it further. At each size a daemon opens the store, and a single client asks every operation
one by one over the socket. The last column is the processor time that a call costs the daemon: it tells of the code
where others use the machine. Appends are on disk when they are acknowledged; the floor is one INSERT of the same text
into SQLite with the same journal and the same sync, in a loop without anything else. Ratios count; the figures depend
on the machine, and on what the folder is: in memory a sync costs nothing.
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
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch
from uuid import UUID

import apsw

from beetle import MemoryRuntime
from beetle.client import Client
from beetle.domain.chains import ledger
from beetle.domain.chains.ledger import Body, Relation, Thought
from beetle.domain.lexical import thought_fields
from beetle.runtime.areas.chains import registering, writing
from beetle.runtime.pipeline.invocation import Call, Invocation
from beetle.runtime.planes.thought_rows import NAME
from beetle.store import chain_agents, evidence, recall_index, thoughts
from beetle.store.chains import ChainRow
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.recall_index import Entry
from tests.bench.scale import material, text_of
from tests.running import Daemon, quantiles, rss_mib

KEY = "long"
AGENTS = 8
TYPES = ("Plan", "Decision", "Finding", "Mistake", "LessonLearned", "ActionTaken", "Question", "Summary")
RARE_EVERY = 50_000
"""A thought among so many holds a word of its own."""
CHUNK = 50
AT_ONCE = 5_000
"""Thoughts to a transaction while the chain is filled."""
Figures = tuple[float, float, float]
"""p50 and p99, and the daemon's processor time of a call: milliseconds."""
TICKS = os.sysconf("SC_CLK_TCK")
lines = cache(material)


def thought(number: int) -> dict[str, Any]:
    """An append of a line of conversation; every fourth has a ref, every tenth a relation to an earlier one."""
    rolls = random.Random(number)
    rare = f" needle{number // RARE_EVERY}" if number % RARE_EVERY == RARE_EVERY // 2 else ""
    arguments: dict[str, Any] = {
        "chain_key": KEY,
        "agent_id": f"agent-{number % AGENTS}",
        "thought_type": TYPES[number % len(TYPES)],
        "content": f"{text_of(lines()[0], rolls)}{rare}",
        "importance": rolls.randrange(1, 100) / 100,
        "tags": [f"area-{rolls.randrange(40)}"],
        "concepts": [f"concept-{rolls.randrange(400)}"],
        "refs": [] if number % 4 or not number else [rolls.randrange(number)],
        "relations": [] if number % 10 or not number else [{"kind": "supports", "index": rolls.randrange(number)}],
    }
    return arguments


def canonical(value: Any) -> bytes:
    """RFC 8785, quicker than the library, of values whose keys are ASCII and whose numbers have a few digits."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()


class Made(NamedTuple):
    """The rows of one thought, by their tables."""

    thought: tuple[Any, ...]
    body: tuple[Any, ...]
    links: list[tuple[Any, ...]]
    entry: tuple[Any, ...]


def made(chain: ChainRow, number: int, at: int, previous: str) -> tuple[Made, str]:
    """What an append writes of a thought, and its hash. The store holds no other chain: keys count with places."""
    said, key = thought(number), number + 1
    body = Body(os.urandom(ledger.SALT_BYTES), said["content"], tuple(said["tags"]), tuple(said["concepts"]))
    relations = tuple(Relation(each["kind"], each["index"]) for each in said["relations"])
    row = Thought(
        ledger.SCHEMA_VERSION, str(UUID(bytes=os.urandom(16), version=4)), number, at, None, said["agent_id"], None,
        said["thought_type"], "Memory", None, said["importance"], tuple(said["refs"]), relations,
        ledger.body_digest(body), previous, "",
    )  # fmt: skip
    digest = ledger.thought_hash(row)
    links = [("refers", each) for each in row.refs] + [(each.kind, each.position) for each in relations]
    fields = thought_fields(
        content=body.content, tags=body.tags, concepts=body.concepts, agent_id=row.agent_id, at_us=at
    )
    entry = Entry(NAME, key, chain.space, None, "shared")
    hashes = (bytes.fromhex(each) for each in (row.content_digest, previous, digest))
    return Made(
        (chain.chain, number, *row[:2], *row[3:11], *hashes),
        (key, body.salt, body.content, *(json.dumps(each, ensure_ascii=False) for each in body[2:4]), None),
        [(key, place, kind, to, to + 1, None, None, None) for place, (kind, to) in enumerate(links)],
        (recall_index.rowid_of(entry), *fields, recall_index.scope_of(entry)),
    ), digest


def append(invocation: Invocation, tx: WriteTransaction, numbers: range) -> None:
    """Many thoughts, and one event for all of them, as an import has it."""
    chain = writing.ensure_chain(tx, evidence.ensure_space(tx, invocation.space_id, tx.now), KEY)
    agents = [registering.writer_of(tx, chain.chain, f"agent-{each}", None, None).agent for each in range(AGENTS)]
    rows: list[Made] = []
    head = chain.head.hex()
    for number in numbers:
        row, head = made(chain, number, tx.now, head)
        rows.append(row)
    acts = [(agents[number % AGENTS], number, tx.now) for number in numbers]
    many = tx.connection.executemany
    many(thoughts.NEW_SQL, [each.thought for each in rows])
    many(thoughts.NEW_BODY_SQL, [each.body for each in rows])
    many(thoughts.NEW_LINK_SQL, [link for each in rows for link in each.links])
    many(recall_index.ADD_SQL, [each.entry for each in rows])
    many(chain_agents.ACT_SQL, acts)
    grown = chain._replace(length=numbers.stop, head=bytes.fromhex(head), updated_at=tx.now)
    writing.grow(invocation, tx, grown, "imported")


def fill(store: str, profile: str, size: int) -> tuple[int, float]:
    """Make the chain so long; how long it was, and thoughts a second."""
    with MemoryRuntime.open(store, profile=profile) as memory, patch.object(ledger, "canonical", canonical):
        opened = memory._opened
        invocation = opened.dispatcher._authorize(Call("chain.append", {}, opened._caller))[1]  # type: ignore[union-attr]
        begin = memory.chain_head(chain_key=KEY).thought_count
        begun = time.perf_counter()
        for first in range(begin, size, AT_ONCE):
            numbers = range(first, min(first + AT_ONCE, size))
            invocation.shared.store.write(partial(append, invocation, numbers=numbers))
        return begin, max(0, size - begin) / (time.perf_counter() - begun)


def processor_ms(pid: int) -> float:
    """What a process has used of the processors, all its threads together."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * 1000 / TICKS


def timed(pid: int, asks: int, ask: Callable[[int], object]) -> Figures:
    """What a call takes, the first few left out."""
    for number in range(3):
        ask(number)
    times: list[float] = []
    used = processor_ms(pid)
    for number in range(asks):
        begun = time.perf_counter()
        ask(number + 3)
        times.append((time.perf_counter() - begun) * 1000)
    return (*quantiles(times), (processor_ms(pid) - used) / asks)


def measure(client: Client, pid: int, size: int, asks: int) -> dict[str, Figures]:
    """Every operation at a size; appends come last, since the chain grows by them."""
    rolls = random.Random(size)
    few = max(5, asks // 20)
    questions = lines()[1]

    def search(**wanted: Any) -> object:
        return client.search_thoughts(chain_key=KEY, **wanted)

    def walk(**asked: Any) -> object:
        return client.traverse_thoughts(chain_key=KEY, chunk_size=CHUNK, **asked)

    figures = {
        "head": timed(pid, asks, lambda _: client.chain_head(chain_key=KEY)),
        "search, newest of a type": timed(pid, asks, lambda n: search(thought_types=[TYPES[n % len(TYPES)]], limit=10)),
        "search, a common word": timed(pid, asks, lambda _: search(text="because", limit=10)),
        "search, a word of one": timed(pid, few, lambda _: search(text="needle0", limit=10)),
        "search, a word of none": timed(pid, few, lambda _: search(text="not anywhere", limit=10)),
        "traverse, any place": timed(pid, asks, lambda _: walk(anchor_index=rolls.randrange(size))),
        "traverse, back from head": timed(pid, asks, lambda _: walk(direction="backward")),
        "thought by index": timed(
            pid, asks, lambda _: client.get_thought(chain_key=KEY, thought_index=rolls.randrange(size))
        ),
        "recent context": timed(pid, asks, lambda _: client.recent_context(chain_key=KEY)),
        "recall, a question": timed(
            pid, asks, lambda n: client.recall(query=questions[n % len(questions)], planes=["thoughts"], limit=10)
        ),
    }
    figures["append"] = timed(pid, asks, lambda n: client.append_thought(**thought(size + n)))
    return figures


def floor(asks: int, folder: Path) -> Figures:
    """The raw loop."""
    connection = apsw.Connection(str(folder / "floor.db"))
    connection.pragma("journal_mode", "wal")
    connection.pragma("synchronous", 2)
    connection.execute("CREATE TABLE note (note INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT")
    sql = "INSERT INTO note (text) VALUES (?)"
    found = timed(os.getpid(), asks, lambda n: connection.execute(sql, (thought(n)["content"],)))
    connection.close()
    for end in ("", "-wal", "-shm"):
        (folder / f"floor.db{end}").unlink(missing_ok=True)
    return found


def at_size(size: int, folder: str, options: argparse.Namespace) -> dict[str, Any]:
    """Fill, measure, and print."""
    daemon = Daemon(profile=options.profile, command=options.command, folder=folder)
    begin, rate = fill(daemon.store, options.profile, size)
    with daemon, daemon.client(timeout=600) as client:
        figures = measure(client, daemon.pid, size, options.asks)
        rss, megabytes = rss_mib(daemon.pid), Path(daemon.store).stat().st_size / 1e6
    raw = floor(options.asks, Path(folder))
    told = f"{size - begin:,} filled in at {rate:,.0f} a second" if begin < size else "filled before"
    print(f"{size:,} thoughts ({told}), store {megabytes:,.0f} MB, RSS {rss:.1f} MiB")
    for name, (p50, p99, used) in (*figures.items(), ("floor of append: raw SQLite", raw)):
        print(f"  {name:<28} {p50:>9.2f} {p99:>9.2f} ms {used:>9.2f} ms of a processor")
    print(f"  append is {figures['append'][0] / raw[0]:.1f} times its floor at p50", flush=True)
    return {**figures, "floor": raw, "rate": rate, "rss_mib": rss, "megabytes": megabytes}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="1000,10000,100000", help="thoughts, comma-separated (default: %(default)s)")
    parser.add_argument(
        "--folder", default=None, help="where the store is kept (default: a folder that goes at the end)"
    )
    parser.add_argument("--profile", default="profile-linux-device-standalone-memory")
    parser.add_argument("--command", default=None, help="the beetle to run (default: this checkout)")
    parser.add_argument("--asks", type=int, default=400, help="calls of each kind (default: %(default)s)")
    parser.add_argument("--verify", action="store_true", help="recompute the whole chain at the end")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="beetle-chains-") as own:
        folder = options.folder or own
        results = {size: at_size(size, folder, options) for size in map(int, options.sizes.split(","))}
        if options.verify:
            with MemoryRuntime.open(str(Path(folder) / "b.db"), profile=options.profile) as memory:
                begun = time.perf_counter()
                clean = memory.verify_store().clean
            print(f"verify: {time.perf_counter() - begun:.1f} s, {'clean' if clean else 'NOT CLEAN'}")
    print(json.dumps(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
