from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pytest

from beetle.open import Opened, open_store
from tests.built import ONE_FILE, need_build
from tests.conformance.doors import PROFILE, AsyncSocket, CommandLine, Daemon, Door, InProcess, Socket

DOORS = ("in_process", "socket")
"""What every case goes through."""
COMMANDS = ("cli", "one_file_cli")
ALL_DOORS = (*DOORS, "async_socket", "one_file_socket", *COMMANDS)
"""What one case of each operation goes through: behind the others is the same socket."""


@contextmanager
def running_daemon(*command: str, **env: str) -> Iterator[Daemon]:
    """A daemon that ends well. Its folder is short: a socket's path may have about a hundred bytes."""
    with tempfile.TemporaryDirectory(prefix="beetle-") as folder:
        running = Daemon(Path(folder), command, {**os.environ, **env})
        yield running
        assert running.stop() == 0, running.log.read_text()


@pytest.fixture(scope="session")
def daemon() -> Iterator[Daemon]:
    """One daemon for all cases; each has an owner of its own there."""
    with running_daemon() as running:
        yield running


@pytest.fixture(scope="session")
def one_file_daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """The daemon of the one file, which the commands of its cases come from too."""
    need_build()
    cache = tmp_path_factory.mktemp("cache")
    with running_daemon(str(ONE_FILE), BEETLE_CACHE=str(cache)) as running:
        yield running
    assert len([each for each in cache.iterdir() if not each.name.startswith(".")]) == 1


class OneStore:
    """The store that all cases in this process share, each with an owner of its own; a case may close it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._opened: Opened | None = None

    @property
    def opened(self) -> Opened:
        if self._opened is None or self._opened.store.closed:
            self._opened = open_store(str(self._path), PROFILE)
        return self._opened


@pytest.fixture(scope="session")
def one_store() -> Iterator[OneStore]:
    """Making a store takes longer than most cases in it."""
    with tempfile.TemporaryDirectory(prefix="beetle-one-") as folder:
        store = OneStore(Path(folder) / "beetle.db")
        yield store
        store.opened.store.close()


@contextmanager
def open_door(name: str, request: pytest.FixtureRequest) -> Iterator[Door]:
    """A door by its name, for an owner whom no other case shares."""
    owner = f"owner-{uuid4().hex[:12]}"
    if name == "in_process":
        shared = request.getfixturevalue("one_store").opened
        found: InProcess | Socket = InProcess(owner, request.getfixturevalue("tmp_path") / "beetle.db", shared=shared)
    else:
        kind = CommandLine if name in COMMANDS else AsyncSocket if name == "async_socket" else Socket
        found = kind(owner, request.getfixturevalue("one_file_daemon" if name.startswith("one_file") else "daemon"))
    try:
        yield found
    finally:
        found.close()


@pytest.fixture(params=DOORS)
def door(request: pytest.FixtureRequest) -> Iterator[Door]:
    """A transport, for an owner of this case's own."""
    with open_door(request.param, request) as found:
        yield found


@pytest.fixture(params=COMMANDS)
def command(request: pytest.FixtureRequest) -> Iterator[Door]:
    """The command line, from the source and from the one file."""
    with open_door(request.param, request) as found:
        yield found


@pytest.fixture
def any_door(request: pytest.FixtureRequest) -> Iterator[Door]:
    """The door that a test names among its parameters."""
    with open_door(request.param, request) as found:
        yield found


@pytest.fixture
def in_process(tmp_path: Path) -> Iterator[InProcess]:
    """The door of cases that need the store itself."""
    found = InProcess("owner-one", tmp_path / "beetle.db")
    try:
        yield found
    finally:
        found.close()


@pytest.fixture
def over_socket(request: pytest.FixtureRequest) -> Iterator[Socket]:
    """The door of cases about one connection."""
    with open_door("socket", request) as found:
        assert isinstance(found, Socket)
        yield found
