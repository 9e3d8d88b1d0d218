"""memory.replay: a chat's turn ledger, without content, for whoever may know of what it leads to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.building import message, skill, talk, turn, write
from tests.conformance.doors import embedded_caller
from tests.sdk.moving import HERE, THERE, Home, ref

CANARY = "zqcanaryqz"
SAID = f"{CANARY}\nThe pump is loud.\nHer knee hurts.\nRoses."


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home(tmp_path, "home", "in-memory")
    turns = [
        turn(f"t{number}", message(f"a{number}", SAID), message(f"b{number}", CANARY, role="assistant"),
             at=f"2024-05-0{number}T10:00:00Z")
        for number in range(1, 6)
    ]  # fmt: skip
    made.ask("transcript.commit", talk(*turns, conversation=HERE))
    yield made
    made.close()


def step(home: Home, action: str, *turn_ids: str) -> None:
    home.ask("transcript.lifecycle", {"conversation": HERE, "action": action, "turn_ids": list(turn_ids),
                                      "reason": CANARY})  # fmt: skip


def test_a_ledger_tells_order_times_roles_and_doors_and_no_word(home: Home) -> None:
    report = home.ask("memory.replay", {"chat_id": "chat-1"})
    assert report["conversation"] == HERE
    assert [(each["sequence"], each["turn_id"], each["door"]) for each in report["turns"]] == [
        (number, f"t{number}", "transcript") for number in range(1, 6)
    ]
    first = report["turns"][0]
    assert (first["at"], first["archived"], first["steps"]) == ("2024-05-01T10:00:00Z", False, [])
    assert [(m["message_id"], m["role"], m["state"]) for m in first["messages"]] == [
        ("a1", "user", "live"), ("b1", "assistant", "live")
    ]  # fmt: skip
    assert CANARY not in str(report)


def test_a_ledger_tells_what_became_of_each_turn(home: Home) -> None:
    step(home, "mask", "t1", "t2")
    step(home, "unmask", "t2")
    step(home, "delete_raw", "t3")
    step(home, "archive", "t4")
    report = home.ask("memory.replay", {"chat_id": "chat-1"})
    told = {each["turn_id"]: each for each in report["turns"]}
    assert [[(s["action"], s["messages"]) for s in told[f"t{n}"]["steps"]] for n in (1, 2, 3, 4, 5)] == [
        [("mask", 2)], [("unmask", 2)], [("delete_raw", 2)], [], []
    ]  # fmt: skip
    assert {m["state"] for m in told["t3"]["messages"]} == {"deleted"}
    assert [told[f"t{n}"]["archived"] for n in (3, 4)] == [False, True]
    assert CANARY not in str(report)


def test_pages_of_a_ledger_have_no_gap_and_no_repeat_while_others_write(home: Home) -> None:
    seen: list[str] = []
    cursor: str | None = None
    for number in range(6, 20):
        args = {"chat_id": "chat-1", "limit": 2} | ({} if cursor is None else {"cursor": cursor})
        report = home.ask("memory.replay", args)
        seen += [each["turn_id"] for each in report["turns"]]
        if number < 9:
            home.ask("transcript.commit", talk(turn(f"t{number}", "more"), conversation=HERE))
        cursor = report["next_cursor"]
        if cursor is None:
            break
    assert seen == [f"t{number}" for number in range(1, 9)]


def test_a_cursor_of_one_chat_opens_no_other(home: Home) -> None:
    home.ask("transcript.commit", talk(turn("x1", "x"), turn("x2", "y"), conversation={"conversation_id": "chat-2"}),
             chat_id="chat-2")  # fmt: skip
    cursor = home.ask("memory.replay", {"chat_id": "chat-1", "limit": 1})["next_cursor"]
    home.refused("invalid_request", "memory.replay", {"chat_id": "chat-2", "cursor": cursor}, chat_id="chat-2")
    home.refused("invalid_request", "memory.replay", {"chat_id": "chat-1", "cursor": cursor[:-2]})


def test_a_ledger_names_what_memory_made_of_a_turn_to_whom_that_is_shown(home: Home) -> None:
    shared = home.judge("The pump is loud.", topic="pump", evidence_refs=[ref("t1", "a1")])
    private = home.judge("Her knee hurts.", topic="knee", privacy="subject_private", evidence_refs=[ref("t1", "a1")])
    item = home.judge("Roses.", target="private_garden", privacy="subject_private", evidence_refs=[ref("t1", "a1")])
    assert item["outcome"] == "accepted"
    home.ask("memory.write", write(skill("pump", citations=[ref("t1")])))

    def derived(*views: str, own: bool = True) -> set[str]:
        asker = embedded_caller("mara")._replace(views=views, agent_id="agent-main" if own else None)
        report = home.ask("memory.replay", {"chat_id": "chat-1"}, caller=asker)
        assert "Roses" not in str(report)
        return {each["derived"] for each in report["turns"][0]["derived_refs"]}

    everyone = {shared["ref"], "procedural:runtime_skill__pump/1"}
    assert derived("host_ui") == everyone
    assert derived("model_context") == everyone | {private["ref"]}
    assert derived("operator_audit") == everyone


def test_a_chat_whose_conversation_is_withheld_is_told_of_only_when_it_is_named(home: Home) -> None:
    step(home, "mask", *(f"t{number}" for number in range(1, 6)))
    error = home.refused("privacy_denied", "memory.replay", {"chat_id": "chat-1"})
    assert "conversation_id" in error.hint
    report = home.ask("memory.replay", {"chat_id": "chat-1"}, chat_id="chat-1", conversation_id="chat-1")
    assert len(report["turns"]) == 5


def test_a_chat_that_is_not_there_is_not_found(home: Home) -> None:
    home.refused("not_found", "memory.replay", {"chat_id": "nowhere"})
    home.refused("not_found", "memory.replay", {"chat_id": THERE["conversation_id"]})
    home.refused("not_found", "memory.replay", {"chat_id": "chat-1"}, owner_id="piet", caller=embedded_caller("piet"))
    home.refused("invalid_request", "memory.replay", {"chat_id": ""})


def test_a_long_list_of_derived_refs_is_clipped_and_says_so(tmp_path: Path) -> None:
    from tests.sdk.moving import COMPACT

    home = Home(tmp_path, "small", "sqlite", COMPACT)
    home.ask("transcript.commit", talk(turn("t1", "all that was counted"), conversation=HERE))
    most = home.opened.profile.budgets.derived_refs
    for number in range(most + 1):
        home.judge(f"fact number {number}", topic=f"topic {number}", evidence_refs=[ref("t1")], authority="operator")
    report = home.ask("memory.replay", {"chat_id": "chat-1"})
    assert len(report["turns"][0]["derived_refs"]) == most and report["profile_budget_applied"] is True
    home.close()
