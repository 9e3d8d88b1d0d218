"""The life of a daemon on a kernel that has no pidfd: Linux before 5.3."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.running import COMMAND, ROOT


@pytest.fixture
def older(tmp_path: Path) -> list[str]:
    """A command line of beetle for a store of its own, as such a kernel runs it."""
    runs = [sys.executable, "-m", "tests.older_kernel"]
    probe = [*runs, sys.executable, "-c", "import os; os.pidfd_open(os.getpid())"]
    said = subprocess.run(probe, cwd=ROOT, capture_output=True, text=True)
    if "Function not implemented" not in said.stderr:
        pytest.skip(f"no filter of system calls here: {said.stderr[-200:]}")
    return [*runs, *COMMAND, "--store", str(tmp_path / "b.db"), "--socket", str(tmp_path / "b.sock")]


def run(*words: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(words, cwd=ROOT, env=env, capture_output=True, text=True, timeout=60)


def test_a_daemon_is_started_reloaded_and_stopped(older: list[str]) -> None:
    started = run(*older, "--profile", "compact", "start")
    assert (started.returncode, started.stdout[:14]) == (0, "Daemon started"), started
    assert run(*older, "reload").returncode == 0
    assert "Daemon stopped" in run(*older, "stop").stdout
    assert run(*older, "status").returncode == 3


def test_a_daemon_that_does_not_start_says_why(older: list[str], tmp_path: Path) -> None:
    (tmp_path / "b.db").write_bytes(b"no store at all" * 1000)
    said = run(*older, "--profile", "compact", "start")
    assert said.returncode == 9 and said.stderr.startswith("beetle: "), said
