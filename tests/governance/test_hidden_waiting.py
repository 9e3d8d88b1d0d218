"""What waits unknown to a caller, and is judged again by what that caller does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from beetle import MemoryRuntime
from tests.building import talk
from tests.governance.learned import another, listed, mutate
from tests.governance.queued import OWNER, said, waiting
from tests.store.conftest import assert_clean, open_runtime

PRIVATE: dict[str, Any] = {"topic": "doctor", "privacy": "subject_private"}
HOST_VIEWS = ("host_ui", "model_context", "operator_audit", "export")


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[MemoryRuntime]:
    with open_runtime(str(tmp_path / "store.db")) as opened:
        yield opened
        assert_clean(opened)


@pytest.fixture(params=["principal", "operator"])
def blind(memory: MemoryRuntime, request: pytest.FixtureRequest) -> MemoryRuntime:
    return unsighted(memory, request.param)


def unsighted(memory: MemoryRuntime, kind: str) -> MemoryRuntime:
    """The same store for a caller who may not see what is private."""
    return another(memory, name=f"blind {kind}", kind=kind, views=HOST_VIEWS)


def believed(memory: MemoryRuntime) -> list[str | None]:
    return [each.content for each in memory.list_long_term(**OWNER).records]


def waits(memory: MemoryRuntime) -> list[tuple[str | None, str]]:
    return [(each.content, each.reason) for each in waiting(memory, **OWNER)]


def test_a_stronger_private_fact_holds_whoever_lifts_the_pause(memory: MemoryRuntime, blind: MemoryRuntime) -> None:
    said(memory, "The doctor is Kim.", "operator", **PRIVATE)
    memory.long_term_policy(action="pause", topic="doctor")
    said(memory, "The doctor is Lee.", "tool_observed", **PRIVATE)
    assert blind.long_term_policy(action="resume", topic="doctor").rejudged == 0
    assert believed(memory) == ["The doctor is Kim."]
    assert waits(memory) == [("The doctor is Lee.", "weaker_authority")]


def test_a_removed_private_value_does_not_come_back_whoever_lifts_the_pause(
    memory: MemoryRuntime, blind: MemoryRuntime
) -> None:
    gone = said(memory, "The doctor is Lee.", "operator", **PRIVATE).ref
    mutate(memory, "delete", gone, reason="wrong", **OWNER)
    memory.long_term_policy(action="pause", topic="doctor")
    said(memory, "The doctor is Lee.", "tool_observed", **PRIVATE)
    blind.long_term_policy(action="resume", topic="doctor")
    assert believed(memory) == [] and waits(memory) == [("The doctor is Lee.", "weaker_authority")]


def test_a_stronger_private_fact_holds_whoever_deletes_another_fact_of_its_topic(
    memory: MemoryRuntime, blind: MemoryRuntime
) -> None:
    said(memory, "The doctor is Kim.", "operator", **PRIVATE)
    said(memory, "The doctor is Lee.", "tool_observed", **PRIVATE)
    own = said(blind, "The doctor is Bob.", "tool_observed", topic="doctor").ref
    mutate(blind, "delete", own, reason="wrong")
    token = said(blind, "The doctor is Ann.", "tool_observed", topic="doctor")
    asked: dict[str, Any] = {"query": "Ann"}
    confirm = mutate(blind, "forget_by_query", dry_run=True, **asked).confirm_token
    assert mutate(blind, "forget_by_query", confirm=confirm, **asked).refs == (token.ref,)
    said(blind, "The doctor is Joe.", "tool_observed", topic="doctor")
    if blind._opened._caller.kind == "principal":
        assert blind.forget(query="Joe", token=blind.forget(query="Joe", dry_run=True).token).erasure is not None
    assert "The doctor is Lee." not in believed(memory)
    assert waits(memory) == [("The doctor is Lee.", "weaker_authority")]


def test_what_private_evidence_bears_is_kept_whoever_lifts_the_pause(
    memory: MemoryRuntime, blind: MemoryRuntime
) -> None:
    one = {"message_id": "m1", "role": "user", "content": "the doctor is Lee", "visibility": "private"}
    memory.commit_transcript(**talk({"turn_id": "t1", "at": "2024-05-01T10:00:00Z", "messages": [one]}))
    memory.long_term_policy(action="pause", topic="doctor")
    said(memory, "the doctor is Lee", "user_asserted", evidence_refs=["evidence:local/talk/t1"], **PRIVATE)
    assert blind.long_term_policy(action="resume", topic="doctor").rejudged == 0
    assert (believed(memory), waits(memory)) == (["the doctor is Lee"], [])
    assert listed(blind, state="all") == [], "it is the word of who left it there, not of who lifted the pause"


def test_what_is_sealed_is_kept_whoever_lifts_the_pause(memory: MemoryRuntime, blind: MemoryRuntime) -> None:
    memory.long_term_policy(action="pause")
    garden = {"target": "private_garden", "privacy": "subject_private"}
    kept = said(memory, "Mara fears snow.", "operator", **garden)
    assert blind.long_term_policy(action="resume").rejudged == 0
    assert waits(memory) == [] and kept.reason == "policy_paused"
    (item,) = memory.list_private().items
    assert memory.get_private(record_id=item.record_id).content == "Mara fears snow."


def test_whoever_lifts_a_pause_is_told_the_same_whatever_waits_unknown_to_it(tmp_path: Path) -> None:
    """A private word that takes the place of a shared fact leaves an event that everybody may know of."""

    def told(name: str, hidden: int) -> tuple[Any, ...]:
        memory = stack.enter_context(open_runtime(str(tmp_path / name)))
        said(memory, "The doctor is Ann.", "tool_observed", topic="doctor")
        memory.long_term_policy(action="pause")
        for n in range(hidden):
            said(memory, f"The doctor is number {n}.", "user_asserted", **PRIVATE)
        said(memory, "The tea is green.", "tool_observed", topic="tea")
        report = unsighted(memory, "principal").long_term_policy(action="resume")
        assert_clean(memory)
        assert report.lifecycle is not None and report.lifecycle.event_id is not None
        return report.rejudged, report.changed, report.policies, report.lifecycle.event_id

    with ExitStack() as stack:
        assert told("one", 0) == told("other", 2)


def test_who_knows_of_what_waits_is_told_how_much_was_decided(memory: MemoryRuntime) -> None:
    memory.long_term_policy(action="pause")
    said(memory, "The doctor is Lee.", "tool_observed", **PRIVATE)
    said(memory, "The tea is green.", "tool_observed", topic="tea")
    assert memory.long_term_policy(action="resume").rejudged == 2
