"""Many turns in slices: small ones, a call that is called off between two of them, a process that is killed in one."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import pytest

from beetle.contracts.progress import ProgressStep
from beetle.runtime.areas.erasure import slices
from beetle.store.engine import progress
from tests.running import ROOT

WHERE = {"channel_id": "local", "conversation_id": "talk"}
OTHER = {"channel_id": "local", "conversation_id": "other"}
BEFORE = "2099-01-01T00:00:00Z"
COUNTS = [12, 90]
"""Turns of which each page of the index that holds a term is edited, and of which the whole index is made anew."""
FIRST, MOST = 2, 3
"""Turns of the first slice, and of any."""
KILLED = f"""
import json, os, signal, sys
from beetle import MemoryRuntime
from beetle.runtime.areas.erasure import slices
slices.FIRST_TURNS, slices.MOST_TURNS = {FIRST}, {MOST}
number, done = int(sys.argv[2]), 0
before = slices._slice
def killing(*args):
    global done
    done += 1
    if done == number:
        os.kill(os.getpid(), signal.SIGKILL)
    return before(*args)
slices._slice = killing
operation, args = sys.argv[3], json.loads(sys.argv[4])
with MemoryRuntime.open(sys.argv[1], profile="dev-full") as memory:
    if operation == "memory.forget":
        args["token"] = memory.call(operation, {{**args, "dry_run": True}}).token
    memory.call(operation, args, idempotency_key="k")
"""


@pytest.fixture(autouse=True)
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slices of a few turns, and every one of them told."""
    monkeypatch.setattr(slices, "FIRST_TURNS", FIRST)
    monkeypatch.setattr(slices, "MOST_TURNS", MOST)
    monkeypatch.setattr(progress, "BETWEEN_S", 0.0)


def step_of(action: str) -> dict[str, Any]:
    """The request for an action over the whole conversation."""
    return {"conversation": WHERE, "action": action, "before": BEFORE, "reason": "r"}


@contextmanager
def called_off(monkeypatch: pytest.MonkeyPatch, step: str) -> Generator[Callable[[ProgressStep], None]]:
    """A call that is told its progress by what is given here ends once four turns of that step are done."""
    ended = False

    def hear(heard: ProgressStep) -> None:
        nonlocal ended
        ended = ended or (heard.name == step and heard.done >= 4)

    with monkeypatch.context() as patched:
        patched.setattr("beetle.runtime.pipeline.invocation.Invocation.must_end", property(lambda self: ended))
        yield hear


def killed_in_slice(path: str, number: int, operation: str, args: dict[str, Any]) -> None:
    """Have a process make a call under the key `k`, and die in one of its slices."""
    words = [sys.executable, "-c", KILLED, path, str(number), operation, json.dumps(args)]
    killed = subprocess.run(words, cwd=ROOT, check=False)
    assert killed.returncode == -signal.SIGKILL
