"""The tree that was really built: installed, run, and removed by itself."""

from __future__ import annotations

import json
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


def test_doctor_names_each_file_of_an_installation_that_is_not_as_it_was_built(system: System, tmp_path: Path) -> None:
    need_build()
    run(TREE / "beetle", "install", "--root", str(system.root), "--profile", "compact")
    tree = system.prefix.folder / "current"
    (tree / "_internal/LICENSE").write_text("Do as you like.\n")
    (tree / "_internal/sitecustomize.py").touch()
    (tree / "_internal/beetle/docs/toc.md").unlink()
    (tree / "litestream").chmod(0o777)
    (tmp_path / "config.toml").touch()
    env = {**os.environ, "BEETLE_CONFIG": str(tmp_path / "config.toml")}
    words = [tree / "beetle", "--store", tmp_path / "b.db", "--json", "doctor"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, env=env)
    told = next(each for each in json.loads(done.stdout)["findings"] if each["check"] == "tree")
    assert (done.returncode, told["level"], told["key"]) == (9, "problem", "integrity_violation")
    size = (TREE / "_internal/LICENSE").stat().st_size
    assert told["text"].partition(" is not as it was built: ")[2].split("; ") == [
        f"_internal/LICENSE has 16 bytes, not {size}",
        "_internal/beetle/docs/toc.md is missing",
        "litestream has the mode 777, not 755",
        "_internal/sitecustomize.py does not belong there",
    ]
