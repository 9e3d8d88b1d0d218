"""How far long work is: told on the connection of the call to whoever follows it there, and to nobody else."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgpack
import pytest

from beetle.client import Client
from beetle.contracts.progress import ProgressStep
from beetle.runtime.areas.recovery import plan
from beetle.runtime.host.config import Principal
from beetle.store.engine import progress
from tests.store.conftest import turn
from tests.transports.conftest import Peer
from tests.transports.serving import Served, needs_root, peer_as, writer_held

KEEPER = 40_011
PRINCIPALS = {"keeper": Principal(uid=KEEPER, owner_id="ada", capabilities=("recover", "admin"))}
PLAN = plan()
HELD = PLAN[0]
"""The step of recovery that waits for the writer."""


@pytest.fixture
def served(folder: Path) -> Iterator[Served]:
    with Served(folder, principals=PRINCIPALS) as running:
        os.chmod(running.path, 0o666)
        yield running


def follow(peer: Peer, *topics: str) -> str:
    return peer.ask("subscribe", {"topics": list(topics)})["report"]["sub"]


def begin(peer: Peer) -> None:
    """Ask for what takes long; the answer is not waited for."""
    peer.send(msgpack.packb({"v": 1, "id": "long", "op": "memory.recover", "args": {}}))


def test_a_connection_hears_how_far_its_own_call_is(served: Served) -> None:
    with served.peer() as peer, writer_held(served.store) as free:
        sub = follow(peer, "lifecycle")
        begin(peer)
        frame = peer.answer()
        assert frame["topic"] == "lifecycle" and frame["sub"] == sub and "seq" not in frame
        assert frame["event"] == {
            "event": "progress", "operation": "memory.recover", "id": "long", "step": HELD,
            "number": 1, "steps": len(PLAN), "done": 0, "of": 0,
        }  # fmt: skip
        free.set()
        while (frame := peer.answer()).get("id") != "long":
            assert frame["event"].get("event") in ("progress", "recovered")
        assert frame["ok"] and frame["report"]["recovered"]


def test_nobody_else_hears_it_not_even_the_same_caller_elsewhere(served: Served) -> None:
    with served.peer() as peer, served.peer() as other, served.peer() as deaf, writer_held(served.store) as free:
        follow(other, "lifecycle")
        follow(deaf, "transcript")
        follow(peer, "lifecycle")
        begin(peer)
        assert peer.answer()["event"]["step"] == HELD
        free.set()
        while peer.answer().get("id") != "long":
            pass
        assert other.answer()["event"]["event"] == "recovered", "the first that it hears is what was committed"
        assert deaf.ask("hello")["ok"]


def test_a_client_is_told_and_its_connection_is_as_before(served: Served) -> None:
    heard: list[ProgressStep] = []
    with Client(served.path) as client, writer_held(served.store) as free:

        def on_progress(step: ProgressStep) -> None:
            heard.append(step)
            if step.name == HELD:
                free.set()

        report = client.call("memory.recover", on_progress=on_progress)
        assert report.recovered
        assert HELD in [step.name for step in heard]
        assert [step.number for step in heard] == sorted(step.number for step in heard)
        assert all(step.name == PLAN[step.number - 1] and step.steps == len(PLAN) for step in heard)
        assert served.dispatcher.hub.count == 0, "it follows nothing any more"
        said = len(heard)
        assert client.call("hello")
        assert client.call("memory.recover") and len(heard) == said


def test_forgetting_tells_how_many_records_are_gone(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "BETWEEN_S", 0.0)
    heard: list[ProgressStep] = []
    where = {"conversation_id": "c"}
    with Client(served.path) as client:
        client.commit_transcript(conversation=where, turns=[turn(f"t{n}", "said") for n in range(40)])
        token = client.forget(conversation=where, dry_run=True).token
        client.call("memory.forget", {"conversation": where, "token": token}, on_progress=heard.append)
    # A step that the next one overtakes is not sent, and none is sent after the report.
    assert [step.number for step in heard] == sorted(step.number for step in heard)
    shares = [(step.done, step.of) for step in heard if step.name == "erase"]
    assert shares and shares == sorted(shares) and {of for _, of in shares} <= {0, 40}


@needs_root
def test_a_caller_that_may_not_follow_is_told_nothing_and_answered(served: Served) -> None:
    with peer_as(served.path, KEEPER, KEEPER) as peer:
        assert not peer.ask("subscribe", {"topics": ["lifecycle"]})["ok"]
        assert peer.ask("memory.recover")["ok"]


def test_what_a_slow_reader_did_not_take_is_not_kept_for_it(served: Served) -> None:
    with served.peer() as peer:
        sub = follow(peer, "lifecycle")
        (subscription,) = (each for each in served.dispatcher.hub._subscriptions if each.sub == sub)
        begin(peer)
        frames: list[dict[str, Any]] = []
        while (frame := peer.answer()).get("id") != "long":
            frames.append(frame)
        assert not subscription.closed
        assert all("dropped" not in frame["event"] for frame in frames)
        assert sum(frame["event"]["event"] == "progress" for frame in frames) <= len(PLAN)
