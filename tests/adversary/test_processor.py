"""The processor: while several principals ask, each has one thread at work, whatever its number of requests."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from beetle.runtime.areas.table import HANDLERS
from beetle.runtime.pipeline import crowd as crowds
from beetle.runtime.pipeline.crowd import Crowd, Work
from beetle.runtime.pipeline.handlers import Read
from tests.adversary.crowd import PATIENCE_S
from tests.adversary.crowd import Crowd as Callers
from tests.transports.serving import Served, open_folder, until

STEPS_SQL = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n WHERE i % 10000 = 0"
LATE_S = 3600.0
SEEN = 200


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody's turn ends by the clock."""
    monkeypatch.setattr(crowds, "SLICE_S", LATE_S)
    monkeypatch.setattr(crowds, "STUCK_S", LATE_S)


class Going:
    """A piece of work on a thread, from `begun` until it is let go."""

    def __init__(self, work: Work) -> None:
        self.begun, self._go = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, args=(work,))
        self._thread.start()

    def _run(self, work: Work) -> None:
        with work.going_on():
            self.begun.set()
            assert self._go.wait(PATIENCE_S)

    def end(self) -> None:
        self._go.set()
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()


def asking(stack: ExitStack, crowd: Crowd, by: str) -> Work:
    return stack.enter_context(crowd.asking(by))


def test_who_asks_alone_has_as_many_threads_as_it_likes(patient: None) -> None:
    crowd = Crowd()
    with ExitStack() as stack:
        all_of_it = [Going(asking(stack, crowd, "one")) for _ in range(4)]
        for each in all_of_it:
            assert each.begun.wait(PATIENCE_S)
        for each in all_of_it:
            each.end()


def test_while_another_asks_a_principal_has_one_thread_at_work(patient: None) -> None:
    crowd = Crowd()
    with ExitStack() as stack:
        quiet = asking(stack, crowd, "quiet")
        first = Going(asking(stack, crowd, "greedy"))
        assert first.begun.wait(PATIENCE_S)
        second = Going(asking(stack, crowd, "greedy"))
        other = Going(quiet)
        assert other.begun.wait(PATIENCE_S), "the queue of one is none of another's"
        until(lambda: crowd.waiting == 1, "the second one waits")
        assert not second.begun.is_set()
        first.end()
        assert second.begun.wait(PATIENCE_S)
        second.end()
        other.end()


def test_whoever_waits_goes_on_when_nobody_else_asks(patient: None) -> None:
    crowd = Crowd()
    with ExitStack() as stack:
        with crowd.asking("quiet"):
            first = Going(asking(stack, crowd, "greedy"))
            assert first.begun.wait(PATIENCE_S)
            second = Going(asking(stack, crowd, "greedy"))
            until(lambda: crowd.waiting == 1, "the second one waits")
        assert second.begun.wait(PATIENCE_S)
        first.end()
        second.end()


def test_the_turn_passes_between_the_requests_of_one_principal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crowds, "SLICE_S", 0.0)
    monkeypatch.setattr(crowds, "STUCK_S", LATE_S)
    crowd = Crowd()
    with ExitStack() as stack:
        asking(stack, crowd, "quiet")
        first = asking(stack, crowd, "greedy")
        with first.going_on():
            second = Going(asking(stack, crowd, "greedy"))
            until(lambda: crowd.waiting == 1, "the second one waits")
            breathed = threading.Thread(target=first.breathe)
            breathed.start()
            assert second.begun.wait(PATIENCE_S)
            until(lambda: crowd.waiting == 1, "the first one waits")
            second.end()
            breathed.join(PATIENCE_S)
            assert not breathed.is_alive()
    assert crowd.waiting == 0


def test_nobody_waits_for_work_that_does_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crowds, "STUCK_S", 0.0)
    crowd = Crowd()
    with ExitStack() as stack:
        asking(stack, crowd, "quiet")
        with asking(stack, crowd, "greedy").going_on(), asking(stack, crowd, "greedy").going_on():
            assert crowd.waiting == 0


def test_who_has_worked_least_of_late_is_next(patient: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crowds, "BESIDE_S", LATE_S)
    monkeypatch.setattr(crowds, "FORGET_S", LATE_S)
    crowd = Crowd()
    with ExitStack() as stack:
        holder, busy, quiet = (asking(stack, crowd, by) for by in ("holder", "busy", "quiet"))
        with busy.going_on():
            threading.Event().wait(0.002)
        at_work = Going(holder)
        assert at_work.begun.wait(PATIENCE_S)
        first = Going(busy)
        until(lambda: crowd.in_line == 1, "it waits for its turn")
        second = Going(quiet)
        until(lambda: crowd.in_line == 2, "the other one waits behind it")
        at_work.end()
        assert second.begun.wait(PATIENCE_S)
        assert not first.begun.is_set()
        second.end()
        assert first.begun.wait(PATIENCE_S)
        first.end()


def test_who_has_worked_less_than_all_that_wait_keeps_the_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("SLICE_S", 0.0), ("BESIDE_S", LATE_S), ("FORGET_S", LATE_S)):
        monkeypatch.setattr(crowds, name, value)
    crowd = Crowd()
    with ExitStack() as stack:
        busy, quiet = (asking(stack, crowd, by) for by in ("busy", "quiet"))
        with busy.going_on():
            threading.Event().wait(0.05)
        with quiet.going_on():
            waiting = Going(busy)
            until(lambda: crowd.in_line == 1, "it waits for its turn")
            quiet.breathe()
            assert not waiting.begun.is_set()
            ends = threading.Thread(target=lambda: waiting.begun.wait(PATIENCE_S) and waiting.end())
            ends.start()
            # It has the turn for as long as the other had it; then that one's comes.
            until(lambda: [quiet.breathe(), waiting.begun.is_set()][1], "the turn passes on")
            ends.join(PATIENCE_S)


@pytest.fixture
def folder() -> Iterator[Path]:
    with open_folder() as made:
        yield made


def test_of_reads_that_run_already_one_goes_on_as_soon_as_another_asks(
    folder: Path, monkeypatch: pytest.MonkeyPatch, patient: None
) -> None:
    steps: list[int] = []
    end, held = threading.Event(), threading.Event()

    def endless(_invocation: Any, _request: Any, tx: Any) -> Any:
        for _ in tx.rows(STEPS_SQL):
            steps.append(threading.get_ident())
            if end.is_set():
                raise AssertionError("it ends")

    def hold(_invocation: Any, _request: Any, _tx: Any) -> Any:
        held.set()
        assert end.wait(PATIENCE_S)
        raise AssertionError("it ends")

    monkeypatch.setitem(HANDLERS, "memory.inspect", Read(endless))
    monkeypatch.setitem(HANDLERS, "transcript.conversations", Read(hold))
    with Served(folder, readers=3, default_deadline_ms=60_000) as served:
        callers = Callers(served.dispatcher)
        for _ in range(3):
            callers.send("greedy", "memory.inspect")
        until(lambda: len(set(steps)) == 3, "all three go on while nobody else asks")
        callers.send("quiet", "transcript.conversations")
        assert held.wait(PATIENCE_S)
        until(lambda: len(steps) > SEEN and len(set(steps[-SEEN:])) == 1, "one of them alone goes on")
        end.set()
        callers.join()


def test_of_a_list_over_its_budget_no_item_is_made(folder: Path) -> None:
    """What stands in it is never looked at: each item would be refused for another reason."""
    with Served(folder, frame_bytes=1 << 20) as served, served.peer() as peer:
        for many, key in ((1000, "invalid_request"), (900_000, "payload_too_large")):
            told = peer.ask("transcript.commit", {"conversation": {"conversation_id": "c"}, "turns": [[]] * many})
            assert told["error"]["key"] == key
        assert told["error"]["details"]["limit"] == "commit_turns"
        assert told["error"]["details"]["path"] == "$.args.turns"
