"""The wheel in an environment of its own: without the extra `console`, and then with it."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from beetle import __version__

ROOT = Path(__file__).parents[1]
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]


class Installed:
    """An environment with the wheel, without the extra until `add_console` is called."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        self.folder = folder
        self.wheel = wheel
        self.python = folder / "venv/bin/python"
        # Without a pip of its own: the one that runs this test installs into it.
        venv.create(folder / "venv", symlinks=True)
        self.add("")

    def add(self, extra: str) -> None:
        # Compiling all that is installed takes longer than all that is run of it.
        words = [*PIP, "--python", self.python, "install", "--no-compile", f"{self.wheel}{extra}"]
        subprocess.run(words, check=True, cwd=self.folder)

    def run(self, *words: str | Path) -> subprocess.CompletedProcess[str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("BEETLE_", "PYTHON", "XDG_"))}
        env = {**kept, "HOME": str(self.folder), "TERM": "xterm"}
        return subprocess.run(words, cwd=self.folder, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL)

    def beetle(self, *words: str) -> subprocess.CompletedProcess[str]:
        store = self.folder / "b.db"
        return self.run(self.folder / "venv/bin/beetle", "--store", str(store), "--profile", "standalone", *words)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    words = [*PIP, "wheel", "--no-deps", "-w", folder, ROOT]
    made = subprocess.run(words, capture_output=True, text=True, cwd=folder)
    if made.returncode and not os.environ.get("BEETLE_REQUIRE_BUILD"):
        pytest.skip(f"pip cannot build the wheel here: {made.stderr[-300:]}")
    assert made.returncode == 0, made.stderr
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    yield Installed(tmp_path_factory.mktemp("installed"), wheel)


def test_the_wheel_is_named_beetle_memory_and_is_imported_as_beetle(installed: Installed) -> None:
    assert installed.wheel.name.startswith(f"beetle_memory-{__version__}-")
    told = installed.run(
        installed.python, "-c",
        "import beetle, importlib.metadata as m; print(beetle.__file__); print(m.version('beetle-memory'))",
    )  # fmt: skip
    file, version = told.stdout.splitlines()
    assert file.startswith(str(installed.folder)) and version == __version__


def test_without_the_extra_all_but_the_console_works(installed: Installed) -> None:
    for package in ("textual", "segno", "rich"):
        assert installed.run(installed.python, "-c", f"import {package}").returncode == 1
    assert installed.run(installed.python, "-c", "import cryptography").returncode == 0
    said = installed.beetle("transcript", "commit", "--conversation", "c", "--text", "The key is in the blue box.")
    assert said.returncode == 0, said.stderr
    assert "blue box" in installed.beetle("memory", "recall", "key").stdout
    assert installed.beetle("help", "install").stdout.startswith("# Installing\n")
    said = installed.beetle("tui")
    assert (said.returncode, said.stdout) == (5, "")
    assert said.stderr.splitlines() == [
        "beetle: capability_hidden: this installation has no console: the Python package textual is missing",
        "install the extra `console`: pip install 'beetle-memory[console]'; the one-file program has it",
    ]
    checked = installed.beetle("doctor", "--self-test")
    assert checked.returncode == 0 and "not applicable: textual is not installed" in checked.stdout, checked.stdout


@pytest.mark.slow
def test_with_the_extra_the_console_is_there(installed: Installed) -> None:
    installed.add("[console]")
    said = installed.beetle("tui")
    assert (said.returncode, "the console needs a terminal" in said.stderr) == (2, True)
    drawn = installed.run(installed.python, "-c", "from beetle_tui.app import start_check; print(repr(start_check()))")
    assert (drawn.stdout, drawn.stderr) == ("''\n", "")
