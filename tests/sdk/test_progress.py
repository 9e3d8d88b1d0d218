"""Work that takes long says how far it is: every step that it has planned, in order, and never more than all of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from beetle import MemoryRuntime
from beetle.contracts.operations import BY_NAME
from beetle.contracts.progress import ProgressStep
from beetle.store.engine import progress
from tests.sdk.answering import ModelServer

CONVERSATION = {"channel_id": "local", "conversation_id": "c"}
PROFILE = "profile-linux-device-standalone-memory"
TURNS = 40


@pytest.fixture(autouse=True)
def everything_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "BETWEEN_S", 0.0)
    for module in ("beetle.store.event_log", "beetle.store.verify"):
        monkeypatch.setattr(f"{module}.EVERY", 1)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    running = ModelServer()
    yield running
    running.stop()


@pytest.fixture
def memory(tmp_path: Path, server: ModelServer) -> Iterator[MemoryRuntime]:
    with MemoryRuntime.open(str(tmp_path / "m.db"), profile=PROFILE, model=server.model()) as opened:
        fill(opened)
        yield opened


def fill(memory: MemoryRuntime) -> None:
    for number in range(TURNS):
        message = {"message_id": f"m{number}", "role": "user", "content": f"Pump {number} is loud."}
        turn = {"turn_id": f"t{number}", "at": "2026-01-02T03:04:05Z", "messages": [message]}
        memory.call("transcript.commit", {"conversation": CONVERSATION, "turns": [turn]})
    skill = {"name": "tea", "topic": "tea", "title": "Tea", "summary": "how to", "content": "boil water"}
    memory.call("memory.write", {"kind": "procedural", "source": "manual", "writes": [skill]})


def run(memory: MemoryRuntime, operation: str, arguments: Any = None) -> tuple[Any, list[ProgressStep]]:
    heard: list[ProgressStep] = []
    report = memory.call(operation, arguments, on_progress=heard.append)
    return report, heard


def snapshot_of(memory: MemoryRuntime) -> str:
    return memory.create_snapshot().snapshot.snapshot_id


WORK: dict[str, tuple[str, Callable[[MemoryRuntime], Any], str]] = {
    "verify": ("store.verify", lambda memory: {}, "recall_index"),
    "verify without pages": ("store.verify", lambda memory: {"pages": False}, "event_log"),
    "salvage": ("store.repair", lambda memory: {}, ""),
    "recover": ("memory.recover", lambda memory: {}, ""),
    "repair": ("transcript.repair", lambda memory: {}, "messages"),
    "repair safe": ("transcript.repair_safe", lambda memory: {}, "messages"),
    "delete": (
        "transcript.lifecycle",
        lambda memory: {"conversation": CONVERSATION, "action": "delete_raw", "before": "2027-01-01T00:00:00Z",
                        "reason": "test"},
        "erase",
    ),
    "what a deletion would do": (
        "transcript.lifecycle",
        lambda memory: {"conversation": CONVERSATION, "action": "delete_raw", "before": "2027-01-01T00:00:00Z",
                        "reason": "test", "dry_run": True},
        "look",
    ),
    "maintain": ("memory.maintain", lambda memory: {"conversation": CONVERSATION}, ""),
    "snapshot": ("snapshot.create", lambda memory: {}, "copy"),
    "snapshot looked through": ("snapshot.verify", lambda memory: {"snapshot_id": snapshot_of(memory)}, "unpack"),
    "restore": ("snapshot.restore", lambda memory: {"snapshot_id": snapshot_of(memory)}, "unpack"),
    "export": ("memory.export_space", lambda memory: {}, ""),
}  # fmt: skip
"""An operation, its arguments, and one of its steps in which what is done is counted."""


@pytest.mark.parametrize("name", WORK)
def test_long_work_tells_every_step_in_order_and_what_is_done_of_it(memory: MemoryRuntime, name: str) -> None:
    operation, arguments, counted = WORK[name]
    assert BY_NAME[operation].progress, "its row says so: the command line shows it"
    _, heard = run(memory, operation, arguments(memory))
    steps = [list(group) for _, group in groupby(heard, lambda step: step.number)]
    assert [group[0].number for group in steps] == list(range(1, heard[0].steps + 1))
    for group in steps:
        assert len({step.name for step in group}) == 1
        done = [step.done for step in group if step.of]
        assert done == sorted(done)
        assert all(step.done <= step.of for step in group if step.of)
    if counted:
        shares = [step for step in heard if step.name == counted and step.of]
        assert shares and shares[-1].done > 0


def test_an_import_tells_its_turns(memory: MemoryRuntime, tmp_path: Path) -> None:
    words = {"passphrase": "four words are enough here"}
    archive = memory.export_space(include_private=True, **words).archive
    with MemoryRuntime.open(str(tmp_path / "other.db"), profile=PROFILE) as other:
        report, heard = run(other, "memory.import_space", {"archive": archive, "mode": "bootstrap_import", **words})
        assert report.counts["turns"] == TURNS
        assert [step.done for step in heard if step.name == "turns"] == list(range(TURNS + 1))
        assert heard[-1].number == heard[-1].steps


def test_a_model_that_is_asked_is_a_step_of_its_own(memory: MemoryRuntime, server: ModelServer) -> None:
    heard: list[ProgressStep] = []
    asked_at: list[str] = []
    usual = server.answer
    assert not callable(usual)

    def answer(_: Any) -> Any:
        asked_at.append(heard[-1].name)
        return usual

    server.answer = answer
    memory.call("memory.maintain", {"conversation": CONVERSATION}, on_progress=heard.append)
    assert asked_at == ["ask_model"]


def test_nothing_is_told_of_what_is_quick(memory: MemoryRuntime) -> None:
    report, heard = run(memory, "hello")
    assert report.server == "beetle" and heard == []


def test_of_many_rows_no_more_is_told_than_a_person_can_read(memory: MemoryRuntime) -> None:
    at: list[ProgressStep] = []
    told = progress.Progress(at.append)
    told.plan(("rows",))
    told.step("rows", of=10_000)
    progress.BETWEEN_S = 3600.0
    told.at(1)
    for done in range(2, 10_000):
        told.at(done)
    assert [step.done for step in at] == [0, 1]
