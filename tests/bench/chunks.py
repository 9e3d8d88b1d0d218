"""Chunks at size: create, get, list by tag, changes, recall and deletion in p50 and p99, and the daemon's memory.

    python -m tests.bench.chunks [--chunks 100000] [--folder DIR] [--profile P]

One store is filled in process through the code that a create runs, hundreds to a transaction; --folder keeps it, and a
later run fills it further. Then a daemon opens it, and a single client asks each operation one by one over the socket.
Creates are on disk when they are acknowledged. Ratios count; the figures depend on the machine, and on what the folder
is: in memory a sync costs nothing.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

from beetle import MemoryRuntime
from beetle.client import Client
from beetle.runtime.areas.chunks.keeping import Draft, add
from beetle.runtime.pipeline.invocation import Call, Invocation
from beetle.store import evidence
from beetle.store.engine.write_transaction import WriteTransaction
from tests.bench.scale import material, text_of
from tests.running import Daemon, quantiles, rss_mib

AT_ONCE = 500
"""Chunks to a transaction while the store is filled."""
CONVERSATION = 200
"""Chunks of one conversation, one after the other."""
TAGS = 400
TYPES = ("fact", "preference", "pattern", "note", "decision")
SECOND = 1_000_000
BEGIN = 1_700_000_000 * SECOND
Figures = tuple[float, float]
"""p50 and p99: milliseconds."""
lines = cache(material)


def said(number: int) -> dict[str, Any]:
    """A chunk of a few lines of conversation; every chunk has one of the common tags and one of many rare ones."""
    rolls = random.Random(number)
    return {
        "content": "\n".join(text_of(lines()[0], rolls) for _ in range(4)),
        "conversation_id": f"conversation-{number // CONVERSATION}",
        "tags": (f"area-{number % 8}", f"tag-{rolls.randrange(TAGS)}"),
        "confidence": rolls.randrange(30, 100) / 100,
    }


def draft(number: int) -> Draft:
    """A chunk before it is stored; two of one conversation are half a minute apart."""
    at = BEGIN + number * 30 * SECOND
    return Draft(type=TYPES[number % 5], tokens=60, source="import", created_at=at, **said(number))


def write(invocation: Invocation, tx: WriteTransaction, numbers: range) -> None:
    """Many chunks, each with the links that a create makes."""
    space = evidence.ensure_space(tx, invocation.space_id, tx.now)
    for number in numbers:
        add(invocation, tx, space, draft(number), link=True)


def fill(store: str, profile: str, size: int) -> tuple[int, float]:
    """Store so many chunks; how many there were, and chunks a second."""
    with MemoryRuntime.open(store, profile=profile) as memory:
        opened = memory._opened
        invocation = opened.dispatcher._authorize(Call("chunk.create", {}, opened._caller))[1]  # type: ignore[union-attr]
        begin = memory.chunk_stats().total_chunks
        begun = time.perf_counter()
        for first in range(begin, size, AT_ONCE):
            numbers = range(first, min(first + AT_ONCE, size))
            invocation.shared.store.write(partial(write, invocation, numbers=numbers))
        return begin, max(0, size - begin) / (time.perf_counter() - begun)


def timed(asks: int, ask: Callable[[int], object]) -> Figures:
    """p50 and p99 of a call in milliseconds, the first few left out."""
    for number in range(3):
        ask(number)
    times: list[float] = []
    for number in range(asks):
        begun = time.perf_counter()
        ask(number + 3)
        times.append((time.perf_counter() - begun) * 1000)
    return quantiles(times)


def measure(client: Client, size: int, asks: int) -> dict[str, Figures]:
    """Every operation at a size; what writes comes last."""
    rolls = random.Random(size)
    questions = lines()[1]
    some = [each.id for each in client.list_chunks(tags=["tag-1"], limit=50).chunks]
    conversations = size // CONVERSATION
    figures = {
        "get": timed(asks, lambda n: client.get_chunk(some[n % len(some)])),
        "list, by a rare tag": timed(asks, lambda n: client.list_chunks(tags=[f"tag-{n % TAGS}"], limit=20)),
        "list, by a common and a rare": timed(
            asks, lambda n: client.list_chunks(tags=[f"area-{n % 8}", f"tag-{n % TAGS}"], limit=20)
        ),
        "list, by a common tag": timed(asks, lambda n: client.list_chunks(tags=[f"area-{n % 8}"], limit=20)),
        "list, by conversation": timed(
            asks,
            lambda _: client.list_chunks(conversation_id=f"conversation-{rolls.randrange(conversations)}", limit=20),
        ),
        "list, changed last": timed(asks, lambda _: client.list_chunks(changed_since=size - 20)),
        "recall, of all planes": timed(asks, lambda n: client.recall(query=questions[n % len(questions)], limit=10)),
        "chunk.recall": timed(asks, lambda n: client.recall_chunks(questions[n % len(questions)])),
        "chunk.recall, a conversation": timed(
            asks, lambda n: client.recall_chunks(questions[n % len(questions)], conversation_id="conversation-0")
        ),
        "stats by tag": timed(max(5, asks // 20), lambda _: client.chunk_stats(by="tag")),
    }
    figures["create"] = timed(asks, lambda n: client.create_chunk(**said(size + n)))
    figures["create, one conversation"] = timed(
        asks, lambda n: client.create_chunk(**{**said(size + n), "conversation_id": "conversation-0"})
    )
    figures["update"] = timed(asks, lambda n: client.update_chunk(id=some[n % len(some)], confidence=n % 100 / 100))
    figures["archive and restore"] = timed(
        asks, lambda n: (client.delete_chunk(some[n % len(some)]), client.restore_chunk(some[n % len(some)]))
    )
    return figures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chunks", type=int, default=100_000, help="how many there are (default: %(default)s)")
    parser.add_argument(
        "--folder", default=None, help="where the store is kept (default: a folder that goes at the end)"
    )
    parser.add_argument("--profile", default="profile-linux-device-standalone-memory")
    parser.add_argument("--asks", type=int, default=400, help="calls of each kind (default: %(default)s)")
    parser.add_argument("--verify", action="store_true", help="verify the store at the end")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="beetle-chunks-") as own:
        daemon = Daemon(profile=options.profile, folder=options.folder or own)
        begin, rate = fill(daemon.store, options.profile, options.chunks)
        with daemon, daemon.client(timeout=600) as client:
            empty = rss_mib(daemon.pid)
            figures = measure(client, options.chunks, options.asks)
            rss, megabytes = rss_mib(daemon.pid), Path(daemon.store).stat().st_size / 1e6
        told = (
            f"{options.chunks - begin:,} filled in at {rate:,.0f} a second"
            if begin < options.chunks
            else "filled before"
        )
        print(
            f"{options.chunks:,} chunks ({told}), store {megabytes:,.0f} MB, RSS {rss:.1f} MiB ({empty:.1f} at first)"
        )
        for name, (p50, p99) in figures.items():
            print(f"  {name:<30} {p50:>9.2f} {p99:>9.2f} ms")
        if options.verify:
            with MemoryRuntime.open(daemon.store, profile=options.profile) as memory:
                begun = time.perf_counter()
                clean = memory.verify_store().clean
            print(f"verify: {time.perf_counter() - begun:.1f} s, {'clean' if clean else 'NOT CLEAN'}")
        print(json.dumps({**figures, "rate": rate, "rss_mib": rss, "megabytes": megabytes}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
