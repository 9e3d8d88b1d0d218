"""The clock is moved under a replica: files of the target from another time, and a daemon whose clock is stepped.

    pytest -m slow tests/runtime/test_replica_clock.py

Litestream is a static program, whose own clock only the machine's moves. So its files are given the times that such a
clock would have given them, and it is left to go on by today's. The daemon's clock is moved by libfaketime (Debian:
libfaketime); the test is skipped where that is not.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

import pytest

from tests import running
from tests.building import step, talk, turn
from tests.ltx import content
from tests.replicas import Kept, at_file

pytestmark = pytest.mark.slow

DAY_S = 86_400
SHIFTS = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))


class Shifted(Kept):
    """A daemon whose wall clock `shift` moves; its sidecar's is the machine's."""

    def spawn(self, arguments: list[str], environment: dict[str, str], log: IO[bytes]) -> subprocess.Popen[bytes]:
        self.shift(0)
        moved = {
            "LD_PRELOAD": str(SHIFTS[0]), "FAKETIME_TIMESTAMP_FILE": str(self.folder / "clock"),
            "FAKETIME_NO_CACHE": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1",
        }  # fmt: skip
        return running.Daemon.spawn(self, arguments, {**environment, **moved}, log)

    def shift(self, seconds: int) -> None:
        fresh = self.folder / "clock.new"
        fresh.write_text(f"{seconds:+d}s\n")
        fresh.rename(self.folder / "clock")


def say(daemon: Kept, turn_id: str, text: str = "said") -> None:
    with daemon.client() as client:
        client.call("transcript.commit", talk(turn(turn_id, text)))


def files(target: Path) -> Iterator[Path]:
    return target.rglob("*.ltx")


def date(target: Path, seconds: float) -> None:
    """As a clock that was so far from this one would have left them."""
    for each in files(target):
        os.utime(each, (time.time() + seconds, time.time() + seconds))


def newest_snapshot(daemon: Kept) -> int:
    return max((each.max_txid for each in daemon.stream().files() if each.level == 9), default=0)


def until_snapshot(daemon: Kept, beyond: int) -> None:
    """When the replica has a snapshot of a later transaction."""
    end = time.monotonic() + daemon.patience_s
    while newest_snapshot(daemon) <= beyond:
        assert time.monotonic() < end, daemon.stream().files()
        time.sleep(0.2)


@pytest.mark.parametrize("years", [-50, 10])
def test_files_of_a_clock_that_was_wrong_stand_in_the_way_of_nothing(years: int, tmp_path: Path) -> None:
    with Kept(at_file(tmp_path), folder=str(tmp_path)) as daemon:
        daemon.synced()
        say(daemon, "then", "the canary wrzqxyvkbnm")
        daemon.synced()
        until_snapshot(daemon, 0)
        with daemon.client() as client:
            client.call("transcript.lifecycle", step("delete_raw", "then"))
        daemon.synced()
    before = newest_snapshot(daemon)
    date(daemon.target, years * 365 * DAY_S)
    assert b"wrzqxyvkbnm" in content(daemon.target)
    with daemon:
        daemon.synced()
        say(daemon, "now")
        daemon.synced()
        if years < 0:
            # It is as if the time of all that is kept had come: the next snapshot is made at once.
            until_snapshot(daemon, before)
        assert all(each.stat().st_mtime < time.time() + 60 for each in files(daemon.target))
        daemon.assert_restored(tmp_path / "restored.db")
        with daemon.client() as client:
            assert client.forget_replica().removed_files > 0
        assert b"wrzqxyvkbnm" not in content(daemon.target)
        daemon.assert_restored(tmp_path / "again.db")


@pytest.mark.skipif(not SHIFTS, reason="libfaketime is not installed (libfaketime)")
def test_a_clock_that_is_stepped_under_the_daemon_loses_nothing(tmp_path: Path) -> None:
    with Shifted(at_file(tmp_path), folder=str(tmp_path)) as daemon:
        daemon.synced()
        say(daemon, "at first")
        daemon.shift(10 * 365 * DAY_S)
        say(daemon, "ahead")
        ahead = daemon.synced()
        assert ahead.restarts == 0 and (ahead.last_synced_at or "") > f"{datetime.now(UTC).year + 8}"
        with daemon.client() as client:
            erased = client.call("transcript.lifecycle", step("delete_raw", "at first"))
            assert erased.replicated_until is not None and erased.replicated_until > (ahead.last_synced_at or "")
        daemon.shift(-3600)
        daemon.until(lambda found: (found.restarts or 0) >= 1 and found.state == "replicating")
        say(daemon, "behind")
        daemon.synced()
        daemon.assert_restored(tmp_path / "restored.db")
        with daemon.client() as client:
            assert client.verify_store().clean
            assert client.inspect().runtime.replicated_until == erased.replicated_until
