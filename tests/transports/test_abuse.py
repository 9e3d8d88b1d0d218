"""Bad input over the socket: the daemon lives, others are served, memory stays bounded, each gets its typed error."""

from __future__ import annotations

import contextlib
import os
import resource
import select
import socket
import struct
from collections.abc import Iterator

import msgpack
import pytest

from beetle.runtime.host.profile import load_profile
from tests.running import Daemon, rss_mib
from tests.transports.conftest import Peer, commit, turn

PROFILE = load_profile("compact")
LIMIT = PROFILE.budgets.frame_bytes
CEILING_MIB = PROFILE.memory_ceiling_mib


@pytest.fixture(autouse=True)
def others_are_served(daemon: Daemon) -> Iterator[None]:
    """After every test the same daemon answers a new peer, within its memory ceiling."""
    pid = daemon.pid
    yield
    with Peer(daemon.socket) as peer:
        assert peer.ask("hello")["report"]["pid"] == pid
    assert rss_mib(pid) < CEILING_MIB


def refused(daemon: Daemon, data: bytes, key: str) -> dict:
    """Send bytes that end the connection; the answer has no id, and nothing follows it."""
    with Peer(daemon.socket) as peer:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it had seen enough before all was sent
            peer.send(data)
        answer = peer.answer()
        assert answer["id"] is None and answer["ok"] is False
        assert answer["error"]["key"] == key
        assert answer["error"]["hint"]
        assert peer.closed()
        return answer["error"]


def test_random_bytes_never_get_more_than_an_error(daemon: Daemon) -> None:
    for size in (1, 7, 100, 5000):
        for _ in range(10):
            data = os.urandom(size)
            with Peer(daemon.socket) as peer:
                try:
                    peer.send(data)
                    peer.socket.shutdown(socket.SHUT_WR)
                    while True:
                        assert peer.answer()["error"]["key"] in (
                            "invalid_frame",
                            "payload_too_large",
                            "invalid_request",
                        )
                except (EOFError, BrokenPipeError, ConnectionResetError):
                    pass


@pytest.mark.parametrize("first", [0x00, 0x7F, 0x90, 0xA1, 0xC0, 0xC1, 0xC4, 0xD9, 0xDC, 0xE0, 0xFF])
def test_a_first_byte_that_begins_no_map_is_an_invalid_frame(daemon: Daemon, first: int) -> None:
    refused(daemon, bytes([first]), "invalid_frame")


@pytest.mark.parametrize(
    "claim",
    [
        b"\x81\xa4args\xdb" + struct.pack(">I", 2**30),
        b"\x81\xa4args\xc6" + struct.pack(">I", 2**30),
        b"\x81\xa4args\xdd" + struct.pack(">I", 2**30),
        b"\x81\xa4args\xdf" + struct.pack(">I", 2**30),
        b"\xdf" + struct.pack(">I", 2**30),
    ],
    ids=["str", "bin", "array", "map", "outer map"],
)
def test_a_claim_of_a_gigabyte_is_refused_at_once(daemon: Daemon, claim: bytes) -> None:
    refused(daemon, claim, "payload_too_large")


def test_a_frame_of_exactly_the_limit_is_read_and_one_more_byte_is_refused(daemon: Daemon) -> None:
    empty = len(msgpack.packb({"v": 1, "id": 1, "op": "hello", "args": {"pad": "x" * 70_000}})) - 70_000
    for extra, key in ((0, "invalid_request"), (1, "payload_too_large")):
        pad = "x" * (LIMIT - empty + extra)
        frame = msgpack.packb({"v": 1, "id": 1, "op": "hello", "args": {"pad": pad}})
        assert len(frame) == LIMIT + extra
        with Peer(daemon.socket) as peer:
            try:
                peer.send(frame)
            except (BrokenPipeError, ConnectionResetError):
                assert extra
            assert peer.answer()["error"]["key"] == key


def test_deep_nesting_is_refused(daemon: Daemon) -> None:
    nesting = PROFILE.budgets.nesting
    refused(daemon, b"\x81\xa4args" + b"\x91" * (nesting + 1), "payload_too_large")
    refused(daemon, b"\x81\xa4args" + b"\x91" * 100_000, "payload_too_large")


def test_a_megabyte_of_empty_maps_costs_no_memory(daemon: Daemon) -> None:
    before = rss_mib(daemon.pid)
    count = LIMIT - 64
    frame = b"\x84\xa1v\x01\xa2id\x01\xa2op\xa5hello\xa4args\xdd" + struct.pack(">I", count) + b"\x80" * count
    assert len(frame) <= LIMIT
    with Peer(daemon.socket) as peer:
        peer.send(frame)
        assert peer.answer()["error"]["key"] == "invalid_request"
    assert rss_mib(daemon.pid) < before + 8


@pytest.mark.parametrize(
    ("args", "path"),
    [
        ({"query": "x", "limit": float("nan")}, "$.args.limit"),
        ({"query": "x", "limit": float("inf")}, "$.args.limit"),
        ({"query": "x", "limit": 2**64 - 1}, "$.args.limit"),
        ({"query": "x", "limit": 0}, "$.args.limit"),
        ({"query": "x", "limit": -5}, "$.args.limit"),
        ({"query": "x", "limit": "5"}, "$.args.limit"),
        ({"query": "x", "limit": 1.5}, "$.args.limit"),
        ({"query": ["x"]}, "$.args.query"),
        ({"query": ""}, "$.args.query"),
        ({"query": "x", "since": "yesterday"}, "$.args.since"),
        ({"query": "x", "since": "2026-01-01T00:00:00"}, "$.args.since"),
        ({"query": "x", "planes": ["nowhere"]}, "$.args.planes[0]"),
        ({"query": "x", "conversation": {"conversation_id": "a\x00b"}}, "$.args.conversation.conversation_id"),
        ({"query": "x", "conversation": {"conversation_id": "a" * 257}}, "$.args.conversation.conversation_id"),
    ],
)
def test_a_wrong_value_is_an_invalid_request_with_its_path(daemon: Daemon, args: dict, path: str) -> None:
    with Peer(daemon.socket) as peer:
        error = peer.ask("memory.recall", args)["error"]
        assert error["key"] == "invalid_request" and error["retryable"] is False
        assert error["details"]["path"] == path
        assert peer.ask("hello")["ok"], "the connection stays open"


def test_unknown_and_missing_fields_are_named(daemon: Daemon) -> None:
    with Peer(daemon.socket) as peer:
        assert "limitt" in peer.ask("memory.recall", {"query": "x", "limitt": 3})["error"]["message"]
        assert "query" in peer.ask("memory.recall", {"limit": 3})["error"]["message"]
        assert "scopes" in peer.ask("memory.recall", {"query": "x"}, scopes={})["error"]["message"]


def test_a_lone_surrogate_and_a_duplicate_key_are_invalid_requests_with_the_id(daemon: Daemon) -> None:
    with Peer(daemon.socket) as peer:
        head = b"\x84\xa1v\x01\xa2id\x07\xa2op\xadmemory.recall\xa4args"
        peer.send(head + b"\x81\xa5query\xa3\xed\xa0\x80")
        answer = peer.answer()
        assert answer["id"] == 7 and answer["error"]["key"] == "invalid_request"
        assert answer["error"]["details"]["path"] == "$.args.query"
        peer.send(head + b"\x82\xa5query\xa1x\xa5query\xa1y")
        answer = peer.answer()
        assert answer["id"] == 7 and answer["error"]["details"]["path"] == "$.args.query"
        assert peer.ask("hello")["ok"]


def test_bad_utf8_and_keys_that_are_no_strings_end_the_connection(daemon: Daemon) -> None:
    refused(daemon, b"\x81\xa1v\xa2\xff\xfe", "invalid_frame")
    refused(daemon, b"\x81\x01\x01", "invalid_frame")


def test_an_unknown_operation_names_the_nearest(daemon: Daemon) -> None:
    with Peer(daemon.socket) as peer:
        error = peer.ask("memory.recal", {})["error"]
        assert error["key"] == "unknown_operation" and "memory.recall" in error["hint"]


@pytest.mark.parametrize(
    "query",
    ['"', "AND", "OR NOT", "*", "NEAR(a b)", "text:kettle", "a AND (b", "kettle*", "{text} : x", "^x", "-x", "'; DROP",
     "\x00", "?", "a", "茶", "🍵", "kettle" * 300],
)  # fmt: skip
def test_text_in_the_index_language_is_plain_text(daemon: Daemon, query: str) -> None:
    with Peer(daemon.socket) as peer:
        assert peer.ask("transcript.commit", commit(1))["ok"]
        assert peer.ask("memory.recall", {"query": query})["ok"]


def test_a_query_and_a_content_over_their_limits_are_payload_too_large(daemon: Daemon) -> None:
    budgets = PROFILE.budgets
    with Peer(daemon.socket) as peer:
        error = peer.ask("memory.recall", {"query": "x" * (budgets.query_chars + 1)})["error"]
        assert error["key"] == "payload_too_large" and error["details"]["path"] == "$.args.query"
        over = commit(2, text="x" * (budgets.message_content_bytes + 1))
        error = peer.ask("transcript.commit", over)["error"]
        assert error["details"]["path"] == "$.args.turns[0].messages[0].content"
        many = {"conversation": {"conversation_id": "c"}, "turns": [turn(n) for n in range(budgets.commit_turns + 1)]}
        assert peer.ask("transcript.commit", many)["error"]["key"] == "payload_too_large"
        assert peer.ask("memory.recall", {"query": "x", "limit": 10_000})["report"]["profile_budget_applied"]


def test_a_client_that_sends_one_byte_a_second_is_closed_and_holds_nobody_up(daemon: Daemon) -> None:
    frame = msgpack.packb({"v": 1, "id": 1, "op": "hello"})
    with Peer(daemon.socket) as slow, Peer(daemon.socket) as silent, Peer(daemon.socket) as other:
        assert other.ask("hello")["ok"]
        for byte in frame[:-1]:
            try:
                slow.send(bytes([byte]))
            except (BrokenPipeError, ConnectionResetError):
                break
            assert other.ask("hello")["ok"]
            if select.select([slow.socket], [], [], 1.0)[0]:
                break
        assert slow.closed()
        assert silent.closed(), "silence before the first frame ends a connection too"
        assert other.ask("hello")["ok"], "a connection that has spoken may be silent as long as it likes"


def test_ten_thousand_connections_leave_the_daemon_standing(daemon: Daemon) -> None:
    wanted = 10_000
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    room = wanted + 500
    if hard != resource.RLIM_INFINITY and hard < room:
        pytest.skip(f"the hard limit of open files is {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, room), hard))
    peers: list[socket.socket] = []
    try:
        for _ in range(wanted):
            peer = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            peers.append(peer)
            peer.connect(daemon.socket)  # blocking: a full backlog is waited for
        peers[-1].settimeout(30)
        last = peers[-1].recv(65536)
        error = msgpack.unpackb(last)["error"]
        assert error["key"] == "overloaded" and error["retryable"] and error["details"]["retry_after_ms"] > 0
        assert rss_mib(daemon.pid) < CEILING_MIB
    finally:
        for peer in peers:
            peer.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    served = False
    while not served:
        # The daemon works through the closed connections; each try waits for its own answer.
        with Peer(daemon.socket) as peer:
            served = peer.ask("hello")["ok"]
