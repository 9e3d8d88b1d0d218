"""Chunks at size: create, get, list by tag, changes, recall and deletion in p50 and p99, and the daemon's memory.

    python -m tests.bench.chunks [--chunks 100000] [--folder DIR] [--profile P] [--tree] [--in-python 10000]

One store is filled in process through the code that a create runs, hundreds to a transaction; --folder keeps it, and a
later run fills it further. Then a daemon opens it, and a single client asks each operation one by one over the socket.
Creates are on disk when they are acknowledged. With --tree all chunks are exported as a tree afterwards, and imported
into an empty store, in process. With --in-python so many are created by a `ChunkStore`, whose folder is a JSON tree.
Ratios count; the figures depend on the machine, and on what the folder is: in memory a sync costs nothing.
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
from beetle.chunks import ChunkStore
from beetle.client import Client
from beetle.contracts.progress import ProgressStep
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
TREE_PROFILE = "profile-desktop-linux-embedded-sdk"
"""Its archives may have 128 MiB."""
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


class Told:
    """Progress as a call tells it: how often, by what steps, and the longest silence in seconds."""

    def __init__(self) -> None:
        self.steps: dict[str, int] = {}
        self.silence = 0.0
        self._at = time.perf_counter()

    def __call__(self, step: ProgressStep) -> None:
        now = time.perf_counter()
        self.silence, self._at = max(self.silence, now - self._at), now
        self.steps[step.name] = self.steps.get(step.name, 0) + 1

    def __str__(self) -> str:
        steps = ", ".join(f"{name} {count}" for name, count in self.steps.items())
        return f"progress: {steps}; longest silence {self.silence:.2f} s"


def tree(store: str, folder: Path) -> dict[str, Any]:
    """Export all chunks, and import them where none are."""
    with MemoryRuntime.open(store, profile=TREE_PROFILE) as memory:
        heard, begun = Told(), time.perf_counter()
        exported: Any = memory.call("chunk.export_tree", {}, on_progress=heard)
        out, megabytes = time.perf_counter() - begun, len(exported.archive) / 1e6
    print(f"  export of {exported.chunks:,} chunks: {out:.1f} s, {megabytes:.1f} MB compressed; {heard}")
    copy = folder / "copy.db"
    with MemoryRuntime.open(str(copy), profile=TREE_PROFILE) as memory:
        heard, begun = Told(), time.perf_counter()
        imported: Any = memory.call("chunk.import_tree", {"archive": exported.archive}, on_progress=heard)
        taken = time.perf_counter() - begun
        begun = time.perf_counter()
        again: Any = memory.call("chunk.import_tree", {"archive": exported.archive})
        same = time.perf_counter() - begun
    print(f"  import into an empty store: {imported.imported:,} in {taken:.1f} s; {heard}", flush=True)
    print(f"  import of the same again: {again.unchanged:,} unchanged in {same:.1f} s", flush=True)
    for each in folder.glob("copy.db*"):
        each.unlink()
    return {"export_s": out, "export_mb": megabytes, "import_s": taken, "import_again_s": same}


def in_python(count: int) -> dict[str, Any]:
    """So many chunks through `ChunkStore`, each with its file; then all of them listed, and read."""
    with tempfile.TemporaryDirectory(prefix="beetle-chunks-") as base, ChunkStore(base) as store:
        keys = ("content", "conversation_id", "tags", "confidence")
        begun = time.perf_counter()

        def create(number: int) -> None:
            content, conversation, tags, confidence = (said(number)[key] for key in keys)
            store.create_chunk(content, TYPES[number % 5], conversation, 60, tags, confidence)

        figures = {"ChunkStore, create": timed(count - 3, create)}
        created, begun = time.perf_counter() - begun, time.perf_counter()
        ids = store.list_chunks()
        listed, begun = time.perf_counter() - begun, time.perf_counter()
        store.close()
        closed = time.perf_counter() - begun
        figures["ChunkStore, get"] = timed(400, lambda n: store.get_chunk(ids[n * 7 % len(ids)]))
        figures["ChunkStore, list by tag"] = timed(100, lambda n: store.list_chunks(tags=[f"tag-{n % TAGS}"]))
        files = sum(1 for _ in store.chunks_path.rglob("*.json"))
    print(
        f"{count:,} chunks in a folder: created in {created:.1f} s, listed in {listed:.2f} s, given up (indexes) in "
        f"{closed:.2f} s; {files:,} files"
    )
    show(figures)
    return {**figures, "created_s": created, "listed_s": listed, "closed_s": closed}


def show(figures: dict[str, Figures]) -> None:
    """A line of each."""
    for name, (p50, p99) in figures.items():
        print(f"  {name:<30} {p50:>9.2f} {p99:>9.2f} ms", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chunks", type=int, default=100_000, help="how many there are (default: %(default)s)")
    parser.add_argument(
        "--folder", default=None, help="where the store is kept (default: a folder that goes at the end)"
    )
    parser.add_argument("--profile", default="profile-linux-device-standalone-memory")
    parser.add_argument("--asks", type=int, default=400, help="calls of each kind (default: %(default)s)")
    parser.add_argument("--tree", action="store_true", help="export and import all chunks as a JSON tree too")
    parser.add_argument("--in-python", type=int, default=0, metavar="N", help="create so many with a ChunkStore too")
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
        show(figures)
        more: dict[str, Any] = {}
        if options.tree:
            more |= tree(daemon.store, Path(options.folder or own))
        if options.in_python:
            more |= in_python(options.in_python)
        if options.verify:
            with MemoryRuntime.open(daemon.store, profile=options.profile) as memory:
                begun = time.perf_counter()
                clean = memory.verify_store().clean
            print(f"verify: {time.perf_counter() - begun:.1f} s, {'clean' if clean else 'NOT CLEAN'}")
        print(json.dumps({**figures, **more, "rate": rate, "rss_mib": rss, "megabytes": megabytes}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
