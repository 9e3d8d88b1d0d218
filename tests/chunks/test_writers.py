"""Two processes create chunks through one daemon, which is killed in between."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import suppress
from typing import Any

import pytest

from tests.running import ROOT, Daemon

PROFILE = "profile-linux-device-standalone-memory"


def started(daemon: Daemon, name: str, count: int) -> subprocess.Popen[str]:
    words = [sys.executable, "-m", "tests.chunks.writer", daemon.socket, name, str(count)]
    return subprocess.Popen(words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)


@pytest.mark.parametrize("count", [20, pytest.param(1000, marks=pytest.mark.slow)])
def test_nothing_that_was_acknowledged_is_lost(count: int) -> None:
    acknowledged: list[dict[str, Any]] = []
    with Daemon(profile=PROFILE) as daemon:
        writers = [started(daemon, f"writer-{number}", count) for number in range(2)]
        try:
            for each in writers:
                assert each.stdout is not None
                acknowledged += [json.loads(each.stdout.readline()) for _ in range(count // 4)]
            daemon.kill()
            daemon.start()
            for each in writers:
                with suppress(BrokenPipeError):
                    print("go on", file=each.stdin, flush=True)
            for each in writers:
                assert each.stdout is not None
                acknowledged += [json.loads(line) for line in each.stdout]
                assert each.wait(60) == 0
        finally:
            for each in writers:
                each.kill()
                each.wait()
                with suppress(BrokenPipeError):
                    each.communicate()
        with daemon.client() as client:
            found: list[Any] = []
            cursor: str | None = None
            while True:
                page = client.list_chunks(tags=["shared"], limit=200, cursor=cursor)
                found += page.chunks
                cursor = page.next_cursor
                if not page.has_more:
                    break
            assert client.verify_store().clean
    told = {each["id"]: each["said"] for each in acknowledged if "id" in each}
    assert len(told) == 2 * count and told == {each.id: each.content for each in found}
    assert sorted(told.values()) == sorted(f"writer-{number} {place}" for number in range(2) for place in range(count))
    by_id = {each.id: each for each in found}
    assert all(target in by_id for each in found for target in (*each.links.follows, *each.links.related_to))
