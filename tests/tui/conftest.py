"""What many tests of the console ask for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from beetle.client import Client
from tests.running import Daemon


@pytest.fixture
def client(daemon: Daemon) -> Iterator[Client]:
    """A client at the test's own daemon."""
    with daemon.client() as found:
        yield found
