"""How fast things start: `beetle --version`, the first answer of `beetle serve`, and the idle daemon's memory.

    python -m tests.bench.start [--runs N] [--profile P] [--command BEETLE]

Medians, beside `python -c pass` in the same run.
"""

from __future__ import annotations

import argparse
import json
import shlex
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

from tests.running import Daemon, pss_mib, rss_mib


def median_ms(run: Callable[[], object], runs: int) -> float:
    """Median wall time in milliseconds."""
    times: list[float] = []
    for _ in range(runs):
        started = time.perf_counter()
        run()
        times.append((time.perf_counter() - started) * 1000)
    return statistics.median(times)


def first_answer(profile: str, command: str | None) -> tuple[float, float, float]:
    """Milliseconds from starting the program to its first answer on a fresh store, then its RSS and PSS in MiB."""
    daemon = Daemon(profile=profile, command=command)
    started = time.perf_counter()
    with daemon, daemon.client() as client:
        client.hello()
        waited = (time.perf_counter() - started) * 1000
        return waited, rss_mib(daemon.pid), pss_mib(daemon.pid)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--profile", default="profile-linux-device-compact-memory")
    parser.add_argument("--command", default=None, help="the beetle to run (default: this checkout)")
    options = parser.parse_args()
    beetle = shlex.split(options.command) if options.command else [sys.executable, "-m", "beetle"]
    bare = median_ms(lambda: subprocess.run([sys.executable, "-c", "pass"], check=True), options.runs)
    version = median_ms(
        lambda: subprocess.run([*beetle, "--version"], check=True, stdout=subprocess.DEVNULL), options.runs
    )
    runs = [first_answer(options.profile, options.command) for _ in range(options.runs)]
    answer, rss, pss = (statistics.median(column) for column in zip(*runs, strict=True))
    print(f"python -c pass       {bare:7.1f} ms")
    print(f"beetle --version     {version:7.1f} ms  ({version / bare:.2f} of plain Python)")
    print(f"serve, first answer  {answer:7.1f} ms  ({answer / bare:.2f} of plain Python)")
    print(f"idle daemon          {rss:7.1f} MiB RSS, {pss:.1f} MiB PSS")
    print(json.dumps({"bare_ms": bare, "version_ms": version, "answer_ms": answer, "rss_mib": rss, "pss_mib": pss}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
