"""transcript.repair and repair_safe through every door; the kinds of damage: tests/governance/test_repair.py."""

from __future__ import annotations

from tests.building import CONVERSATION, lifecycle, message, skill, talk, turn, write
from tests.conformance.doors import Door

KINDS = {
    "missing_source_turn", "missing_source_message", "orphan_derived_ref", "mismatched_source_key",
    "duplicate_sequence", "corrupt_record", "index_mismatch",
}  # fmt: skip
REF = "evidence:local/talk/t1/m1"


def test_a_sound_space_has_no_issues_and_nothing_to_mend(door: Door) -> None:
    assert door.call("transcript.repair", {})["clean"] is True
    said = [turn(f"t{n}", message(f"m{n}", f"pelican {n}", actor={"speaker": "Ana"})) for n in range(4)]
    secret = message("s", "unsaid", visibility="soul", actor={})
    refs = [{"kind": "task", "ref_id": "7", "label": "seven", "visibility": []}, {"kind": "task", "ref_id": "8"}]
    door.prepare("transcript.commit", talk(*said, turn("t9", secret, "aloud", host_refs=refs)))
    door.prepare("memory.write", write(skill("feeding", citations=[REF, "evidence:local/talk/t9", "a book"])))
    for action, turn_id in (("mask", "t0"), ("delete_raw", "t2"), ("archive", "t3")):
        lifecycle(door, action, turn_id)
    report = door.call("transcript.repair", {})
    assert (report["clean"], report["issues"], report["repairable"]) == (True, [], 0)
    assert report["counts"] == dict.fromkeys(KINDS, 0)
    assert (report["has_more"], report["next_cursor"], report["lifecycle"]["changed"]) == (False, None, False)
    mended = door.call("transcript.repair_safe", {})
    assert (mended["changed"], mended["mended"], mended["audit_event_id"]) == (False, [], None)
    assert mended["receipt"] is None and set(mended["counts"].values()) == {0}


def test_a_link_to_a_turn_that_came_later_is_found_and_mended(door: Door) -> None:
    door.prepare("memory.write", {**write(skill("feeding", citations=[REF])), "source": "import"})
    (issue,) = door.call("transcript.repair", {})["issues"]
    derived = "procedural:runtime_skill__feeding/1"
    assert issue == {
        "kind": "missing_source_turn", "problem": "turn_gone", "repairable": False, "ref": REF,
        "conversation": CONVERSATION, "turn_id": "t1", "message_id": "m1", "derived": derived,
    }  # fmt: skip
    assert door.call("transcript.repair_safe", {})["left"]["missing_source_turn"] == 1
    door.prepare("transcript.commit", talk(turn("t1", message("m1", "the pelican eats fish"))))
    assert lifecycle(door, "review", "t1")["derived_refs"] == []
    report = door.call("transcript.repair", {"conversation": CONVERSATION})
    assert [(each["problem"], each["repairable"]) for each in report["issues"]] == [("not_linked", True)]
    tried = door.call("transcript.repair_safe", {"dry_run": True})
    assert (tried["dry_run"], tried["changed"], tried["counts"]["relinked"]) == (True, False, 1)
    assert door.call("transcript.repair", {})["clean"] is False
    mended = door.call("transcript.repair_safe", {})
    assert [each["outcome"] for each in mended["mended"]] == ["relinked"]
    assert mended["changed"] is True and mended["audit_event_id"] == mended["lifecycle"]["event_id"]
    assert mended["receipt"].startswith("beetle-receipt-")
    assert door.call("store.verify", {"receipt": mended["receipt"]})["receipt"]["valid"] is True
    assert "pelican eats" not in str(mended)
    assert door.call("transcript.repair", {})["clean"] is True
    cited = {"derived": derived, "evidence": REF, "relation": "cites"}
    assert lifecycle(door, "review", "t1")["derived_refs"] == [cited]


def test_issues_come_in_pages_and_are_counted_whole(door: Door) -> None:
    cited = [f"evidence:local/talk/t{n}" for n in range(5)]
    door.prepare("memory.write", {**write(skill("feeding", citations=cited)), "source": "import"})
    seen: list[str] = []
    more: dict[str, str] = {}
    while True:
        page = door.call("transcript.repair", {"limit": 2, **more})
        assert page["counts"]["missing_source_turn"] == 5
        seen += [each["ref"] for each in page["issues"]]
        if not page["has_more"]:
            break
        more = {"cursor": page["next_cursor"]}
    assert seen == cited
    most = door.budgets.repair_issues
    assert door.call("transcript.repair", {"limit": most + 1})["profile_budget_applied"] is True
    door.refused("invalid_request", "transcript.repair", {"conversation": CONVERSATION, "limit": 0})


def test_repair_of_a_conversation_that_is_not_there_is_not_found(door: Door) -> None:
    door.prepare("transcript.commit", talk(turn("t1", "hello")))
    nowhere = {"conversation": {"channel_id": "local", "conversation_id": "nowhere"}}
    for op in ("transcript.repair", "transcript.repair_safe"):
        door.refused("not_found", op, nowhere)
