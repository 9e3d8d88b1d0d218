"""transcript.lifecycle: archive, mask, unmask, delete_raw, review; dry runs; what was derived."""

from __future__ import annotations

from typing import Any

import pytest

from tests.building import (
    CONVERSATION,
    contents,
    found_texts,
    lifecycle,
    message,
    replay,
    skill,
    step,
    talk,
    turn,
    write,
)
from tests.conformance.doors import Door, InProcess, Plain

ACTIONS = ("archive", "mask", "unmask", "delete_raw", "review")
LABELLED = [{"kind": "task", "ref_id": "7", "relation": "about", "label": "pelican label"}]
ATTRS = [{"key": "pelican key", "value": "pelican value"}]


def three(door: Door) -> None:
    """t1 to t3, a day apart; t1 has a label and an attr."""
    door.prepare(
        "transcript.commit",
        talk(
            turn("t1", "the first pelican", at="2024-05-01T00:00:00Z", host_refs=LABELLED, attrs=ATTRS),
            turn("t2", message("a", "the second pelican"), message("b", "and more"), at="2024-05-02T00:00:00Z"),
            turn("t3", "the third pelican", at="2024-05-03T00:00:00Z"),
        ),
    )


def recalled(door: Door) -> str:
    return found_texts(door.call("memory.recall", {"query": "pelican"}))


@pytest.mark.parametrize("action", ACTIONS)
def test_a_dry_run_reports_what_it_would_touch_and_changes_nothing(door: Door, action: str) -> None:
    three(door)
    before = replay(door)["turns"]
    report = lifecycle(door, action, "t2", "t1", dry_run=True)
    assert (report["action"], report["dry_run"], report["changed"]) == (action, True, False)
    assert report["affected_turns"] == 2
    assert sorted(report["turn_ids"]) == ["t1", "t2"]
    assert sorted(report["message_ids"]) == ["a", "b", "t1.0"]
    assert [(ref["kind"], ref["ref_id"], ref["label"]) for ref in report["host_refs"]] == [("task", "7", None)]
    assert report["lifecycle"]["changed"] is False
    assert (report["audit_event_id"], report["erasure"]) == (None, None)
    assert replay(door)["turns"] == before


def test_masking_hides_the_content_everywhere_and_unmasking_brings_it_back(door: Door) -> None:
    three(door)
    report = lifecycle(door, "mask", "t2")
    assert (report["changed"], report["affected_turns"], report["message_ids"]) == (True, 1, ["a", "b"])
    assert report["audit_event_id"] == report["lifecycle"]["event_id"]
    assert contents(replay(door)) == ["the first pelican", None, None, "the third pelican"]
    assert {m["state"] for m in replay(door)["turns"][1]["messages"]} == {"masked"}
    assert "second" not in recalled(door)
    again = lifecycle(door, "mask", "t2")
    assert (again["changed"], again["affected_turns"]) == (False, 1)
    assert lifecycle(door, "unmask", "t2")["changed"] is True
    assert contents(replay(door)) == ["the first pelican", "the second pelican", "and more", "the third pelican"]
    assert "second" in recalled(door)
    assert lifecycle(door, "unmask", "t1", "t2")["changed"] is False


def test_archiving_marks_a_turn_and_hides_nothing(door: Door) -> None:
    three(door)
    assert lifecycle(door, "archive", "t1")["changed"] is True
    assert [each["archived"] for each in replay(door)["turns"]] == [True, False, False]
    assert contents(replay(door))[0] == "the first pelican"
    assert "first" in recalled(door)
    assert lifecycle(door, "archive", "t1")["changed"] is False


def test_raw_deletion_takes_content_labels_and_attrs_and_keeps_the_fact(door: Door) -> None:
    three(door)
    report = lifecycle(door, "delete_raw", "t1", "t2")
    assert (report["changed"], report["affected_turns"], report["erasure"]) == (True, 2, "done")
    assert report["audit_event_id"]
    shown = replay(door)
    assert contents(shown) == [None, None, None, "the third pelican"]
    assert shown["turns"][0]["attrs"] == []
    assert [ref["label"] for ref in shown["turns"][0]["host_refs"]] == [None]
    assert [each["turn_id"] for each in shown["turns"]] == ["t1", "t2", "t3"]
    assert "first" not in recalled(door) and "second" not in recalled(door)
    audit = replay(door, "operator_audit")["turns"][0]["messages"][0]["redacted"]
    assert audit["reason"] == "raw_deleted"
    assert audit["deleted_by"] == door.principal
    assert audit["deleted_at"].endswith("Z")
    again = lifecycle(door, "delete_raw", "t1", "t2")
    assert (again["changed"], again["affected_turns"], again["erasure"]) == (False, 2, None)
    assert lifecycle(door, "unmask", "t1")["changed"] is False
    assert contents(replay(door))[0] is None


def test_a_masked_turn_can_be_raw_deleted(door: Door) -> None:
    three(door)
    lifecycle(door, "mask", "t2")
    assert lifecycle(door, "delete_raw", "t2")["erasure"] == "done"
    assert {m["state"] for m in replay(door)["turns"][1]["messages"]} == {"deleted"}
    assert door.call("store.verify", {})["clean"] is True


def test_not_even_the_owner_s_raw_view_shows_what_was_deleted(in_process: InProcess) -> None:
    three(in_process)
    lifecycle(in_process, "delete_raw", "t1")
    shown = replay(in_process, "raw_owner")
    assert contents(shown)[0] is None
    assert shown["turns"][0]["attrs"] == []
    assert [ref["label"] for ref in shown["turns"][0]["host_refs"]] == [None]


def test_every_turn_before_a_time_can_be_chosen(door: Door) -> None:
    three(door)
    report = lifecycle(door, "mask", before="2024-05-02T00:00:00Z")
    assert report["turn_ids"] == ["t1"]
    report = lifecycle(door, "mask", before="2024-05-03T02:00:01+02:00")
    assert report["turn_ids"] == ["t1", "t2", "t3"]
    assert contents(replay(door)) == [None] * 4


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("dry_run", [False, True])
def test_what_matches_nothing_changes_nothing(door: Door, action: str, dry_run: bool) -> None:
    args = step(action, "t1", dry_run=dry_run)
    empty = {"affected_turns": 0, "changed": False, "turn_ids": [], "message_ids": [], "erasure": None}
    report = door.call("transcript.lifecycle", args)
    assert {key: report[key] for key in empty} == empty
    three(door)
    report = door.call("transcript.lifecycle", {**args, "turn_ids": ["nobody", "nothing"]})
    assert {key: report[key] for key in empty} == empty
    assert report["lifecycle"]["changed"] is False


def test_a_review_reports_and_leaves_an_event_and_no_change(door: Door) -> None:
    three(door)
    report = lifecycle(door, "review", "t1", "t1", "t2")
    assert (report["changed"], report["affected_turns"], report["turn_ids"]) == (False, 2, ["t1", "t2"])
    assert report["audit_event_id"]
    assert contents(replay(door))[0] == "the first pelican"


@pytest.mark.parametrize("action", ["review", "mask", "delete_raw"])
def test_the_derived_refs_of_a_turn_are_reported_and_never_deleted(door: Door, action: str) -> None:
    three(door)
    cited = "evidence:local/talk/t2/a"
    door.prepare("memory.write", write(skill("feeding", citations=[cited, "a book"])))
    report = lifecycle(door, action, "t2")
    assert report["derived_refs"] == [
        {"derived": "procedural:runtime_skill__feeding/1", "evidence": cited, "relation": "cites"}
    ]
    assert lifecycle(door, "review", "t3")["derived_refs"] == []
    kept = door.call("skill.detail", {"name": "feeding"})
    assert kept["procedure"].startswith("1. the first step")
    assert len(kept["derived_refs"]) == 1


def unreasonable() -> list[Plain]:
    return [
        step("mask"),
        step("mask", "t1", before="2024-05-02T00:00:00Z"),
        step("mask", turn_ids=[]),
        step("erase", "t1"),
        {**step("mask", "t1"), "reason": ""},
    ]


@pytest.mark.parametrize("place", range(5))
def test_a_step_says_which_turns_what_and_why(door: Door, place: int) -> None:
    three(door)
    door.refused("invalid_request", "transcript.lifecycle", unreasonable()[place])
    assert None not in contents(replay(door))


def test_the_reason_of_a_step_and_the_content_stay_out_of_events(door: Door) -> None:
    """A step's own report names ids and counts alone."""
    three(door)
    report: dict[str, Any] = lifecycle(door, "mask", "t1")
    assert "first pelican" not in str(report) and "pelican label" not in str(report)
    assert report["host_refs"][0]["label"] is None
    assert {each["field"] for each in report["redactions"]} <= {"HostRefLabel", "host_ref"}
    assert CONVERSATION["conversation_id"] not in report["turn_ids"]
