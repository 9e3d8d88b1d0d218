"""Erasing many turns while others write: how long it takes, and how long the others' writes take meanwhile.

    python -m tests.bench.forget [--turns N] [--writers N] [--seconds S] [--profile P] [--command BEETLE] [--how HOW]

Turns of one conversation are erased by `transcript.lifecycle` (delete_raw) or `memory.forget`. The writers, each a
process of its own, commit turns one by one: first alone (the figures of an idle daemon), then beside the erasure.
It exits with 1 where the erasure takes more than 60 s or is not done at its end, or where the p99 of the others' writes
beside it is above 3 times their own before. The limits are those of 50,000 turns beside eight writers on two cores.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import sys
import threading
import time
from typing import Any

from beetle.client import Client
from tests.bench.scale import material, text_of
from tests.bench.writes import turn
from tests.running import Daemon, quantiles

CONVERSATION = {"conversation_id": "old"}
HOUR_MS = 3_600_000
MOST_SECONDS = 60.0
MOST_RATIO = 3.0


def fill(client: Any, turns: int, batch: int) -> None:
    """The turns that will be erased, in one conversation."""
    lines, _ = material()
    rolls = random.Random(5)
    for first in range(0, turns, batch):
        numbers = range(first, min(first + batch, turns))
        client.commit_transcript(conversation=CONVERSATION, turns=[_said(n, text_of(lines, rolls)) for n in numbers])


def _said(number: int, text: str) -> dict[str, Any]:
    at = f"2025-{1 + number // 2800 % 12:02d}-{1 + number // 100 % 28:02d}T10:{number % 60:02d}:00Z"
    actor = {"speaker": ("Ann", "Bo")[number % 2], "trigger": "voice"}
    message = {"message_id": f"m{number}", "role": "user", "content": text, "actor": actor}
    return {"turn_id": f"t{number}", "at": at, "messages": [message]}


def write(path: str, writer: int, stop: Any, told: Any) -> None:
    """One writer: commits until it is stopped; when each commit ended (monotonic seconds), and how long it took."""
    times: list[tuple[float, float]] = []
    with Client(path) as client:
        number = 0
        while not stop.is_set():
            began = time.monotonic()
            client.commit_transcript(conversation={"conversation_id": f"w{writer}"}, turns=[turn(writer, number)])
            number += 1
            times.append((began, (time.monotonic() - began) * 1000))
            time.sleep(0.005)
    told.put(times)


def erase(client: Any, how: str) -> tuple[Any, list[Any]]:
    """Erase the conversation; the report, and the progress that was told."""
    heard: list[Any] = []

    def call(operation: str, args: dict[str, Any]) -> Any:
        return client.call(operation, args, deadline_ms=HOUR_MS, on_progress=heard.append)

    if how == "forget":
        token = call("memory.forget", {"conversation": CONVERSATION, "dry_run": True}).token
        return call("memory.forget", {"conversation": CONVERSATION, "token": token}), heard
    args = {"conversation": CONVERSATION, "action": "delete_raw", "before": "2099-01-01T00:00:00Z", "reason": "bench"}
    return call("transcript.lifecycle", args), heard


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=50_000)
    parser.add_argument("--writers", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=10.0, help="how long the writers are measured alone")
    parser.add_argument("--how", choices=("delete_raw", "forget"), default="delete_raw")
    parser.add_argument("--profile", default="profile-linux-device-standalone-memory")
    parser.add_argument("--command", default=None, help="the beetle to run (default: this checkout)")
    options = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    with (
        Daemon(profile=options.profile, command=options.command) as daemon,
        Client(daemon.socket, timeout=600.0) as client,
    ):
        fill(client, options.turns, client.hello().limits["commit_turns"])
        stop, told = context.Event(), context.Queue()
        writers = [
            context.Process(target=write, args=(daemon.socket, number, stop, told)) for number in range(options.writers)
        ]
        for each in writers:
            each.start()
        threading.Event().wait(3.0 + options.seconds)
        began = time.monotonic()
        report, heard = erase(client, options.how)
        ended = time.monotonic()
        stop.set()
        times = [each for _ in writers for each in told.get()]
        for each in writers:
            each.join()
    idle = [took for at, took in times if began - options.seconds < at < began]
    beside = [took for at, took in times if began <= at < ended]
    result = {
        "how": options.how, "turns": options.turns, "writers": options.writers, "seconds": round(ended - began, 1),
        "erasure": report.erasure, "progress_events": len(heard),
        "idle_p50_ms": quantiles(idle)[0], "idle_p99_ms": quantiles(idle)[1], "idle_writes": len(idle),
        "beside_p50_ms": quantiles(beside)[0], "beside_p99_ms": quantiles(beside)[1], "beside_writes": len(beside),
        "beside_max_ms": round(max(beside, default=0.0), 1),
    }  # fmt: skip
    result["p99_ratio"] = round(result["beside_p99_ms"] / result["idle_p99_ms"], 2)
    result["kept"] = (
        report.erasure == "done" and result["seconds"] <= MOST_SECONDS and result["p99_ratio"] <= MOST_RATIO
    )
    print(json.dumps(result, indent=1))
    return 0 if result["kept"] else 1


if __name__ == "__main__":
    sys.exit(main())
