"""The tree that was really built: installed, run, and removed by itself."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

from tests.built import TREE, need_build
from tests.deploy.here import System


def run(program: Path, *words: str) -> str:
    with tempfile.NamedTemporaryFile(suffix=".toml") as config:
        # Not the configuration of the machine that runs this: an empty one.
        return run_with({**os.environ, "BEETLE_CONFIG": config.name}, program, *words)


def run_with(env: dict[str, str], program: Path, *words: str) -> str:
    done = subprocess.run([program, *words], capture_output=True, text=True, timeout=120, env=env)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_the_built_program_installs_itself_runs_and_takes_itself_away(system: System) -> None:
    need_build()
    root = ("--root", str(system.root))
    run(TREE / "beetle", "install", *root, "--profile", "compact")
    assert system.whole()
    installed = system.prefix.folder / "current/beetle"
    store = str(system.path("/b.db"))
    said = run(installed, "--store", store, "transcript", "commit", "--conversation", "c", "--text", "a spare key")
    assert said.startswith("1 turn committed")
    told = run(installed, "install", *root).splitlines()
    assert {line.split()[0] for line in told} == {"already", "note"}
    # Its modules are in the file that goes: what it has to say afterwards, it has loaded before.
    assert "/opt/beetle/current removed" in run(installed, "uninstall", *root)
    assert not system.prefix.folder.exists() and Path(store).exists()
