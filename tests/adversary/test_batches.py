"""Batches: what only reads holds up no write, and what reads beside its writes holds them up for a moment."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgpack
import pytest

from beetle.contracts.errors import StoreReadOnly
from beetle.runtime.areas.recall.inspect import inspect
from beetle.runtime.areas.table import HANDLERS
from beetle.runtime.pipeline.handlers import Read
from tests.adversary.crowd import PATIENCE_S
from tests.building import Plain
from tests.store.conftest import commit as say
from tests.store.conftest import open_runtime
from tests.store.conftest import turn as spoken
from tests.transports.conftest import Peer, commit
from tests.transports.serving import Served, open_folder, until

ENDLESS_SQL = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
READ = ("memory.inspect", {})
RECALL = ("memory.recall", {"query": "kettle"})


@pytest.fixture
def served() -> Iterator[Served]:
    with open_folder() as made, Served(made, default_deadline_ms=60_000) as running:
        yield running


class Endless:
    """memory.inspect that never ends by itself."""

    def __init__(self) -> None:
        self.begun = threading.Semaphore(0)
        self.ended = 0

    def __call__(self, invocation: Any, request: Any, tx: Any) -> Any:
        self.begun.release()
        try:
            return tx.value(ENDLESS_SQL)
        finally:
            self.ended += 1


@pytest.fixture
def endless(monkeypatch: pytest.MonkeyPatch) -> Endless:
    made = Endless()
    monkeypatch.setitem(HANDLERS, "memory.inspect", Read(made))
    return made


def batch(*requests: tuple[str, Plain]) -> Plain:
    return {"requests": [{"op": op, "args": args} for op, args in requests]}


def turns(peer: Peer) -> int:
    found = peer.ask("transcript.conversations")["report"]["conversations"]
    return sum(each["turns"] for each in found)


def test_a_batch_of_reads_is_answered_while_the_writer_is_busy(served: Served) -> None:
    with served.peer() as peer:
        peer.ask("transcript.commit", commit(1))
        with served.held_writer():
            answer = peer.ask("batch", batch(*[RECALL] * 50))
        assert [len(each["hits"]) for each in answer["report"]["reports"]] == [1] * 50
        assert answer["report"]["lifecycle"]["changed"] is False


def test_writes_go_on_while_a_batch_of_reads_runs(served: Served, endless: Endless) -> None:
    with served.peer() as reading, served.peer() as writing:
        reading.send(msgpack.packb({"v": 1, "id": 1, "op": "batch", "args": batch(*[READ] * 50)}))
        assert endless.begun.acquire(timeout=PATIENCE_S)
        for number in range(20):
            assert writing.ask("transcript.commit", commit(number))["ok"]
        assert not endless.ended
    until(lambda: not served.server.connections, "the end of the connections")
    assert endless.ended == 1, "it was given up, and what stood behind it in the batch was not begun"


def test_a_batch_of_reads_keeps_to_its_deadline_within_a_read(served: Served, endless: Endless) -> None:
    with served.peer() as peer:
        error = peer.ask("batch", batch(RECALL, READ, RECALL), deadline_ms=200)["error"]
        assert error["key"] == "deadline_exceeded"
        assert error["details"]["deadline_ms"] == 200 and error["retryable"]
        assert peer.ask(*RECALL)["ok"]


def test_a_batch_of_reads_keeps_to_its_deadline_between_two_reads(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[int] = []

    def slow(invocation: Any, request: Any, tx: Any) -> Any:
        begun.append(1)
        while time.monotonic() < invocation.deadline:
            time.sleep(0.01)
        return inspect(invocation, request, tx)

    monkeypatch.setitem(HANDLERS, "memory.inspect", Read(slow))
    with served.peer() as peer:
        error = peer.ask("batch", batch(*[READ] * 10), deadline_ms=200)["error"]
        assert (error["key"], len(begun)) == ("deadline_exceeded", 1)
        assert error["details"]["index"] == 1


def test_a_batch_of_reads_sees_one_state_of_the_store(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    def meanwhile(invocation: Any, request: Any, tx: Any) -> Any:
        tx.value("SELECT count(*) FROM event_log")
        with served.peer() as other:
            assert other.ask("transcript.commit", commit(2))["ok"]
        return inspect(invocation, request, tx)

    monkeypatch.setitem(HANDLERS, "memory.inspect", Read(meanwhile))
    with served.peer() as peer:
        peer.ask("transcript.commit", commit(1))
        reports = peer.ask("batch", batch(RECALL, READ, RECALL))["report"]["reports"]
        assert (len(reports[0]["hits"]), len(reports[2]["hits"])) == (1, 1)
        assert turns(peer) == 2


def test_a_batch_that_writes_reads_for_a_moment_only_and_then_writes_nothing(
    served: Served, endless: Endless, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("beetle.runtime.pipeline.batch.READS_S", 0.05)
    with served.peer() as mixed, served.peer() as other:
        mixed.send(
            msgpack.packb({"v": 1, "id": 1, "op": "batch", "args": batch(("transcript.commit", commit(1)), READ)})
        )
        assert endless.begun.acquire(timeout=PATIENCE_S)
        assert other.ask("transcript.commit", commit(2))["ok"], "the writer has given it up"
        error = mixed.answer()["error"]
        assert error["key"] == "deadline_exceeded" and error["details"]["index"] == 1
        assert "a batch of their own" in error["hint"]
        assert turns(other) == 1


def test_many_reads_of_a_batch_that_writes_share_their_moment(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("beetle.runtime.pipeline.batch.READS_S", 0.05)
    begun: list[int] = []

    def slow(invocation: Any, request: Any, tx: Any) -> Any:
        begun.append(1)
        time.sleep(0.02)
        return inspect(invocation, request, tx)

    monkeypatch.setitem(HANDLERS, "memory.inspect", Read(slow))
    with served.peer() as peer:
        error = peer.ask("batch", batch(("transcript.commit", commit(1)), *[READ] * 40))["error"]
        assert error["key"] == "deadline_exceeded" and len(begun) <= 3
        assert turns(peer) == 0


def test_a_repeated_batch_reads_again_for_a_moment_only(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    mixed = batch(("transcript.commit", commit(1)), READ)
    with served.peer() as peer:
        assert peer.ask("batch", mixed, idempotency_key="k")["ok"]
        monkeypatch.setitem(HANDLERS, "memory.inspect", Read(Endless()))
        monkeypatch.setattr("beetle.runtime.pipeline.batch.READS_S", 0.05)
        again = peer.ask("batch", mixed, idempotency_key="k")
        written, read = again["report"]["reports"]
        assert (again["repeated"], written["committed"], read) == (True, 1, {})


def test_a_batch_that_reads_and_writes_sees_what_it_wrote_and_ends_at_its_deadline(
    served: Served, endless: Endless
) -> None:
    with served.peer() as peer:
        reports = peer.ask("batch", batch(RECALL, ("transcript.commit", commit(1)), RECALL))["report"]["reports"]
        assert [len(reports[0]["hits"]), len(reports[2]["hits"])] == [0, 1]
        late = peer.ask("batch", batch(("transcript.commit", commit(2)), READ), deadline_ms=100)["error"]
        assert late["key"] == "deadline_exceeded" and late["details"]["deadline_ms"] == 100
        assert turns(peer) == 1


def test_a_batch_of_reads_works_on_a_store_that_cannot_be_written(tmp_path: Path) -> None:
    path = str(tmp_path / "b.db")
    with open_runtime(path) as memory:
        say(memory, spoken("t1", "the kettle is on"))
    with open_runtime(path, immutable=True) as memory:
        for key in (None, "key"):
            report: Any = memory.call("batch", batch(RECALL, READ), idempotency_key=key)
            assert len(report.reports[0]["hits"]) == 1
        with pytest.raises(StoreReadOnly):
            memory.call("batch", batch(RECALL, ("transcript.commit", commit(1))))
