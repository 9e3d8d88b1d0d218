"""Who is calling: peer credentials mapped to principals, what each may do, and a reload of the configuration."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from beetle.contracts.operations import OPERATIONS
from beetle.runtime.host.config import Principal
from tests.forked import Daemon
from tests.transports.conftest import Peer, commit, turn
from tests.transports.serving import Served, needs_root, open_folder, peer_as, until

NOBODY = 65534
STRANGER = 54321
AGENT = 40_001
READER = 40_002
RAW = 40_003
UNBOUND = 40_004
TEAM = 50_001
SIDE_TEAM = 50_002

PRINCIPALS = {
    "agent": Principal(
        uid=AGENT, owner_id="ada", agent_id="agent-a", capabilities=("transcript", "recall", "write", "inspect")
    ),
    "unbound": Principal(uid=UNBOUND, owner_id="ada", capabilities=("transcript",)),
    "reader": Principal(uid=READER, owner_id="ada", capabilities=("recall",), views=("host_ui",)),
    "raw": Principal(
        uid=RAW, owner_id="ada", capabilities=("transcript", "transcript.raw", "admin"), views=("raw_owner", "host_ui")
    ),
    "pretender": Principal(uid=RAW + 100, owner_id="ada", capabilities=("transcript",), views=("raw_owner", "host_ui")),
    "no-operator": Principal(
        uid=RAW + 101, owner_id="ada", capabilities=("transcript", "transcript.raw"), views=("raw_owner",)
    ),
    "team": Principal(gid=TEAM, owner_id="team", agent_id="agent-t", capabilities=("transcript",)),
    "side-team": Principal(gid=SIDE_TEAM, owner_id="side", capabilities=("recall",)),
}

pytestmark = needs_root


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with open_folder() as folder, Served(folder, principals=PRINCIPALS, own_uid=STRANGER + 1) as running:
        os.chmod(running.path, 0o666)
        yield running


def hello(peer: Peer) -> dict[str, Any]:
    return peer.ask("hello")["report"]


def refusal(peer: Peer, op: str, args: dict[str, Any] | None = None, **more: Any) -> str:
    answer = peer.ask(op, args, **more)
    assert not answer["ok"]
    assert answer["error"]["hint"]
    return answer["error"]["key"]


def test_root_and_the_daemons_own_user_are_the_operator(served: Served) -> None:
    for uid in (0, STRANGER + 1):
        with peer_as(served.path, uid, NOBODY) as peer:
            told = hello(peer)
            assert told["principal"] == "operator"
            hidden = {row["name"] for row in told["operations"] if not row["visible"]}
            allowed = served.dispatcher.shared.profile.capabilities.allowed
            hidden -= {row.name for row in OPERATIONS if row.capability and row.capability not in allowed}
            assert hidden == {"private.list", "private.get", "private.delete"}, (
                "only the configuration opens the private plane"
            )


def test_the_operator_sees_every_view_but_raw_owner(served: Served) -> None:
    with served.peer() as peer:
        assert peer.ask("transcript.commit", commit(1, "views"))["ok"]
        replay = {"conversation": {"conversation_id": "views"}}
        for view in ("host_ui", "model_context", "operator_audit", "export"):
            assert peer.ask("transcript.replay", {**replay, "view": view})["ok"], view
        assert refusal(peer, "transcript.replay", {**replay, "view": "raw_owner"}) == "privacy_denied"


@pytest.mark.parametrize("op", [*(row.name for row in OPERATIONS), "no.such.operation"])
def test_another_user_is_unauthorized_on_every_operation(served: Served, op: str) -> None:
    with peer_as(served.path, STRANGER, STRANGER) as peer:
        assert refusal(peer, op) == "unauthorized"
        assert refusal(peer, op, {"nonsense": 1}) == "unauthorized", "before the arguments are looked at"


def test_a_user_that_is_refused_again_and_again_leaves_one_row(served: Served) -> None:
    with peer_as(served.path, STRANGER + 7, STRANGER) as peer:
        for _ in range(20):
            assert refusal(peer, "skill.list") == "unauthorized"
    rows = [row for row in served.refusals() if row[0] == f"uid:{STRANGER + 7}"]
    assert len(rows) == 1
    assert rows[0][1] == "skill.list"
    assert "unauthorized" in rows[0][2]


def test_a_principal_is_known_by_uid_by_gid_and_by_a_supplementary_group(served: Served) -> None:
    for uid, gid, groups, name in (
        (AGENT, NOBODY, (), "agent"),
        (STRANGER, TEAM, (), "team"),
        (STRANGER, NOBODY, (1, 2, SIDE_TEAM), "side-team"),
        (STRANGER, TEAM, (SIDE_TEAM,), "team"),
        (AGENT, TEAM, (SIDE_TEAM,), "agent"),
    ):
        with peer_as(served.path, uid, gid, groups) as peer:
            assert hello(peer)["principal"] == name


def test_a_uid_beyond_31_bits_is_a_principal_like_any_other() -> None:
    uid = 2**32 - 5
    far = {"far": Principal(uid=uid, capabilities=("recall",))}
    with open_folder() as folder, Served(folder, principals=far) as running:
        os.chmod(running.path, 0o666)
        with peer_as(running.path, uid, NOBODY) as peer:
            assert hello(peer)["principal"] == "far"


def test_a_principal_works_in_its_own_scope_and_in_no_other(served: Served) -> None:
    with peer_as(served.path, AGENT, NOBODY) as peer, served.peer() as operator:
        assert peer.ask("transcript.commit", commit(1, "own"))["ok"]
        assert peer.ask("transcript.commit", commit(2, "own"), scope={"owner_id": "ada", "agent_id": "agent-a"})["ok"]
        for scope in ({"owner_id": "bob"}, {"agent_id": "agent-b"}, {"owner_id": "ada", "agent_id": "agent-b"}):
            assert refusal(peer, "transcript.commit", commit(3, "own"), scope=scope) == "forbidden"
            assert refusal(peer, "memory.recall", {"query": "kettle"}, scope=scope) == "forbidden"
            assert refusal(peer, "subscribe", {"topics": ["transcript"]}, scope=scope) == "forbidden"
        found = operator.ask("transcript.conversations", {}, scope={"owner_id": "ada"})["report"]
        assert "own" in [each["conversation_id"] for each in found["conversations"]]


def test_a_missing_capability_is_forbidden_and_named(served: Served) -> None:
    with peer_as(served.path, READER, NOBODY) as peer:
        assert peer.ask("memory.recall", {"query": "kettle"})["ok"]
        for op, needed in (("transcript.commit", "transcript"), ("skill.list", "skill"), ("store.verify", "inspect")):
            error = peer.ask(op, {})["error"]
            assert (error["key"], error["details"]["capability"]) == ("forbidden", needed)
        told = {row["name"]: row["visible"] for row in hello(peer)["operations"]}
        assert told["memory.recall"] and told["hello"]
        assert not told["transcript.commit"] and not told["skill.list"]


def test_a_batch_needs_the_capability_of_each_of_its_requests(served: Served) -> None:
    with peer_as(served.path, READER, NOBODY) as peer:
        requests = [
            {"op": "memory.recall", "args": {"query": "x"}},
            {"op": "transcript.commit", "args": commit(9, "batched")},
        ]
        error = peer.ask("batch", {"requests": requests})["error"]
        assert (error["key"], error["details"]["index"]) == ("forbidden", 1)


def test_a_view_that_a_principal_does_not_have_is_privacy_denied(served: Served) -> None:
    replay = {"conversation": {"conversation_id": "own"}}
    with served.peer() as operator:
        assert operator.ask("transcript.commit", commit(1, "own"), scope={"owner_id": "ada"})["ok"]
    with peer_as(served.path, AGENT, NOBODY) as agent:
        assert agent.ask("transcript.replay", {**replay, "view": "host_ui"})["ok"]
        for view in ("raw_owner", "operator_audit", "export"):
            assert refusal(agent, "transcript.replay", {**replay, "view": view}) == "privacy_denied"
    with peer_as(served.path, RAW, NOBODY) as raw:
        assert raw.ask("transcript.replay", {**replay, "view": "raw_owner"})["ok"]
        assert refusal(raw, "transcript.replay", {**replay, "view": "model_context"}) == "privacy_denied"
    for without in (RAW + 100, RAW + 101):
        with peer_as(served.path, without, NOBODY) as pretender:
            assert refusal(pretender, "transcript.replay", {**replay, "view": "raw_owner"}) == "privacy_denied"


def test_a_private_message_is_in_model_context_for_the_spaces_own_agent_alone(served: Served) -> None:
    secret = "the marmalade is behind the piano"
    where = {"conversation": {"conversation_id": "private"}}
    whole = {**where, "turns": [turn(1, secret, visibility="private")]}
    replay = {**where, "view": "model_context"}
    with peer_as(served.path, AGENT, NOBODY) as agent:
        assert agent.ask("transcript.commit", whole)["ok"]
        assert secret in str(agent.ask("transcript.replay", replay)["report"])
        assert secret in str(agent.ask("memory.recall", {"query": "marmalade"})["report"])
    with peer_as(served.path, UNBOUND, NOBODY) as unbound:
        for scope in ({}, {"agent_id": "agent-a"}):
            assert secret not in str(unbound.ask("transcript.replay", replay, scope=scope)["report"])
    with peer_as(served.path, READER, NOBODY) as reader:
        assert secret not in str(reader.ask("memory.recall", {"query": "marmalade"})["report"])
    with served.peer() as operator:
        for scope in ({"owner_id": "ada"}, {"owner_id": "ada", "agent_id": "agent-a"}):
            assert secret not in str(operator.ask("transcript.replay", replay, scope=scope)["report"])
            assert secret not in str(operator.ask("memory.recall", {"query": "marmalade"}, scope=scope)["report"])


def test_the_auth_of_an_unknown_device_is_unauthorized_whoever_connects(served: Served) -> None:
    key = "k" * 43
    with served.peer() as operator:
        answer = operator.ask("hello", auth={"device_id": "phone", "app_key": key})
        assert answer["error"]["key"] == "unauthorized"
        assert key not in str(answer)
        assert refusal(operator, "hello", auth={"device_id": "phone"}) == "invalid_request"
        assert hello(operator)["principal"] == "operator", "the connection goes on as itself"


def test_other_principals_take_effect_on_open_connections(served: Served) -> None:
    with open_folder() as folder, Served(folder, principals=PRINCIPALS) as running:
        os.chmod(running.path, 0o666)
        with peer_as(running.path, AGENT, NOBODY) as agent, peer_as(running.path, STRANGER, NOBODY) as stranger:
            assert agent.ask("transcript.commit", commit(1))["ok"]
            assert refusal(stranger, "hello") == "unauthorized"
            running.principals.replace({"late": Principal(uid=STRANGER, capabilities=())})
            assert refusal(agent, "transcript.commit", commit(2)) == "unauthorized"
            assert hello(stranger)["principal"] == "late"


CONFIG = """
[principals.tester]
uid = {uid}
capabilities = ["recall", "transcript"]
"""


def test_sighup_reloads_the_configuration_and_a_broken_one_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with open_folder() as folder:
        config = folder / "beetle.toml"
        config.write_text(CONFIG.format(uid=AGENT))
        monkeypatch.setenv("BEETLE_CONFIG", str(config))
        with Daemon(profile="compact", folder=str(folder)) as daemon:
            os.chmod(daemon.socket, 0o666)
            with (
                peer_as(daemon.socket, AGENT, NOBODY) as first,
                peer_as(daemon.socket, STRANGER, NOBODY) as second,
                peer_as(daemon.socket, AGENT, NOBODY) as follower,
            ):
                assert hello(first)["principal"] == "tester"
                assert refusal(second, "hello") == "unauthorized"
                assert follower.ask("subscribe", {"topics": ["transcript"]})["ok"]
                _reload(daemon, config, CONFIG.format(uid=STRANGER), "configuration read again")
                assert follower.closed(), "nothing has to be logged for it to end"
                assert refusal(first, "hello") == "unauthorized"
                assert hello(second)["principal"] == "tester"
                for broken in ("[principals.tester\n", "[principals.x]\nuid = 1\ncapabilities = ['fly']\n", "\xff"):
                    _reload(daemon, config, broken, "the configuration was not taken")
                    assert hello(second)["principal"] == "tester"
                    assert refusal(first, "hello") == "unauthorized"
                config.unlink()
                _reload(daemon, config, None, "the configuration was not taken")
                assert hello(second)["principal"] == "tester"


def _reload(daemon: Daemon, config: Path, text: str | None, logged: str) -> None:
    """Send SIGHUP and wait for the line that it leaves in the log."""
    if text is not None:
        config.write_text(text, encoding="latin-1")
    log = daemon.folder / "log"
    before = log.read_text().count(logged)
    os.kill(daemon.pid, signal.SIGHUP)
    until(lambda: log.read_text().count(logged) > before, logged)
