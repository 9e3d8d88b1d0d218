"""Run a daemon for hours under every kind of load, with a replica and steps of its clock, and tell what drifts.

    python -m tests.soak [--hours H] [--pace P] [--step-every S] [--json FILE] [--folder DIR] [--command BEETLE]

Eleven clients commit turns, recall, project, walk the table of contents, edit skills, keep chunks, thoughts, events and
facts, erase and forget, and come and go; three of them commit without a pause now and then, beside each other.
Meanwhile the jobs of the scheduler run every few minutes, snapshots among them, a litestream sidecar keeps a replica in
a folder, and the daemon's wall clock is stepped (tests/soak/clock.py).

It prints for each figure the value at the beginning and the end, the highest, and the drift an hour, and for each
timer the longest time in which it did nothing. It exits with 1 where a figure leaves its bound (tests/soak/watch.py), a
timer has stopped, an answer was wrong, the store does not verify, or the replica is another store than the store.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import IO, Any

from tests import running
from tests.replicas import content_of
from tests.soak.clock import SteppedClock
from tests.soak.load import CREW, Agent, Crew, Ledger, agents, filled
from tests.soak.watch import Watch

PROFILE = "profile-linux-device-standalone-memory"
STEPS = (90, -90, 4_000, -4_000, 93_600, 0, -1_790_000_000, 0, 315_360_000, 0)
"""Seconds between the daemon's clock and the machine's, one after the other: minutes, hours, a day, to 1970 (a board
without a battery) and back, ten years ahead and back."""
JOBS = {
    "outbox-processor": 60, "segment-summarizer": 120, "hourly-rollup": 180, "deferred-governance": 300,
    "retention": 300, "optimize": 300, "snapshot": 300, "verification": 600,
}  # fmt: skip
"""Seconds between the runs of each job: those that run daily by default would run too seldom to be looked at."""
SYNC_S = 120.0


def cron(period_s: int) -> str:
    return f"0 */{period_s // 60} * * * *" if period_s >= 60 else f"*/{period_s} * * * * *"


class Soaked(running.Daemon):
    """A daemon with a clock that can be stepped, a replica in a folder, and jobs of these periods."""

    def __init__(self, folder: Path, jobs: dict[str, int], command: str | None, profile: str) -> None:
        file = folder / "beetle.toml"
        lines = [f'{name} = "{cron(period)}"' for name, period in jobs.items()]
        file.write_text(
            f'[daemon]\nlog = "{folder}/beetle.log"\n[replica]\nurl = "file://{folder}/target"\n[scheduler.jobs]\n'
            + "\n".join(lines) + "\n",
            encoding="utf-8",
        )  # fmt: skip
        super().__init__(profile=profile, folder=str(folder), command=command, config=str(file))
        self.clock = SteppedClock(folder)

    def spawn(self, arguments: list[str], environment: dict[str, str], log: IO[bytes]) -> subprocess.Popen[bytes]:
        return super().spawn(arguments, environment | self.clock.environment, log)


class Soak:
    """One run."""

    def __init__(self, folder: Path, options: argparse.Namespace, crew: Crew = CREW, least: int = 0) -> None:
        """`least`: it goes on until each of the crew has worked so often."""
        self.options, self.folder, self.jobs = options, folder, JOBS
        self._crew, self._least = crew, least
        self.daemon = Soaked(folder, self.jobs, options.command, options.profile)
        self.ledger, self.over = Ledger(), threading.Event()
        self.steps: list[dict[str, float]] = []
        self.failures: list[str] = []
        self.watch: Watch | None = None

    def run(self) -> dict[str, Any]:
        """The whole report; `ok` says whether every bound was kept."""
        daemon = self.daemon
        with daemon:
            periods = {name: float(period) for name, period in self.jobs.items()}
            if self.options.fill:
                filled(daemon.socket, self.options.fill)
            self.watch = Watch(self.folder, daemon.socket, daemon.pid, self.options.profile, periods)
            threads = agents(self._crew, daemon.socket, daemon.clock, self.ledger, self.over, self.options.pace)
            try:
                for each in threads:
                    each.start()
                self._hours(daemon, self.watch, threads)
            finally:
                self.over.set()
                for each in threads:
                    each.join(60)
            self.failures += [f"{each.name} hangs" for each in threads if each.is_alive()]
            self._end(daemon)
        if daemon.process is not None and daemon.process.returncode:
            self.failures.append(f"the daemon ended with {daemon.process.returncode}")
        return self.report()

    def _hours(self, daemon: Soaked, watch: Watch, threads: list[Agent]) -> None:
        """Sample until it is time, or until the daemon has ended."""
        end, stepped = watch.began + self.options.hours * 3600, watch.began
        while not self.over.is_set():
            now = time.monotonic()
            if now >= end and not any(each.turns < self._least and each.is_alive() for each in threads):
                return
            if daemon.process is not None and daemon.process.poll() is not None:
                self.failures.append(f"the daemon ended by itself with {daemon.process.returncode}")
                return
            if now - stepped >= self.options.step_every:
                daemon.clock.set_step(STEPS[len(self.steps) % len(STEPS)])
                self.steps.append({"s": now - watch.began, "step_s": daemon.clock.step_s})
                stepped = now
            sample = watch.look()
            if self.options.json is not None:
                with open(self.options.json + ".samples", "a", encoding="utf-8") as file:
                    file.write(json.dumps(sample | {"step": daemon.clock.step_s}) + "\n")
                write_down(self.options.json, self.report())
            self.over.wait(self.options.every)

    def _end(self, daemon: Soaked) -> None:
        """The store verifies, and the replica is the store."""
        from beetle.replication.program import Litestream
        from tests.replicas import settings_of

        with daemon.client(timeout=600) as client:
            if not (verified := client.verify_store()).clean:
                self.failures.append(f"the store is not clean: {[each.check for each in verified.findings[:5]]}")
            until = time.monotonic() + SYNC_S
            while (status := client.replication_status()).state != "replicating" or status.lag_s != 0:
                if time.monotonic() > until:
                    self.failures.append(
                        f"the replica did not follow: {status.state}, {status.lag_s} s, {status.detail}"
                    )
                    return
                time.sleep(0.1)
        to = str(self.folder / "restored.db")
        while True:
            before = content_of(daemon.store)
            Path(to).unlink(missing_ok=True)
            if Litestream(daemon.store, settings_of(self.folder / "beetle.toml"), {}).restore(to) is None:
                self.failures.append("the replica cannot be restored")
                return
            if content_of(daemon.store) == before:  # jobs go on
                break
        if content_of(to) != before:
            self.failures.append("the replica is not the store")

    def report(self) -> dict[str, Any]:
        assert self.watch is not None
        last = self.watch.samples[-1] if self.watch.samples else {}
        failures = self.failures + self.watch.failures() + self.ledger.wrong
        kib = self.ledger.text_bytes / 1024
        written = {
            name: last.get(f"{name} written", 0.0) / 1024 / kib if kib else None for name in ("daemon", "sidecar")
        }
        return {
            "ok": not failures, "failures": failures, "hours": (time.monotonic() - self.watch.began) / 3600,
            "command": self.options.command or "of the sources", "profile": self.options.profile,
            "writes": self.ledger.writes, "text_kib": kib, "written_kib_per_text_kib": written,
            "answers": dict(self.ledger.answers), "errors": dict(self.ledger.errors), "clock_steps": self.steps,
            **self.watch.plain(),
        }  # fmt: skip


def write_down(path: str, report: dict[str, Any]) -> None:
    beside = Path(path + ".new")
    beside.write_text(json.dumps(report, indent=1), encoding="utf-8")
    os.replace(beside, path)


def show(report: dict[str, Any]) -> None:
    """The table."""
    print(f"{report['hours']:.2f} hours, {sum(report['answers'].values())} answers, {report['writes']} writes, "
          f"{len(report['clock_steps'])} clock steps; errors: {report['errors'] or 'none'}")  # fmt: skip
    print(f"{'':<24} {'first':>9} {'last':>9} {'highest':>9} {'drift/h':>9} {'limit/h':>8} {'bound':>8}")
    for each in report["figures"]:
        limits = [f"{each[name]:.6g}" if each[name] is not None else "-" for name in ("per_hour", "most")]
        values = "".join(f" {each[name]:>9.2f}" for name in ("first", "last", "highest", "drift_per_hour"))
        print(
            f"{each['name'] + (' ' + each['unit'] if each['unit'] else ''):<24}{values} {limits[0]:>8} {limits[1]:>8}"
        )
    print(f"{'':<24} {'every s':>9} {'times':>9} {'longest s':>9} {'limit s':>9}")
    for each in report["timers"]:
        values = f"{each['period_s']:>9.0f} {each['count']:>9} {each['longest_s']:>9.0f} {each['limit_s']:>9.0f}"
        print(f"{each['name']:<24} {values}")
    shares = ", ".join(f"{name} {value:.1f}" for name, value in report["written_kib_per_text_kib"].items())
    print(f"written to disk for each KiB of text, in KiB: {shares}")
    for each in report["failures"]:
        print(f"FAILED: {each}")


def options(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=float, default=1.0, help="(default: %(default)s)")
    parser.add_argument("--pace", type=float, default=1.0, help="how fast the clients work (default: %(default)s)")
    parser.add_argument("--every", type=float, default=10.0, help="seconds between samples (default: %(default)s)")
    parser.add_argument("--step-every", type=float, default=150.0, help="seconds between steps of the clock")
    parser.add_argument("--fill", type=int, default=20_000, help="turns that are there before (default: %(default)s)")
    parser.add_argument("--profile", default=PROFILE)
    parser.add_argument("--json", default=None, help="write the report here, and each sample to FILE.samples")
    parser.add_argument("--folder", default=None, help="make the store below this folder (default: $TMPDIR)")
    parser.add_argument("--command", default=None, help="the beetle to run (default: this checkout)")
    return parser.parse_args(arguments)


def main() -> int:
    asked = options()
    with tempfile.TemporaryDirectory(prefix="beetle-soak-", dir=asked.folder) as folder:
        soak = Soak(Path(folder), asked)
        signal.signal(signal.SIGTERM, lambda *_: soak.over.set())
        signal.signal(signal.SIGINT, lambda *_: soak.over.set())
        report = soak.run()
    show(report)
    if asked.json is not None:
        write_down(asked.json, report)
    return int(not report["ok"])


if __name__ == "__main__":
    sys.exit(main())
