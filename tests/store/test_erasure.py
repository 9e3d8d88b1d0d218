"""Erased content is in no byte of the store's files, whatever its neighbours and readers do."""

from __future__ import annotations

import random
import re
import string
from typing import Any

import pytest

from beetle import MemoryRuntime
from tests.store.conftest import (
    DISK_BACKENDS,
    assert_clean,
    bytes_of,
    commit,
    found,
    lifecycle,
    open_runtime,
    turn,
)

RARE = "qxz"
COMMON = "".join(sorted(set(string.ascii_lowercase) - set(RARE)))
WINDOW = 6
RUN = re.compile(rb"[a-z]{%d,}" % WINDOW)


class Words:
    """Random words. Every third letter of a canary is one that no other word has, so six letters of one betray it."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.common = ["".join(self.rng.choices(COMMON, k=self.rng.randint(3, 9))) for _ in range(2000)]

    def canary(self, prefix: str = "") -> str:
        letters = (self.rng.choice(COMMON + COMMON + RARE if place % 3 else RARE) for place in range(18))
        return prefix + "".join(letters)

    def sentence(self) -> str:
        """Mostly short, now and then longer than a page."""
        most = self.rng.choice((10, 10, 30, 30, 30, 1000))
        return " ".join(self.rng.choices(self.common, k=self.rng.randint(2, most)))


def windows(word: str) -> set[bytes]:
    """Every stretch of six letters, which every longer piece, stem and prefix of the word has one of."""
    folded = word.lower().encode()
    return {folded[start : start + WINDOW] for start in range(len(folded) - WINDOW + 1)}


def remnants(data: bytes, erased: list[str], alive: list[str] = []) -> set[bytes]:  # noqa: B006 - read only
    """Six letters and more of erased words, case-folded, that no living word accounts for."""
    sought = set().union(*(windows(word) for word in erased)) - set().union(*(windows(word) for word in alive), set())
    left: set[bytes] = set()
    for run in set(RUN.findall(data.lower())):
        left |= {run[at : at + WINDOW] for at in range(len(run) - WINDOW + 1)} & sought
    return left


def assert_gone(path: str, erased: list[str], alive: list[str] = []) -> None:  # noqa: B006 - read only
    left = remnants(bytes_of(path), erased, alive)
    assert not left, f"{len(left)} pieces left of {len(erased)} erased words, e.g. {sorted(left)[:5]}"


def canary_turn(turn_id: str, canaries: list[str], neighbour: str = "") -> dict[str, Any]:
    """A turn with canaries in the content, in a label, and in an attr's key and value."""
    content, label, key, value = canaries
    return turn(
        turn_id,
        f"{neighbour} {content} {content.upper()}ing, said once more: {content.title()}s.",
        host_refs=[{"kind": "task", "ref_id": "r1", "label": f"about {label}"}],
        attrs=[{"key": key, "value": f"{value} and more"}],
    )


@pytest.mark.parametrize("backend", DISK_BACKENDS)
@pytest.mark.parametrize("prefix", ["", "zebraqpre"])
def test_an_erased_turn_is_in_no_byte_of_a_small_store(path: str, backend: str, prefix: str) -> None:
    words = Words(1)
    canaries = [words.canary(prefix) for _ in range(4)]
    kept = words.canary(prefix)
    with open_runtime(path, backend) as memory:
        commit(memory, turn("t0", f"before {kept}"), canary_turn("t1", canaries), turn("t2", "after it"))
        assert remnants(bytes_of(path), canaries, [kept]) and found(memory, canaries[0])
        assert lifecycle(memory, "delete_raw", "t1").erasure == "done"
        assert_gone(path, canaries, [kept])
        assert not found(memory, canaries[0]) and found(memory, kept)
        assert_clean(memory)
    assert_gone(path, canaries, [kept])


def fill(memory: MemoryRuntime, words: Words, turns: int, canaries: dict[str, list[str]]) -> None:
    batch: list[dict[str, Any]] = []
    for number in range(turns):
        name = f"t{number}"
        if name in canaries:
            batch.append(canary_turn(name, canaries[name], words.sentence()))
        elif words.rng.random() < 0.2:
            batch.append(canary_turn(name, [words.sentence()[:200] for _ in range(4)]))
        else:
            batch.append(turn(name, words.sentence()))
        if len(batch) == 100 or number == turns - 1:
            commit(memory, *batch)
            batch = []


def erase_in_rounds(path: str, backend: str, prefix: str, turns: int, count: int, rounds: int, seed: int) -> None:
    words = Words(seed)
    places = words.rng.sample(range(turns), count)
    canaries = {f"t{place}": [words.canary(prefix) for _ in range(4)] for place in places}
    with open_runtime(path, backend, wal_bytes=256 * 1024) as memory:
        fill(memory, words, turns, canaries)
        everything = [word for four in canaries.values() for word in four]
        assert len(remnants(bytes_of(path), everything)) > 10 * len(canaries)
        order = list(canaries)
        words.rng.shuffle(order)
        neighbours = [f"t{number}" for number in range(turns) if f"t{number}" not in canaries]
        words.rng.shuffle(neighbours)
        for step in range(rounds):
            # Most neighbours go with time, so that pages of tables and index run empty, merge and are filled anew.
            many = neighbours[step::rounds][: int(turns * 0.85 / rounds)]
            for start in range(0, len(many), 500):
                assert lifecycle(memory, "delete_raw", *many[start : start + 500]).erasure == "done"
            commit(memory, *(turn(f"n{step}-{number}", words.sentence()) for number in range(50)))
            for name in order[step::rounds]:
                assert lifecycle(memory, "delete_raw", name).erasure == "done"
            gone = [
                word
                for name in order
                if any(name in order[s::rounds] for s in range(step + 1))
                for word in canaries[name]
            ]
            alive = [word for word in everything if word not in set(gone)]
            assert_gone(path, gone, alive)
        assert_clean(memory)
    assert_gone(path, everything)


@pytest.mark.parametrize("backend", DISK_BACKENDS)
def test_canaries_among_neighbours_leave_nothing_while_pages_merge(path: str, backend: str) -> None:
    erase_in_rounds(path, backend, "zebraqpre", turns=1500, count=30, rounds=3, seed=7)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("prefix", ["", "zebraqpre"])
@pytest.mark.parametrize("backend", DISK_BACKENDS)
def test_a_hundred_canaries_among_ten_thousand_neighbours_leave_nothing(
    path: str, backend: str, prefix: str, seed: int
) -> None:
    erase_in_rounds(path, backend, prefix, turns=10_000, count=100, rounds=5, seed=seed)
