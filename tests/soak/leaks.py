"""Whether a daemon holds more after each kind of work: one client of the soak works alone, round after round.

    python -m tests.soak.leaks [--seconds S] [--rounds N] [--replica] [--profile P] [KIND…]

The first round loads what the work needs. Of each further one it tells what the daemon holds and which types have more
objects than the round before. What a profile bounds (page caches of SQLite, remembered lists) may grow up to that.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from beetle.contracts.errors import BeetleError
from tests import running
from tests.soak.__main__ import JOBS, PROFILE
from tests.soak.clock import SteppedClock
from tests.soak.load import Agent, Editor, Forgetter, Ledger, Reader, Visitor, Writer

MORE = 15
"""Objects of a type by which a round has more than the one before, and below which nothing is told."""
MIB = 2.0**20


class Jobs(Agent):
    """Runs each job in turn."""

    def work(self) -> None:
        self.ask("scheduler.run", {"job_name": [*JOBS][self.turns % len(JOBS)]}, expect=BeetleError)


class Copies(Agent):
    """Makes a snapshot, verifies it, and removes all but the last one."""

    def work(self) -> None:
        if (made := self.ask("snapshot.create", {})) is not None:
            self.ask("snapshot.verify", {"snapshot_id": made.snapshot.snapshot_id})
        self.ask("snapshot.prune", {"keep": 1})


class Verifier(Agent):
    """Verifies the store."""

    def work(self) -> None:
        self.ask("store.verify", {})


class Refused(Agent):
    """Asks for what is not there."""

    def work(self) -> None:
        self.ask("transcript.replay", {"conversation": {"conversation_id": f"no-{self.turns}"}}, expect=BeetleError)
        self.ask("chunk.get", {"id": f"no-{self.turns}"}, expect=BeetleError)


class Watcher(Agent):
    """Looks how the daemon is."""

    def work(self) -> None:
        for op in ("memory.inspect", "scheduler.status", "replication.status", "memory.capabilities", "admin.metrics"):
            self.ask(op, {})


KINDS = {each.__name__.lower(): each for each in (
    Writer, Editor, Reader, Forgetter, Copies, Jobs, Verifier, Watcher, Refused, Visitor,
)}  # fmt: skip


class Counted(running.Daemon):
    """A daemon that counts what it holds."""

    def __init__(self, folder: Path, profile: str, replica: bool) -> None:
        self.file = folder / "held.json"
        config = folder / "beetle.toml"
        config.write_text(f'[replica]\nurl = "file://{folder}/target"\n' if replica else "", encoding="utf-8")
        command = f"{sys.executable} -m tests.soak.counted {self.file}"
        super().__init__(profile=profile, folder=str(folder), command=command, config=str(config))

    def held(self) -> dict[str, Any]:
        self.file.unlink(missing_ok=True)
        os.kill(self.pid, signal.SIGUSR1)
        while not self.file.exists():
            time.sleep(0.05)
        return json.loads(self.file.read_text())


def rounds(daemon: Counted, agent: Agent, options: argparse.Namespace) -> None:
    """Let one client work, and print a line for each round."""
    before: dict[str, int] | None = None
    for number in range(options.rounds + 1):
        end = time.monotonic() + options.seconds
        while time.monotonic() < end:
            agent.work()
            agent.turns += 1
        now = daemon.held()
        sizes = ", ".join(f"{name} {now[name] / MIB:.2f}" for name in ("rss", "allocated", "sqlite"))
        counts = ", ".join(f"{name} {now[name]}" for name in ("blocks", "objects", "modules", "handles", "threads"))
        print(f"{agent.name} {number}: {agent.turns} times; MiB: {sizes}; {counts}", flush=True)
        if before is not None:
            more = {name: count - before.get(name, 0) for name, count in now["types"].items()}
            found = sorted(((count, name) for name, count in more.items() if count > MORE), reverse=True)[:8]
            print(f"    more: {', '.join(f'{name} {count}' for count, name in found) or 'nothing'}", flush=True)
        before = now["types"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", choices=[*KINDS, []], metavar="KIND", help=f"of {', '.join(KINDS)}")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each round (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="behind the first (default: %(default)s)")
    parser.add_argument("--replica", action="store_true", help="with a sidecar")
    parser.add_argument("--profile", default=PROFILE)
    options = parser.parse_args()
    ledger = Ledger()
    with (
        tempfile.TemporaryDirectory(prefix="beetle-leaks-") as folder,
        Counted(Path(folder), options.profile, options.replica) as daemon,
    ):
        clock = SteppedClock(Path(folder))
        for kind in options.kinds or KINDS:
            agent = KINDS[kind](0, daemon.socket, clock, ledger, 1.0, threading.Event())
            rounds(daemon, agent, options)
    for each in ledger.wrong:
        print(f"FAILED: {each}")
    return int(bool(ledger.wrong))


if __name__ == "__main__":
    sys.exit(main())
