"""What a snapshot costs those who write meanwhile: latency of acknowledged writes beside one ÷ without, in one run.

    python -m tests.bench.snapshot_latency [--mib N] [--profile P] [--folder F]

One client commits small turns without a pause, another has the snapshots made: by the job of the scheduler, which keeps
to the profile's background share, and by hand, which does not. Between them the store rests. `--folder` is on the disk
that is meant: without it, where temporary files are. Ratios count; the figures themselves depend on the machine.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from beetle.client import Client
from tests.running import Daemon, quantiles

LETTERS = "abcdefghijklmnopqrstuvwxyz"
WORDS = 4_000
TURN_WORDS = 1_000
COMMIT_TURNS = 20
IDLE_S = 5.0


class Phase(NamedTuple):
    """Latencies in milliseconds, seconds, and the most bytes that the write-ahead log had."""

    times: list[float]
    seconds: float
    log: int


def turn(name: str, text: str) -> dict[str, Any]:
    message = {"message_id": name, "role": "user", "content": text}
    return {"turn_id": name, "at": "2026-01-02T03:04:05Z", "messages": [message]}


def fill(client: Client, store: str, size: int) -> None:
    """Commit text until the store has so many bytes."""
    random.seed(7)
    words = ["".join(random.choices(LETTERS, k=random.randint(3, 10))) for _ in range(WORDS)]
    number = 0
    while os.path.getsize(store) + os.path.getsize(store + "-wal") < size:
        texts = [" ".join(random.choices(words, k=TURN_WORDS)) for _ in range(COMMIT_TURNS)]
        turns = [turn(f"f{number + place}", text) for place, text in enumerate(texts)]
        client.commit_transcript(conversation={"conversation_id": "filling"}, turns=turns)
        number += COMMIT_TURNS


def phase(client: Client, store: str, name: str, work: Callable[[], Any]) -> Phase:
    """Write one turn after another as long as `work` lasts, on a thread of its own."""
    times, log = list[float](), 0
    thread = threading.Thread(target=work)
    began = time.perf_counter()
    thread.start()
    while thread.is_alive():
        before = time.perf_counter()
        client.commit_transcript(
            conversation={"conversation_id": name}, turns=[turn(f"{name}{len(times)}", "the kettle is on " * 10)]
        )
        times.append((time.perf_counter() - before) * 1000)
        if len(times) % 20 == 0:
            log = max(log, os.path.getsize(store + "-wal"))
    thread.join()
    return Phase(times, time.perf_counter() - began, log)


def shown(name: str, found: Phase, idle: Phase) -> str:
    p50, p99 = quantiles(found.times)
    i50, i99 = quantiles(idle.times)
    return (
        f"{name:10} {found.seconds:7.1f} s {len(found.times):7,} writes   p50 {p50:7.2f} ms ({p50 / i50:5.2f})   "
        f"p99 {p99:7.2f} ms ({p99 / i99:5.2f})   log {found.log / 2**20:6.1f} MiB"
    )


def main(argv: list[str]) -> int:
    """Print a line for each phase; in brackets the quotient by the same without a snapshot."""
    parser = argparse.ArgumentParser(prog="snapshot_latency", description=__doc__)
    parser.add_argument("--mib", type=int, default=100, help="size of the store")
    parser.add_argument("--profile", default="standalone")
    parser.add_argument("--folder", help="on the disk that is meant")
    typed = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(dir=typed.folder, prefix="snapshots-") as folder:
        daemon = Daemon(profile=typed.profile, folder=folder)
        store = daemon.store
        with daemon, Client(daemon.socket) as client, Client(daemon.socket) as other:
            fill(client, store, typed.mib * 2**20)
            phase(client, store, "warm", lambda: time.sleep(1.0))
            idle = phase(client, store, "idle", lambda: time.sleep(IDLE_S))
            job = phase(client, store, "job", lambda: other.run_job(job_name="snapshot", wait=True))
            again = phase(client, store, "again", lambda: time.sleep(IDLE_S))
            hand = phase(client, store, "hand", other.create_snapshot)
            sizes = [round((each.bytes or 0) / 2**20, 1) for each in other.list_snapshots().snapshots]
            print(f"{os.path.getsize(store) / 2**20:.0f} MiB, snapshots of {sizes} MiB")
            both = Phase(idle.times + again.times, idle.seconds + again.seconds, max(idle.log, again.log))
            for name, found in (("idle", both), ("by the job", job), ("by hand", hand)):
                print(shown(name, found, both))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
