"""Erased content leaves database and log also where a sidecar replicates the store: with the real litestream."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.building import step, talk, turn
from tests.replication.by_hand import Replicated
from tests.replication.ltx import content
from tests.store.test_erasure import Words, assert_gone, gaps, remnants

TURNS = 160


@pytest.fixture
def replicated(tmp_path: Path) -> Iterator[Replicated]:
    found = Replicated(tmp_path)
    try:
        yield found
    finally:
        found.close()


def said(replicated: Replicated, words: Words) -> list[str]:
    """Turns with a canary each, in several commits that the sidecar sends."""
    canaries = [words.canary() for _ in range(TURNS)]
    for start in range(0, TURNS, 20):
        turns = [
            turn(f"t{n}", f"{words.sentence()} {canaries[n]} {words.sentence()}") for n in range(start, start + 20)
        ]
        replicated.call("transcript.commit", talk(*turns))
    return canaries


def test_a_deletion_beside_a_sidecar_leaves_nothing_in_database_and_log(replicated: Replicated) -> None:
    words = Words(20)
    canaries = said(replicated, words)
    replicated.wait_for_sync()
    going = sorted(random.Random(3).sample(range(TURNS), TURNS // 2))
    dead = [canaries[n] for n in going]
    alive = [canaries[n] for n in range(TURNS) if n not in going]
    assert all(each.encode() in content(replicated.replica) for each in dead), "the replica has what was said"
    for at in (going[:40], going[40:]):
        report = replicated.call("transcript.lifecycle", step("delete_raw", *(f"t{n}" for n in at)))
        assert report.erasure == "done"
        # The replica holds it for as long as its files are kept, and the report says so.
        assert report.replica_until is not None
    assert replicated.asides >= 1, "the sidecar stepped aside"
    assert_gone(replicated.store, dead, alive)
    assert not gaps(replicated.store)
    # It goes on behind, with all that is left.
    replicated.call("transcript.commit", talk(turn("behind", "said after the erasure")))
    replicated.wait_for_sync()
    restored = replicated.restored()
    assert b"said after the erasure" in restored and all(each.encode() in restored for each in alive)
    assert not remnants(restored, dead, alive), "its newest state has nothing of it"
