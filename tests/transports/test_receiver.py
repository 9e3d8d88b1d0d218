"""Connections whose clients write beside each other: one thread begins their writes, and answers them."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import msgpack
import pytest

from beetle.runtime.areas.table import HANDLERS
from beetle.runtime.host.config import Principal
from beetle.runtime.pipeline.handlers import Write
from beetle.store.engine import writer
from beetle.store.engine.store import Store
from beetle.store.engine.writer import BRIEF_S, Writer
from tests.transports.conftest import Peer, commit
from tests.transports.serving import PATIENCE_S, Served, needs_root, peer_as, until


@pytest.fixture
def served(folder: Path) -> Iterator[Served]:
    with Served(folder) as running:
        yield running


def request(number: int, op: str, args: Any, **more: Any) -> bytes:
    data: bytes | None = msgpack.packb({"v": 1, "id": number, "op": op, "args": args, **more})
    assert data is not None
    return data


def lent(served: Served) -> int:
    """How many connections the receiver serves."""
    return len(served.server._receiver._lent)


def queued(served: Served, count: int) -> None:
    until(lambda: served.store.writer.queued == count, f"{count} writes that wait")


@contextlib.contextmanager
def writing(served: Served, count: int = 3) -> Iterator[list[Peer]]:
    """So many peers that have written beside each other, and are lent to the receiver."""
    with contextlib.ExitStack() as stack:
        peers = [stack.enter_context(served.peer()) for _ in range(count)]
        with served.held_writer():
            for number, peer in enumerate(peers):
                peer.send(request(0, "transcript.commit", commit(0, f"c{number}")))
            queued(served, count)
        for peer in peers:
            assert peer.answer()["ok"]
        until(lambda: lent(served) == count, "connections that are lent")
        yield peers


def texts(served: Served) -> set[tuple[str, str]]:
    """(conversation, turn) of what is stored."""
    sql = "SELECT c.conversation_id, t.turn_id FROM turn t JOIN conversation c USING (conversation)"
    with served.store.read() as tx:
        return set(tx.rows(sql))


def test_writes_that_come_together_share_a_commit_and_each_is_answered(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    run = Writer._run_group

    def counted(self: Writer, group: list[Any]) -> None:
        run(self, group)
        sizes.append(len(group))

    with writing(served, 8) as peers:
        monkeypatch.setattr(Writer, "_run_group", counted)
        for number in range(1, 4):
            with served.held_writer():
                for place, peer in enumerate(peers):
                    peer.send(request(number, "transcript.commit", commit(number, f"c{place}")))
                queued(served, 8)
            answers = [peer.answer() for peer in peers]
            assert [(each["id"], each["report"]["turns"][0]["sequence"]) for each in answers] == [
                (number, number + 1)
            ] * 8
        assert lent(served) == 8
    assert max(sizes) == 8
    assert texts(served) == {(f"c{place}", f"t{number}") for place in range(8) for number in range(4)}


def test_what_came_together_is_committed_by_the_thread_that_took_it(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    whose: dict[str, int] = {}
    run = Writer._run_group

    def noted(self: Writer, group: list[Any]) -> None:
        run(self, group)
        name = threading.current_thread().name
        whose[name] = max(len(group), whose.get(name, 0))

    with writing(served, 4) as peers:
        monkeypatch.setattr(Writer, "_run_group", noted)
        number = 0
        while whose.get("beetle-receiver", 0) < 4:
            number += 1
            assert number < 1000, "the receiver leaves every commit to others"
            round_of(served, peers, number)
        assert lent(served) == 4
    assert texts(served) == {(f"c{place}", f"t{each}") for place in range(4) for each in range(number + 1)}


def round_of(served: Served, peers: list[Peer], number: int) -> None:
    """A write of each, and their answers."""
    for place, peer in enumerate(peers):
        peer.send(request(number, "transcript.commit", commit(number, f"c{place}")))
    assert all(peer.answer()["ok"] for peer in peers)
    until(lambda: lent(served) == len(peers), "connections that are lent")


def test_while_another_program_holds_the_store_a_write_keeps_no_other_connection(served: Served) -> None:
    with writing(served, 4) as peers:
        for number in range(1, 6):  # so that commits are brief
            round_of(served, peers, number)
        other = apsw.Connection(served.store.settings.path)
        other.execute("BEGIN IMMEDIATE")
        peers[0].send(request(6, "transcript.commit", commit(6, "c0")))
        until(lambda: served.server._receiver._waiting, "a write that waits for the other program")
        assert peers[1].ask("hello", {})["ok"]
        late = peers[2].ask("transcript.commit", commit(6, "c2"), deadline_ms=50)
        assert late["error"]["key"] == "deadline_exceeded"
        other.execute("ROLLBACK")
        other.close()
        assert peers[0].answer()["ok"]
    assert ("c0", "t6") in texts(served) and ("c2", "t6") not in texts(served)


def test_a_defect_of_a_commit_ends_no_connection(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on, failed = Store.go_on, threading.Event()

    def broken(self: Store) -> None:
        go_on(self)
        if not failed.is_set() and self.writer.queued == 0:
            failed.set()
            raise MemoryError

    with writing(served) as peers:
        monkeypatch.setattr(Store, "go_on", broken)
        for number in range(1, 4):
            round_of(served, peers, number)
        assert failed.is_set()


def test_other_operations_are_answered_by_the_connections_own_thread(served: Served) -> None:
    with writing(served) as (first, *others):
        found = first.ask("transcript.search", {"query": "kettle", "view": "host_ui"})
        assert len(found["report"]["hits"]) == 3
        assert lent(served) == len(others)
        for number, (op, args) in enumerate(
            [("memory.remember", {"content": "tea is at four"}), ("transcript.commit", {"turns": []}), ("hello", {})], 1
        ):
            assert first.ask("transcript.commit", commit(number, "c0"))["ok"]
            until(lambda: lent(served) == 1 + len(others), "the connection that writes again")
            first.ask(op, args)
            assert lent(served) == (1 + len(others) if op == "transcript.commit" else len(others))


def test_requests_that_are_sent_at_once_are_answered_in_their_order(served: Served) -> None:
    with writing(served) as (first, second, _):
        for count in (2, 30):
            first.send(b"".join(request(n, "transcript.commit", commit(n, "c0")) for n in range(count)))
            assert [first.answer()["id"] for _ in range(count)] == list(range(count))
            assert first.ask("transcript.commit", commit(count, "c0"))["ok"]
            until(lambda: lent(served) == 3, "the connection that is lent again")
        with served.held_writer():
            second.send(request(1, "transcript.commit", commit(1, "c1")))
            queued(served, 1)
            second.send(request(2, "transcript.commit", commit(2, "c1")) + request(3, "hello", {}))
        assert [second.answer()["id"] for _ in range(3)] == [1, 2, 3]


def test_a_frame_may_come_in_parts_and_be_as_large_as_elsewhere(served: Served) -> None:
    with writing(served) as (first, second, _):
        data = request(1, "transcript.commit", commit(1, "c0"))
        first.send(data[:7])
        until(lambda: lent(served) == 2, "the connection's own thread, which waits for the rest")
        first.send(data[7:])
        assert first.answer()["id"] == 1
        assert second.ask("transcript.commit", commit(1, "c1", "x" * 20_000))["ok"]


@pytest.mark.parametrize(
    ("data", "key"),
    [
        (request(7, "transcript.commit", {"conversation": {}}), "invalid_request"),
        (request(7, "transcript.commit", commit(1), v=2), "invalid_request"),
        (request(7, "no.such", {}), "unknown_operation"),
        (request(7, "transcript.commit", commit(1), scope={"owner_id": ""}), "invalid_request"),
    ],
)
def test_a_request_that_is_wrong_is_refused_and_the_connection_goes_on(served: Served, data: bytes, key: str) -> None:
    with writing(served) as (first, *_):
        first.send(data)
        answer = first.answer()
        assert (answer["ok"], answer["error"]["key"]) == (False, key)
        assert first.ask("transcript.commit", commit(1, "c0"))["ok"]


def test_what_is_no_frame_ends_the_connection_with_a_reason(served: Served) -> None:
    with writing(served) as (first, second, _):
        first.send(b"\xc1")
        assert first.answer()["error"]["key"] == "invalid_frame"
        assert first.closed()
        assert second.ask("transcript.commit", commit(1, "c1"))["ok"]


def test_a_peer_that_has_gone_while_its_write_waits_loses_nothing_and_keeps_nobody(served: Served) -> None:
    with writing(served) as (first, second, _):
        with served.held_writer():
            first.send(request(1, "transcript.commit", commit(1, "c0")))
            second.send(request(1, "transcript.commit", commit(1, "c1")))
            queued(served, 2)
            first.close()
            until(lambda: served.server._receiver._leaving, "the end that was seen")
        assert second.answer()["ok"]
        until(lambda: served.server.connections == 2, "the end of the connection")
        assert ("c0", "t1") in texts(served)
        assert second.ask("transcript.commit", commit(2, "c1"))["ok"]


def test_a_peer_that_does_not_read_its_answers_keeps_nobody(served: Served) -> None:
    count = 4_000
    with writing(served) as (first, second, _):
        data = b"".join(request(n, "transcript.commit", commit(n, "c0")) for n in range(1, count))
        sender = threading.Thread(target=first.send, args=(data,))
        sender.start()
        for number in range(1, 20):
            assert second.ask("transcript.commit", commit(number, "c1"))["ok"]
        assert [first.answer()["id"] for _ in range(1, count)] == list(range(1, count))
        sender.join()


def test_an_answer_for_which_there_is_no_room_is_sent_when_there_is(served: Served) -> None:
    with writing(served) as (first, second, _):
        for connection in served.server._open.values():
            connection._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
        number = 0
        while lent(served) == 3:
            number += 1
            first.send(request(number, "transcript.commit", commit(number, "c0")))
            until(lambda turn=f"t{number}": ("c0", turn) in texts(served), "the turn")
            # Its answer is sent before that of a later one of another.
            assert second.ask("transcript.commit", commit(number, "c1"))["ok"]
        assert number > 1
        assert [first.answer()["id"] for _ in range(number)] == list(range(1, number + 1))
        assert first.ask("transcript.commit", commit(0, "c0"))["report"]["unchanged"] == 1


def test_a_deadline_that_passes_before_its_write_begins_is_told_while_the_writer_is_busy(served: Served) -> None:
    with writing(served) as (first, second, _):
        with served.held_writer():
            second.send(request(1, "transcript.commit", commit(1, "c1")))
            queued(served, 1)
            answer = first.ask("transcript.commit", commit(1, "c0"), deadline_ms=30)
            assert (answer["error"]["key"], answer["error"]["details"]["deadline_ms"]) == ("deadline_exceeded", 30)
        assert second.answer()["ok"]
        assert ("c0", "t1") not in texts(served)
        assert first.ask("transcript.commit", commit(1, "c0"))["report"]["committed"] == 1
        with served.store._turnstile.shut("write", 0.0):
            pass  # nobody is counted as a writer any more


def test_a_write_that_fails_fails_alone(served: Served) -> None:
    """The same turn with another text is a conflict, which has a group of writes run again one by one."""
    with writing(served) as peers:
        with served.held_writer():
            for place, peer in enumerate(peers):
                number = 0 if place == 1 else 1
                peer.send(request(1, "transcript.commit", commit(number, f"c{place}", f"text {place}")))
            queued(served, 3)
        answers = [peer.answer() for peer in peers]
        assert [each["ok"] for each in answers] == [True, False, True]
        assert answers[1]["error"]["key"] == "conflict"
        assert {("c0", "t1"), ("c2", "t1")} <= texts(served)


def test_a_key_that_was_used_is_answered_again(served: Served) -> None:
    with writing(served) as (first, second, _):
        one = first.ask("transcript.commit", commit(1, "c0"), idempotency_key="k")
        again = second.ask("transcript.commit", commit(1, "c0"), idempotency_key="k")
        assert again["repeated"]
        assert again["report"] == one["report"]
        other = second.ask("transcript.commit", commit(2, "c0"), idempotency_key="k")
        assert other["error"]["key"] == "conflict"


def test_while_the_files_are_exchanged_a_write_waits_on_its_own_thread(served: Served) -> None:
    with writing(served) as (first, second, _):
        with served.store._turnstile.shut("write", PATIENCE_S):
            first.send(request(1, "transcript.commit", commit(1, "c0")))
            until(lambda: lent(served) == 2, "the connection's own thread")
            assert second.ask("transcript.search", {"query": "kettle", "view": "host_ui"})["ok"]
        assert first.answer()["report"]["committed"] == 1


def test_a_queue_that_is_full_refuses(served: Served) -> None:
    with writing(served) as (first, second, _):
        with served.held_writer():
            queue = served.store.writer._queue  # type: ignore[union-attr]
            most, queue._most = queue._most, 0
            first.send(request(1, "transcript.commit", commit(1, "c0")))  # one of a principal is always taken
            queued(served, 1)
            answer = second.ask("transcript.commit", commit(1, "c1"))
            assert answer["error"]["key"] == "overloaded"
            queue._most = most
        assert first.answer()["ok"]
        assert second.ask("transcript.commit", commit(1, "c1"))["report"]["committed"] == 1


def test_a_defect_is_told_as_internal_and_ends_nothing(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = HANDLERS["transcript.commit"]
    assert isinstance(broken, Write)

    def prepare(*_: Any) -> Any:
        raise ZeroDivisionError

    with writing(served) as (first, second, _):
        monkeypatch.setitem(HANDLERS, "transcript.commit", broken._replace(prepare=prepare))
        assert first.ask("transcript.commit", commit(1, "c0"))["error"]["key"] == "internal"
        monkeypatch.undo()
        assert first.ask("transcript.commit", commit(1, "c0"))["ok"]
        assert second.ask("transcript.commit", commit(1, "c1"))["ok"]


def test_a_defect_of_the_receiver_ends_one_connection_and_no_other(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    from beetle.transports.socket_connection import SocketConnection

    def broken(_: SocketConnection) -> None:
        raise ZeroDivisionError

    with writing(served) as (first, second, _):
        monkeypatch.setattr(SocketConnection, "begin", broken)
        first.send(request(1, "transcript.commit", commit(1, "c0")))
        assert first.closed()
        monkeypatch.undo()
        assert second.ask("transcript.commit", commit(1, "c1"))["ok"]


def test_what_was_begun_is_answered_when_the_server_stops(served: Served) -> None:
    with writing(served) as peers:
        with served.held_writer():
            for place, peer in enumerate(peers):
                peer.send(request(1, "transcript.commit", commit(1, f"c{place}")))
            queued(served, 3)
            stopping = threading.Thread(target=served.stop)
            stopping.start()
            until(lambda: len(served.server._receiver._leaving) == 3, "the end that each was told")
        assert all(peer.answer()["ok"] for peer in peers)
        stopping.join()
        assert all(peer.closed() for peer in peers)
    assert not [each for each in threading.enumerate() if each.name == "beetle-receiver"]


def test_without_a_descriptor_for_it_each_connection_keeps_its_own_thread(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(*_: Any) -> int:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(os, "eventfd", none)
    with contextlib.ExitStack() as stack:
        peers = [stack.enter_context(served.peer()) for _ in range(3)]
        for number in range(3):
            with served.held_writer():
                for place, peer in enumerate(peers):
                    peer.send(request(number, "transcript.commit", commit(number, f"c{place}")))
                queued(served, 3)
            assert all(peer.answer()["ok"] for peer in peers)
        assert lent(served) == 0
    assert len(texts(served)) == 9


def test_who_follows_events_and_who_writes_alone_keep_their_own_thread(served: Served) -> None:
    with served.peer() as alone:
        for number in range(5):
            assert alone.ask("transcript.commit", commit(number, "alone"))["ok"]
        assert lent(served) == 0
    with writing(served) as (first, *others):
        assert first.ask("subscribe", {"topics": ["skill"]})["ok"]
        assert first.ask("transcript.commit", commit(1, "c0"))["ok"]
        assert first.ask("transcript.commit", commit(2, "c0"))["ok"]
        assert lent(served) == len(others)


def test_the_last_one_that_writes_beside_nobody_gets_its_own_thread_back(served: Served) -> None:
    with served.peer() as left:
        with writing(served, 2) as others:
            with served.held_writer():
                for peer in (left, *others):
                    peer.send(request(1, "transcript.commit", commit(1, f"c{peer is left}")))
                queued(served, 3)
            assert all(peer.answer()["ok"] for peer in (left, *others))
            until(lambda: lent(served) == 3, "connections that are lent")
        until(lambda: lent(served) == 1, "connections that have gone")
        for number in range(2, 5):
            assert left.ask("transcript.commit", commit(number, "left"))["ok"]
        assert lent(served) == 0


@needs_root
def test_while_another_principal_asks_each_connection_has_its_own_thread(folder: Path) -> None:
    panel = Principal(uid=4242, owner_id="ada", agent_id="panel", capabilities=("transcript", "recall", "inspect"))
    with contextlib.ExitStack() as stack:
        served = stack.enter_context(Served(folder, principals={"panel": panel}))
        os.chmod(served.path, 0o666)
        peers = stack.enter_context(writing(served))
        other = stack.enter_context(peer_as(served.path, 4242, 4242))
        ended = threading.Event()

        def asks() -> None:
            while not ended.is_set():
                assert other.ask("hello")["ok"]

        asking = threading.Thread(target=asks)
        asking.start()
        try:
            until(lambda: served.dispatcher.crowd.is_crowded("operator"), "another principal that asks")
            for place, peer in enumerate(peers):
                assert peer.ask("transcript.commit", commit(1, f"c{place}"))["ok"]
            assert lent(served) == 0
        finally:
            ended.set()
            asking.join()


@pytest.mark.parametrize("brief_s", [BRIEF_S, -1.0], ids=["the receiver commits", "the writer's thread commits"])
def test_many_clients_that_do_all_at_once_get_their_own_answers(
    served: Served, monkeypatch: pytest.MonkeyPatch, brief_s: float
) -> None:
    """Writes, reads, ends and beginnings by chance; each answer is its request's."""
    monkeypatch.setattr(writer, "BRIEF_S", brief_s)
    wrong: list[Any] = []

    def client(place: int) -> None:
        done = 0
        for _ in range(4):
            with served.peer() as peer:
                for number in range(25):
                    done += 1
                    if (number * 7 + place) % 5 == 0:
                        answer = peer.ask("transcript.search", {"query": f"text {place}", "view": "host_ui"})
                        if not answer["ok"]:
                            wrong.append(answer)
                        continue
                    answer = peer.ask("transcript.commit", commit(done, f"m{place}", f"text {place} {done}"))
                    if not answer["ok"] or answer["report"]["turns"][0]["turn_id"] != f"t{done}":
                        wrong.append(answer)

    threads = [threading.Thread(target=client, args=(place,)) for place in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong
    assert len(texts(served)) == 8 * 80
    until(lambda: lent(served) == 0, "connections that are gone")
