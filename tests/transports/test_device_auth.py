"""Devices on the socket: what a key proves, to whom it makes a connection belong, and when that ends."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgpack
import pytest

from beetle.contracts.operations import OPERATIONS
from beetle.runtime.host import devices
from beetle.runtime.host.config import Principal
from beetle.runtime.host.principals import Principals
from beetle.runtime.host.profile import load_profile
from tests.transports.conftest import Peer, commit
from tests.transports.serving import Served, needs_root, open_folder, peer_as, until

STRANGER = 54_321
AGENT = 40_001
OWNER = {"owner_id": "ada"}
PRINCIPALS = {"agent": Principal(uid=AGENT, owner_id="ada", agent_id="agent-a", capabilities=("transcript", "recall"))}


class Device(NamedTuple):
    """A device and what it proves itself with."""

    device_id: str
    app_key: str

    @property
    def auth(self) -> dict[str, str]:
        return {"device_id": self.device_id, "app_key": self.app_key}

    def ask(self, peer: Peer, op: str = "hello", args: Any = None, **more: Any) -> dict[str, Any]:
        return peer.ask(op, args, auth=self.auth, **more)


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with open_folder() as folder, Served(folder, principals=PRINCIPALS) as running:
        os.chmod(running.path, 0o666)
        yield running


@pytest.fixture
def operator(served: Served) -> Iterator[Peer]:
    with served.peer() as peer:
        yield peer


@pytest.fixture
def peer(served: Served) -> Iterator[Peer]:
    with served.peer() as connected:
        yield connected


def report(answer: dict[str, Any]) -> dict[str, Any]:
    assert answer["ok"], answer
    return answer["report"]


def key_of(answer: dict[str, Any]) -> str:
    """The key of the error that an answer must be."""
    assert not answer["ok"], answer
    assert answer["error"]["hint"]
    return answer["error"]["key"]


def add(operator: Peer, *capabilities: str, **more: Any) -> Device:
    args = {"label": "Panel", "capabilities": capabilities or ("recall", "transcript"), **OWNER, **more}
    made = report(operator.ask("device.add", args))
    return Device(made["device"]["device_id"], made["appKeyOnce"])


def change(operator: Peer, device: Device, **fields: Any) -> None:
    report(operator.ask("device.update", {"device_id": device.device_id, **fields}))


def rotate(operator: Peer, device: Device) -> Device:
    made = report(operator.ask("device.rotate_key", {"device_id": device.device_id}))
    return Device(device.device_id, made["appKeyOnce"])


def remove(operator: Peer, device: Device) -> None:
    report(operator.ask("device.remove", {"device_id": device.device_id}))


def shown(operator: Peer, device: Device) -> dict[str, Any]:
    """The device as an operator sees it."""
    cursor: dict[str, Any] = {}
    while True:
        page = report(operator.ask("device.list", cursor))
        for each in page["devices"]:
            if each["device_id"] == device.device_id:
                return each
        cursor = {"cursor": page["next_cursor"]}


# What a device is


def test_a_device_is_itself_whatever_its_user_and_has_no_rights_of_that_user(operator: Peer, peer: Peer) -> None:
    device = add(operator, "recall", "transcript", "event_log", "device", "console")
    assert report(device.ask(peer))["principal"] == f"device:{device.device_id}"
    for row in OPERATIONS:
        if row.effect == "admin":
            hidden = row.capability not in load_profile("compact").capabilities.allowed
            assert key_of(device.ask(peer, row.name)) == ("capability_hidden" if hidden else "forbidden"), row.name
    assert key_of(device.ask(peer, "memory.recall", {"query": "x"}, scope={"owner_id": "bob"})) == "forbidden"
    assert key_of(device.ask(peer, "memory.recall", {"query": "x"}, scope={"agent_id": "another"})) == "forbidden"
    replay = {"conversation": {"conversation_id": "c"}, "view": "operator_audit"}
    assert key_of(device.ask(peer, "transcript.replay", replay)) == "privacy_denied"
    assert not any(row["daemon"] for row in report(device.ask(peer, "event_log.read"))["rows"])
    assert {each["owner_id"] for each in report(device.ask(peer, "device.list", {"limit": 100}))["devices"]} == {"ada"}
    overview = report(device.ask(peer, "console.overview"))
    assert [overview[name] for name in ("system", "metrics", "sessions")] == [None] * 3
    assert report(device.ask(peer, "console.session"))["device"]["device_id"] == device.device_id


def test_what_a_device_writes_is_its_owner_s_and_bears_its_name(operator: Peer, peer: Peer) -> None:
    device = add(operator, agent_id="panel")
    assert report(device.ask(peer, "transcript.commit", commit(1, "by a device")))["committed"] == 1
    rows = report(operator.ask("event_log.read", {"principal": f"device:{device.device_id}"}, scope=OWNER))["rows"]
    assert [(row["topic"], row["daemon"]) for row in rows] == [("transcript", False)]
    found = report(operator.ask("transcript.conversations", scope=OWNER))["conversations"]
    assert "by a device" in [each["conversation_id"] for each in found]


def test_a_batch_of_a_device_runs_with_the_device_s_rights_not_its_user_s(operator: Peer, peer: Peer) -> None:
    device = add(operator, "recall")
    asked = {"requests": [{"op": "transcript.commit", "args": commit(2, "batched")}]}
    answer = device.ask(peer, "batch", asked)
    assert key_of(answer) == "forbidden" and device.device_id in answer["error"]["message"]


def test_a_connection_that_proved_a_device_stays_that_device(operator: Peer, peer: Peer, served: Served) -> None:
    device = add(operator)
    assert report(peer.ask("hello"))["principal"] == "operator"
    device.ask(peer)
    assert report(peer.ask("hello"))["principal"] == f"device:{device.device_id}"
    assert key_of(peer.ask("device.add", {"label": "x", "capabilities": []})) == "forbidden"
    other = add(operator)
    assert report(other.ask(peer))["principal"] == f"device:{other.device_id}"
    with served.peer() as fresh:
        assert report(fresh.ask("hello"))["principal"] == "operator", "other connections are their user's still"


def test_a_refused_proof_leaves_a_connection_what_it_was(operator: Peer, peer: Peer) -> None:
    device = add(operator)
    wrong = Device(device.device_id, "x" * 43)
    assert key_of(wrong.ask(peer)) == "unauthorized"
    assert report(peer.ask("hello"))["principal"] == "operator"
    device.ask(peer)
    assert key_of(wrong.ask(peer)) == "unauthorized"
    assert report(peer.ask("hello"))["principal"] == f"device:{device.device_id}"


@needs_root
def test_a_user_that_is_no_principal_may_prove_itself_a_device(served: Served, operator: Peer) -> None:
    device = add(operator)
    with peer_as(served.path, STRANGER, STRANGER) as stranger:
        assert key_of(stranger.ask("hello")) == "unauthorized"
        assert report(device.ask(stranger))["principal"] == f"device:{device.device_id}"
        assert report(stranger.ask("memory.recall", {"query": "kettle"}))["hits"] is not None


@needs_root
def test_a_principal_that_proves_a_device_has_the_device_s_rights_alone(served: Served, operator: Peer) -> None:
    device = add(operator, "skill", owner_id="eve")
    with peer_as(served.path, AGENT, STRANGER) as agent:
        assert key_of(device.ask(agent, "memory.recall", {"query": "x"})) == "forbidden"
        assert report(device.ask(agent, "skill.list"))["total"] == 0
        assert key_of(device.ask(agent, "skill.list", scope={"owner_id": "ada"})) == "forbidden"


# Who is refused, and what that tells


def test_an_unknown_device_and_a_wrong_key_are_told_alike_to_the_letter(operator: Peer, peer: Peer) -> None:
    device = add(operator)
    asleep = add(operator)
    change(operator, asleep, state="suspended")
    refused = [
        Device(device.device_id, "x" * 43).ask(peer),
        Device(device.device_id, device.app_key[:-1]).ask(peer),
        Device(device.device_id, device.app_key + "=").ask(peer),
        Device("nobody", device.app_key).ask(peer),
        Device(asleep.device_id, device.app_key).ask(peer),
        Device(device.device_id, "\U0001faa2").ask(peer),
    ]
    assert {key_of(answer) for answer in refused} == {"unauthorized"}
    assert len({msgpack.packb(answer) for answer in refused}) == 1
    assert device.app_key not in str(refused) and device.device_id not in str(refused)


def test_an_unknown_device_costs_the_digests_of_a_known_one(
    operator: Peer, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = add(operator)
    digests: list[int] = []
    costs: list[list[int]] = []
    real = devices._verifier

    def counted(salt: bytes, key: str) -> bytes:
        digests.append(len(salt))
        return real(salt, key)

    monkeypatch.setattr(devices, "_verifier", counted)
    for each in (device, Device(device.device_id, "wrong"), Device("nobody", "wrong")):
        with served.peer() as peer:
            each.ask(peer)
        costs.append(digests.copy())
        digests.clear()
    assert costs == [costs[0]] * 3 and set(costs[0]) == {devices.SALT_BYTES}


@pytest.mark.parametrize("state", ["suspended", "revoked"])
def test_who_has_the_key_of_a_device_that_may_not_be_used_is_told_why(operator: Peer, peer: Peer, state: str) -> None:
    device = add(operator)
    change(operator, device, state=state)
    answer = device.ask(peer)
    assert key_of(answer) == "unauthorized" and state in answer["error"]["message"]


def test_a_thousand_wrong_keys_leave_one_row(served: Served, operator: Peer, peer: Peer) -> None:
    device = add(operator)
    for number in range(50):
        assert key_of(Device(device.device_id, f"guess {number}").ask(peer, "skill.list")) == "unauthorized"
        assert key_of(Device(f"guess {number}", "key").ask(peer, "skill.list")) == "unauthorized"
    rows = [row for row in served.refusals() if row[1] == "skill.list" and "unauthorized" in row[2]]
    assert len(rows) == 1 and rows[0][0] == "operator", (
        "under the name of whom the kernel knows, not of who was guessed"
    )


@pytest.mark.parametrize(
    "auth",
    [{}, {"device_id": "d"}, {"device_id": "d", "app_key": ""}, {"device_id": "d", "app_key": "k" * 257},
     {"device_id": "", "app_key": "k"}, {"device_id": "d", "app_key": "k", "more": 1},
     {"device_id": 1, "app_key": "k"}],
)  # fmt: skip
def test_credentials_of_another_shape_are_refused_before_anything_is_compared(peer: Peer, auth: Any) -> None:
    assert key_of(peer.ask("hello", auth=auth)) == "invalid_request"


# When it ends


def test_a_rotated_key_is_refused_at_once_also_where_it_was_proved(operator: Peer, peer: Peer, served: Served) -> None:
    device = add(operator)
    with served.peer() as silent:
        device.ask(peer)
        device.ask(silent)
        again = rotate(operator, device)
        assert key_of(device.ask(peer)) == "unauthorized"
        assert key_of(silent.ask("hello")) == "unauthorized", "what it proved before counts no more"
        assert report(again.ask(peer))["principal"] == f"device:{device.device_id}"
        assert report(again.ask(silent))["principal"] == f"device:{device.device_id}"


@pytest.mark.parametrize("state", ["suspended", "revoked"])
def test_a_device_that_may_not_be_used_is_refused_where_it_was_proved(operator: Peer, peer: Peer, state: str) -> None:
    device = add(operator)
    device.ask(peer)
    change(operator, device, state=state)
    assert key_of(peer.ask("hello")) == "unauthorized"
    assert key_of(device.ask(peer)) == "unauthorized"


def test_a_device_that_was_suspended_proves_itself_anew(operator: Peer, peer: Peer) -> None:
    device = add(operator)
    device.ask(peer)
    change(operator, device, state="suspended")
    change(operator, device, state="active")
    assert key_of(peer.ask("hello")) == "unauthorized"
    assert report(device.ask(peer))["principal"] == f"device:{device.device_id}"


def test_a_device_that_was_removed_and_added_anew_is_another(operator: Peer, peer: Peer) -> None:
    device = add(operator, device_id="again")
    device.ask(peer)
    remove(operator, device)
    assert key_of(peer.ask("hello")) == "unauthorized"
    fresh = add(operator, device_id="again")
    assert key_of(peer.ask("hello")) == "unauthorized", "of the same generation, but of another key"
    assert key_of(device.ask(peer)) == "unauthorized"
    assert report(fresh.ask(peer))["principal"] == "device:again"


def test_capabilities_hold_from_the_next_request_on(operator: Peer, peer: Peer) -> None:
    device = add(operator, "recall")
    assert report(device.ask(peer, "memory.recall", {"query": "x"}))["hits"] == []
    change(operator, device, capabilities=["skill"])
    answer = peer.ask("memory.recall", {"query": "x"})
    assert key_of(answer) == "forbidden" and "beetle device update" in answer["error"]["hint"]
    assert report(peer.ask("skill.list"))["total"] == 0
    assert report(peer.ask("memory.capabilities"))["capabilities"]["skill"]["visible"]


def test_no_request_that_begins_after_a_rotation_was_answered_is_let_in_by_the_old_key(
    served: Served, operator: Peer
) -> None:
    device = add(operator)
    rotated = threading.Event()
    let_in: list[str] = []
    refused = threading.Semaphore(0)

    def knock() -> None:
        with served.peer() as mine:
            while True:
                late = rotated.is_set()
                answer = device.ask(mine) if late else mine.ask("hello", auth=device.auth)
                if late and answer["ok"]:
                    let_in.append(answer["report"]["principal"])
                if late:
                    refused.release()
                    return

    knockers = [threading.Thread(target=knock) for _ in range(8)]
    for each in knockers:
        each.start()
    until(lambda: shown(operator, device)["connections"] == len(knockers), "all of them are in")
    rotate(operator, device)
    rotated.set()
    for each in knockers:
        each.join()
    assert let_in == []


def test_after_a_restore_a_device_proves_its_present_key_anew_and_no_older_one_holds(folder: Path) -> None:
    with Served(folder) as served, served.peer() as operator, served.peer() as peer, served.peer() as following:
        device = add(operator)
        snapshot = report(operator.ask("snapshot.create"))["snapshot"]["snapshot_id"]
        newer = rotate(operator, device)
        newer.ask(peer)
        follow(following, newer)
        report(operator.ask("snapshot.restore", {"snapshot_id": snapshot}))
        assert key_of(peer.ask("hello")) == "unauthorized"
        assert key_of(device.ask(peer)) == "unauthorized"
        assert report(newer.ask(peer))["principal"] == f"device:{device.device_id}"
        report(operator.ask("transcript.commit", commit(40, "after"), scope=OWNER))
        assert following.closed()


# Subscriptions


def follow(peer: Peer, device: Device | None = None, topic: str = "transcript") -> None:
    more = {} if device is None else {"auth": device.auth}
    report(peer.ask("subscribe", {"topics": [topic]}, **more))


def rights_that_change() -> list[Any]:
    return [
        pytest.param(lambda operator, device: rotate(operator, device), id="rotated"),
        pytest.param(lambda operator, device: change(operator, device, state="suspended"), id="suspended"),
        pytest.param(lambda operator, device: change(operator, device, state="revoked"), id="revoked"),
        pytest.param(lambda operator, device: remove(operator, device), id="removed"),
        pytest.param(lambda operator, device: change(operator, device, capabilities=["transcript"]), id="fewer rights"),
    ]


@pytest.mark.parametrize("act", rights_that_change())
def test_a_subscription_ends_with_the_rights_that_it_was_opened_with(operator: Peer, peer: Peer, act: Any) -> None:
    device = add(operator)
    follow(peer, device)
    act(operator, device)
    assert peer.closed(), "nothing has to be logged for it to end"


def test_nothing_that_was_logged_after_the_end_of_a_device_s_rights_reaches_it(served: Served, operator: Peer) -> None:
    for number in range(10, 20):
        with served.peer() as peer:
            device = add(operator)
            follow(peer, device)
            change(operator, device, state="suspended")
            report(operator.ask("transcript.commit", commit(number, "after the end"), scope=OWNER))
            assert peer.closed()


def test_a_subscription_goes_on_while_what_changes_is_not_its_own(operator: Peer, peer: Peer) -> None:
    device, other = add(operator), add(operator)
    follow(peer, device)
    change(operator, device, label="Kitchen")
    rotate(operator, other)
    change(operator, other, state="revoked")
    report(operator.ask("transcript.commit", commit(30, "goes on"), scope=OWNER))
    assert peer.answer()["event"]["conversation_id"] == "goes on"


def test_a_subscription_of_the_user_s_is_not_the_device_s_that_its_connection_proved_later(
    operator: Peer, peer: Peer
) -> None:
    device = add(operator)
    report(peer.ask("subscribe", {"topics": ["transcript"]}, scope=OWNER))
    device.ask(peer)
    rotate(operator, device)
    report(operator.ask("transcript.commit", commit(31, "mine"), scope=OWNER))
    assert peer.answer()["event"]["conversation_id"] == "mine"


def test_operators_follow_devices_and_a_device_does_not(operator: Peer, peer: Peer, served: Served) -> None:
    watcher = add(operator, "device")
    with served.peer() as mine:
        follow(mine, watcher, "device")
        follow(peer, None, "device")
        device = add(operator)
        told = peer.answer()
        assert (told["topic"], told["event"]["event"]) == ("device", "added")
        assert told["event"]["device_id"] == device.device_id
        rotate(operator, device)
        told = peer.answer()
        assert told["event"]["event"] == "key_rotated"
        assert told["event"]["fingerprint"] == shown(operator, device)["appKeyFingerprint"]
        report(mine.ask("hello"))  # the next frame is its answer: no event stands before it


# Figures


def test_open_connections_and_the_last_time_are_shown(operator: Peer, served: Served) -> None:
    device = add(operator)
    assert (shown(operator, device)["connections"], shown(operator, device)["last_seen"]) == (0, None)
    with served.peer() as one, served.peer() as two:
        device.ask(one)
        device.ask(two)
        assert shown(operator, device)["connections"] == 2
        assert shown(operator, device)["last_seen"] is not None
        sessions = report(operator.ask("console.overview"))["sessions"]["connected"]
        assert {"principal": f"device:{device.device_id}", "transport": "unix_socket", "connections": 2} in sessions
        again = rotate(operator, device)
        assert shown(operator, device)["connections"] == 0, "they have not proved its present key"
        again.ask(one)
        assert shown(operator, device)["connections"] == 1
    until(lambda: shown(operator, device)["connections"] == 0, "both are closed")


def kept_last_seen(served: Served, device: Device) -> int | None:
    """What the store holds, behind every write that was handed over before."""
    served.store.write(lambda _: None, grows=False)
    with served.store.read() as tx:
        return tx.value("SELECT last_seen FROM device WHERE device_id = ?", device.device_id)


def test_when_a_device_was_seen_is_written_at_most_once_a_minute(
    served: Served, operator: Peer, peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = add(operator)
    device.ask(peer)
    first = kept_last_seen(served, device)
    assert first is not None
    for _ in range(20):
        device.ask(peer)
    assert kept_last_seen(served, device) == first
    monkeypatch.setattr(devices, "SEEN_SECONDS", 0.0)
    device.ask(peer)
    later = kept_last_seen(served, device)
    assert later is not None and later > first


def test_a_device_is_let_in_while_nothing_can_be_written(served: Served, operator: Peer, peer: Peer) -> None:
    device = add(operator)
    with served.held_writer():
        assert report(device.ask(peer))["principal"] == f"device:{device.device_id}"
        assert report(device.ask(peer, "memory.recall", {"query": "x"}))["hits"] == []


# Ways in


@needs_root
def test_a_closed_socket_answers_operators_alone_and_at_once(folder: Path) -> None:
    with Served(folder, principals=PRINCIPALS) as served:
        os.chmod(served.path, 0o666)
        with served.peer() as operator, served.peer() as panel, peer_as(served.path, AGENT, STRANGER) as agent:
            device = add(operator)
            device.ask(panel)
            assert report(agent.ask("hello"))["principal"] == "agent"
            with served.peer() as following:
                follow(following, device)
                report(operator.ask("transport.update", {"name": "unix_socket", "enabled": False}))
                assert following.closed()
            for each in (panel, agent):
                answer = each.ask("hello")
                assert key_of(answer) == "forbidden"
                assert "beetle transport update unix_socket --enabled" in answer["error"]["hint"]
            with peer_as(served.path, STRANGER, STRANGER) as stranger:
                assert key_of(stranger.ask("hello")) == "unauthorized"
            entry = report(operator.ask("transport.list"))["transports"][1]
            assert (entry["name"], entry["enabled"], entry["listening"]) == ("unix_socket", False, True)
            report(operator.ask("transport.update", {"name": "unix_socket", "enabled": True}))
            assert report(panel.ask("hello"))["principal"] == f"device:{device.device_id}"
            assert report(agent.ask("hello"))["principal"] == "agent"


def test_a_way_in_that_has_ended_listens_no_more(folder: Path) -> None:
    served = Served(folder)
    transports = served.dispatcher.sessions.transports

    def entry() -> Any:
        return transports.entries(served.dispatcher.sessions.connections, {})[1]

    with served.peer() as peer:
        report(peer.ask("hello"))
        assert (entry().listening, entry().endpoint, entry().connections) == (True, served.path, 1)
    served.stop()
    assert (entry().listening, entry().endpoint, entry().connections) == (False, None, 0)
    served.close()


# Names


def test_a_name_stands_for_who_it_is_now(served: Served, operator: Peer) -> None:
    mine = Principals(os.getuid(), PRINCIPALS, served.dispatcher.sessions.devices)
    device = add(operator, "recall")
    found = mine.by_name(f"device:{device.device_id}")
    assert found is not None and (found.kind, found.capabilities) == ("device", frozenset({"recall"}))
    change(operator, device, capabilities=["skill"])
    found = mine.by_name(f"device:{device.device_id}")
    assert found is not None and found.capabilities == frozenset({"skill"})
    change(operator, device, state="suspended")
    assert mine.by_name(f"device:{device.device_id}") is None
    agent, operator_caller = mine.by_name("agent"), mine.by_name("operator")
    assert agent is not None and agent.owner_id == "ada"
    assert operator_caller is not None and operator_caller.is_operator
    assert [mine.by_name(name) for name in ("nobody", "uid:54321", "device:", "embedded:agent-main", "")] == [None] * 5
