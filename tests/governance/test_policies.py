"""long_term.policy: pause, suppress, resume, list; they act on what is asked to be remembered from then on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.governance.judging import JudgedStore, Plain, candidate, message, ref

CANARY = "heliotrope7431"


@pytest.fixture
def place() -> Iterator[JudgedStore]:
    made = JudgedStore()
    made.talk(message("u1"), message("a1", "assistant"))
    yield made
    made.close()


def policy(place: JudgedStore, action: str, **more: Any) -> Plain:
    return place.call("long_term.policy", {"action": action, **more})


def named(report: Plain) -> list[tuple[Any, ...]]:
    return [(each["action"], each["kind"], each["topic"], each["chat_id"]) for each in report["policies"]]


@pytest.mark.parametrize(
    ("narrowed", "given", "chat", "acts"),
    [
        ({}, {}, "chat-1", True),
        ({"chat_id": "chat-1"}, {}, "chat-1", True),
        ({"chat_id": "chat-2"}, {}, "chat-1", False),
        ({"kind": "goal"}, {"kind": "goal"}, "chat-1", True),
        ({"kind": "goal"}, {"kind": "fact"}, "chat-1", False),
        ({"topic": " TEA"}, {"topic": "tea"}, "chat-1", True),
        ({"topic": "tea"}, {"topic": "coffee"}, "chat-1", False),
        ({"topic": "tea"}, {"topic": ""}, "chat-1", False),
        ({"kind": "goal", "topic": "tea"}, {"kind": "goal", "topic": "tea"}, "chat-1", True),
        ({"kind": "goal", "topic": "tea"}, {"kind": "fact", "topic": "tea"}, "chat-1", False),
    ],
)
@pytest.mark.parametrize("action", ["pause", "suppress"])
def test_a_policy_acts_where_all_that_it_names_fits(
    place: JudgedStore, action: str, narrowed: Plain, given: Plain, chat: str, acts: bool
) -> None:
    if action == "suppress" and not {"kind", "topic"} & set(narrowed):
        place.refused("invalid_request", "long_term.policy", {"action": action, **narrowed})
        return
    assert policy(place, action, **narrowed)["changed"] is True
    wanted = {"pause": ("deferred", "policy_paused"), "suppress": ("rejected", "policy_suppressed")}[action]
    found = place.verdict(candidate("c", "x", **given), chat=chat)
    assert found == (wanted if acts else ("accepted", "created"))


def test_a_policy_changes_nothing_that_is_remembered_already(place: JudgedStore) -> None:
    place.judge(candidate("c", "at five", topic="tea"))
    policy(place, "suppress", topic="tea")
    assert [each["content"] for each in place.facts()] == ["at five"]
    assert place.call("memory.recall", {"query": "five"})["long_term"] != []


def test_what_a_pause_put_off_is_judged_when_it_ends_and_once(place: JudgedStore) -> None:
    policy(place, "pause")
    found = place.judge(
        candidate("1", "at five", topic="tea"),
        candidate("2", "at six", topic="tea"),
        candidate("3", "I am right", "assistant_claimed", topic="self"),
        candidate("4", "x", target="shared_fact", privacy="subject_private"),
        candidate("5", "step", target="procedural", topic="pump"),
        candidate("6", "zen", target="private_garden", privacy="subject_private"),
        candidate("7", "deep", target="soul_candidate", privacy="soul_private"),
        candidate("8", "open", target="private_garden", privacy="public_runtime"),
    )
    assert {each["reason"] for each in found} == {"policy_paused"}
    assert place.facts("all") == []
    report = policy(place, "resume")
    assert (report["changed"], report["rejudged"], report["policies"]) == (True, 7, [])
    assert [each["content"] for each in place.facts()] == ["at six"]
    assert [each["content"] for each in place.facts("superseded")] == ["at five"]
    assert place.waiting() == [("3", "needs_assertion")]
    assert place.call("skill.detail", {"name": "pump"})["procedure"] == "step"
    assert [each["state"] for each in place.call("private.list", {})["items"]] == ["kept", "handoff"]
    assert policy(place, "resume")["rejudged"] == 0


def test_resuming_lifts_exactly_what_is_named_alike(place: JudgedStore) -> None:
    policy(place, "pause")
    policy(place, "pause", chat_id="chat-1")
    policy(place, "suppress", kind="goal", topic="Tea")
    assert policy(place, "resume", kind="goal")["changed"] is False
    assert policy(place, "resume", topic="tea")["changed"] is False
    lifted = policy(place, "resume", kind="goal", topic=" TEA ")
    assert named(lifted) == [("pause", None, None, None), ("pause", None, None, "chat-1")]
    place.judge(candidate("c", "x"))
    assert policy(place, "resume", chat_id="chat-1")["rejudged"] == 0
    assert place.waiting() == [("c", "policy_paused")]
    assert policy(place, "resume")["rejudged"] == 1


def test_the_same_policy_twice_is_one(place: JudgedStore) -> None:
    assert policy(place, "suppress", topic="tea", reason="asked by Ana")["changed"] is True
    again = policy(place, "suppress", topic="TEA")
    assert (again["changed"], again["receipt"], again["lifecycle"]["changed"]) == (False, None, False)
    (shown,) = again["policies"]
    assert (shown["topic"], shown["reason"], shown["by"]) == ("tea", "asked by Ana", "embedded:agent-main")


def test_a_list_changes_nothing_and_takes_nothing(place: JudgedStore) -> None:
    policy(place, "pause", kind="goal")
    report = policy(place, "list")
    assert named(report) == [("pause", "goal", None, None)]
    assert (report["changed"], report["lifecycle"]["changed"]) == (False, False)
    place.refused("invalid_request", "long_term.policy", {"action": "list", "kind": "goal"})


@pytest.mark.parametrize(
    "wrong",
    [
        {"action": "suppress"},
        {"action": "suppress", "chat_id": "c"},
        {"action": "pause", "topic": " "},
        {"action": "pause", "topic": ""},
        {"action": "pause", "kind": "rumour"},
        {"action": "forbid"},
        {"action": "pause", "until": "tomorrow"},
    ],
)
def test_a_wrong_policy_is_refused(place: JudgedStore, wrong: Plain) -> None:
    place.refused("invalid_request", "long_term.policy", wrong)
    assert policy(place, "list")["policies"] == []


def test_policies_are_their_space_s_own(place: JudgedStore) -> None:
    policy(place, "pause")
    assert place.verdict(candidate("c", "x"), owner="someone") == ("accepted", "created")
    assert place.call("long_term.policy", {"action": "list"}, owner="someone")["policies"] == []


def test_a_change_has_a_receipt_that_verifies_and_holds_no_topic(place: JudgedStore) -> None:
    for action in ("suppress", "resume"):
        receipt = policy(place, action, topic=CANARY)["receipt"]
        assert CANARY not in receipt
        checked = place.call("store.verify", {"receipt": receipt})["receipt"]
        assert (checked["valid"], checked["kind"]) == (True, f"long_term.policy.{action}")
    assert place.rows("SELECT * FROM policy_text") == []


def test_an_extraction_of_another_chat_is_paused_by_that_chat(place: JudgedStore) -> None:
    policy(place, "pause", chat_id="chat-2")
    item = {"kind": "fact", "topic": "t", "content": "said", "confidence": 1.0, "evidence_refs": [ref("u1")]}
    request = {
        "kind": "long_term_extraction",
        "extraction": {"items": [item], "extractor": "e", "source_chat_id": "chat-2"},
    }
    assert place.call("memory.write", request)["outcomes"][0]["reason"] == "policy_paused"
    assert policy(place, "resume", chat_id="chat-2")["rejudged"] == 1
    (fact,) = place.facts()
    assert (fact["authority"], fact["confidence"]) == ("user_asserted", 1.0)
