"""Lifecycle in every view: what each step hides, brings back and erases, and what it leaves alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from beetle import MemoryRuntime
from beetle.contracts.codec import UNSET, replace
from beetle.contracts.names import ViewName
from tests.store.conftest import (
    CONVERSATION,
    assert_clean,
    bytes_of,
    commit,
    found,
    lifecycle,
    open_runtime,
    path,
    replay,
    store_of,
    turn,
)

__all__ = ["path"]

VIEWS: tuple[ViewName, ...] = ("raw_owner", "model_context", "host_ui", "operator_audit", "export")
ACTIONS = ("archive", "mask", "unmask", "delete_raw", "review")
EVERYWHERE = ["host_ui", "model_context", "operator_audit", "export"]
REFS = [{"kind": "task", "ref_id": "7", "relation": "about", "label": "pelican label", "visibility": EVERYWHERE}]
ATTRS = [
    {"key": "turn key", "value": "pelican turn", "visibility": EVERYWHERE, "export_allowed": True},
    {"key": "message key", "value": "pelican message", "visibility": EVERYWHERE, "export_allowed": True,
     "target": {"message_id": "t1-m0"}},
]  # fmt: skip
LABEL_VIEWS = {"raw_owner", "host_ui"}


@pytest.fixture
def memory(path: str) -> Iterator[MemoryRuntime]:
    """t1 has a label and attrs, t2 two messages; t3 was deleted before."""
    with open_runtime(path) as opened:
        commit(
            opened,
            turn("t1", "the first pelican", host_refs=REFS, attrs=ATTRS),
            turn("t2", "the second pelican", "and more"),
            turn("t3", "the third pelican"),
        )
        lifecycle(opened, "delete_raw", "t3")
        yield opened


def shown(memory: MemoryRuntime, view: str, turn_id: str = "t1") -> Any:
    return next(each for each in replay(memory, view) if each.turn_id == turn_id)


def contents(memory: MemoryRuntime, view: str) -> list[str | None]:
    return [None if m.content is UNSET else m.content for t in replay(memory, view) for m in t.messages]


@pytest.mark.parametrize("view", VIEWS)
def test_labels_and_attrs_of_a_masked_turn_are_the_owner_s_alone(memory: MemoryRuntime, view: ViewName) -> None:
    before = shown(memory, view)
    assert [ref.label for ref in before.host_refs] == ["pelican label" if view in LABEL_VIEWS else None]
    # An audit's view may not read a shared message, nor what hangs on it.
    assert len(before.attrs) == (0 if view == "operator_audit" else 2)
    lifecycle(memory, "mask", "t1")
    masked = shown(memory, view)
    if view == "raw_owner":
        assert (masked.host_refs, masked.attrs) == (before.host_refs, before.attrs)
        return
    assert masked.attrs == () and [ref.label for ref in masked.host_refs] == [None]
    assert [(ref.ref_id, ref.relation) for ref in masked.host_refs] == [("7", "about")]
    assert "pelican" not in repr(masked)
    lifecycle(memory, "unmask", "t1")
    assert shown(memory, view) == before


@pytest.mark.parametrize("view", VIEWS)
def test_archiving_marks_a_turn_in_every_view_and_hides_nothing(memory: MemoryRuntime, view: ViewName) -> None:
    before = replay(memory, view)
    lifecycle(memory, "archive", "t2")
    after = replay(memory, view)
    assert [each.archived for each in after] == [False, True, False]
    assert [replace(each, archived=False) for each in after] == list(before)
    exported = memory.export_transcript(conversation=CONVERSATION)
    page = memory.transcript_timeline(conversation=CONVERSATION, view=view)
    assert [each.archived for each in exported.turns] == [each.archived for each in page.turns] == [False, True, False]
    assert found(memory, "second") and memory.search_transcript(query="second", view="host_ui").hits


def test_unmasking_brings_back_what_was_masked_and_nothing_that_was_deleted(memory: MemoryRuntime) -> None:
    before = {view: replay(memory, view) for view in VIEWS}
    found_before = found(memory, "pelican")
    for turns in (("t1", "t2", "t3"), ("t2",), ("t1", "t3")):
        masked = lifecycle(memory, "mask", *turns)
        assert (masked.changed, masked.affected_turns) == (True, len(turns))
        assert not found(memory, "second") or "t2" not in turns
        restored = lifecycle(memory, "unmask", *turns)
        assert restored.changed
        assert {view: replay(memory, view) for view in VIEWS} == before
        assert found(memory, "pelican") == found_before
    assert lifecycle(memory, "unmask", "t1", "t2", "t3").changed is False
    assert contents(memory, "raw_owner")[-1] is None
    assert_clean(memory)


@pytest.mark.parametrize("action", ACTIONS)
def test_a_dry_run_of_any_action_leaves_every_view_and_the_event_log_as_they_were(
    memory: MemoryRuntime, action: str
) -> None:
    lifecycle(memory, "mask", "t2")
    before = ({view: replay(memory, view) for view in VIEWS}, store_of(memory).head)
    report = memory.request_transcript_lifecycle(
        conversation=CONVERSATION, action=action, turn_ids=["t1", "t2", "t3"], reason="a test asks", dry_run=True
    )
    assert (report.changed, report.audit_event_id, report.receipt, report.erasure) == (False, None, None, None)
    assert (report.affected_turns, report.replica_horizon) == (3, None)
    assert ({view: replay(memory, view) for view in VIEWS}, store_of(memory).head) == before


@pytest.mark.parametrize("action", ACTIONS)
def test_a_step_s_report_names_the_refs_that_it_touches_and_says_that_their_labels_are_withheld(
    memory: MemoryRuntime, action: str
) -> None:
    if action == "unmask":
        lifecycle(memory, "mask", "t1")
    report = lifecycle(memory, action, "t1")
    assert [(ref.ref_id, ref.label) for ref in report.host_refs] == [("7", None)]
    assert [(each.turn_id, each.field) for each in report.redactions] == [("t1", "HostRefLabel")]
    assert report.replica_horizon is None
    assert "pelican" not in str(report)


def test_the_speakers_of_a_conversation_are_those_of_messages_that_can_be_seen(memory: MemoryRuntime) -> None:
    def speakers() -> tuple[str, ...] | None:
        return memory.list_conversations().conversations[0].speakers

    spoken = [
        {"message_id": f"s{n}", "role": "user", "content": "hello", "actor": {"speaker": name}}
        for n, name in enumerate(("Ana", "Bo"))
    ]
    again = {"message_id": "s9", "role": "user", "content": "again", "actor": {"speaker": "Ana"}}
    said = [{"turn_id": "t4", "at": "2024-03-09T12:00:00Z", "messages": spoken},
            {"turn_id": "t5", "at": "2024-03-09T12:00:00Z", "messages": [again]}]  # fmt: skip
    commit(memory, *said)
    assert speakers() == ("Ana", "Bo")
    lifecycle(memory, "mask", "t4")
    assert speakers() == ("Ana",)
    lifecycle(memory, "unmask", "t4")
    assert speakers() == ("Ana", "Bo")
    lifecycle(memory, "delete_raw", "t4", "t5")
    assert speakers() == ()


def briefed(memory: MemoryRuntime, turn_id: str, brief: str) -> None:
    """A tool observation of a turn, with its brief."""

    def keep(tx: Any) -> None:
        key = tx.value("SELECT turn FROM turn WHERE turn_id = ?", turn_id)
        made = tx.insert(
            "INSERT INTO tool_observation (space, registry_id, registry_fingerprint, registry_scope, tool_id, "
            "schema_fingerprint, outcome, permission_tags, risk_tags, turn, turn_id, principal, at) "
            "VALUES (1, 'r', 'f', 'global', 'tool', 's', 'succeeded', '[]', '[]', ?, ?, 'me', 0)", key, turn_id,
        )  # fmt: skip
        tx.run("INSERT INTO tool_brief VALUES (?, ?)", made, brief)

    store_of(memory).write(keep)


def test_the_briefs_of_a_turn_s_tools_are_erased_with_it_and_those_of_others_stay(
    memory: MemoryRuntime, path: str
) -> None:
    briefed(memory, "t1", "cormorantical brief")
    briefed(memory, "t2", "gannetlike brief")
    assert lifecycle(memory, "delete_raw", "t1").erasure == "done"
    assert b"cormorant" not in bytes_of(path)
    assert b"gannetlike" in bytes_of(path)
    with store_of(memory).read() as tx:
        assert tx.value("SELECT count(*) FROM tool_observation") == 2
        assert tx.value("SELECT count(*) FROM tool_brief") == 1


def test_a_brief_that_came_after_the_deletion_goes_with_the_next(memory: MemoryRuntime, path: str) -> None:
    lifecycle(memory, "delete_raw", "t1")
    assert lifecycle(memory, "delete_raw", "t1").changed is False
    briefed(memory, "t1", "cormorantical brief")
    report = lifecycle(memory, "delete_raw", "t1")
    assert (report.changed, report.erasure) == (True, "done")
    assert report.receipt is not None
    assert b"cormorant" not in bytes_of(path)


def test_a_smaller_profile_shows_fewer_host_refs_of_a_turn_and_says_so(memory: MemoryRuntime) -> None:
    many = [{"kind": "task", "ref_id": str(n), "visibility": EVERYWHERE} for n in range(5)]
    commit(memory, turn("t9", "many", host_refs=many))
    dispatcher = memory._opened.dispatcher
    smaller = replace(
        dispatcher.shared.profile, budgets=replace(dispatcher.shared.profile.budgets, host_refs_per_turn=3)
    )
    dispatcher.shared = dispatcher.shared._replace(profile=smaller)
    for view in VIEWS:
        report = memory.replay_transcript(conversation=CONVERSATION, view=view)
        assert [ref.ref_id for ref in report.turns[-1].host_refs] == ["0", "1", "2"]
        assert report.profile_budget_applied is True
        assert report.audit.messages_redacted == sum(m.content is UNSET for t in report.turns for m in t.messages)
