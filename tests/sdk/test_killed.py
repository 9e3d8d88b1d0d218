"""kill -9 anywhere in a recorded run: the store holds what was acknowledged, and at most the step under way."""

from __future__ import annotations

import random
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from beetle.open import state_fingerprint
from tests.sdk.recorded import Request
from tests.sdk.reopened import ON_DISK, ReopenedStore
from tests.sdk.script import steps

OWNERS = ("ann", "carl", "dora", "emil")
KILLS = 15


def held(place: ReopenedStore) -> tuple[str, ...]:
    return tuple(state_fingerprint(place.opened, owner) for owner in OWNERS)


def run() -> list[Request]:
    """The steps of the script that a store without mounted skills answers alike."""
    return [each for each in steps() if each.op != "agent_skill.list"]


@cache
def reference() -> tuple[tuple[str, ...], ...]:
    """What the store holds before the first step and after each one."""
    place = ReopenedStore("in-memory")
    found = [held(place)]
    for step in run():
        place.ask(step)
        found.append(held(place))
    place.close()
    return tuple(found)


def killed(backend: str, folder: Path, after: int) -> int:
    """Run in a process of its own, and kill it as soon as it has acknowledged so many steps; how many it told of."""
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.sdk.child", backend, str(folder)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert child.stdin is not None and child.stdout is not None
    try:
        child.stdin.write("".join(step.to_json() + "\n" for step in run()))
        child.stdin.close()
        told = 0
        while told < after and child.stdout.readline():
            told += 1
        child.kill()
        # What it said before it died counts as well.
        return told + len(child.stdout.readlines())
    finally:
        child.kill()
        child.wait()
        child.stdout.close()


@pytest.mark.slow
@pytest.mark.parametrize("backend", ON_DISK)
def test_a_killed_store_holds_what_was_acknowledged(backend: str, tmp_path: Path) -> None:
    chance = random.Random(backend)
    wanted = reference()
    for number in range(KILLS):
        folder = tmp_path / str(number)
        folder.mkdir()
        after = chance.randrange(1, len(wanted) - 1)
        told = killed(backend, folder, after)
        assert told >= after
        place = ReopenedStore(backend, folder)
        try:
            assert held(place) in wanted[told : told + 2], (after, told)
            verified = place.ask(Request("store.verify", {})).report
            assert verified is not None and verified["clean"], verified
        finally:
            place.opened.store.close()
