"""private.list, private.get, and receipts: what every door answers alike, and whom the private plane is open to."""

from __future__ import annotations

import pytest

from tests.conformance.cases import lifecycle, skill, talk, turn, write
from tests.conformance.doors import CommandLine, Door, InProcess

CANARY = "canary-gannet"


def is_owner(door: Door) -> bool:
    return "raw_owner" in door.views


def candidate(place: str, target: str, content: str) -> dict[str, object]:
    privacy = "soul_private" if target == "soul_candidate" else "subject_private"
    return {
        "candidate_id": place, "authority": "user_asserted", "target": target, "privacy": privacy, "content": content
    }  # fmt: skip


def plant(door: Door) -> list[str]:
    """Two records in the private plane; their ids."""
    candidates = [candidate("a", "private_garden", f"{CANARY} one"), candidate("b", "soul_candidate", f"{CANARY} two")]
    report = door.prepare("memory.write", {"kind": "candidates", "candidates": candidates})
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


def test_the_private_plane_is_no_part_of_a_batch(door: Door) -> None:
    if not is_owner(door):
        pytest.skip("it is refused anyway")
    (record, _) = plant(door)
    door.refused("invalid_request", "batch", {"requests": [{"op": "private.get", "args": {"record_id": record}}]})
    door.refused("invalid_request", "batch", {"requests": [{"op": "private.list", "args": {}}]})


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
    assert identity == {"state": "usable", "problem": None, "advice": None}


def test_a_command_s_exit_code_tells_of_a_receipt_that_does_not_hold(door: Door) -> None:
    if not isinstance(door, CommandLine):
        pytest.skip("only a command has an exit code")
    import subprocess

    door.prepare("transcript.commit", talk(turn("t1", "a gannet")))
    receipt = lifecycle(door, "mask", "t1")["receipt"]
    command = [*door.daemon.command, f"--socket={door.daemon.socket}", "verify", "--no-pages", "--receipt"]
    good = subprocess.run([*command, receipt], capture_output=True, text=True, check=False)
    assert (good.returncode, good.stderr) == (0, "")
    assert good.stdout.endswith("The receipt is valid.\n")
    piped = subprocess.run([*command, "-"], input=f"{receipt}\n", capture_output=True, text=True, check=False)
    assert piped.stdout == good.stdout
    wrong = subprocess.run([*command, receipt[:-2]], capture_output=True, text=True, check=False)
    assert wrong.returncode == 9
    assert "The receipt is not valid: " in wrong.stdout


def test_private_material_outlives_a_restart(in_process: InProcess) -> None:
    record, _ = plant(in_process)
    in_process.restart()
    assert in_process.call("private.get", {"record_id": record})["content"] == f"{CANARY} one"
