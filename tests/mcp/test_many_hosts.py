"""Eight hosts write through one daemon, beside a console's requests and a command line: nothing is lost."""

from __future__ import annotations

from tests.bench.mcp import measure

HOSTS, WRITES = 8, 5


def test_hosts_that_write_side_by_side_lose_nothing() -> None:
    found = measure(HOSTS, WRITES)
    assert (found.acknowledged, found.lost, found.clean) == (HOSTS * WRITES, [], True)
    assert found.looks >= 1 and found.commands >= 1
