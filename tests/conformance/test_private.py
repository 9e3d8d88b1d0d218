"""private.list, private.get, and receipts: what every door answers alike, and whom the private plane is open to."""

from __future__ import annotations

import re

import pytest

from tests.building import candidate, candidates, lifecycle, skill, talk, turn, write
from tests.conformance.doors import Door, InProcess

CANARY = "canary-gannet"


def is_owner(door: Door) -> bool:
    return "raw_owner" in door.views


def plant(door: Door) -> list[str]:
    """Two records in the private plane; their ids."""
    garden = candidate("a", f"{CANARY} one", target="private_garden", privacy="subject_private")
    soul = candidate("b", f"{CANARY} two", target="soul_candidate", privacy="soul_private")
    report = door.prepare("memory.write", candidates(garden, soul))
    assert [(each["outcome"], each["reason"]) for each in report["outcomes"]] == [
        ("accepted", "created"), ("deferred", "soul_handoff")
    ]  # fmt: skip
    assert CANARY not in str(report)
    return [each["record_id"] for each in report["outcomes"]]


def test_the_owner_lists_and_reads_what_is_kept_and_nobody_else(door: Door) -> None:
    records = plant(door)
    if not is_owner(door):
        door.refused("forbidden", "private.list", {})
        error = door.refused("forbidden", "private.get", {"record_id": records[0]})
        assert CANARY not in f"{error}{error.hint}{error.details}"
        return
    listed = door.call("private.list", {})
    assert (listed["total"], listed["has_more"]) == (2, False)
    assert [(each["record_id"], each["plane"], each["state"]) for each in listed["items"]] == [
        (records[0], "private_garden", "kept"), (records[1], "soul_candidate", "handoff")
    ]  # fmt: skip
    assert CANARY not in str(listed)
    assert door.call("private.list", {"plane": "soul_candidate"})["total"] == 1
    shown = door.call("private.get", {"record_id": records[1]})
    assert (shown["content"], shown["visibility"], shown["length"]) == (f"{CANARY} two", "soul", len(f"{CANARY} two"))
    door.refused("not_found", "private.get", {"record_id": "p-none"})
    assert shown["lifecycle"]["changed"] is False


def test_the_private_plane_is_no_part_of_a_batch(in_process: InProcess) -> None:
    (record, _) = plant(in_process)
    in_process.refused("invalid_request", "batch", {"requests": [{"op": "private.get", "args": {"record_id": record}}]})
    in_process.refused("invalid_request", "batch", {"requests": [{"op": "private.list", "args": {}}]})


@pytest.mark.parametrize("op", ["memory.recall", "transcript.search", "memory.inspect", "memory.project"])
def test_what_searches_finds_nothing_private(door: Door, op: str) -> None:
    plant(door)
    args = {"query": CANARY}
    if op == "memory.project":
        args = {"user_query": CANARY, "system_max_len": 2000, "recent_messages_limit": 5, "pressure": "normal"}
    elif op == "transcript.search":
        args["view"] = door.views[0]
    assert CANARY not in str(door.call(op, args))


def test_a_receipt_is_checked_at_every_door(door: Door) -> None:
    door.prepare("transcript.commit", talk(turn("t1", "a gannet")))
    door.prepare("memory.write", write(skill("diving")))
    step = lifecycle(door, "delete_raw", "t1")
    deleted = door.call("skill.delete", {"name": "diving"})
    for report, kind in ((step, "transcript.delete_raw"), (deleted, "skill.deleted")):
        found = door.call("store.verify", {"receipt": report["receipt"], "pages": False})["receipt"]
        assert (found["valid"], found["reasons"], found["kind"]) == (True, [], kind)
        assert (found["event"], found["signed"]) == (report["lifecycle"]["event_id"], True)
    cut = door.call("store.verify", {"receipt": deleted["receipt"][:-1], "pages": False})
    assert (cut["receipt"]["valid"], cut["receipt"]["reasons"]) == (False, ["malformed"])
    assert cut["clean"] is True
    assert door.call("store.verify", {"pages": False})["receipt"] is None
    door.refused("invalid_request", "store.verify", {"receipt": "x" * 4097})


def test_a_step_without_a_receipt_says_so(door: Door) -> None:
    door.prepare("transcript.commit", talk(turn("t1", "a gannet")))
    assert lifecycle(door, "mask", "t1", dry_run=True)["receipt"] is None
    assert lifecycle(door, "mask", "t1")["receipt"]
    assert lifecycle(door, "mask", "t1")["receipt"] is None
    assert lifecycle(door, "review", "t1")["receipt"]


def test_the_identity_s_state_is_told_to_whoever_inspects(door: Door) -> None:
    identity = door.call("memory.inspect", {})["operator"]["identity"]
    device = identity.pop("device")
    assert identity == {"state": "usable", "problem": None, "advice": None, "former": [], "closed": 0}
    # Null before it has signed anything.
    assert device is None or re.fullmatch("[0-9a-f]{16}", device)


def test_private_material_outlives_a_restart(in_process: InProcess) -> None:
    record, _ = plant(in_process)
    in_process.restart()
    assert in_process.call("private.get", {"record_id": record})["content"] == f"{CANARY} one"
