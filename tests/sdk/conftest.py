from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.sdk.answering import ModelServer, answering


@pytest.fixture
def server() -> Iterator[ModelServer]:
    """A model's server of the test's own, which answers as it is told."""
    with answering() as running:
        yield running
