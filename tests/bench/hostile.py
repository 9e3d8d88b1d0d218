"""One hostile principal does its worst, all attacks at once, while another recalls and commits.

    python -m tests.bench.hostile [--profile P] [--seconds N] [--turns N] [--attacks NAME,NAME] [--command BEETLE]

Run as root: the victim, the hostile principal and somebody unknown are three users of the machine. It tells the
victim's recall and commit before and during the attacks, how long the operator waits for an answer, and the daemon's
most resident memory beside the profile's ceiling. It exits with 1 where recall's p99 is above 5 times its own before,
a commit takes more than a second, the operator or the victim is refused, or memory passes the ceiling.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from beetle.client import Client
from beetle.contracts.errors import BeetleError
from beetle.runtime.host.profile import Profile, load_profile
from tests.bench.attacks import ATTACKS, Target
from tests.running import Daemon, memory_peak_mib, quantiles

VICTIM, HOSTILE, UNKNOWN = 61_001, 61_002, 61_003
CONFIG = """
[principals.mara]
uid = 61001
owner_id = "mara"
capabilities = ["transcript", "recall", "project", "write", "inspect"]
[principals.mallory]
uid = 61002
owner_id = "mallory"
capabilities = ["transcript", "recall", "project", "write", "inspect", "replay", "skill", "tool_registry", "export"]
"""
WORDS = [f"{first}{second}" for first in ("bar", "cor", "din", "fel", "gom", "hul", "jar", "kep") for second in
         ("lan", "mot", "nim", "pos", "rud", "sel", "tav", "vin", "wok", "zet")]  # fmt: skip
WORST_FACTOR = 5.0
WORST_COMMIT_MS = 1000.0
NICE = 10
"""Of the attackers: what they compute themselves is the system's to share, not the daemon's."""
WARM_UP_S = 2.0
"""Until every attack has its connections; the victim's figures begin after it."""


class Figures(NamedTuple):
    """Of one client: milliseconds of each call, and how many were refused with which key."""

    recall: list[float]
    commit: list[float]
    refused: Counter[str]


def text(seed: random.Random, words: int = 24) -> str:
    return " ".join(seed.choice(WORDS) + str(seed.randrange(40)) for _ in range(words))


def turn(name: str, content: str) -> dict[str, Any]:
    message = {"message_id": name, "role": "user", "content": content}
    return {"turn_id": name, "at": "2026-01-02T03:04:05Z", "messages": [message]}


@contextlib.contextmanager
def user(uid: int, work: Callable[..., None], *args: Any) -> Iterator[Any]:
    """A process of another user of the machine, which is killed when the block ends."""
    context = multiprocessing.get_context("fork")
    told = context.Queue()

    def run() -> None:
        os.setgroups([])
        os.setgid(uid)
        os.setuid(uid)
        if uid in (HOSTILE, UNKNOWN):
            os.nice(NICE)
        work(*args, told)

    process = context.Process(target=run, daemon=True)
    process.start()
    try:
        yield told
    finally:
        process.kill()
        process.join()


def live(socket: str, seconds: float, told: Any) -> None:
    """The victim: recalls and commits by turns, without a pause, for so long."""
    seed, figures = random.Random(os.getpid()), Figures([], [], Counter())
    with Client(socket) as client:
        end = time.monotonic() + seconds
        while (now := time.monotonic()) < end:
            with counted(figures.refused):
                client.call("memory.recall", {"query": text(seed, 4), "limit": 10})
                figures.recall.append((time.monotonic() - now) * 1000)
            now = time.monotonic()
            with counted(figures.refused):
                made = turn(f"{os.getpid()}-{now}", text(seed))
                client.commit_transcript(conversation={"conversation_id": "live"}, turns=[made])
                figures.commit.append((time.monotonic() - now) * 1000)
    told.put(figures)


@contextlib.contextmanager
def counted(refused: Counter[str]) -> Iterator[None]:
    try:
        yield
    except BeetleError as error:
        refused[error.key] += 1


def watch(socket: str, seconds: float, told: Any) -> None:
    """The operator: a new connection and one request, four times a second."""
    figures = Figures([], [], Counter())
    end = time.monotonic() + seconds
    while (began := time.monotonic()) < end:
        with counted(figures.refused), Client(socket) as client:
            client.call("console.overview", {})
            figures.recall.append((time.monotonic() - began) * 1000)
        time.sleep(0.25)
    told.put(figures)


def fill(socket: str, turns: int, batch: int, told: Any) -> None:
    seed = random.Random(turns)
    with Client(socket) as client:
        for first in range(0, turns, batch):
            made = [turn(str(number), text(seed)) for number in range(first, min(turns, first + batch))]
            client.commit_transcript(conversation={"conversation_id": f"c{first // 500}"}, turns=made)
    told.put(None)


def measured(socket: str, seconds: float) -> tuple[Figures, Figures]:
    """Of victim and operator, side by side."""
    with user(VICTIM, live, socket, seconds) as victim, user(0, watch, socket, seconds) as operator:
        return victim.get(), operator.get()


def attacked(place: Target, names: list[str], seconds: float) -> tuple[Figures, Figures, list[tuple[str, Any]]]:
    """As `measured`, with each of the attacks going on beside it; and how often each was answered, by key."""
    with contextlib.ExitStack() as stack:
        told = [
            (name, stack.enter_context(user(UNKNOWN if ATTACKS[name].unknown else HOSTILE, ATTACKS[name].work, place)))
            for name in names
        ]
        time.sleep(WARM_UP_S)
        victim, operator = measured(place.socket, seconds)
        answers: list[tuple[str, Any]] = []
        for name, queue in told:
            last = None
            while not queue.empty():
                last = queue.get()
            answers.append((name, last))
    return victim, operator, answers


def row(name: str, times: list[float], refused: Counter[str]) -> str:
    p50, p99 = quantiles(times) if times else (float("nan"), float("nan"))
    most = max(times, default=float("nan"))
    return f"{name:<28} {len(times):>7} {p50:>9.2f} {p99:>9.2f} {most:>9.1f}  {dict(refused) or ''}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--profile", default="profile-linux-device-compact-memory")
    parser.add_argument("--seconds", type=float, default=20, help="of each of the two parts (default: %(default)s)")
    parser.add_argument("--turns", type=int, default=5000, help="of victim and attacker each (default: %(default)s)")
    parser.add_argument("--attacks", default=",".join(ATTACKS), help="those to make (default: all)")
    parser.add_argument("--command", default=f"{sys.executable} -m beetle", help="default: this checkout")
    options = parser.parse_args()
    if os.getuid() != 0:
        parser.error("run it as root: it acts as three users of the machine")
    profile = load_profile(options.profile)
    with tempfile.TemporaryDirectory(prefix="beetle-hostile-") as folder:
        os.chmod(folder, 0o755)
        config = Path(folder) / "beetle.toml"
        config.write_text(CONFIG)
        command = f"{options.command} --config {config}"
        with Daemon(profile=profile.name, command=command, folder=folder) as daemon:
            os.chmod(daemon.socket, 0o666)
            return run(daemon, profile, options)


def run(daemon: Daemon, profile: Profile, options: argparse.Namespace) -> int:
    budgets = profile.budgets
    place = Target(daemon.socket, budgets)
    for uid in (VICTIM, HOSTILE):
        with user(uid, fill, daemon.socket, options.turns, budgets.commit_turns) as done:
            done.get()
    with Client(daemon.socket) as client:
        # What signs and encrypts is loaded, as in a daemon that has kept something private.
        client.remember("The spare key is under the third stone.")
    before, calm = measured(daemon.socket, options.seconds)
    during, watched, answers = attacked(place, options.attacks.split(","), options.seconds)
    peak = memory_peak_mib(daemon.pid)
    print(f"{'ms':<28} {'calls':>7} {'p50':>9} {'p99':>9} {'most':>9}  refused")
    for name, times, refused in (
        ("recall, before", before.recall, before.refused),
        ("recall, attacked", during.recall, during.refused),
        ("commit, before", before.commit, before.refused),
        ("commit, attacked", during.commit, during.refused),
        ("operator, before", calm.recall, calm.refused),
        ("operator, attacked", watched.recall, watched.refused),
    ):
        print(row(name, times, refused))
    for name, told in answers:
        print(f"  {name:<16} {told}")
    factor = quantiles(during.recall)[1] / quantiles(before.recall)[1] if during.recall else float("inf")
    print(f"recall p99: {factor:.1f} x; most resident memory {peak:.0f} of {profile.memory_ceiling_mib} MiB")
    kept = (
        factor <= WORST_FACTOR
        and bool(during.commit)
        and max(during.commit) <= WORST_COMMIT_MS
        and not during.refused
        and not watched.refused
        and peak <= profile.memory_ceiling_mib
    )
    print(json.dumps({"profile": profile.name, "factor": factor, "peak_mib": peak, "kept": kept}))
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
