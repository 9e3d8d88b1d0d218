"""memory.replay, export, import, export_space, import_space: what every door answers alike."""

from __future__ import annotations

import base64

from tests.building import skill, talk, turn, write
from tests.conformance.doors import Door, Plain

HERE = {"channel_id": "local", "conversation_id": "chat-1"}


def plant(door: Door) -> None:
    door.prepare("transcript.commit", talk(turn("t1", "the spare key"), turn("t2", "the pump"), conversation=HERE))
    door.prepare("memory.write", write(skill("pump", citations=["evidence:local/chat-1/t2"])))


def other(door: Door) -> dict[str, str]:
    return {"owner_id": f"{door.owner}-other"}


def test_a_ledger_is_read_in_pages(door: Door) -> None:
    plant(door)
    first = door.call("memory.replay", {"chat_id": "chat-1", "limit": 1})
    assert (first["conversation"], [each["turn_id"] for each in first["turns"]]) == (HERE, ["t1"])
    second = door.call("memory.replay", {"chat_id": "chat-1", "limit": 1, "cursor": first["next_cursor"]})
    assert [each["turn_id"] for each in second["turns"]] == ["t2"] and not second["has_more"]
    refs = second["turns"][0]["derived_refs"]
    assert [each["derived"] for each in refs] == ["procedural:runtime_skill__pump/1"]
    door.refused("not_found", "memory.replay", {"chat_id": "nowhere"})


def test_a_chat_moves_to_another_owner(door: Door) -> None:
    plant(door)
    taken = door.call("memory.export", {"chat_id": "chat-1"})
    assert taken["counts"] == {"conversations": 1, "skills": 1, "turns": 2, "messages": 2}
    args = {"snapshot": base64.b64decode(taken["snapshot"]), "target_chat_id": "moved", "mode": "bootstrap_import"}
    made = door.call("memory.import", args, other(door))
    assert made["counts"] == taken["counts"] and made["state_fingerprint"] == taken["state_fingerprint"]
    assert made["lifecycle"]["changed"] and made["receipt"]
    found = door.call("memory.recall", {"query": "spare key"}, other(door))
    assert [hit["ref"] for hit in found["hits"]][:1] == ["evidence:local/moved/t1/t1.0"]
    door.refused("conflict", "memory.import", args, other(door))
    again = door.call("memory.import", {**args, "mode": "full_restore"}, other(door))
    assert again["replaced"] == taken["counts"] and again["erasure"] in ("done", "pending")


def test_a_space_moves_to_another_owner(door: Door) -> None:
    plant(door)
    taken = door.call("memory.export_space", {})
    assert taken["counts"] == {"skills": 1} and taken["left_out"]["messages"] == 2
    args = {"archive": base64.b64decode(taken["archive"]), "mode": "bootstrap_import"}
    made = door.call("memory.import_space", args, other(door))
    assert made["state_fingerprint"] == taken["state_fingerprint"]
    assert door.call("skill.detail", {"name": "pump"}, other(door))["procedure"]
    door.refused("conflict", "memory.import_space", args, other(door))


def test_what_is_private_leaves_for_its_owner_alone(door: Door) -> None:
    plant(door)
    whole: Plain = {"include_private": True, "passphrase": "correct horse battery"}
    for op, args in (("memory.export", {"chat_id": "chat-1"}), ("memory.export_space", {})):
        if "raw_owner" not in door.views:
            door.refused("privacy_denied", op, {**args, **whole})
            continue
        report = door.call(op, {**args, **whole})
        assert report["sealed"] is True
        door.refused("invalid_request", op, {**args, "include_private": True})


def test_what_is_no_export_is_refused(door: Door) -> None:
    args = {"target_chat_id": "chat-1", "mode": "bootstrap_import"}
    noise = b"x" * 200
    door.refused("invalid_request", "memory.import", {**args, "snapshot": noise})
    door.refused("invalid_request", "memory.import_space", {"archive": noise, "mode": "full_restore"})
    door.refused("invalid_request", "memory.import", {**args, "snapshot": noise, "mode": "merge"})
    plant(door)
    taken = door.call("memory.export", {"chat_id": "chat-1"})["snapshot"]
    cut = base64.b64decode(taken)[:-1]
    door.refused("integrity_violation", "memory.import", {**args, "snapshot": cut}, other(door))


def test_continuity_is_no_part_of_a_batch(door: Door) -> None:
    plant(door)
    for op, args in (("memory.export", {"chat_id": "chat-1"}), ("memory.export_space", {})):
        door.refused("invalid_request", "batch", {"requests": [{"op": op, "args": args}]})
