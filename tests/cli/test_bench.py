"""`beetle bench`: a small run on a temporary store, and two results beside each other."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.forked import run_text
from tests.running import ROOT

SMALL = ("--turns", "40", "--clients", "2", "--profile", "standalone")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of somebody whose environment names a store of theirs."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def disk() -> Iterator[Path]:
    """A folder that is on a disk, where there is one: that of the tests may be in memory."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def ran(home: Path, disk: Path) -> tuple[Path, dict[str, Any], str]:
    """The file that a run wrote, what it printed as JSON, and what it told meanwhile."""
    out = home / "first.json"
    environment = {**os.environ, "HOME": str(home), "BEETLE_STORE": str(home / "mine.db")}
    done = run_text(["bench", *SMALL, "--json", "--out", str(out), "--folder", str(disk)], env=environment)
    assert done.returncode == 0, done.stderr
    return out, json.loads(done.stdout), done.stderr


def test_a_run_tells_every_figure_and_leaves_nothing_behind(
    home: Path, disk: Path, ran: tuple[Path, dict[str, Any], str]
) -> None:
    out, result, told = ran
    figures = {each["name"]: each for each in result["figures"]}
    assert {"start_empty", "ingest_one", "ingest_many", "ingest_batch", "recall_p99", "project_p50"} <= set(figures)
    assert all(each["value"] > 0 for name, each in figures.items() if not name.startswith("written"))
    beside = ("ingest_one", "ingest_many", "ingest_batch", "recall_p50", "recall_p99", "store")
    assert all(figures[name]["floor"] > 0 for name in beside)
    assert json.loads(out.read_text()) == result and "measuring: writes, 2 clients" in told
    assert os.listdir(home) == [out.name] and os.listdir(disk) == []


def test_what_reaches_the_disk_is_told_where_the_system_counts_it(ran: tuple[Path, dict[str, Any], str]) -> None:
    """A commit is a few pages of 4 KiB for 150 characters: it cannot be less than the text, nor a megabyte."""
    _, result, _ = ran
    written = {each["name"]: each["value"] for each in result["figures"] if each["name"].startswith("written")}
    if result["settings"]["bytes_counted"]:
        assert 10 < written["written_batch"] < written["written_one"] < 10_000
        assert written["written_in_all"] > written["written_batch"]
    else:
        assert set(written.values()) == {None}


def test_two_results_are_shown_beside_each_other(ran: tuple[Path, dict[str, Any], str], tmp_path: Path) -> None:
    first, result, _ = ran
    for each in result["figures"]:
        each["value"] = each["value"] and each["value"] * 2
    result["settings"]["clients"] = 4
    (second := tmp_path / "second.json").write_text(json.dumps(result))
    compared = run_text(["bench", "--compare", str(first), str(second)]).stdout
    assert "Not the same: clients: 2, 4" in compared
    rates = next(line for line in compared.splitlines() if line.startswith("acknowledged turns, 1 client"))
    starts = next(line for line in compared.splitlines() if line.startswith("start to first answer, empty"))
    assert rates.split()[-1] == "better" and starts.split()[-1] == "worse"
    plain = json.loads(run_text(["bench", "--compare", str(first), str(second), "--json"]).stdout)
    assert {each["ratio"] for each in plain["figures"]} <= {2, None} and len(plain["figures"]) == len(result["figures"])


def written(file: Path, *figures: dict[str, Any], **more: Any) -> str:
    """The path of a result with these figures."""
    usual = {"name": "a", "title": "t", "unit": "ms", "value": 1.0, "floor": 1.0, "better": "less"}
    result = {"version": "1", "device": {}, "settings": {}, "format": "beetle-bench-1", **more}
    file.write_text(json.dumps({**result, "figures": [{**usual, **each} for each in figures]}))
    return str(file)


def test_only_what_has_the_same_unit_and_direction_is_compared(tmp_path: Path) -> None:
    first = written(
        tmp_path / "1", {}, {"name": "b", "unit": "bytes", "value": 1000}, {"name": "c"}, device={"cpu": "z"}
    )
    second = written(
        tmp_path / "2", {"value": 3.0}, {"name": "b", "unit": "KiB"}, {"name": "c", "better": "more"}, {"name": "d"},
        settings={"new": None},
    )  # fmt: skip
    plain = json.loads(run_text(["bench", "--compare", first, second, "--json"]).stdout)
    assert [(each["name"], each["ratio"], each["verdict"]) for each in plain["figures"]] == [("a", 3.0, "worse")]
    assert [(each["run"], each["name"]) for each in plain["alone"]] == [
        ("first", "b"), ("first", "c"), ("second", "b"), ("second", "c"), ("second", "d"),
    ]  # fmt: skip
    assert plain["differences"] == ["cpu: z, -", "new: -, None"]
    shown = run_text(["bench", "--compare", first, second]).stdout
    assert "Only in the first: t (bytes, less is better)" in shown and "Not the same: new: -, None" in shown


def test_a_quotient_that_is_no_number_has_no_verdict(tmp_path: Path) -> None:
    first = written(tmp_path / "1", {"value": 1e-308, "floor": 5e-324})
    second = written(tmp_path / "2", {"value": 1e308, "floor": 5e-324})
    (figure,) = json.loads(run_text(["bench", "--compare", first, second, "--json"]).stdout)["figures"]
    assert (figure["ratio"], figure["verdict"]) == (None, "")
    assert "inf" not in run_text(["bench", "--compare", first, second]).stdout


def test_a_result_that_is_nested_is_none(tmp_path: Path) -> None:
    (file := tmp_path / "deep").write_text('{"device": {"a":' + "[" * 100_000 + "]" * 100_000 + "}}")
    for each in (str(file), written(tmp_path / "one", device={"a": [1]})):
        done = run_text(["bench", "--compare", each, each])
        assert done.returncode == 2 and "is no result of `beetle bench`" in done.stderr


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_run_that_a_signal_ends_leaves_nothing_behind(disk: Path, home: Path, number: int, code: int) -> None:
    """Sent to its daemon and its clients too, as by a closed terminal."""
    words = ["bench", "--turns", "400", "--clients", "2", "--profile", "standalone", "--folder", str(disk)]
    out = home / "ended.json"
    command = [sys.executable, "-m", "beetle", *words, "--out", str(out)]
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True, start_new_session=True)
    finally:
        signal.signal(signal.SIGHUP, before)
    with process:
        assert process.stderr is not None
        assert next(line for line in process.stderr if "writes, 1 client" in line)
        os.killpg(process.pid, number)
        assert process.stderr.read() == ""
    assert process.returncode == code
    assert os.listdir(disk) == [] and [each for each in os.listdir(home) if "ended" in each] == []


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--turns", "0"), "--turns must be from 1 to"),
        (("--clients", "1000"), "--clients must be from 1 to 32"),
        (("--folder", "/nowhere"), "/nowhere is no folder"),
        (("--out", "/"), "--out"),
        (("--profile", "vast"), "vast"),
        (("--turns", "1000000", "--folder", "/dev/shm"), "may be needed"),
        (("--compare", __file__, __file__), "is no result of `beetle bench`"),
        (("--compare", "/nowhere", __file__), "/nowhere: No such file"),
    ],
)
def test_what_cannot_be_measured_or_compared_is_told_with_a_hint(arguments: tuple[str, ...], says: str) -> None:
    done = run_text(["bench", *arguments])
    assert done.returncode not in (0, 1) and says in done.stderr and len(done.stderr.splitlines()) == 2, done.stderr
