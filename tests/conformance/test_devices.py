"""Devices, transports, overview, session and event log: what every door answers alike."""

from __future__ import annotations

import re

import pytest

from beetle.contracts.capabilities import CAPABILITIES
from beetle.contracts.errors import BeetleError
from tests.building import lifecycle, skill, talk, turn, write
from tests.conformance.doors import Door, InProcess, Plain

KEY = re.compile(r"[A-Za-z0-9_-]{43}")
FINGERPRINT = re.compile(r"[0-9a-f]{16}")


def new_device(door: Door, **more: object) -> Plain:
    """A device of this door's own owner, and its key."""
    return door.call("device.add", {"label": "Panel", "capabilities": ["recall"], **more})


def test_a_device_is_added_with_a_key_that_only_this_answer_shows(door: Door) -> None:
    made = new_device(door, capabilities=["transcript", "recall", "recall"])
    device = made["device"]
    assert KEY.fullmatch(made["appKeyOnce"])
    assert FINGERPRINT.fullmatch(device["appKeyFingerprint"])
    assert (device["label"], device["state"], device["owner_id"]) == ("Panel", "active", door.owner)
    assert device["capabilities"] == ["recall", "transcript"], "each once, in the catalog's order"
    assert (device["last_seen"], device["connections"]) == (None, 0)
    assert made["lifecycle"]["changed"]
    listed = listing(door)
    assert listed[device["device_id"]] == device
    assert made["appKeyOnce"] not in str(listed)


def listing(door: Door) -> dict[str, Plain]:
    """Every device that this door may see, by its id."""
    found: dict[str, Plain] = {}
    cursor: dict[str, str] = {}
    while True:
        page = door.call("device.list", {"limit": 40, **cursor})
        found.update((each["device_id"], each) for each in page["devices"])
        if not page["has_more"]:
            assert len(found) == page["total"]
            return found
        cursor = {"cursor": page["next_cursor"]}


def test_the_same_idempotency_key_makes_one_device_and_shows_its_key_once(door: Door) -> None:
    args = {"label": "Panel", "capabilities": []}
    first = door.ask("device.add", args, idempotency_key="again").report
    second = door.ask("device.add", args, idempotency_key="again")
    assert second.report["appKeyOnce"] is None and second.repeated in (True, None)
    assert second.report["device"]["device_id"] == first["device"]["device_id"]
    door.refused("conflict", "device.add", {**args, "label": "Other"}, idempotency_key="again")


def test_a_device_s_label_state_and_capabilities_change_one_by_one(door: Door) -> None:
    device_id = new_device(door)["device"]["device_id"]
    changed = door.call("device.update", {"device_id": device_id, "label": "Hall"})["device"]
    assert (changed["label"], changed["state"], changed["capabilities"]) == ("Hall", "active", ["recall"])
    assert door.call("device.update", {"device_id": device_id, "state": "suspended"})["device"]["state"] == "suspended"
    changed = door.call("device.update", {"device_id": device_id, "capabilities": ["export"]})
    assert (changed["device"]["capabilities"], changed["device"]["state"]) == (["export"], "suspended")
    again = door.call("device.update", {"device_id": device_id, "capabilities": ["export"], "state": "suspended"})
    assert again["lifecycle"]["changed"] is False
    assert again["device"] == changed["device"]


def test_revoked_is_for_good_and_suspended_is_not(door: Door) -> None:
    device_id = new_device(door)["device"]["device_id"]
    for state in ("suspended", "active", "revoked", "revoked"):
        assert door.call("device.update", {"device_id": device_id, "state": state})["device"]["state"] == state
    for op, more in (("device.update", {"state": "active"}), ("device.rotate_key", {})):
        error = door.refused("conflict", op, {"device_id": device_id, **more})
        assert "beetle device remove" in error.hint
    assert door.call("device.update", {"device_id": device_id, "label": "gone"})["device"]["label"] == "gone"


def test_a_rotated_key_is_another_and_a_removed_device_is_not_there(door: Door) -> None:
    made = new_device(door)
    device_id = made["device"]["device_id"]
    rotated = door.call("device.rotate_key", {"device_id": device_id})
    assert KEY.fullmatch(rotated["appKeyOnce"]) and rotated["appKeyOnce"] != made["appKeyOnce"]
    assert rotated["device"]["appKeyFingerprint"] != made["device"]["appKeyFingerprint"]
    assert door.call("device.remove", {"device_id": device_id})["device_id"] == device_id
    for op, more in (("device.remove", {}), ("device.rotate_key", {}), ("device.update", {"label": "x"})):
        assert "beetle device list" in door.refused("not_found", op, {"device_id": device_id, **more}).hint
    assert device_id not in listing(door)


def test_an_id_may_be_given_and_is_given_once(door: Door) -> None:
    device_id = f"panel of {door.owner}"
    assert new_device(door, device_id=device_id)["device"]["device_id"] == device_id
    door.refused("conflict", "device.add", {"label": "x", "capabilities": [], "device_id": device_id})
    door.call("device.remove", {"device_id": device_id})
    assert new_device(door, device_id=device_id)["device"]["state"] == "active"


@pytest.mark.parametrize("name", ["admin", "transcript.raw", "private.read"])
def test_no_device_is_granted_what_stands_apart(door: Door, name: str) -> None:
    door.refused("forbidden", "device.add", {"label": "x", "capabilities": ["recall", name]})
    device_id = new_device(door)["device"]["device_id"]
    error = door.refused("forbidden", "device.update", {"device_id": device_id, "capabilities": [name]})
    assert name in error.message
    assert listing(door)[device_id]["capabilities"] == ["recall"]


def test_a_capability_that_there_is_not_is_refused_with_the_nearest(door: Door) -> None:
    error = door.refused("invalid_request", "device.add", {"label": "x", "capabilities": ["recal"]})
    assert "recall" in error.hint
    door.refused("invalid_request", "device.add", {"label": "", "capabilities": []})
    door.refused("invalid_request", "device.update", {"device_id": "d"})
    every = [each.name for each in CAPABILITIES]
    assert new_device(door, capabilities=every)["device"]["capabilities"] == every


def test_what_changes_the_daemon_stands_in_no_batch(door: Door) -> None:
    for op, args in (
        ("device.add", {"label": "x", "capabilities": []}), ("device.rotate_key", {"device_id": "d"}),
        ("device.remove", {"device_id": "d"}), ("transport.update", {"name": "http", "enabled": False}),
    ):  # fmt: skip
        door.refused("invalid_request", "batch", {"requests": [{"op": op, "args": args}]})


def test_devices_are_listed_by_state_page_by_page(in_process: InProcess) -> None:
    made = [new_device(in_process, label=str(number))["device"]["device_id"] for number in range(7)]
    for device_id in made[:3]:
        in_process.call("device.update", {"device_id": device_id, "state": "suspended"})
    assert in_process.call("device.list", {"state": "suspended"})["total"] == 3
    assert in_process.call("device.list", {"state": "revoked"})["devices"] == []
    first = in_process.call("device.list", {"limit": 4})
    assert first["has_more"] and [each["device_id"] for each in first["devices"]] == made[:4]
    new_device(in_process)
    second = in_process.call("device.list", {"limit": 4, "cursor": first["next_cursor"]})
    assert [each["device_id"] for each in second["devices"]][:3] == made[4:]
    in_process.refused(
        "invalid_request", "device.list", {"limit": 4, "state": "active", "cursor": first["next_cursor"]}
    )


def test_the_ways_in_are_what_profile_build_and_operator_say(door: Door) -> None:
    entries = {each["name"]: each for each in door.call("transport.list", {})["transports"]}
    assert list(entries) == ["in_process", "unix_socket", "cli", "mcp_stdio", "http", "grpc"]
    assert [name for name, each in entries.items() if each["allowed"]] == list(entries)[:5]
    assert [name for name, each in entries.items() if each["built"]] == ["in_process", "unix_socket", "cli", "grpc"]
    assert entries["unix_socket"]["enabled"] and entries["unix_socket"]["configurable"] == ["enabled"]
    assert entries["http"]["configurable"] == entries["mcp_stdio"]["configurable"] == []
    listening = entries["unix_socket"]["listening"]
    assert listening is (door.name != "in_process")
    assert bool(entries["unix_socket"]["endpoint"]) is listening


@pytest.mark.parametrize(
    ("args", "key"),
    [
        ({"name": "in_process", "enabled": False}, "invalid_request"),
        ({"name": "cli", "enabled": False}, "invalid_request"),
        ({"name": "unix_socket", "endpoint": "127.0.0.1:80"}, "invalid_request"),
        ({"name": "http", "endpoint": "127.0.0.1:80"}, "capability_hidden"),
        ({"name": "http", "enabled": True}, "capability_hidden"),
        ({"name": "http", "enabled": False}, "capability_hidden"),
        ({"name": "mcp_stdio", "enabled": True}, "capability_hidden"),
        ({"name": "grpc", "enabled": False}, "capability_hidden"),
        ({"name": "telepathy", "enabled": False}, "invalid_request"),
        ({"name": "http"}, "invalid_request"),
    ],
)
def test_a_way_in_changes_only_where_it_can(door: Door, args: Plain, key: str) -> None:
    door.refused(key, "transport.update", args)


def test_a_way_in_is_closed_and_opened_again(in_process: InProcess) -> None:
    closed = in_process.call("transport.update", {"name": "unix_socket", "enabled": False})
    assert (closed["transport"]["enabled"], closed["lifecycle"]["changed"]) == (False, True)
    again = in_process.call("transport.update", {"name": "unix_socket", "enabled": False})
    assert again["lifecycle"]["changed"] is False
    in_process.restart()
    entry = in_process.call("transport.list", {})["transports"][1]
    assert (entry["name"], entry["enabled"]) == ("unix_socket", False)
    assert in_process.call("transport.update", {"name": "unix_socket", "enabled": True})["transport"]["enabled"]


def test_the_session_tells_who_is_asking(door: Door) -> None:
    told = door.call("console.session", {})
    assert told["principal"] == door.principal
    assert told["views"] == [view for view in told["views"] if view in door.views]
    assert told["owner"]["owner_id"] == door.owner and told["owner"]["since"] is None
    assert told["device"] is None
    door.prepare("transcript.commit", talk(turn("t1", "one"), turn("t2", "two")))
    new_device(door)
    owner = door.call("console.session", {})["owner"]
    assert (owner["counts"]["turns"], owner["devices"]) == (2, 1)
    assert owner["since"] is not None


def test_the_overview_reads_every_figure(door: Door) -> None:
    door.prepare("transcript.commit", talk(turn("t1", "the kettle")))
    door.prepare("memory.project", {"user_query": "kettle"})
    seen = door.call("console.overview", {})
    assert seen["kernel"]["counts"]["turns"] == 1
    assert seen["kernel"]["event_log"]["rows"] >= 1
    assert seen["storage"]["bytes"] > 0 and seen["storage"]["disk_free_bytes"] > 0
    assert 0 < seen["system"]["process_rss_bytes"] < seen["system"]["memory_total_bytes"]
    assert seen["system"]["cores"] >= 1
    assert seen["runtime"]["pid"] > 0
    counted = {each["operation"]: each for each in seen["metrics"]["operations"]}
    assert counted["transcript.commit"]["calls"] >= 1
    assert 0 < counted["transcript.commit"]["p50_ms"] <= counted["transcript.commit"]["max_ms"]
    assert seen["memory"]["current_conversation"]["conversation_id"] == "talk"
    assert seen["memory"]["last_projection"]["selected"] == ["evidence:local/talk/t1/t1.0"]


def test_the_event_log_shows_what_was_done_in_this_space(door: Door) -> None:
    door.prepare("transcript.commit", talk(turn("t1", "the kettle")))
    door.prepare("memory.write", write(skill("tea")))
    done = lifecycle(door, "mask", "t1")
    seen = door.call("event_log.read", {"topics": ["transcript", "skill"]})
    assert [(row["topic"], row["event"]) for row in seen["rows"]] == [
        ("transcript", "committed"), ("skill", "created"), ("transcript", "mask")
    ]  # fmt: skip
    assert (seen["verified"], seen["broken"], seen["has_more"]) == (True, [], False)
    last = seen["rows"][-1]
    assert (last["seq"], last["operation"]) == (done["lifecycle"]["event_id"], "transcript.lifecycle")
    assert "kettle" not in str(seen)
    back = door.call("event_log.read", {"topics": ["transcript", "skill"], "newest_first": True, "limit": 1})
    assert (back["rows"], back["has_more"]) == ([last], True)
    behind = door.call("event_log.read", {"after": last["seq"], "topics": ["transcript", "skill"]})
    assert behind["rows"] == [] and behind["head"] >= last["seq"]
    assert door.call("event_log.read", {"operation": "memory.write"})["rows"][0]["subject"]["name"].endswith("tea")
    assert door.call("event_log.read", {"principal": "nobody"})["rows"] == []


def test_a_refused_change_of_the_daemon_names_who_may(in_process: InProcess) -> None:
    from tests.conformance.doors import embedded_caller

    agent = embedded_caller("owner-one")._replace(kind="principal", name="agent")
    for op in ("device.add", "device.update", "device.rotate_key", "device.remove", "transport.update"):
        with pytest.raises(BeetleError, match="is not an operator") as caught:
            in_process.ask(op, {}, caller=agent)
        assert caught.value.key == "forbidden" and caught.value.hint
