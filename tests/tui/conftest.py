"""What many tests of the console ask for."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest

from beetle.client import Client
from tests.running import Daemon

ROUNDS = 3


async def nothing_to_do(min_sleep: float = 0.0, max_sleep: float = 1.0) -> None:
    """Wait until the loop has run all that it was given."""
    del min_sleep
    loop = asyncio.get_running_loop()
    end = time.monotonic() + max_sleep
    for _ in range(ROUNDS):
        await asyncio.sleep(0)
        while loop._ready and time.monotonic() < end:  # type: ignore[attr-defined] - asyncio has no word for it
            await asyncio.sleep(0)


@pytest.fixture(autouse=True)
def keys_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Textual's pilot sleeps at least 40 ms for a key, and longer while anything of the process runs."""
    monkeypatch.setattr("textual.pilot.wait_for_idle", nothing_to_do)
    monkeypatch.setattr("textual.app.wait_for_idle", nothing_to_do)


@pytest.fixture(autouse=True)
def reads_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A change is read a second after the reading before it, and devices are looked at every five seconds; no test
    waits for that but the one that tests it."""
    monkeypatch.setattr("beetle_tui.area.SECONDS_BETWEEN_READS", 0.1)
    monkeypatch.setattr("beetle_tui.screens.devices.LOOK_SECONDS", 0.5)


@pytest.fixture
def client(daemon: Daemon) -> Iterator[Client]:
    """A client at the test's own daemon."""
    with daemon.client() as found:
        yield found
