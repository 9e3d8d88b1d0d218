from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from conformance.doors import REPOSITORY, CommandLine, Daemon, Door, InProcess, Socket

PACKAGE = REPOSITORY / "beetle"
OPEN_DOORS = ["in_process"]
if (PACKAGE / "client.py").exists() and (PACKAGE / "daemon.py").exists():
    OPEN_DOORS.append("socket")
    if (PACKAGE / "transports" / "cli" / "app.py").exists():
        OPEN_DOORS.append("cli")


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    """One daemon for a module. Its folder is short: a socket's path may have about a hundred bytes."""
    with tempfile.TemporaryDirectory(prefix="beetle-") as folder:
        running = Daemon(Path(folder))
        yield running
        assert running.stop() == 0, running.log.read_text()


@pytest.fixture(params=OPEN_DOORS)
def door(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Door]:
    """A way in, for an owner of this case's own."""
    owner = f"owner-{uuid4().hex[:12]}"
    if request.param == "in_process":
        found: InProcess | Socket = InProcess(owner, tmp_path / "beetle.db")
    else:
        kind = Socket if request.param == "socket" else CommandLine
        found = kind(owner, request.getfixturevalue("daemon"))
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
    if "socket" not in OPEN_DOORS:
        pytest.skip("this checkout has no daemon yet")
    found = Socket(f"owner-{uuid4().hex[:12]}", daemon)
    try:
        yield found
    finally:
        found.close()
