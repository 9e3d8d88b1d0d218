"""A restored snapshot brings no value back that was removed since, and knows by whose authority it was removed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from beetle import MemoryRuntime
from tests.building import Plain, candidate, candidates, skill, step, talk, turn, write
from tests.governance.learned import another, mutate
from tests.sdk.test_restore_erases import aside
from tests.store.conftest import assert_clean, bytes_of, open_runtime, store_of
from tests.store.test_erasure import remnants

CREATED = ("accepted", "created")
GONE = ("deferred", "weaker_authority")
CANARY = "xaqorzilqab"
CITED = "evidence:local/talk/t1"


def judged(memory: MemoryRuntime, given: Plain) -> Any:
    """The outcome of a candidate."""
    report: Any = memory.call("memory.write", candidates(given))
    return report.outcomes[0]


def said(memory: MemoryRuntime, authority: str, topic: str, content: str, **more: Any) -> tuple[str, str]:
    """The outcome of a candidate, and why."""
    given = candidate("c", content, topic=topic, authority=authority, **more)
    outcome = judged(memory, given)
    return outcome.outcome, outcome.reason


def learned(memory: MemoryRuntime, topic: str, content: str, authority: str = "operator") -> str:
    """Have a fact accepted; its ref."""
    given = candidate("c", content, topic=topic, authority=authority)
    return judged(memory, given).ref


def waiting(memory: MemoryRuntime, topic: str, content: str, **more: Any) -> str:
    """Have a candidate wait behind what stands; by what it is named there."""
    given = candidate(f"seen {topic}", content, topic=topic, authority="tool_observed", **more)
    outcome = judged(memory, given)
    assert outcome.outcome == "deferred", outcome
    return outcome.waiting_id


def reject(memory: MemoryRuntime, waiting_id: str) -> None:
    memory.decide_waiting(ids=[waiting_id], decision="reject", reason="it is false")


def current(memory: MemoryRuntime) -> set[str]:
    return {str(each.content) for each in memory.list_long_term(limit=500).records}


class Removed:
    """A store with a snapshot, since when values were removed from it in every way."""

    def __init__(self, folder: Path) -> None:
        self.facts: set[str] = set()
        self.waits: set[str] = set()
        self.left = b""
        self.path = os.fspath(folder / "store.db")
        self.memory = memory = open_runtime(self.path)
        self.late = another(memory, name="late", owner="late")
        worker = another(memory)
        stands = {each: learned(memory, each, f"The {each} is red.") for each in ("door", "gate", "lamp")}
        waits = {each: waiting(memory, each, f"The {each} is green.") for each in stands}
        memory.call("memory.write", write(skill("pump", content="Stop the pump.")))
        memory.call("memory.write", write(skill("well", content="Drain the well.")))
        waiting(memory, "well", "Fill the well.", target="procedural")
        beside = waiting(memory, "pump", "Start the pump.", target="procedural")
        cup = learned(memory, "cup", "The cup is red.", "user_asserted")
        self.kept = learned(memory, "roof", "The roof is red.")
        memory.call("transcript.commit", talk(turn("t1", f"It is {CANARY}."), turn("t2", "Thanks.")))
        proposed = {"kind": "fact_write", "proposal_id": "p1", "rationale": "it was said", "evidence_refs": [CITED],
                    "change": {"content": f"It is {CANARY}.", "authority": "user_asserted"}}  # fmt: skip
        memory.call("evolve.propose", {"proposals": [proposed]})
        self.snapshots = [memory.create_snapshot().snapshot.snapshot_id for _ in range(2)]

        memory.call("evolve.submit", {"proposal_ids": ["p1"], "decision": "withdraw"})
        memory.call("transcript.lifecycle", step("delete_raw", "t1"))
        reject(memory, waits["door"])
        reject(memory, beside)
        for ref in stands.values():
            mutate(memory, "delete", ref)
        (gate,) = (each.ref for each in memory.list_long_term().records if each.content == "The gate is green.")
        mutate(memory, "delete", gate)
        for name in ("pump", "well", "well"):
            memory.delete_runtime_skill(name=name)
        mutate(worker, "delete", cup)
        mutate(self.late, "delete", learned(self.late, "boat", "The boat is red.", "tool_observed"))


@pytest.fixture(scope="module")
def removed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Removed]:
    found = Removed(tmp_path_factory.mktemp("removed"))
    with found.memory as memory:
        yield found
        assert_clean(memory)


@pytest.fixture(scope="module")
def restored(removed: Removed) -> Removed:
    """With the same restored twice in a row."""
    first, second = (restore(removed.memory, each) for each in removed.snapshots)
    assert first == second
    removed.facts, removed.waits = first[0], {content for content, _ in first[1]}
    aside(removed.path)
    removed.left = bytes_of(removed.path)
    return removed


def restore(memory: MemoryRuntime, snapshot_id: str) -> Any:
    """All that a restore has left."""
    memory.restore_snapshot(snapshot_id=snapshot_id)
    with store_of(memory).read() as tx:
        rows = list(tx.rows("SELECT * FROM removed_value"))
    waits = [(each.content, each.reason) for each in memory.list_waiting(what="candidates").candidates or ()]
    return current(memory), waits, rows


def test_nothing_that_waited_becomes_current(restored: Removed) -> None:
    """What was rejected, or accepted and then deleted, or what only waited for something that was deleted."""
    assert restored.facts == {"The roof is red."}
    assert restored.memory.list_runtime_skills().runtime_skills == ()
    assert_clean(restored.memory)


def test_what_was_accepted_since_and_then_deleted_waits_no_more(restored: Removed) -> None:
    """Its text is erased: as a fact, and as the candidate that the snapshot holds."""
    assert {"The gate is green.", "Fill the well."} & restored.waits == set()
    assert {"The lamp is green."} <= restored.waits
    assert b"The gate is green" not in restored.left and b"Fill the well" not in restored.left
    assert b"The lamp is green" in restored.left


def test_what_was_removed_is_remembered(restored: Removed) -> None:
    memory = restored.memory
    for topic in ("door", "gate"):
        assert said(memory, "tool_observed", topic, f"The {topic} is green.") == GONE
    for topic in ("door", "gate", "lamp"):
        assert said(memory, "user_asserted", topic, f"The {topic} is red.") == GONE
    for content in ("Start the pump.", "Stop the pump."):
        assert said(memory, "user_asserted", "pump", content, target="procedural") == GONE


def test_what_a_user_removed_is_the_user_s_to_say_again_and_no_tool_s(restored: Removed) -> None:
    assert said(restored.memory, "tool_observed", "cup", "The cup is red.") == GONE
    assert said(restored.memory, "user_asserted", "cup", "The cup is red.") == CREATED


def test_so_it_is_in_a_space_that_the_snapshot_did_not_have(restored: Removed) -> None:
    assert current(restored.late) == set()
    assert said(restored.late, "tool_observed", "boat", "The boat is red.") == GONE
    assert said(restored.memory, "tool_observed", "boat", "The boat is red.") == CREATED, "it is another space"


def test_a_proposal_that_quotes_what_was_erased_since_is_dropped(restored: Removed) -> None:
    """Though it was withdrawn before that, and not by the erasure."""
    listed: Any = restored.memory.call("evolve.list", {"state": "open"})
    assert listed.proposals == ()
    assert remnants(restored.left, [CANARY]) == set()


def test_the_strongest_authority_that_ever_removed_a_value_counts(tmp_path: Path) -> None:
    with open_runtime(tmp_path / "store.db") as memory:
        red = learned(memory, "door", "The door is red.", "user_asserted")
        before = memory.create_snapshot().snapshot.snapshot_id
        mutate(memory, "delete", red)
        by_operator = memory.create_snapshot().snapshot.snapshot_id
        memory.restore_snapshot(snapshot_id=before, keep_erased=True)
        mutate(another(memory), "delete", red)
        memory.restore_snapshot(snapshot_id=by_operator)
        assert said(memory, "user_asserted", "door", "The door is red.") == GONE
        assert_clean(memory)


def test_who_keeps_what_was_erased_keeps_it_as_if_it_had_never_been_removed(tmp_path: Path) -> None:
    with open_runtime(tmp_path / "store.db") as memory:
        mutate(memory, "delete", learned(memory, "gate", "The gate is red."))
        red = learned(memory, "door", "The door is red.", "user_asserted")
        taken = memory.create_snapshot().snapshot.snapshot_id
        mutate(memory, "delete", red)
        memory.restore_snapshot(snapshot_id=taken, keep_erased=True)
        assert current(memory) == {"The door is red."}
        # It may be corrected and said again, as before.
        mutate(another(memory), "correct", red, content="The door is blue.")
        assert said(memory, "user_asserted", "door", "The door is red.") == ("accepted", "superseded")
        assert said(memory, "user_asserted", "gate", "The gate is red.") == GONE, "that was removed before the snapshot"
        assert_clean(memory)
