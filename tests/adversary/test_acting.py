"""An operator may ask as a configured principal of lesser rights, and is then nothing more; nobody else may."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import msgpack
import pytest

from beetle.client import Client
from beetle.contracts.codec import replace
from beetle.contracts.errors import InvalidRequest, Unauthorized
from beetle.contracts.operations import OPERATIONS
from beetle.runtime.host.config import Principal
from beetle.runtime.host.principals import OPERATOR, Principals
from tests.transports.conftest import Peer, commit, turn
from tests.transports.serving import Served, needs_root, open_folder, peer_as

VOICE_UID, STRANGER, BOSS = 40_001, 54_321, 40_009
HOST = Principal(
    owner_id="ada", agent_id="claude", capabilities=("recall", "project", "transcript", "inspect", "write")
)
PRINCIPALS = {
    "host": HOST,
    "reader": Principal(owner_id="ada", capabilities=("recall",), views=("host_ui",)),
    "voice": Principal(uid=VOICE_UID, owner_id="ada", agent_id="voice", capabilities=("recall", "transcript")),
    "panel": Principal(uid=VOICE_UID + 1, owner_id="ada", capabilities=("recall",), views=("host_ui",)),
    "owner": Principal(
        owner_id="ada", capabilities=("transcript", "transcript.raw", "private.read"), views=("host_ui", "raw_owner")
    ),
    "raw": Principal(capabilities=("transcript",), views=("raw_owner",)),
    "second": Principal(capabilities=("admin", "recall")),
    "boss": Principal(uid=BOSS, owner_id="ada", agent_id="claude", capabilities=("admin", "recall", "project")),
}
REFUSED = ("owner", "raw", "second", "boss", "voice", "operator", "nobody", "device:x", "uid:0", "HOST", "host ")
"""Of more rights, of an agent of another user, operators, or not there."""


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with open_folder() as folder, Served(folder, principals=PRINCIPALS) as running:
        os.chmod(running.path, 0o666)
        yield running


@pytest.fixture
def peer(served: Served) -> Iterator[Peer]:
    with served.peer() as connected:
        yield connected


def acting(name: str) -> dict[str, Any]:
    return {"auth": {"principal": name}}


def key_of(answer: dict[str, Any]) -> str:
    assert not answer["ok"], answer
    return answer["error"]["key"]


def told(answer: dict[str, Any]) -> bytes:
    """The bytes of a refusal, without the request's id."""
    assert not answer["ok"], answer
    return msgpack.packb({**answer, "id": 0})


def test_an_operator_is_the_principal_that_it_names_and_nothing_more(peer: Peer) -> None:
    hello = peer.ask("hello", **acting("host"))["report"]
    assert hello["principal"] == "host"
    visible = {each["name"] for each in hello["operations"] if each["visible"]}
    for row in OPERATIONS:
        may = not row.capability or row.capability in HOST.capabilities
        may = may and row.effect != "admin" and row.view != "owner"
        assert (row.name in visible) <= may, row.name
    assert key_of(peer.ask("skill.list", **acting("host"))) == "forbidden"
    assert key_of(peer.ask("memory.recall", {"query": "x"}, scope={"owner_id": "bob"}, **acting("host"))) == "forbidden"
    replay = {"conversation": {"conversation_id": "c"}, "view": "operator_audit"}
    assert key_of(peer.ask("transcript.replay", replay, **acting("host"))) == "privacy_denied"


def test_the_connection_stays_that_principals(served: Served) -> None:
    with served.peer() as peer:
        assert peer.ask("hello", **acting("reader"))["report"]["principal"] == "reader"
        assert peer.ask("hello")["report"]["principal"] == "reader", "without naming it again"
        assert key_of(peer.ask("transcript.conversations")) == "forbidden"
        before = told(peer.ask("hello", **acting("nobody")))
        assert told(peer.ask("hello", **acting("host"))) == before, "it cannot become another"
        assert key_of(peer.ask("hello", auth={"device_id": "d", "app_key": "k"})) == "unauthorized"
        assert peer.ask("hello")["report"]["principal"] == "reader"


@pytest.mark.parametrize("name", REFUSED)
def test_what_it_may_not_be_is_refused_in_the_same_bytes_as_what_is_not_there(served: Served, name: str) -> None:
    with served.peer() as peer:
        assert told(peer.ask("hello", **acting(name))) == told(peer.ask("hello", **acting("nobody-of-this-name")))
        assert peer.ask("hello")["report"]["principal"] == "operator", "a refusal changes nothing"


@needs_root
@pytest.mark.parametrize("uid", [VOICE_UID, STRANGER])
def test_who_is_no_operator_may_be_nobody_else(served: Served, uid: int) -> None:
    with peer_as(served.path, uid, uid) as peer:
        refusals = {told(peer.ask("hello", **acting(name))) for name in (*PRINCIPALS, "none", "operator")}
        assert len(refusals) == 1
        for row in OPERATIONS:
            assert key_of(peer.ask(row.name, **acting("reader"))) == "unauthorized", row.name


@needs_root
def test_a_configured_operator_that_is_bound_may_be_no_other_owners(served: Served) -> None:
    others = {**PRINCIPALS, "bob": Principal(owner_id="bob", capabilities=("recall",))}
    served.principals.replace(others)
    try:
        with peer_as(served.path, BOSS, BOSS) as peer:
            assert told(peer.ask("hello", **acting("bob"))) == told(peer.ask("hello", **acting("none")))
            assert told(peer.ask("hello", **acting("reader"))) == told(peer.ask("hello", **acting("none"))), "no agent"
    finally:
        served.principals.replace(PRINCIPALS)


def test_a_batch_and_a_cursor_hold_to_the_lesser_principal(served: Served) -> None:
    with served.peer() as operator, served.peer() as host:
        for number in range(3):
            assert operator.ask("transcript.commit", commit(number + 1, f"c{number}"), scope={"owner_id": "ada"})["ok"]
        batch = {"requests": [{"op": "memory.recall", "args": {"query": "x"}}, {"op": "skill.list", "args": {}}]}
        answer = host.ask("batch", batch, **acting("host"))
        assert (key_of(answer), answer["error"]["details"]["index"]) == ("forbidden", 1)
        first = operator.ask("transcript.conversations", {"limit": 1}, scope={"owner_id": "ada"})["report"]
        page = {"limit": 1, "cursor": first["next_cursor"]}
        mine = host.ask("transcript.conversations", {"limit": 1}, **acting("host"))["report"]
        assert host.ask("transcript.conversations", {"limit": 1, "cursor": mine["next_cursor"]}, **acting("host"))["ok"]
        # A cursor is bound to its scope: the operator's was of another agent.
        assert not host.ask("transcript.conversations", page, **acting("host"))["ok"]


def test_a_subscription_holds_to_the_lesser_principal_and_ends_with_its_rights(served: Served) -> None:
    with served.peer() as peer:
        assert key_of(peer.ask("subscribe", {"topics": ["device"]}, **acting("host"))) == "forbidden"
        assert peer.ask("subscribe", {"topics": ["transcript"]}, **acting("host"))["ok"]
        lesser = {**PRINCIPALS, "host": replace(HOST, capabilities=("recall",))}
        served.principals.replace(lesser)
        try:
            served.dispatcher.hub.nudge()
            assert peer.closed()
        finally:
            served.principals.replace(PRINCIPALS)


def test_what_it_does_and_is_refused_is_logged_as_that_principal(served: Served) -> None:
    with served.peer() as peer:
        request = commit(1, "logged")
        assert peer.ask("transcript.commit", request, idempotency_key="same", **acting("host"))["ok"]
        assert key_of(peer.ask("skill.list", **acting("host"))) == "forbidden"
        assert key_of(peer.ask("hello", **acting("nobody"))) == "unauthorized"
    assert ("host", "skill.list") in {row[:2] for row in served.refusals()}
    assert ("operator", "hello") in {row[:2] for row in served.refusals()}
    with served.peer() as operator:
        with served.store.read() as tx:
            rows = set(tx.rows("SELECT principal, operation FROM event_log WHERE topic = 'transcript'"))
        assert ("host", "transcript.commit") in rows
        again = operator.ask("transcript.commit", request, idempotency_key="same", scope={"owner_id": "ada"})
        assert "repeated" not in again, "another principal has keys of its own"


def test_private_messages_are_those_of_the_principal_that_was_made_for_it(served: Served) -> None:
    message = {"message_id": "p1", "role": "user", "content": "the secret harbour", "visibility": "private"}
    private = {"conversation": {"conversation_id": "mine"}, "turns": [{**turn(1), "messages": [message]}]}
    with served.peer() as host, served.peer() as operator, served.peer() as reader:
        assert host.ask("transcript.commit", private, **acting("host"))["ok"]
        asked = {"query": "secret harbour"}
        assert host.ask("memory.recall", asked, **acting("host"))["report"]["hits"]
        assert not operator.ask("memory.recall", asked, scope={"owner_id": "ada", "agent_id": "claude"})["report"][
            "hits"
        ]
        assert not reader.ask("memory.recall", asked, **acting("reader"))["report"]["hits"]


def test_a_form_that_is_none_is_refused_at_its_place(peer: Peer) -> None:
    for auth, path in (
        ({"principal": "host", "app_key": "k"}, "$.auth"),
        ({"principal": "host", "device_id": "k", "app_key": "k"}, "$.auth"),
        ({"principal": ""}, "$.auth.principal"),
        ({"principal": "x" * 65}, "$.auth.principal"),
        ({"principal": 7}, "$.auth.principal"),
        ({"device_id": "d"}, "$.auth.app_key"),
        ({"app_key": "k"}, "$.auth.device_id"),
        ({}, "$.auth.device_id"),
        ({"name": "host"}, "$.auth.name"),
    ):
        answer = peer.ask("hello", auth=auth)
        assert (key_of(answer), answer["error"]["details"]["path"]) == ("invalid_request", path), auth
    assert peer.ask("hello")["report"]["principal"] == "operator"


def test_the_client_asks_as_a_principal_on_all_its_connections(served: Served) -> None:
    with Client(served.path, as_="host") as client, client.another() as other:
        assert client.hello().principal == other.hello().principal == "host"
    with Client(served.path, as_="none", retry=False) as client, pytest.raises(Unauthorized):
        client.hello()
    with pytest.raises(InvalidRequest):
        Client(served.path, as_="host", auth=object())  # type: ignore[arg-type]


def test_in_process_there_is_nobody_to_act_as() -> None:
    own = Principals(1, {})
    assert own.act_as(OPERATOR, "host") is None
