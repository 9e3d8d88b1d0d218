"""Ends: every operation keeps to its deadline, and what only reads ends when its client has gone."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from beetle.contracts.common import WireScope
from beetle.contracts.errors import DeadlineExceeded
from beetle.contracts.operations import BY_NAME
from beetle.runtime.pipeline.dispatcher import Dispatcher
from beetle.runtime.pipeline.invocation import Call
from tests.adversary.crowd import Crowd
from tests.building import Plain
from tests.cases import CASES, Case, Prepared
from tests.conformance.doors import InProcess, embedded_caller
from tests.transports.serving import until, writer_held

LATE = ("overloaded", "deadline_exceeded")
ASKED = [case for case in CASES if case.row.effect != "stream" and case.op != "memory.close"]
WAITING = [case for case in ASKED if case.op != "snapshot.prune"]
"""Files that were pruned are gone: that this is written down is waited for, however long."""
NO_STORE = frozenset(
    {
        "hello",
        "memory.capabilities",
        "memory.classify",
        "skill_registry.md",
        "skill_registry.manifest",
        "agent_skill.list",
        "scheduler.status",
        "admin.health",
        "admin.metrics",
        "snapshot.list",
        "transfer.begin",
        "transfer.put",
        "transfer.get",
    }
)
"""What is answered without a read of the store, or tells that there was none."""


@contextmanager
def busy(dispatcher: Dispatcher) -> Iterator[None]:
    """Every reader, the writer and the place of heavy work are taken until the block ends."""
    shared = dispatcher.shared
    with ExitStack() as stack:
        for number in range(shared.store.settings.readers):
            stack.enter_context(shared.store.read(by=f"other {number}"))
        stack.enter_context(shared.store.read(by="another"))
        stack.enter_context(writer_held(shared.store))
        stack.enter_context(shared.heavy_turns.held("other", None))
        yield


class Door(InProcess):
    """One open store; each case is an owner's of its own."""

    def crowd(self) -> Crowd:
        return Crowd(self.opened.dispatcher, embedded_caller(self.owner))


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    made = Door("nobody", Path(tmp_path_factory.mktemp("ends")) / "b.db", "profile-server-linux-dev-full")
    yield made
    made.close()


def prepared(door: Door, case: Case, kind: str) -> tuple[Plain, WireScope]:
    door.owner = f"{kind}-{case.op}"
    return case.request(Prepared(door.prepare)), WireScope(owner_id=door.owner, chat_id="talk")


@pytest.mark.parametrize("case", WAITING, ids=lambda case: case.op)
def test_no_operation_waits_beyond_its_deadline(door: Door, case: Case) -> None:
    args, scope = prepared(door, case, "late")
    crowd = door.crowd()
    rows = door.opened.store.head.seq
    with busy(door.opened.dispatcher):
        answer = crowd.send("late", case.op, args, scope=scope, deadline_ms=1)
        until(lambda: answer, f"the end of {case.op}")
        assert answer[0] in LATE or case.op in NO_STORE or answer[0] == case.key, answer
    crowd.join()
    assert door.opened.store.head.seq == rows, "nothing was written"


@pytest.mark.parametrize(
    "case", [case for case in ASKED if BY_NAME[case.op].effect == "read" or case.row.heavy], ids=lambda case: case.op
)
def test_what_reads_and_what_is_heavy_ends_when_its_client_has_gone(door: Door, case: Case) -> None:
    args, scope = prepared(door, case, "gone")
    crowd, gone = door.crowd(), threading.Event()
    with busy(door.opened.dispatcher):
        answer = crowd.send("gone", case.op, args, scope=scope, deadline_ms=3_600_000, is_abandoned=gone.is_set)
        if case.op not in NO_STORE:
            assert not answer
        gone.set()
        until(lambda: answer, f"the end of {case.op}")
        assert answer[0] == "deadline_exceeded" or case.op in NO_STORE
    crowd.join()


@pytest.mark.parametrize(
    ("op", "args"),
    [
        ("chunk.reason", {"query": "lamp"}),
        ("chunk.recall", {"query": "lampadaries chandeliers"}),
    ],
)
def test_what_compares_chunks_looks_whether_its_client_has_gone(door: Door, op: str, args: Plain) -> None:
    door.owner = f"compares-{op}"
    scope, caller = WireScope(owner_id=door.owner), embedded_caller(door.owner)
    ids = [
        door.prepare("chunk.create", {
            "content": f"I prefer the lamp of kind{n} {'chandelierr ' * n}", "conversation_id": f"c{n}", "tags": ["a"],
        })["chunk"]["id"]
        for n in range(8)
    ]  # fmt: skip
    given = {**args, "context_chunks": ids} if op == "chunk.reason" else args
    looks: list[int] = []

    def ask(most: int) -> None:
        looks.clear()
        gone = lambda: looks.append(1) or len(looks) > most  # noqa: E731
        door.opened.dispatcher.dispatch(Call(op, given, caller, scope, is_abandoned=gone))

    ask(1000)
    all_looks = len(looks)
    assert all_looks > len(ids), "at each chunk at least"
    for most in range(all_looks - 1):
        with pytest.raises(DeadlineExceeded):
            ask(most)


@pytest.mark.parametrize("op", ["memory.recover", "snapshot.create", "snapshot.restore"])
def test_long_work_whose_client_has_gone_ends_before_its_turn(door: Door, op: str) -> None:
    case = next(case for case in CASES if case.op == op)
    args, scope = prepared(door, case, "long")
    crowd, gone = door.crowd(), threading.Event()
    with busy(door.opened.dispatcher):
        answer = crowd.send("gone", op, args, scope=scope, deadline_ms=3_600_000, is_abandoned=gone.is_set)
        until(lambda: door.opened.dispatcher.shared.heavy_turns.waiting, "work that waits for its turn")
        gone.set()
        until(lambda: answer, f"the end of {op}")
        assert answer[0] == "deadline_exceeded"
    crowd.join()


def test_nobody_asks_for_longer_than_the_profile_allows(door: Door) -> None:
    most = door.opened.profile.budgets.default_deadline_ms
    case = next(case for case in CASES if case.op == "memory.recall")
    args, scope = prepared(door, case, "long")
    call = Call("memory.recall", args, embedded_caller(door.owner), scope, None, 86_400_000)
    _, invocation = door.opened.dispatcher._authorize(call)
    assert invocation.deadline is not None and invocation.deadline <= time.monotonic() + most / 1000
