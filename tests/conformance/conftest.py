from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from tests.built import ONE_FILE, need_build
from tests.conformance.doors import CommandLine, Daemon, Door, InProcess, Socket

DOORS = ["in_process", "socket", "cli", "one_file_socket", "one_file_cli"]


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    """One daemon for a module. Its folder is short: a socket's path may have about a hundred bytes."""
    with tempfile.TemporaryDirectory(prefix="beetle-") as folder:
        running = Daemon(Path(folder))
        yield running
        assert running.stop() == 0, running.log.read_text()


@pytest.fixture(scope="module")
def one_file_daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """The daemon of the one file, which the commands of its case come from too."""
    need_build()
    cache = tmp_path_factory.mktemp("cache")
    with tempfile.TemporaryDirectory(prefix="beetle-") as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("BEETLE_CACHE", str(cache))
        running = Daemon(Path(folder), [str(ONE_FILE)])
        yield running
        assert running.stop() == 0, running.log.read_text()
    assert len([each for each in cache.iterdir() if not each.name.startswith(".")]) == 1


@pytest.fixture(params=DOORS)
def door(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Door]:
    """A way in, for an owner of this case's own."""
    owner = f"owner-{uuid4().hex[:12]}"
    if request.param == "in_process":
        found: InProcess | Socket = InProcess(owner, tmp_path / "beetle.db")
    else:
        kind = Socket if request.param.endswith("socket") else CommandLine
        daemon = "one_file_daemon" if request.param.startswith("one_file") else "daemon"
        found = kind(owner, request.getfixturevalue(daemon))
    try:
        yield found
    finally:
        found.close()


@pytest.fixture
def in_process(tmp_path: Path) -> Iterator[InProcess]:
    """The door of cases that need the store itself."""
    found = InProcess("owner-one", tmp_path / "beetle.db")
    try:
        yield found
    finally:
        found.close()


@pytest.fixture
def over_socket(daemon: Daemon) -> Iterator[Socket]:
    """The door of cases about one connection."""
    found = Socket(f"owner-{uuid4().hex[:12]}", daemon)
    try:
        yield found
    finally:
        found.close()
