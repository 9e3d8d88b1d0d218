"""The soak of `python -m tests.soak`, for some seconds; and that it finds what drifts and what has stopped."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.soak.__main__ import Soak, options
from tests.soak.clock import SteppedClock, compiler
from tests.soak.drift import Bound, Timer, found
from tests.soak.load import CREW

TEN_YEARS = 315_360_000
MEMORY = Bound("memory", "MiB", most=100.0, per_hour=2.0, rise=3.0)

need_compiler = pytest.mark.skipif(
    compiler() is None, reason="no C compiler, which makes the clock that can be stepped"
)


@need_compiler
def test_a_process_has_its_wall_clock_stepped_and_not_its_monotonic_one(tmp_path: Path) -> None:
    clock = SteppedClock(tmp_path)
    ask = "import time; input(); print(time.time(), time.monotonic())"
    with subprocess.Popen(
        [sys.executable, "-c", ask],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, **clock.environment},
    ) as process:
        before = (clock.now(), time.monotonic())
        clock.set_step(TEN_YEARS)
        told, _ = process.communicate(b"go\n")
    wall, monotonic = map(float, told.split())
    assert before[0] + TEN_YEARS <= wall <= clock.now() and before[1] <= monotonic <= time.monotonic()


@need_compiler
def test_a_short_soak_keeps_every_bound_answers_right_and_ends_with_store_and_replica_alike(tmp_path: Path) -> None:
    asked = options(["--hours", "0", "--every", "0.2", "--step-every", "0.2", "--pace", "5", "--fill", "0"])
    crew = tuple((kind, 1, 1.0) for kind, _, _ in CREW)
    report = Soak(tmp_path, asked, crew, least=5).run()
    assert report["ok"], report["failures"]
    assert {"transcript.commit", "memory.recall", "chunk.create", "chain.append", "visit"} <= set(report["answers"])
    assert report["writes"] and report["clock_steps"] and {each["name"] for each in report["figures"]} >= {"wal", "log"}


def test_what_grows_without_end_is_found_and_what_has_filled_is_not() -> None:
    leak = [(s, 40 + s / 600) for s in range(0, 7200, 10)]
    assert "grows by 6 MiB an hour, above 2" in (found(MEMORY, leak).failure or "")
    assert "above 100" in (found(MEMORY, [*leak, (7200, 101.0)]).failure or "")
    filled = [(s, 40 + min(s, 900) / 60) for s in range(0, 7200, 10)]
    noisy = [(s, 50 + s % 70 / 10) for s in range(0, 7200, 10)]
    assert found(MEMORY, filled).failure is None and found(MEMORY, noisy).failure is None


def test_a_timer_that_stops_is_found_and_one_that_runs_late_is_not() -> None:
    stopped, late = Timer("job a", 60, 200, 0.0), Timer("job b", 60, 200, 0.0)
    for now in range(0, 3600, 10):
        stopped.look(min(now // 60, 10), now)
        late.look(now // 180, now)
    assert late.failure is None and late.count == 19
    assert "did not happen for 2990 s" in (stopped.failure or "")
