"""A restored snapshot brings nothing back that was erased since it was made, and what it tells of that holds."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from beetle import MemoryRuntime
from tests.building import candidate, candidates, skill, talk, turn, write
from tests.store.conftest import bytes_of
from tests.store.test_erasure import Words, assert_gone, remnants

WHERE = {"channel_id": "local", "conversation_id": "talk"}
SAID = "evidence:local/talk/t1"
KEPT = {"channel_id": "local", "conversation_id": "kept"}


@pytest.fixture
def path(tmp_path: Path) -> str:
    return os.fspath(tmp_path / "store.db")


class Erased:
    """A store with a snapshot, from which one thing of every plane was erased since."""

    def __init__(self, path: str, backend: str = "sqlite") -> None:
        words = Words(12)
        self.words = [words.canary() for _ in range(6)]
        said, fact, sealed, made, waits, kept = self.words
        self.memory = memory = MemoryRuntime.open(path, profile="dev-full", backend=backend)
        memory.call("transcript.commit", talk(turn("t1", f"it is {said}"), turn("t2", "thanks")))
        memory.call("transcript.commit", {**talk(turn("k1", f"stays {kept}")), "conversation": KEPT})
        told = memory.call("memory.write", candidates(
            candidate("c1", f"the {fact}", topic="key", authority="operator"),
            candidate("c2", f"is {sealed}", target="private_garden", privacy="subject_private", authority="operator"),
            candidate("c3", f"perhaps {waits}", authority="assistant_claimed", evidence_refs=[SAID]),
        ))  # fmt: skip
        memory.call("memory.write", write(skill("secret", content=made)))
        self.snapshot = memory.create_snapshot().snapshot.snapshot_id
        where: Any = {"conversation": WHERE, "action": "delete_raw", "turn_ids": ["t1"], "reason": "r"}
        self.receipts = [memory.call("transcript.lifecycle", where).receipt]
        outcomes = told.outcomes
        self.receipts.append(memory.mutate_long_term(action="delete", ref=outcomes[0].ref).receipt)
        self.receipts.append(memory.delete_runtime_skill(name="secret").receipt)
        token = memory.forget(query=sealed, dry_run=True).token
        self.receipts.append(memory.forget(query=sealed, token=token).receipt)
        memory.call("transcript.commit", talk(turn("t9", "later")))


@pytest.fixture(params=["sqlite", "file"])
def erased(path: str, request: pytest.FixtureRequest) -> Iterator[Erased]:
    made = Erased(path, request.param)
    yield made
    made.memory.close()


COUNTS = {"turns": 1, "messages": 1, "facts": 1, "skills": 1, "private_items": 1, "candidates": 1}


def aside(path: str) -> None:
    """Take the copies away that hold it by right: the snapshot, and the store that was set aside."""
    for each in Path(path).parent.rglob("*"):
        if each.name.endswith(".beetle-snapshot") or ".before-" in each.name:
            each.unlink()
    Path(path + ".snapshots").rmdir()


def test_a_dry_run_lists_it(erased: Erased) -> None:
    report = erased.memory.restore_snapshot(snapshot_id=erased.snapshot, dry_run=True)
    assert report.erased == COUNTS
    assert report.erased_refs is not None
    assert {each.partition(":")[0] for each in report.erased_refs} == {"evidence", "long_term", "procedural"}
    assert erased.memory.recall(query="later").hits


def test_it_is_erased_again_before_the_store_opens_and_its_receipts_hold(path: str, erased: Erased) -> None:
    memory = erased.memory
    report = memory.restore_snapshot(snapshot_id=erased.snapshot)
    assert report.erased == COUNTS and report.changed
    *gone, kept = erased.words
    for word in gone:
        assert not memory.recall(query=word).hits
    assert memory.recall(query=kept).hits and not memory.recall(query="later").hits
    assert memory.list_private().items == ()
    for receipt in erased.receipts:
        check = memory.verify_store(receipt=receipt).receipt
        assert check is not None and check.valid, check
    verified = memory.verify_store()
    assert verified.clean, verified.findings
    aside(path)
    assert_gone(path, gone, [kept])


def test_who_wants_it_back_gets_it(path: str, erased: Erased) -> None:
    memory = erased.memory
    report = memory.restore_snapshot(snapshot_id=erased.snapshot, keep_erased=True)
    assert report.erased == COUNTS
    assert memory.recall(query=erased.words[0]).hits and memory.recall(query=erased.words[1]).hits
    assert memory.list_private().items
    check = memory.verify_store(receipt=erased.receipts[0]).receipt
    assert check is not None and check.valid
    assert memory.verify_store().clean
    aside(path)
    assert remnants(bytes_of(path), erased.words[:1])
