"""A daemon for each module, and the page's program for its framework."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from uuid import uuid4

import pytest

from beetle.client import Client
from beetle.contracts.common import WireScope
from tests.running import Daemon

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/frameworks.md"
PROFILE = "profile-linux-device-compact-memory"


def framework(name: str, extra: str) -> ModuleType:
    """The framework; without it the module's tests are skipped, but where packaging/tests/adapters.sh installed it."""
    if os.environ.get("BEETLE_REQUIRE_FRAMEWORK"):
        __import__(name)
        return sys.modules[name]
    return pytest.importorskip(name, reason=f"the extra [{extra}] is not installed")


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with Daemon(profile=PROFILE) as running:
        yield running


@pytest.fixture
def memory(daemon: Daemon) -> Iterator[Client]:
    """A client for an owner of this test's own."""
    with Client(daemon.socket, scope=WireScope(owner_id=f"owner-{uuid4().hex[:8]}")) as client:
        yield client


@pytest.fixture
def run_example(daemon: Daemon, tmp_path: Path) -> Callable[[str], None]:
    """Runs the program under a heading of docs/frameworks.md, which must print what it says."""

    def run(title: str) -> None:
        found = re.search(rf"^## {title}$.*?^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
        assert found is not None
        script = tmp_path / "page.py"
        script.write_text(found[1])
        environment = {**os.environ, "BEETLE_SOCKET": daemon.socket, "PYTHONPATH": str(ROOT)}
        done = subprocess.run([sys.executable, str(script)], env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines() == re.findall(r"# prints (.*)$", found[1], re.MULTILINE)

    return run
