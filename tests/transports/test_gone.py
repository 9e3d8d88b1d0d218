"""A client that goes away while its read runs: the daemon gives the read up, and nothing else."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgpack
import pytest

from beetle.client import Client
from beetle.contracts.memory import MemoryInspectionReport
from beetle.runtime.areas.recall.inspect import inspect
from beetle.runtime.areas.table import HANDLERS
from beetle.runtime.pipeline.handlers import Read
from tests.store.conftest import bytes_of, turn
from tests.transports.conftest import Peer, commit
from tests.transports.serving import PATIENCE_S, HeldErasure, Served, until

ENDLESS_SQL = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
LONG_SQL = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500000) SELECT count(*) FROM n"


class Readings:
    """memory.inspect with more to read: without end, or until it is let go."""

    def __init__(self) -> None:
        self.begun = threading.Semaphore(0)
        self.let_go = threading.Event()
        self.ended: list[str] = []

    def endless(self, invocation: Any, request: Any, tx: Any) -> MemoryInspectionReport:
        self.begun.release()
        try:
            return tx.value(ENDLESS_SQL)
        finally:
            self.ended.append(invocation.scope.chat_id)

    def long(self, invocation: Any, request: Any, tx: Any) -> MemoryInspectionReport:
        self.begun.release()
        while not self.let_go.is_set():
            tx.value(LONG_SQL)
        return inspect(invocation, request, tx)


@pytest.fixture
def served(folder: Path) -> Iterator[Served]:
    with Served(folder, default_deadline_ms=3_600_000) as running:
        yield running


@pytest.fixture
def readings(monkeypatch: pytest.MonkeyPatch) -> Iterator[Readings]:
    found = Readings()
    monkeypatch.setitem(HANDLERS, "memory.inspect", Read(found.endless))
    yield found
    found.let_go.set()


def ask(peer: Peer, op: str, args: Any = None, chat: str = "chat-1") -> None:
    """Send a request, and wait for nothing."""
    peer.send(msgpack.packb({"v": 1, "id": chat, "op": op, "args": args or {}, "scope": {"chat_id": chat}}))


def begin(peer: Peer, readings: Readings, chat: str = "chat-1") -> None:
    ask(peer, "memory.inspect", chat=chat)
    assert readings.begun.acquire(timeout=PATIENCE_S)


def test_a_read_whose_client_has_gone_is_given_up_and_its_connection_ends(served: Served, readings: Readings) -> None:
    peer = served.peer()
    begin(peer, readings)
    peer.close()
    until(lambda: not served.server.connections, "the end of the connection")
    assert readings.ended == ["chat-1"]
    with served.peer() as other:
        assert other.ask("skill.list")["ok"], "the reader that it had is free"


def test_every_reader_is_free_again_for_those_who_stay(served: Served, readings: Readings) -> None:
    count = served.store.settings.readers
    peers = [served.peer() for _ in range(count)]
    for number, peer in enumerate(peers):
        begin(peer, readings, f"chat-{number}")
    for peer in peers:
        peer.close()
    with served.peer() as other:
        assert other.ask("skill.list")["ok"]
    until(lambda: len(readings.ended) == count, "the end of every read")


def test_another_client_s_read_goes_on(served: Served, readings: Readings) -> None:
    leaving, staying = served.peer(), served.peer()
    begin(leaving, readings, "leaving")
    begin(staying, readings, "staying")
    leaving.close()
    until(lambda: served.server.connections == 1, "the end of one connection")
    assert readings.ended == ["leaving"]
    staying.close()
    until(lambda: not served.server.connections, "the end of the other")


def test_what_was_asked_behind_it_is_not_begun(served: Served, readings: Readings) -> None:
    peer = served.peer()
    begin(peer, readings, "first")
    for number in range(20):
        ask(peer, "memory.inspect", chat=f"later-{number}")
    peer.close()
    until(lambda: not served.server.connections, "the end of the connection")
    assert readings.ended == ["first"]


def test_who_has_said_its_last_word_and_still_listens_is_answered(
    served: Served, readings: Readings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(HANDLERS, "memory.inspect", Read(readings.long))
    with served.peer() as peer:
        begin(peer, readings)
        peer.socket.shutdown(socket.SHUT_WR)
        with served.peer() as other:
            for _ in range(20):
                assert other.ask("skill.list")["ok"]
        readings.let_go.set()
        answer = peer.answer()
        assert answer["ok"] and answer["report"]["store"]["backend"] == "sqlite"
        assert peer.closed()


def test_a_write_whose_client_has_gone_is_done(served: Served) -> None:
    one, other = served.peer(), served.peer()
    both = [{"op": "transcript.commit", "args": commit(2)}, {"op": "memory.inspect", "args": {}}]
    with served.held_writer():
        ask(one, "transcript.commit", commit(1))
        ask(other, "batch", {"requests": both})
        until(lambda: served.store.writer.queued == 2, "two writes that wait")
        one.close()
        other.close()
    until(lambda: not served.server.connections, "the end of the connection")
    with served.peer() as peer:
        (found,) = peer.ask("transcript.conversations", {})["report"]["conversations"]
        assert found["turns"] == 2


@pytest.mark.parametrize("how", ["forget", "delete_raw"])
def test_an_erasure_whose_client_has_gone_is_called_off_between_two_slices(
    served: Served, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = [f"pelican{number}" for number in range(8)]
    where = {"conversation_id": "c"}
    with Client(served.path) as client:
        client.commit_transcript(conversation=where, turns=[turn(f"t{n}", word) for n, word in enumerate(words)])
        token = client.forget(conversation=where, dry_run=True).token
        held, peer = HeldErasure(monkeypatch), served.peer()
        if how == "forget":
            ask(peer, "memory.forget", {"conversation": where, "token": token})
        else:
            args = {"conversation": where, "action": "delete_raw", "before": "2099-01-01T00:00:00Z", "reason": "r"}
            ask(peer, "transcript.lifecycle", args)
        assert held.begun.wait(PATIENCE_S)
        peer.close()
        held.free.set()
        until(lambda: served.server.connections == 1, "the end of its connection")
        event = client.read_event_log(newest_first=True, limit=1).rows[0]
        assert (event.event, event.subject["turns"]) == ("erasure_called_off", 4)
        assert [bool(client.recall(query=word).hits) for word in words] == [False] * 4 + [True] * 4
        assert client.verify_store().clean, "nothing is half-erased"
        left = client.forget(conversation=where, dry_run=True)
        assert left.counts == {"turns": 4, "messages": 4}
        until(lambda: client.inspect().store.pending_erasures == 0, "the end of what was erased")
    assert {word for word in words if word.encode() in bytes_of(served.store.settings.path)} == set(words[4:])


def test_a_daemon_that_ends_does_not_wait_for_a_read_without_end(
    served: Served, readings: Readings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("beetle.transports.unix_socket.STOP_SECONDS", 0.05)
    with served.peer() as peer:
        begin(peer, readings)
        served.stop()
        assert readings.ended == ["chat-1"]
        assert peer.closed()
