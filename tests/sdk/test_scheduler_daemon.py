"""A real daemon's jobs: on the command line in the seed's shape, over a restart, as events, under a configuration."""

from __future__ import annotations

import os
import re
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from beetle.__main__ import main
from beetle.store import recover
from beetle.store.index_rebuild import MARKED_SQL, REBUILDING
from tests.running import Daemon
from tests.store.conftest import commit, open_runtime, store_of, turn
from tests.transports.serving import until

PROFILE = "profile-linux-device-standalone-memory"
JOB = """\
  {name}
    Schedule: {cron}
    Status: {status}
    Last Run: {last}
    Next Run: [0-9-]{{10}} [0-9:]{{8}}Z
    Stats: {stats}
"""


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="bs-") as made:
        yield Path(made)


def command(daemon: Daemon, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["--socket", daemon.socket, "scheduler", *words]) == 0
    return capsys.readouterr().out


def optimize(told: str, status: str, last: str, stats: str) -> bool:
    cron = re.escape("0 */20 * * * * (every 20 min)")
    return bool(re.search(JOB.format(name="optimize", cron=cron, status=status, last=last, stats=stats), told))


def test_jobs_are_shown_paused_and_run_on_the_command_line_and_a_pause_outlives_the_daemon(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    config = folder / "beetle.toml"
    config.write_text('[scheduler]\ntime_zone = "UTC"\n[scheduler.jobs]\noptimize = "0 */20 * * * *"\n')
    monkeypatch.setenv("BEETLE_CONFIG", str(config))
    with Daemon(profile=PROFILE, folder=str(folder)) as running, running.client() as client:
        events = client.subscribe(["job"])
        told = command(running, capsys, "status")
        assert told.startswith("Scheduler: Running\n\nJobs:\n  deferred-governance\n")
        assert optimize(told, "Active", "never", "0 runs, 0 errors")
        assert command(running, capsys, "run", "optimize", "--wait") == "Job 'optimize' ended: SUCCESS\n"
        assert command(running, capsys, "pause", "optimize") == "Job 'optimize' paused\n"
        names = [next(events).event for _ in range(3)]
        assert sorted(each["event"] for each in names) == [
                "scheduled_job_ended", "scheduled_job_paused", "scheduled_job_started",
            ]  # fmt: skip
        assert {each["job_name"] for each in names} == {"optimize"}
        events.close()
    with Daemon(profile=PROFILE, folder=str(folder)) as running:
        last = r"[0-9-]{10} [0-9:]{8}Z \([0-9.]+s, (SUCCESS|SKIPPED: paused)\)"
        stats = "1 runs, 0 errors"
        assert optimize(command(running, capsys, "status"), "Paused", last, stats)
        assert command(running, capsys, "resume", "optimize") == "Job 'optimize' resumed\n"
        with running.client() as client:
            jobs = {each.job_name: each for each in client.scheduler_status().jobs}
        assert (jobs["optimize"].is_paused, jobs["snapshot"].cron_expr) == (False, "off")
        assert main(["--socket", running.socket, "scheduler", "run", "optimise"]) == 3
        assert "did you mean optimize" in capsys.readouterr().err


def test_an_index_that_was_emptied_and_not_filled_is_filled_behind_the_start() -> None:
    with tempfile.TemporaryDirectory(prefix="bs-") as made:
        with open_runtime(Path(made) / "b.db", owner="operator") as memory:
            commit(memory, turn("t1", "the figs are ripe"))
            store_of(memory).write(recover.empty_index, grows=False)
        with Daemon(profile=PROFILE, folder=made) as running, running.client() as client:
            other = apsw.Connection(running.store, flags=apsw.SQLITE_OPEN_READONLY)
            # Not by asking the daemon, whose jobs wait for who asks.
            until(lambda: not list(other.execute(MARKED_SQL, (REBUILDING,))), "the index is filled")
            other.close()
            assert client.verify_store().clean
            assert "the recall index was not whole when the store was opened" in (Path(made) / "log").read_text()


def test_a_reload_takes_new_schedules_without_a_restart(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with tempfile.TemporaryDirectory(prefix="bs-") as made:
        config = Path(made) / "beetle.toml"
        config.write_text("")
        monkeypatch.setenv("BEETLE_CONFIG", str(config))
        with Daemon(profile=PROFILE, folder=made) as running, running.client() as client:
            log = Path(made) / "log"

            def read_again(text: str, logged: str) -> tuple[str, dict[str, tuple[str, int]]]:
                config.write_text(text)
                before = log.read_text().count(logged)
                os.kill(running.pid, signal.SIGHUP)
                until(lambda: log.read_text().count(logged) > before, logged)
                status = client.scheduler_status()
                return status.time_zone, {each.job_name: (each.cron_expr, each.next_run_ms) for each in status.jobs}

            client.pause_job(job_name="optimize")
            jobs_of = '[scheduler.jobs]\noptimize = "0 0 9 * * *"\nverification = "off"\n'
            taken = f'[scheduler]\ntime_zone = "Asia/Tokyo"\n{jobs_of}'
            zone, jobs = read_again(taken, "configuration read again")
            assert (zone, jobs["optimize"][0], jobs["verification"]) == ("Asia/Tokyo", "0 0 9 * * *", ("off", 0))
            assert jobs["optimize"][1] % 86_400_000 == 0, "nine in Tokyo is midnight in UTC"
            assert "next start of the daemon" not in log.read_text()
            assert read_again('[scheduler.jobs]\noptimize = "soon"\n', "was not taken")[1] == jobs
            assert read_again("", "configuration read again")[1]["optimize"][0] == "0 0 4 * * *"
            snapshots = '[scheduler.jobs]\nsnapshot = "0 0 * * * *"\n[snapshots]\nkeep_daily = 2\n'
            assert read_again(snapshots, "configuration read again")[1]["snapshot"][0] == "0 0 * * * *"
            assert client.list_snapshots().keep == {"newest": 1, "hourly": 6, "daily": 2, "weekly": 4}
            assert "next start of the daemon" not in log.read_text()
            read_again(snapshots + f'folder = "{made}/other"\n', "next start of the daemon")
            assert client.list_snapshots().folder == f"{running.store}.snapshots"
            assert client.scheduler_status().jobs[0].job_name == "deferred-governance"
            assert next(each for each in client.scheduler_status().jobs if each.job_name == "optimize").is_paused


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[scheduler.jobs]\nretention = "0 3 * * *"', "$.scheduler.jobs.retention: a schedule has six fields"),
        ('[scheduler.jobs]\nretentoin = "off"', "did you mean retention"),
        ('[scheduler]\ntime_zone = "Mars/Olympus"', "no time zone 'Mars/Olympus'"),
        ("[snapshots]\nkeep_newest = 0", "$.snapshots.keep_newest"),
        ('[snapshots]\nfolder = "usb"', "$.snapshots.folder"),
        ("[scheduler]\njobs = 3", "$.scheduler.jobs"),
    ],
)
def test_schedules_that_cannot_be_read_are_refused_before_the_store_is_opened(
    text: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "beetle.toml"
    config.write_text(text)
    store = str(tmp_path / "a.db")
    assert main(["--config", str(config), "--store", store, "remember", "The harbour opens at six."]) == 2
    assert words in capsys.readouterr().err
    assert not Path(store).exists()


def test_a_command_that_opens_the_store_itself_runs_a_job_in_its_own_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = str(tmp_path / "a.db")
    assert main(["--store", store, "remember", "The harbour opens at six."]) == 0
    capsys.readouterr()
    assert main(["--store", store, "scheduler", "run", "verification"]) == 0
    assert capsys.readouterr().out == "Job 'verification' ended: SUCCESS\n"
    assert main(["--store", store, "scheduler", "status"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("Scheduler: Stopped\n")
    assert re.search(
        r"verification\n.*\(Sundays at 05:00\)\n.*\n    Last Run: .*SUCCESS\)\n.*\n    Stats: 1 runs", told
    )
