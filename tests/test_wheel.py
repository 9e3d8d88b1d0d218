"""The wheel in an environment of its own: without the extra `console`, under type checkers, and with the extra."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from beetle import __version__
from tests.typed_project import HEAD, RIGHT, WRONG

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


def test_the_wheel_installs_two_packages_and_no_other(installed: Installed) -> None:
    """The console's files lie in tui/ of the checkout; installed they are beetle_tui, which runs with its extra."""
    with zipfile.ZipFile(installed.wheel) as archive:
        tops = {name.partition("/")[0] for name in archive.namelist()}
    assert tops == {"beetle", "beetle_tui", f"beetle_memory-{__version__}.dist-info"}
    names = ("tui", "beetle_tui", "textual")
    program = f"from importlib.util import find_spec as found; print(*(bool(found(each)) for each in {names}))"
    assert installed.run(installed.python, "-c", program).stdout == "False True False\n"


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


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    (folder / "right.py").write_text(RIGHT)
    (folder / "wrong.py").write_text(HEAD + "\n".join(WRONG) + "\n")
    (folder / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict", "pythonVersion": "3.11"}')
    return folder


def pyright(installed: Installed, folder: Path) -> list[str]:
    program = shutil.which("pyright", path=str(Path(sys.executable).parent))
    assert program is not None
    return [program, "--pythonpath", str(installed.python), "--project", str(folder)]


def mypy(installed: Installed, folder: Path) -> list[str]:
    # What beetle imports is followed for its types alone; only this folder's own errors count.
    return [
        sys.executable, "-m", "mypy", "--strict", "--python-executable", str(installed.python),
        "--python-version", "3.11", "--cache-dir", str(folder / "cache"), "--follow-imports=silent",
        "--no-error-summary", "right.py", "wrong.py",
    ]  # fmt: skip


@pytest.mark.parametrize("checker", [pyright, mypy])
def test_right_code_passes_and_each_wrong_line_is_found(
    checker: Callable[[Installed, Path], list[str]], installed: Installed, project: Path
) -> None:
    """The checkers see the wheel that a user has, and nothing of the checkout."""
    done = subprocess.run(checker(installed, project), cwd=project, capture_output=True, text=True, check=False)
    found = re.findall(r"(\w+)\.py:(\d+)(?::\d+)?(?: -)?:? error", done.stdout)
    first = HEAD.count("\n") + 1
    wrong = {("wrong", str(number)) for number in range(first, first + len(WRONG))}
    assert set(found) == wrong, done.stdout + done.stderr


@pytest.mark.slow
def test_with_the_extra_the_console_is_there(installed: Installed) -> None:
    installed.add("[console]")
    said = installed.beetle("tui")
    assert (said.returncode, "the console needs a terminal" in said.stderr) == (2, True)
    drawn = installed.run(installed.python, "-c", "from beetle_tui.app import start_check; print(repr(start_check()))")
    assert (drawn.stdout, drawn.stderr) == ("''\n", "")
