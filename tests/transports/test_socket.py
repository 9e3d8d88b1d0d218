"""What travels over the socket, and how a server ends: WIRE.md §2, but for what is subscribed."""

from __future__ import annotations

import gc
import os
import select
import socket
import threading
from pathlib import Path
from typing import Any

import msgpack
import pytest

from beetle import __version__
from beetle.contracts.operations import OPERATIONS
from beetle.runtime.areas.daemon import LIMITS
from beetle.runtime.host.profile import load_profile
from tests.transports.conftest import Peer, commit
from tests.transports.serving import PATIENCE_S, Served, until

# Requests and answers


@pytest.mark.parametrize(
    "request_id", [0, -1, 2**63 - 1, -(2**63), "", "a", "x" * 64, "é" * 32, "茶" * 21, "🍵" * 16, "\x00\n"]
)
def test_an_id_comes_back_as_it_was_sent(served: Served, request_id: int | str) -> None:
    with served.peer() as peer:
        for op, ok in (("hello", True), ("no.such", False)):
            peer.send(msgpack.packb({"v": 1, "id": request_id, "op": op}))
            answer = peer.answer()
            assert (answer["id"], answer["ok"], type(answer["id"])) == (request_id, ok, type(request_id))


@pytest.mark.parametrize(
    "request_id", ["x" * 65, "é" * 33, "🍵" * 17, 2**63, 1.0, True, None, [1], {"a": 1}, b"a", float("nan")]
)
def test_an_id_of_another_kind_or_length_is_an_invalid_request_without_id(served: Served, request_id: Any) -> None:
    with served.peer() as peer:
        peer.send(msgpack.packb({"v": 1, "id": request_id, "op": "hello"}))
        answer = peer.answer()
        assert answer["id"] is None
        assert (answer["error"]["key"], answer["error"]["details"]["path"]) == ("invalid_request", "$.id")
        assert peer.ask("hello")["ok"], "the connection stays open"


@pytest.mark.parametrize("version", [0, 2, -1, 2**40])
def test_another_protocol_version_is_an_invalid_request(served: Served, version: int) -> None:
    with served.peer() as peer:
        peer.send(msgpack.packb({"v": version, "id": "me", "op": "hello"}))
        answer = peer.answer()
        assert (answer["v"], answer["id"], answer["error"]["details"]["path"]) == (1, "me", "$.v")


@pytest.mark.parametrize(
    ("field", "value", "path"),
    [
        ("op", "", "$.op"),
        ("op", "x" * 129, "$.op"),
        ("op", 5, "$.op"),
        ("v", "1", "$.v"),
        ("idempotency_key", "", "$.idempotency_key"),
        ("idempotency_key", "k" * 129, "$.idempotency_key"),
        ("deadline_ms", 0, "$.deadline_ms"),
        ("deadline_ms", -5, "$.deadline_ms"),
        ("deadline_ms", 1.5, "$.deadline_ms"),
        ("deadline_ms", 10**9, "$.deadline_ms"),
        ("scope", [], "$.scope"),
        ("scope", {"owner": "x"}, "$.scope.owner"),
        ("scope", {"owner_id": ""}, "$.scope.owner_id"),
        ("auth", {"device_id": "d"}, "$.auth.app_key"),
        ("extra", 1, "$.extra"),
    ],
)
def test_a_wrong_envelope_field_is_named_and_the_id_comes_back(
    served: Served, field: str, value: Any, path: str
) -> None:
    with served.peer() as peer:
        peer.send(msgpack.packb({"v": 1, "id": 7, "op": "hello", field: value}))
        answer = peer.answer()
        assert answer["id"] == 7
        assert (answer["error"]["key"], answer["error"]["details"]["path"]) == ("invalid_request", path)
        assert peer.ask("hello")["ok"]


def test_arguments_may_be_left_out_and_must_be_a_map(served: Served) -> None:
    with served.peer() as peer:
        peer.send(msgpack.packb({"v": 1, "id": 1, "op": "hello"}))
        assert peer.answer()["ok"]
        for wrong in (None, 1, "x", [], b""):
            peer.send(msgpack.packb({"v": 1, "id": 2, "op": "hello", "args": wrong}))
            assert peer.answer()["error"]["details"]["path"] == "$.args"


def test_pipelined_requests_are_answered_each_once(served: Served) -> None:
    count = 300
    frames = [
        msgpack.packb({"v": 1, "id": f"r{n}", "op": ("hello", "memory.recall", "no.such")[n % 3], "args": {}})
        for n in range(count)
    ]
    with served.peer() as peer:
        sender = threading.Thread(target=peer.send, args=(b"".join(frames),))
        sender.start()
        answers = [peer.answer() for _ in range(count)]
        sender.join()
        assert sorted(each["id"] for each in answers) == sorted(f"r{n}" for n in range(count))
        by_id = {each["id"]: each for each in answers}
        assert all(by_id[f"r{n}"]["ok"] for n in range(0, count, 3))
        assert by_id["r1"]["error"]["key"] == "invalid_request"
        assert by_id["r2"]["error"]["key"] == "unknown_operation"
        peer.socket.shutdown(socket.SHUT_WR)
        assert peer.closed(), "nothing follows the last answer"


def test_requests_that_come_in_pieces_and_together_are_the_same(served: Served) -> None:
    stream = b"".join(msgpack.packb({"v": 1, "id": n, "op": "hello"}) for n in range(20))
    for size in (1, 2, 3, 7, 50, len(stream)):
        with served.peer() as peer:
            for start in range(0, len(stream), size):
                peer.send(stream[start : start + size])
            assert [peer.answer()["id"] for _ in range(20)] == list(range(20))


def test_a_half_closed_connection_still_gets_its_answers(served: Served) -> None:
    with served.peer() as peer:
        peer.send(b"".join(msgpack.packb({"v": 1, "id": n, "op": "hello"}) for n in range(5)))
        peer.socket.shutdown(socket.SHUT_WR)
        assert [peer.answer()["id"] for _ in range(5)] == list(range(5))
        assert peer.closed()


def test_a_peer_that_vanishes_at_any_point_leaves_nothing_behind(served: Served) -> None:
    frame = msgpack.packb({"v": 1, "id": 1, "op": "transcript.commit", "args": commit(1, "vanished")})
    for cut in (0, 1, 5, len(frame) // 2, len(frame) - 1, len(frame)):
        peer = served.peer()
        peer.send(frame[:cut])
        peer.close()
    until(lambda: served.server.connections == 0, "the end of every connection")
    with served.peer() as peer:
        assert peer.ask("hello")["ok"]


def test_hello_says_who_answers_who_asks_and_what_may_be_asked(served: Served) -> None:
    profile = load_profile("compact")
    with served.peer() as peer:
        told = peer.ask("hello")["report"]
    assert told["server"] == "beetle"
    assert (told["version"], told["protocol"]) == (__version__, 1)
    assert (told["profile"], told["principal"], told["pid"]) == (profile.name, "operator", os.getpid())
    assert told["uptime_s"] >= 0
    assert told["limits"] == {name: getattr(profile.budgets, name) for name in LIMITS}
    assert [(row["name"], row["effect"]) for row in told["operations"]] == [(r.name, r.effect) for r in OPERATIONS]
    assert all(set(row) == {"name", "effect", "visible"} for row in told["operations"])


def test_a_batch_answers_all_reports_in_order(served: Served) -> None:
    requests = [
        {"op": "transcript.commit", "args": commit(1, "batch")},
        {"op": "transcript.commit", "args": commit(1, "batch")},
        {"op": "transcript.conversations", "args": {}},
        {"op": "memory.recall", "args": {"query": "kettle"}},
    ]
    with served.peer() as peer:
        reports = peer.ask("batch", {"requests": requests})["report"]["reports"]
    assert [report["turns"][0]["outcome"] for report in reports[:2]] == ["committed", "unchanged"]
    assert "batch" in [each["conversation_id"] for each in reports[2]["conversations"]]


def test_a_batch_that_fails_names_the_index_and_writes_nothing(served: Served) -> None:
    requests = [
        {"op": "transcript.commit", "args": commit(1, "undone")},
        {"op": "transcript.commit", "args": commit(1, "undone", text="another text")},
        {"op": "hello", "args": {}},
    ]
    with served.peer() as peer:
        error = peer.ask("batch", {"requests": requests[:2]})["error"]
        assert (error["key"], error["details"]["index"]) == ("conflict", 1)
        error = peer.ask("batch", {"requests": requests})["error"]
        assert (error["key"], error["details"]["index"]) == ("invalid_request", 2)
        error = peer.ask("batch", {"requests": [{"op": "no.such"}]})["error"]
        assert (error["key"], error["details"]["index"]) == ("unknown_operation", 0)
        found = peer.ask("transcript.conversations")["report"]["conversations"]
        assert "undone" not in [each["conversation_id"] for each in found]


def test_the_same_key_answers_the_first_report_again(served: Served) -> None:
    with served.peer() as peer, served.peer() as other:
        first = peer.ask("transcript.commit", commit(1, "keyed"), idempotency_key="k1")
        assert "repeated" not in first
        again = other.ask("transcript.commit", commit(1, "keyed"), idempotency_key="k1")
        assert again["repeated"] is True
        assert again["report"] == first["report"]
        error = peer.ask("transcript.commit", commit(2, "keyed"), idempotency_key="k1")["error"]
        assert error["key"] == "conflict" and "idempotency" in error["message"]
        assert peer.ask("transcript.commit", commit(2, "keyed"), idempotency_key="k2")["ok"]


# Deadlines and full queues


def test_a_write_whose_deadline_passes_in_the_queue_writes_nothing(folder: Path) -> None:
    with Served(folder) as served, served.peer() as peer:
        with served.held_writer():
            frame = {"v": 1, "id": 1, "op": "transcript.commit", "args": commit(1, "late"), "deadline_ms": 1}
            peer.send(msgpack.packb(frame))
            answer = peer.answer()  # told while the writer is still held
            assert served.store.writer.queued == 0
        assert answer["error"]["key"] == "deadline_exceeded" and answer["error"]["retryable"]
        assert answer["error"]["details"]["deadline_ms"] == 1
        assert peer.ask("transcript.conversations")["report"]["conversations"] == []


def test_a_write_within_its_deadline_waits_for_the_writer(folder: Path) -> None:
    with Served(folder) as served, served.peer() as peer:
        with served.held_writer():
            frame = {"v": 1, "id": 1, "op": "transcript.commit", "args": commit(1), "deadline_ms": 9_000}
            peer.send(msgpack.packb(frame))
            until(lambda: served.store.writer.queued == 1, "the write in the queue")
            with served.peer() as reader:
                assert reader.ask("transcript.conversations")["ok"], "reads go on"
        assert peer.answer()["ok"]


def test_a_full_write_queue_is_overloaded_at_once_and_the_others_are_written(folder: Path) -> None:
    with Served(folder, write_queue=2, write_group=2) as served:
        peers = [served.peer() for _ in range(3)]
        with served.held_writer():
            for number, peer in enumerate(peers):
                peer.send(
                    msgpack.packb(
                        {"v": 1, "id": number, "op": "transcript.commit", "args": commit(number, f"c{number}")}
                    )
                )
            ready, _, _ = select.select([peer.socket for peer in peers], [], [], PATIENCE_S)
            assert len(ready) == 1
            turned_away = next(peer for peer in peers if peer.socket is ready[0])
            error = turned_away.answer()["error"]
            assert error["key"] == "overloaded" and error["retryable"] and error["details"]["retry_after_ms"] > 0
        for peer in peers:
            if peer is not turned_away:
                assert peer.answer()["ok"]
        assert len(turned_away.ask("transcript.conversations")["report"]["conversations"]) == 2
        for peer in peers:
            peer.close()


def test_one_connection_too_many_is_overloaded_and_closed(folder: Path) -> None:
    with Served(folder, connections=2) as served, served.peer() as first, served.peer() as second:
        assert first.ask("hello")["ok"] and second.ask("hello")["ok"]
        with served.peer() as third:
            answer = third.answer()
            assert answer["id"] is None
            assert (answer["error"]["key"], answer["error"]["retryable"]) == ("overloaded", True)
            assert third.closed()
        second.close()
        until(lambda: served.server.connections == 1, "the end of a connection")
        with served.peer() as fourth:
            assert fourth.ask("hello")["ok"]


# Ends


def test_a_server_stops_while_a_peer_has_not_read_its_answers(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("beetle.transports.unix_socket.STOP_SECONDS", 0.2)
    before = set(threading.enumerate())
    with Served(folder) as served, served.peer() as peer:
        frame = msgpack.packb({"v": 1, "id": 1, "op": "hello"})
        peer.socket.setblocking(False)
        while select.select([], [peer.socket], [], 0.2)[1]:
            peer.socket.send(frame * 20)
    assert set(threading.enumerate()) <= before


def test_a_peer_that_never_reads_a_big_answer_is_given_up(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("beetle.transports.socket_connection.SEND_SECONDS", 0.05)
    with Served(folder) as served, served.peer() as deaf, served.peer() as other:
        for number in range(10):
            assert deaf.ask("transcript.commit", commit(number, text="x" * 60_000))["ok"]
        replay = {"conversation": {"conversation_id": "c"}, "view": "host_ui", "limit": 20}
        deaf.send(msgpack.packb({"v": 1, "id": 1, "op": "transcript.replay", "args": replay}))
        until(lambda: served.server.connections == 1, "the end of the connection")
        assert other.ask("transcript.replay", replay)["ok"]


def test_a_server_that_stops_answers_what_was_sent_before(folder: Path) -> None:
    with Served(folder) as served, served.peer() as peer:
        assert peer.ask("hello")["ok"]
        with served.held_writer():
            peer.send(
                b"".join(
                    msgpack.packb({"v": 1, "id": n, "op": "transcript.commit", "args": commit(n)}) for n in range(10)
                )
            )
            until(lambda: served.store.writer.queued == 1, "the first write in the queue")
            stopping = threading.Thread(target=served.stop)
            stopping.start()
            until(lambda: not os.path.exists(served.path), "the end of the socket file")
        answers = [peer.answer() for _ in range(10)]
        stopping.join()
        assert [(each["id"], each["ok"]) for each in answers] == [(n, True) for n in range(10)]
        assert peer.closed()


def test_a_connection_that_is_accepted_while_the_server_stops_is_not_left_open(folder: Path) -> None:
    before = set(threading.enumerate())
    with Served(folder) as served:
        end = threading.Event()

        def knock() -> None:
            while not end.is_set():
                try:
                    with served.peer() as peer:
                        peer.ask("hello")
                except (OSError, EOFError):
                    return

        knockers = [threading.Thread(target=knock) for _ in range(4)]
        for each in knockers:
            each.start()
        until(lambda: served.server.connections, "a connection")
        served.stop()
        end.set()
        for each in knockers:
            each.join()
        assert served.server.connections == 0
    assert set(threading.enumerate()) <= before


def test_two_hundred_connections_come_and_go_and_leave_no_descriptor_and_no_thread(folder: Path) -> None:
    with Served(folder) as served:
        with served.peer() as peer:
            assert peer.ask("transcript.conversations")["ok"]  # opens the reader that is kept
        until(lambda: served.server.connections == 0, "the end of the first connection")
        gc.collect()  # what other tests left is not counted
        descriptors, threads = len(os.listdir("/proc/self/fd")), threading.active_count()
        for number in range(200):
            peer = Peer(served.path)
            if number % 4 == 0:
                assert peer.ask("hello")["ok"]
            elif number % 4 == 1:
                assert peer.ask("subscribe", {"topics": ["lifecycle"]})["ok"]
            elif number % 4 == 2:
                peer.send(b"\xc1")
            peer.close()
        until(lambda: served.server.connections == 0, "the end of every connection")
        until(lambda: threading.active_count() <= threads, "the end of their threads")
        until(lambda: len(os.listdir("/proc/self/fd")) <= descriptors, "the end of their descriptors")
        assert not served.dispatcher.hub._subscriptions


def test_a_defect_in_one_request_is_internal_and_the_connection_goes_on(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("secret")

    with Served(folder) as served, served.peer() as peer:
        monkeypatch.setattr(served.dispatcher, "subscribe", broken)
        answer = peer.ask("subscribe", {"topics": ["lifecycle"]})
        assert (answer["id"], answer["error"]["key"]) == (1, "internal")
        assert "secret" not in str(answer)
        assert peer.ask("hello")["ok"]
