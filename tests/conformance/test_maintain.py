"""memory.maintain, memory.finalize_turn and governance.report where no model is configured."""

from __future__ import annotations

from tests.building import CONVERSATION, contents, replay, talk, turn
from tests.conformance.doors import Door, Plain


def finalized(door: Door, one: Plain, **more: object) -> Plain:
    return door.call("memory.finalize_turn", {"conversation": CONVERSATION, "turn": one, **more})


def test_without_a_model_a_turn_is_committed_and_one_job_is_left(door: Door) -> None:
    first = finalized(door, turn("t1", "I live in Porto."))
    assert first["transcript_commit"] == {"turn_id": "t1", "sequence": 1, "outcome": "committed"}
    assert (first["session_commit"], first["maintained"]) == ("alias_updated", "deferred")
    assert first["deferred_reason"] == "not_configured" and first["maintenance"] is None
    again = finalized(door, turn("t1", "I live in Porto."))
    assert again["transcript_commit"]["outcome"] == "unchanged"
    assert again["deferred_job_id"] == first["deferred_job_id"]
    second = finalized(door, turn("t2", "I like tea."))
    assert (second["session_commit"], second["deferred_job_id"]) == ("alias_current", first["deferred_job_id"])
    assert contents(replay(door)) == ["I live in Porto.", "I like tea."]
    report = door.call("governance.report", {})
    assert report["deferred"]["jobs"] == [{"kind": "maintain", "state": "waiting", "reason": None, "count": 1}]
    (job,) = report["deferred"]["open_jobs"]
    assert (job["job_id"], job["principal"]) == (first["deferred_job_id"], door.principal)
    assert (report["decisions"], report["policies"], report["model"]) == ([], [], None)


def test_without_a_model_nothing_is_maintained_and_nothing_changes(door: Door) -> None:
    door.prepare("transcript.commit", talk(turn("t1", "I live in Porto.")))
    before = door.call("memory.inspect", {})["event_log"]
    error = door.refused("services_unavailable", "memory.maintain", {"conversation": CONVERSATION})
    assert "model" in error.message and "[model]" in error.hint
    assert door.call("memory.inspect", {})["event_log"] == before


def test_a_turn_of_another_content_is_a_conflict_and_leaves_no_job(door: Door) -> None:
    finalized(door, turn("t1", "I live in Porto."), maintain=False)
    args = {"conversation": CONVERSATION, "turn": turn("t1", "I live in Faro.")}
    door.refused("conflict", "memory.finalize_turn", args)
    assert door.call("governance.report", {})["deferred"]["jobs"] == []


def test_an_idempotency_key_finalises_a_turn_once(door: Door) -> None:
    args = {"conversation": CONVERSATION, "turn": turn("t1", "I live in Porto.")}
    first = door.ask("memory.finalize_turn", args, idempotency_key="key")
    second = door.ask("memory.finalize_turn", args, idempotency_key="key")
    assert first.report == second.report and second.repeated in (True, None)
    other = {"conversation": CONVERSATION, "turn": turn("t2", "I like tea.")}
    door.refused("conflict", "memory.finalize_turn", other, idempotency_key="key")


def test_a_mode_that_only_reads_refuses_to_finalise_and_to_maintain(door: Door) -> None:
    mode = {"mode_input": {"mode": "read_only"}}
    args = {"conversation": CONVERSATION, "turn": turn("t1", "x"), **mode}
    door.refused("forbidden", "memory.finalize_turn", args)
    door.refused("forbidden", "memory.maintain", {"conversation": CONVERSATION, **mode})
    assert door.call("transcript.conversations", {})["conversations"] == []


def test_what_waits_and_what_was_decided_is_counted(door: Door) -> None:
    made = {"target": "long_term", "privacy": "shared_with_subject", "topic": "drink"}
    door.call("long_term.policy", {"action": "suppress", "topic": "health"})
    door.call(
        "memory.write",
        {
            "kind": "candidates",
            "candidates": [
                {**made, "candidate_id": "a", "authority": "user_asserted", "content": "Tea."},
                {**made, "candidate_id": "b", "authority": "assistant_claimed", "content": "Coffee.", "topic": "other"},
                {**made, "candidate_id": "c", "authority": "user_asserted", "content": "Ill.", "topic": "health"},
            ],
        },
    )
    report = door.call("governance.report", {"since": "2020-01-01T00:00:00Z"})
    assert {(each["outcome"], each["reason"]): each["count"] for each in report["decisions"]} == {
        ("accepted", "created"): 1, ("deferred", "needs_assertion"): 1, ("rejected", "policy_suppressed"): 1,
    }  # fmt: skip
    assert [(each["reason"], each["count"]) for each in report["deferred"]["waiting"]] == [("needs_assertion", 1)]
    assert [each["action"] for each in report["policies"]] == ["suppress"]
