"""A daemon of the module, and a host that speaks to it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.forked import Daemon
from tests.mcp.host import Host

PROFILE = "profile-linux-device-standalone-memory"
KITCHEN = {
    "conversation": {"conversation_id": "kitchen"},
    "turns": [{
        "turn_id": "t1",
        "at": "2026-03-02T08:12:00Z",
        "messages": [
            {"message_id": "m1", "role": "user", "content": "I prefer green tea.", "actor": {"speaker": "Mara"}},
            {"message_id": "m2", "role": "assistant", "content": "The spare key is under the flower pot."},
        ],
    }],
}  # fmt: skip


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with Daemon(profile=PROFILE) as running:
        with running.client() as client:
            client.call("transcript.commit", KITCHEN)
        yield running


@pytest.fixture(scope="module")
def host(daemon: Daemon) -> Iterator[Host]:
    with Host("--socket", daemon.socket, "mcp") as connected:
        yield connected


@pytest.fixture(scope="module")
def whole(daemon: Daemon) -> Iterator[Host]:
    """A host that has all tools."""
    with Host("--socket", daemon.socket, "mcp", "--toolset", "all") as connected:
        yield connected
