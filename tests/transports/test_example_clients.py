"""The example clients of docs/clients/: each page's program runs against a daemon and prints what the page says."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.forked import Daemon
from tests.running import ROOT, node
from tests.transports.serving import open_folder

CLIENTS = ROOT / "docs" / "clients"
GO_MOD = "module try\n\ngo 1.21\n\nrequire example.org/beetle v0.0.0\n\nreplace example.org/beetle => ./beetle\n"
RUN_S = 60
BUILD_S = 280
"""A cold build cache compiles the standard library too."""


@pytest.fixture
def daemon() -> Iterator[Daemon]:
    """A daemon of the page's own: it counts events and sequences."""
    with open_folder() as folder, Daemon(profile="standalone", folder=str(folder)) as running:
        yield running


def program(page: str, language: str) -> str:
    """The blocks of a page, one after the other."""
    text = (CLIENTS / page).read_text(encoding="utf-8")
    return "\n".join(re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))


def prints_what_it_says(command: list[str], source: str, daemon: Daemon) -> None:
    environment = {**os.environ, "BEETLE_SOCKET": daemon.socket}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=RUN_S, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == re.findall(r"// prints (.*)$", source, re.MULTILINE)


def test_the_client_in_node_does_what_its_page_says(daemon: Daemon, tmp_path: Path) -> None:
    shutil.copytree(CLIENTS / "node", tmp_path, dirs_exist_ok=True)
    source = program("node.md", "js")
    (tmp_path / "page.mjs").write_text(source, encoding="utf-8")
    prints_what_it_says([node(), str(tmp_path / "page.mjs")], source, daemon)


@pytest.mark.slow
def test_the_client_in_go_does_what_its_page_says(daemon: Daemon, tmp_path: Path) -> None:
    go = shutil.which("go")
    if go is None:
        pytest.skip("go is not installed")
    shutil.copytree(CLIENTS / "go", tmp_path / "beetle")
    source = program("go.md", "go")
    (tmp_path / "main.go").write_text(source, encoding="utf-8")
    (tmp_path / "go.mod").write_text(GO_MOD, encoding="utf-8")
    environment = {**os.environ, "GOTOOLCHAIN": "local", "GOPROXY": "off", "CGO_ENABLED": "0"}
    command = [go, "build", "-o", "try", "."]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=BUILD_S, check=False
    )
    assert done.returncode == 0, done.stderr
    prints_what_it_says([str(tmp_path / "try")], source, daemon)
