"""memory.write of every kind and long_term.policy, the same through every door."""

from __future__ import annotations

import pytest

from tests.building import candidate, candidates, message, skill, talk, turn, write
from tests.conformance.doors import Door, Plain

USER, TOOL, ASSISTANT = (f"evidence:local/talk/t1/{name}" for name in ("u1", "x1", "a1"))


def feedback(*summaries: str) -> Plain:
    observations = [
        {"tool_id": "weather", "schema_fingerprint": "s1", "outcome": "succeeded", "summary": each}
        for each in summaries
    ]
    registry = {"registry_id": "host-tools", "fingerprint": "f1"}
    return {"kind": "agent_tool_usage_feedback", "feedback": {"registry_ref": registry, "observations": observations}}


@pytest.fixture
def told(door: Door) -> Door:
    """A door to a space with a user's, an assistant's and a tool's message."""
    messages = (
        message("u1", "tea at five\nlikes tea"),
        message("a1", "noted", role="assistant"),
        message("x1", "tea at five", role="tool"),
    )
    door.prepare("transcript.commit", talk(turn("t1", *messages)))
    return door


def test_candidates_are_judged_each_in_its_order(told: Door) -> None:
    report = told.call(
        "memory.write",
        candidates(
            candidate("1", "Tea at five", topic="tea", evidence_refs=[USER]),
            candidate("2", "TEA at  five", topic="Tea", authority="tool_observed", evidence_refs=[TOOL]),
            candidate("3", "tea at six", topic="tea", authority="host"),
            candidate("4", "tea at seven", topic="tea"),
            candidate("5", "I am right", authority="assistant_claimed", evidence_refs=[ASSISTANT]),
            candidate("6", "x", target="shared_fact", privacy="subject_private"),
            candidate("7", "x", evidence_refs=["evidence:local/talk/t9"]),
        ),
    )
    assert [(each["index"], each["candidate_id"], each["outcome"], each["reason"]) for each in report["outcomes"]] == [
        (0, "1", "accepted", "created"),
        (1, "2", "accepted", "unchanged"),
        (2, "3", "deferred", "weaker_authority"),
        (3, "4", "accepted", "superseded"),
        (4, "5", "deferred", "needs_assertion"),
        (5, "6", "rejected", "privacy_target_mismatch"),
        (6, "7", "rejected", "evidence_missing"),
    ]
    assert report["accepted"] == 3
    assert report["writes"] == []
    first, second, last = (report["outcomes"][place] for place in (0, 1, 3))
    assert first["ref"] == second["ref"] == last["superseded_ref"]
    assert [(each["derived"], each["evidence"]) for each in report["derived_refs"]][:2] == [
        (first["ref"], USER),
        (first["ref"], TOOL),
    ]
    assert told.call("long_term.detail", {"ref": last["ref"]})["record"]["content"] == "tea at seven"


def test_an_extraction_is_judged_by_its_evidence(told: Door) -> None:
    item = {"kind": "preference", "topic": "tea", "confidence": 0.75, "keywords": ["drink"]}
    items = [
        {**item, "content": "likes tea", "evidence_refs": [USER]},
        {**item, "content": "I am right", "topic": "self", "evidence_refs": [ASSISTANT]},
    ]
    report = told.call(
        "memory.write", {"kind": "long_term_extraction", "extraction": {"items": items, "extractor": "x"}}
    )
    assert [(each["candidate_id"], each["reason"]) for each in report["outcomes"]] == [
        (None, "created"),
        (None, "needs_assertion"),
    ]
    record = told.call("long_term.detail", {"ref": report["outcomes"][0]["ref"]})["record"]
    assert (record["authority"], record["confidence"], record["keywords"]) == ("user_asserted", 0.75, ["drink"])


def test_tool_feedback_is_kept_and_refused_when_it_holds_a_secret(told: Door) -> None:
    assert told.call("memory.write", feedback("looked it up", "looked again"))["accepted"] == 2
    error = told.refused("privacy_denied", "memory.write", feedback("fine", "password=hunter22"))
    assert "$.args.feedback.observations[1].summary" in error.message
    assert "hunter22" not in f"{error.message} {error.hint}"


def test_skills_are_written_as_ever_and_a_kind_is_required(told: Door) -> None:
    report = told.call("memory.write", write(skill("pump")))
    assert (report["accepted"], report["outcomes"]) == (1, [])
    error = told.refused("invalid_request", "memory.write", {"source": "manual", "writes": [skill("pump")]})
    assert "$.args.kind" in error.message


def test_a_policy_pauses_suppresses_and_is_lifted(told: Door) -> None:
    paused = told.call("long_term.policy", {"action": "pause", "kind": "goal", "reason": "asked by Ana"})
    assert paused["changed"] is True and paused["receipt"]
    suppressed = told.call("long_term.policy", {"action": "suppress", "topic": "Health"})
    assert [(each["action"], each["kind"], each["topic"]) for each in suppressed["policies"]] == [
        ("pause", "goal", None),
        ("suppress", None, "Health"),
    ]
    assert [each["by"] for each in suppressed["policies"]] == [told.principal] * 2
    report = told.call(
        "memory.write", candidates(candidate("1", "run", kind="goal"), candidate("2", "flu", topic=" health"))
    )
    assert [each["reason"] for each in report["outcomes"]] == ["policy_paused", "policy_suppressed"]
    lifted = told.call("long_term.policy", {"action": "resume", "kind": "goal"})
    assert (lifted["changed"], lifted["rejudged"]) == (True, 1)
    listed = told.call("long_term.policy", {"action": "list"})
    assert [each["action"] for each in listed["policies"]] == ["suppress"]
    assert listed["lifecycle"]["changed"] is False
    facts = told.call("long_term.list", {})["records"]
    assert [each["content"] for each in facts] == ["run"]


def test_a_repeated_write_of_candidates_answers_the_first_outcomes(told: Door) -> None:
    given = candidates(candidate("1", "tea at five", topic="tea"))
    first = told.ask("memory.write", given, idempotency_key="k1").report
    again = told.ask("memory.write", given, idempotency_key="k1").report
    assert again["outcomes"] == first["outcomes"]
    assert first["outcomes"][0]["reason"] == "created"
