"""Tool feedback through `memory.write`: kept in short, refused when it holds more."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.governance.judging import JudgedStore, Plain, message
from tests.governance.test_sensitive import RESULTS, SCHEMAS, SECRETS

CANARY = "heliotrope7431"


@pytest.fixture
def place() -> Iterator[JudgedStore]:
    made = JudgedStore()
    yield made
    made.close()


def observation(summary: str = "looked up the weather", **more: Any) -> Plain:
    return {
        "tool_id": "weather", "schema_fingerprint": "s1", "outcome": "succeeded", "summary": summary, **more,
    }  # fmt: skip


def feedback(*observations: Plain, **more: Any) -> Plain:
    registry = {"registry_id": "host-tools", "fingerprint": "f1"}
    return {
        "kind": "agent_tool_usage_feedback",
        "feedback": {"registry_ref": registry, "observations": list(observations), **more},
    }


def briefs(place: JudgedStore) -> list[Plain]:
    return [json.loads(row[0]) for row in place.rows("SELECT brief FROM tool_brief ORDER BY tool_observation")]


def test_an_observation_is_kept_with_its_registry_tags_and_brief(place: JudgedStore) -> None:
    place.talk(message("u1"), turn_id="t1")
    given = observation(duration_ms=12, permission_tags=["net"], risk_tags=["low"])
    report = place.call(
        "memory.write",
        feedback(given, observation(outcome="failed"), user_visible_result_summary="21 degrees",
                 reuse_outcome="succeeded", operator_note="fine", turn_id="t1"),
    )  # fmt: skip
    assert (report["accepted"], report["outcomes"], report["writes"]) == (2, [], [])
    rows = place.rows(
        "SELECT registry_id, registry_fingerprint, registry_scope, tool_id, schema_fingerprint, outcome, duration_ms,"
        " permission_tags, risk_tags, turn, turn_id, principal FROM tool_observation"
    )
    head = ("host-tools", "f1", "global", "weather", "s1")
    tail = (1, "t1", "embedded:agent-main")
    assert rows == [(*head, "succeeded", 12, '["net"]', '["low"]', *tail), (*head, "failed", None, "[]", "[]", *tail)]
    assert briefs(place)[0] == {
        "summary": "looked up the weather",
        "result_summary": "21 degrees",
        "reuse_outcome": "succeeded",
        "operator_note": "fine",
    }
    assert report["lifecycle"]["changed"] is True


def test_feedback_without_observations_changes_nothing(place: JudgedStore) -> None:
    report = place.call("memory.write", feedback(user_visible_result_summary="nothing to tell"))
    assert (report["accepted"], report["lifecycle"]["changed"]) == (0, False)


def test_hints_stay_empty(place: JudgedStore) -> None:
    place.call("memory.write", feedback(observation(), observation()))
    report = place.call("memory.recall", {"query": "weather"})
    assert report["agent_tool_hints"] == []


EVERY = {**SECRETS, **SCHEMAS, **RESULTS}


@pytest.mark.parametrize("name", EVERY)
def test_what_is_more_than_a_summary_is_refused_and_its_place_is_named(place: JudgedStore, name: str) -> None:
    given = feedback(observation(), observation(), observation(f"{EVERY[name]}"))
    error = place.refused("privacy_denied", "memory.write", given)
    assert error.details["path"] == "$.args.feedback.observations[2].summary"
    assert EVERY[name] not in f"{error.message} {error.hint} {error.details}"
    assert place.rows("SELECT * FROM tool_observation") == []


@pytest.mark.parametrize(
    ("path", "given"),
    [
        ("user_visible_result_summary", feedback(observation(), user_visible_result_summary=SECRETS["assigned"])),
        ("operator_note", feedback(observation(), operator_note=SCHEMAS["json schema"])),
        ("observations[0].permission_tags[1]", feedback(observation(permission_tags=["a", SECRETS["github"]]))),
        ("observations[0].risk_tags[0]", feedback(observation(risk_tags=[SECRETS["gitlab"]]))),
        ("observations[1].tool_id", feedback(observation(), observation(tool_id=SECRETS["stripe"]))),
    ],
)
def test_secrets_are_refused_wherever_they_stand(place: JudgedStore, path: str, given: Plain) -> None:
    error = place.refused("privacy_denied", "memory.write", given)
    assert error.details["path"] == f"$.args.feedback.{path}"


def test_a_refusal_leaves_a_row_without_the_text(place: JudgedStore) -> None:
    place.refused("privacy_denied", "memory.write", feedback(observation(f"password=x7{CANARY}")))
    log = place.rows("SELECT event, operation, subject FROM event_log WHERE event = 'refused'")
    assert log == [("refused", "memory.write", '{"count":1,"error":"privacy_denied"}')]


@pytest.mark.parametrize(
    ("path", "change"),
    [
        ("summary", {"summary": "x" * 513}),
        ("outcome", {"outcome": "fine"}),
        ("duration_ms", {"duration_ms": -1}),
        ("result", {"result": "the full result"}),
        ("permission_tags[0]", {"permission_tags": [""]}),
    ],
)
def test_a_wrong_field_is_refused_with_its_path(place: JudgedStore, path: str, change: Plain) -> None:
    error = place.refused("invalid_request", "memory.write", feedback(observation(), {**observation(), **change}))
    assert error.details["path"] == f"$.args.feedback.observations[1].{path}"


def test_an_observation_is_joined_to_its_turn_and_its_words_are_erased_with_it(place: JudgedStore) -> None:
    place.talk(message("u1"), turn_id="t1")
    place.talk(message("u2"), turn_id="t2")
    place.call("memory.write", feedback(observation(CANARY), turn_id="t1"))
    place.call("memory.write", feedback(observation("kept"), turn_id="t2"))
    assert [row[0] is not None for row in place.rows("SELECT turn FROM tool_observation")] == [True, True]
    place.lifecycle("delete_raw", "t1")
    assert [each["summary"] for each in briefs(place)] == ["kept"]
    assert len(place.rows("SELECT * FROM tool_observation")) == 2


def test_words_about_a_turn_that_is_not_there_are_refused(place: JudgedStore) -> None:
    place.talk(message("u1"), turn_id="t1")
    error = place.refused("invalid_request", "memory.write", feedback(observation(CANARY), turn_id="t9"))
    assert error.details["path"] == "$.args.feedback.turn_id" and error.hint
    assert briefs(place) == [] and place.rows("SELECT * FROM tool_observation") == []


def test_words_about_no_turn_are_kept(place: JudgedStore) -> None:
    place.call("memory.write", feedback(observation("ok")))
    assert [each["summary"] for each in briefs(place)] == ["ok"]


def test_words_about_an_erased_turn_are_not_kept(place: JudgedStore) -> None:
    place.talk(message("u1"), turn_id="t1")
    place.talk(message("u2"), turn_id="t2")
    place.lifecycle("delete_raw", "t1")
    report = place.call("memory.write", feedback(observation(CANARY), turn_id="t1"))
    assert report["accepted"] == 1
    assert briefs(place) == []
