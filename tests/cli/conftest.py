"""A command line of the tests' own: nothing of the machine's environment, a folder short enough for a socket."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from beetle.__main__ import main

REPOSITORY = Path(__file__).parents[2]


class Said(NamedTuple):
    """What a command line answered."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def error(self) -> tuple[str, str, str]:
        """Key, message and hint of an error in the agreed shape."""
        if self.err.startswith("{"):
            told = json.loads(self.err)["error"]
            return told["key"], told["message"], told["hint"]
        first, _, hint = self.err.partition("\n")
        program, key, message = first.split(": ", 2)
        assert program == "beetle", self.err
        return key, message, hint.rstrip("\n")


class CommandLine:
    """Runs commands in this process with a store and a socket of its own."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self.store = str(folder / "b.db")
        self.socket = str(folder / "b.sock")
        self._capsys = capsys

    def run(self, *words: str) -> Said:
        self._capsys.readouterr()
        code = main(list(words))
        captured = self._capsys.readouterr()
        return Said(code, captured.out, captured.err)

    def here(self, *words: str) -> Said:
        """On the store, without a socket."""
        return self.run("--store", self.store, "--profile", "standalone", *words)

    def process(self, *words: str, input: str | None = None, **env: str) -> Said:
        """In a process of its own."""
        done = subprocess.run(
            [sys.executable, "-m", "beetle", *words],
            input=input,
            stdin=subprocess.DEVNULL if input is None else None,
            capture_output=True,
            text=True,
            cwd=REPOSITORY,
            env={**os.environ, **env},
            timeout=60,
        )
        return Said(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="bt-"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(autouse=True)
def nothing_of_the_machine(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    for name in [each for each in os.environ if each.startswith(("BEETLE_", "XDG_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("COLUMNS", "100")
    config = folder / "beetle.toml"
    config.write_text("")
    # Root's usual file may exist on the machine that runs this.
    monkeypatch.setenv("BEETLE_CONFIG", str(config))


@pytest.fixture
def beetle(folder: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(folder, capsys)
