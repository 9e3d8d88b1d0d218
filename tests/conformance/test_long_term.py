"""Long-term facts over every door: learned by candidates and extractions, then listed, shown, changed and forgotten."""

from __future__ import annotations

from typing import Any

import pytest

from beetle.contracts.operations import BY_NAME
from tests.building import candidate, candidates, found_texts, talk, turn
from tests.conformance.doors import Door, Plain, Socket


def spoken(content: str, topic: str = "spare key", **more: Any) -> Plain:
    return candidate(f"of {topic}", content, topic=topic, **{"privacy": "public_runtime", **more})


def learn(door: Door, *given: Plain) -> list[str]:
    """Have candidates judged; the refs of those that were accepted."""
    report = door.prepare("memory.write", candidates(*given))
    return [each["ref"] for each in report["outcomes"] if each["outcome"] == "accepted"]


def mutate(door: Door, action: str, ref: str | None = None, **more: Any) -> Plain:
    named = {} if ref is None else {"ref": ref}
    return door.call("long_term.mutate", {"action": action, "reason": "a case asked for it", **named, **more})


def listed(door: Door, **args: Any) -> list[str]:
    return [each["content"] for each in door.call("long_term.list", args)["records"]]


def test_what_was_learned_is_listed_shown_and_recalled(door: Door) -> None:
    door.prepare("transcript.commit", talk(turn("t1", "The spare key is under the pot.")))
    (ref,) = learn(door, spoken("The spare key is under the pot.", evidence_refs=["evidence:local/talk/t1/t1.0"]))
    report = door.call("long_term.list", {})
    assert report["total"] == 1 and report["has_more"] is False
    (record,) = report["records"]
    assert record["ref"] == ref and record["evidence"] == 1
    assert {name: record[name] for name in ("kind", "topic", "authority", "visibility", "state", "revision")} == {
        "kind": "fact", "topic": "spare key", "authority": "user_asserted", "visibility": "shared", "state": "current",
        "revision": 1,
    }  # fmt: skip
    shown = door.call("long_term.detail", {"ref": ref})
    assert shown["record"] == record and shown["policy"] == "none"
    assert [each["action"] for each in shown["revisions"]] == ["created"]
    assert [each["evidence"] for each in shown["derived_refs"]] == ["evidence:local/talk/t1/t1.0"]
    found = door.call("memory.recall", {"query": "spare key", "planes": ["long_term"]})
    assert [hit["ref"] for hit in found["long_term"]] == [ref] == [hit["ref"] for hit in found["hits"]]
    block = door.call("memory.project", {"user_query": "spare key"})["system_memory_block"]
    assert ", user] spare key: The spare key is under the pot." in block
    review = {"conversation": {"conversation_id": "talk"}, "action": "review", "turn_ids": ["t1"], "reason": "r"}
    touched = door.call("transcript.lifecycle", {**review, "dry_run": True})
    assert ref in [each["derived"] for each in touched["derived_refs"]]


def test_a_correction_replaces_the_words_and_a_supersession_the_record(door: Door) -> None:
    ref = learn(door, spoken("The spare key is under the pot."))[0]
    report = mutate(door, "correct", ref, content="The spare key is in the shed.", expected_revision=1)
    assert (report["outcome"], report["ref"], report["revision"], report["changed"]) == ("corrected", ref, 2, True)
    assert report["lifecycle"]["event_id"] == report["audit_event_id"] and report["receipt"]
    assert listed(door) == ["The spare key is in the shed."]
    new = mutate(door, "supersede", ref, content="There is no spare key.")
    assert new["outcome"] == "superseded" and new["refs"] == [ref] and new["ref"] != ref
    assert "shed" not in found_texts(door.call("memory.recall", {"query": "spare key shed pot"}))
    assert door.call("long_term.detail", {"ref": ref})["superseded_by"] == new["ref"]
    error = door.refused(
        "conflict", "long_term.mutate", {"action": "correct", "ref": ref, "content": "no", "reason": "r"}
    )
    assert new["ref"] in error.hint


def test_a_receipt_of_every_change_is_valid(door: Door) -> None:
    refs = learn(door, spoken("The spare key is here."), spoken("The pump hums.", topic="pump"))
    receipts = [
        mutate(door, "correct", refs[0], content="The spare key is there.")["receipt"],
        mutate(door, "change_scope", refs[0], privacy="shared_with_subject", dry_run=True)["receipt"],
        mutate(door, "mark_stale", refs[0])["receipt"],
        mutate(door, "delete", refs[1])["receipt"],
    ]
    assert receipts[1] is None
    for receipt in (each for each in receipts if each):
        checked = door.call("store.verify", {"receipt": receipt, "pages": False})["receipt"]
        assert checked["valid"] and checked["kind"].startswith("long_term."), checked


def test_deleting_and_forgetting_leave_tombstones(door: Door) -> None:
    key, pump, tea = learn(
        door,
        spoken("The spare key is here."),
        spoken("The pump hums.", topic="pump"),
        spoken("Ana likes tea.", topic="tea"),
    )
    report = mutate(door, "delete", tea)
    assert (report["outcome"], report["erasure"]) == ("deleted", "done")
    dry = mutate(door, "forget_by_query", query="SPARE key", dry_run=True)
    assert dry["refs"] == [key] and not dry["changed"] and dry["lifecycle"]["changed"] is False
    door.refused("invalid_request", "long_term.mutate", {"action": "forget_by_query", "query": "spare key"})
    wrong = {"action": "forget_by_query", "query": "pump", "confirm": dry["confirm_token"]}
    door.refused("conflict", "long_term.mutate", wrong)
    done = mutate(door, "forget_by_query", query="SPARE key", confirm=dry["confirm_token"])
    assert (done["outcome"], done["erasure"], done["refs"]) == ("forgotten", "done", [key])
    assert listed(door) == ["The pump hums."] and listed(door, state="deleted") == [None, None]
    again = {"action": "forget_by_query", "query": "SPARE key", "confirm": dry["confirm_token"]}
    door.refused("conflict", "long_term.mutate", again)
    assert pump in [each["ref"] for each in door.call("long_term.list", {})["records"]]


def test_private_facts_are_the_space_s_own_agent_s(door: Door) -> None:
    private = spoken("Ana sees a doctor.", topic="doctor", privacy="subject_private")
    (ref,) = learn(door, private)
    own = ["Ana sees a doctor."] if door.own_agent else []
    # An operator, who is not the space's own agent, sees what it wrote itself: in lists, not in recall.
    wrote = [] if door.own_agent else ["Ana sees a doctor."]
    assert listed(door) == wrote and door.call("long_term.list", {})["total"] == len(wrote)
    if door.own_agent:
        door.refused("not_found", "long_term.detail", {"ref": ref})
        door.refused("not_found", "long_term.mutate", {"action": "delete", "ref": ref})
    assert listed(door, view="model_context") == own + wrote
    found = door.call("memory.recall", {"query": "doctor"})
    assert [hit["excerpt"] for hit in found["long_term"]] == own
    assert listed(door, view="operator_audit") == [None] * len(wrote)
    assert listed(door, view="export") == []


def test_an_audit_sees_digests_for_words(door: Door) -> None:
    ref = learn(door, spoken("The spare key is here."))[0]
    mutate(door, "correct", ref, content="The spare key is there.", reason="it moved")
    (record,) = door.call("long_term.list", {"view": "operator_audit"})["records"]
    assert (record["topic"], record["content"], record["keywords"]) == (None, None, None) and record["digest"]
    shown = door.call("long_term.detail", {"ref": ref, "view": "operator_audit", "history": True})
    assert "spare key" not in repr(shown) and "it moved" not in repr(shown)


@pytest.mark.parametrize("operation", ["long_term.list", "long_term.detail", "long_term.mutate"])
def test_a_view_that_is_not_granted_is_refused(over_socket: Socket, operation: str) -> None:
    ref = learn(over_socket, spoken("The spare key is here."))[0]
    args: dict[str, Plain] = {
        "long_term.list": {},
        "long_term.detail": {"ref": ref},
        "long_term.mutate": {"action": "delete", "ref": ref},
    }
    over_socket.refused("privacy_denied", operation, {**args[operation], "view": "raw_owner"})
    assert listed(over_socket) == ["The spare key is here."]


def test_a_cursor_holds_for_its_own_request_alone(door: Door) -> None:
    learn(door, *(spoken(f"Thing {n} is here.", topic=f"thing {n}") for n in range(5)))
    page = door.call("long_term.list", {"limit": 2})
    assert page["total"] == 5 and page["has_more"]
    rest = door.call("long_term.list", {"limit": 50, "cursor": page["next_cursor"]})
    told = [each["content"] for each in (*page["records"], *rest["records"])]
    assert told == [f"Thing {n} is here." for n in reversed(range(5))]
    for more in ({"kind": "goal"}, {"query": "thing"}, {"state": "all"}, {"view": "operator_audit"}):
        door.refused("invalid_request", "long_term.list", {"cursor": page["next_cursor"], **more})


def test_a_mutation_stands_in_no_batch(door: Door) -> None:
    assert not BY_NAME["long_term.mutate"].batch
    ref = learn(door, spoken("The spare key is here."))[0]
    step = {"op": "long_term.mutate", "args": {"action": "delete", "ref": ref}}
    door.refused("invalid_request", "batch", {"requests": [step]})


def test_the_same_key_answers_the_first_report_again(door: Door) -> None:
    ref = learn(door, spoken("The spare key is here."))[0]
    args = {"action": "correct", "ref": ref, "content": "It is there.", "reason": "r"}
    first = door.call("long_term.mutate", args, idempotency_key="once")
    assert door.call("long_term.mutate", args, idempotency_key="once")["revision"] == first["revision"] == 2
    assert door.call("long_term.detail", {"ref": ref})["record"]["revision"] == 2
