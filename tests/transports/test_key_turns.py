"""Calls of one idempotency key at once, of operations that are not one transaction: one is done, the others wait."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgpack
import pytest

from beetle.contracts.errors import NotFound
from beetle.runtime.areas.evidence.lifecycle import lifecycle
from beetle.runtime.areas.snapshots.snapshots import create
from beetle.runtime.areas.table import HANDLERS
from beetle.runtime.pipeline.handlers import Plain, Staged
from tests.building import step
from tests.transports.conftest import Peer, commit
from tests.transports.serving import PATIENCE_S, Served, until

KEY = "key"


class Held:
    """An operation that is not done before it is let go. `begun` counts who came so far."""

    def __init__(self, handle: Callable[..., Any]) -> None:
        self._handle = handle
        self.begun = threading.Semaphore(0)
        self.let_go = threading.Event()
        self.failures: list[Exception] = []

    def run(self, *given: Any) -> Any:
        self.begun.release()
        assert self.let_go.wait(PATIENCE_S)
        if self.failures:
            raise self.failures.pop()
        return self._handle(*given)


@pytest.fixture
def served(folder: Path) -> Iterator[Served]:
    with Served(folder) as running:
        yield running


@pytest.fixture
def peers(served: Served) -> Iterator[list[Peer]]:
    found = [served.peer() for _ in range(4)]
    yield found
    for peer in found:
        peer.close()


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[Held]:
    found = Held(create)
    monkeypatch.setitem(HANDLERS, "snapshot.create", Plain(found.run))
    yield found
    found.let_go.set()


def begin(peer: Peer, args: Any = None, key: str = KEY, op: str = "snapshot.create", **more: Any) -> None:
    """Send a request, and wait for nothing."""
    frame: Any = {"v": 1, "id": 1, "op": op, "args": args or {}, "idempotency_key": key, **more}
    peer.send(msgpack.packb(frame) or b"")


def calls(served: Served, count: int) -> None:
    until(lambda: served.dispatcher.key_turns.calls == count, f"{count} calls of the key")


def snapshots(peer: Peer) -> int:
    return peer.ask("snapshot.list")["report"]["total"]


def test_the_same_request_at_once_is_done_once(served: Served, peers: list[Peer], held: Held) -> None:
    for peer in peers:
        begin(peer, {"label": "one"})
    calls(served, 4)
    assert held.begun.acquire(timeout=PATIENCE_S) and not held.begun.acquire(blocking=False)
    held.let_go.set()
    answers = [peer.answer() for peer in peers]
    assert sorted(each.get("repeated", False) for each in answers) == [False, True, True, True]
    assert len({each["report"]["snapshot"]["snapshot_id"] for each in answers}) == 1
    assert snapshots(peers[0]) == 1
    calls(served, 0)


def test_another_request_at_once_is_a_conflict_and_not_done(served: Served, peers: list[Peer], held: Held) -> None:
    first, second = peers[:2]
    begin(first, {"label": "A"})
    assert held.begun.acquire(timeout=PATIENCE_S)
    begin(second, {"label": "B"})
    calls(served, 2)
    held.let_go.set()
    assert first.answer()["report"]["snapshot"]["label"] == "A"
    assert second.answer()["error"]["key"] == "conflict"
    assert snapshots(first) == 1


def test_where_the_first_fails_the_second_runs(served: Served, peers: list[Peer], held: Held) -> None:
    first, second = peers[:2]
    held.failures.append(NotFound(kind="disk", name="a", listing=""))
    begin(first)
    assert held.begun.acquire(timeout=PATIENCE_S)
    begin(second)
    calls(served, 2)
    held.let_go.set()
    assert first.answer()["error"]["key"] == "not_found"
    answer = second.answer()
    assert answer["ok"] and "repeated" not in answer


def test_it_waits_until_its_own_deadline(served: Served, peers: list[Peer], held: Held) -> None:
    first, second = peers[:2]
    begin(first)
    assert held.begun.acquire(timeout=PATIENCE_S)
    begin(second, deadline_ms=50)
    error = second.answer()["error"]
    assert (error["key"], error["retryable"]) == ("overloaded", True)
    assert error["message"] == "another request with this idempotency key runs: a key has one at a time"
    calls(served, 1)
    held.let_go.set()
    assert first.answer()["ok"]
    begin(second)
    assert second.answer()["repeated"] is True


def test_who_hangs_up_waits_no_longer(served: Served, peers: list[Peer], held: Held) -> None:
    first, second = peers[:2]
    begin(first)
    assert held.begun.acquire(timeout=PATIENCE_S)
    begin(second)
    calls(served, 2)
    second.close()
    calls(served, 1)
    until(lambda: served.server.connections == 3, "the end of its connection")
    held.let_go.set()
    assert first.answer()["ok"] and snapshots(first) == 1


def test_another_key_and_another_space_do_not_wait(served: Served, peers: list[Peer], held: Held) -> None:
    first, second = peers[:2]
    begin(first)
    assert held.begun.acquire(timeout=PATIENCE_S)
    job = {"job_name": "optimize"}
    assert second.ask("scheduler.pause", job, idempotency_key="another")["ok"]
    assert second.ask("scheduler.pause", job, idempotency_key=KEY, scope={"owner_id": "other"})["ok"]
    assert second.ask("scheduler.pause", job)["ok"]


def test_a_key_that_a_commit_has_used_meanwhile_is_a_conflict(served: Served, peers: list[Peer], held: Held) -> None:
    first, second = peers[:2]
    begin(first)
    assert held.begun.acquire(timeout=PATIENCE_S)
    assert second.ask("transcript.commit", commit(1), idempotency_key=KEY)["ok"]
    held.let_go.set()
    error = first.answer()["error"]
    assert error["key"] == "conflict" and "both were done" in error["hint"]


def test_who_repeats_work_in_slices_is_answered_its_end(
    served: Served, peers: list[Peer], monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Held(lifecycle)
    monkeypatch.setitem(HANDLERS, "transcript.lifecycle", Staged(held.run))
    first, second = peers[:2]
    given = commit(1)
    assert first.ask("transcript.commit", given)["ok"]
    turn_id = given["turns"][0]["turn_id"]
    erase = {**step("delete_raw", turn_id), "conversation": given["conversation"]}
    for peer in (first, second):
        begin(peer, erase, op="transcript.lifecycle")
    calls(served, 2)
    held.let_go.set()
    answers = [first.answer(), second.answer()]
    assert sorted(each.get("repeated", False) for each in answers) == [False, True]
    assert [each["report"]["affected_turns"] for each in answers] == [1, 1]
