"""A conversation is paged in every view while eight clients write, mask and delete in it.

No gap, no duplicate, and nothing of a turn that was masked or deleted before its page was asked for. `-m slow` runs it
with 100,000 turns and eight client processes.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from beetle import MemoryRuntime
from beetle.client import Client
from beetle.contracts.codec import UNSET
from beetle.contracts.common import WireScope
from beetle.contracts.errors import InvalidRequest
from beetle.contracts.methods import OperationMethods
from beetle.contracts.names import ViewName
from beetle.contracts.transcript import RedactedTranscriptSlice, TranscriptTurn
from beetle.open import Embedded, Opened
from beetle.runtime.host.caller import Caller
from beetle.runtime.host.principals import OPERATOR_CAPABILITIES
from tests.governance.crowd import CLIENTS, CONVERSATION, OWNER, made, word, work
from tests.transports.serving import Served, open_folder

ROOT = Path(__file__).parents[2]
SOCKET_VIEWS: tuple[ViewName, ...] = ("host_ui", "model_context", "operator_audit", "export")
SMALL = 1_200
FULL = 100_000
PASSES = 2


class Acknowledged:
    """What the clients were told is done, in the order in which they heard."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._steps: dict[str, str] = {}
        self.written = 0

    def note(self, action: str, turn_id: str) -> None:
        with self._guard:
            if action == "write":
                self.written += 1
            else:
                self._steps[turn_id] = action

    def so_far(self) -> dict[str, str]:
        with self._guard:
            return dict(self._steps)


class Crowd:
    """Runs readers and clients in threads; the first failure of any of them is raised in the test."""

    def __init__(self) -> None:
        self.failures: list[BaseException] = []
        self.threads: list[threading.Thread] = []
        self.done = threading.Event()

    def begin(self, run: Callable[..., None], *args: Any) -> threading.Thread:
        def guarded() -> None:
            try:
                run(*args)
            except BaseException as failure:  # noqa: BLE001 - handed to the test, which raises it
                self.failures.append(failure)
                self.done.set()

        thread = threading.Thread(target=guarded)
        self.threads.append(thread)
        thread.start()
        return thread

    def end(self) -> None:
        self.done.set()
        for thread in self.threads:
            thread.join()
        if self.failures:
            raise self.failures[0]


@contextmanager
def served(turns: int) -> Iterator[tuple[Served, MemoryRuntime]]:
    """A daemon in this process that holds a conversation of `turns` turns, and its owner's own runtime."""
    budgets: Any = {
        "transcript_page_turns": 200, "commit_turns": 500, "store_bytes": 4 * 2**30, "readers": 6, "write_queue": 64,
        "frame_bytes": 8 * 2**20, "held_bytes": 64 * 2**20, "answer_bytes": 8 * 2**20,
    }  # fmt: skip
    with open_folder() as folder, Served(folder, **budgets) as running:
        profile = running.dispatcher.shared.profile
        opened = Opened(running.store, running.dispatcher, profile, (), running.dispatcher.shared.identity)
        owner = Caller(
            "embedded:agent-main", "embedded", OPERATOR_CAPABILITIES | {"transcript.raw", "private.read"},
            (*SOCKET_VIEWS, "raw_owner"), "in_process", OWNER, "agent-main",
        )  # fmt: skip
        memory = MemoryRuntime(Embedded(opened, owner, WireScope(owner_id=OWNER)))
        for first in range(0, turns, 500):
            some = [made(f"t{each}") for each in range(first, min(first + 500, turns))]
            memory.commit_transcript(conversation=CONVERSATION, turns=some)
        yield running, memory


def page_of(memory: OperationMethods, view: ViewName, cursor: str | None) -> RedactedTranscriptSlice:
    more = {} if cursor is None else {"cursor": cursor}
    if view == "export":
        return memory.export_transcript(conversation=CONVERSATION, limit=200, **more)
    return memory.replay_transcript(conversation=CONVERSATION, view=view, limit=200, **more)


def walk(memory: OperationMethods, view: ViewName, acknowledged: Acknowledged) -> int:
    """Page from the first turn to the last; how many there were."""
    expected, seen = 1, set[str]()
    cursor: str | None = None
    while True:
        before = acknowledged.so_far()
        page = page_of(memory, view, cursor)
        for turn in page.turns:
            assert turn.sequence == expected, f"{view}: {turn.sequence} stands where {expected} should"
            assert turn.turn_id not in seen, f"{view}: {turn.turn_id} comes twice"
            seen.add(turn.turn_id)
            check(turn, view, before.get(turn.turn_id))
            expected += 1
        assert page.has_more is (page.next_cursor is not None)
        if not page.has_more:
            return expected - 1
        if cursor is None:
            refuse_elsewhere(memory, view, cast(str, page.next_cursor))
        cursor = page.next_cursor


def check(turn: TranscriptTurn, view: ViewName, step: str | None) -> None:
    """What a view may show of a turn, after a step that was acknowledged before its page was asked for."""
    text = repr((turn.messages, turn.host_refs, turn.attrs))
    aloud, within = turn.messages
    if view == "raw_owner":
        kept = step != "delete_raw"
        if kept and aloud.state != "deleted":
            assert aloud.content == f"{word(turn.turn_id)} said aloud" and "within" in str(within.content)
    else:
        assert within.content is UNSET and "within" not in text
        kept = step is None and view != "operator_audit"
        if kept and aloud.state == "live":
            assert aloud.content == f"{word(turn.turn_id)} said aloud"
    if not kept:
        assert word(turn.turn_id) not in text, f"{view} shows {turn.turn_id} after {step}"


def refuse_elsewhere(memory: OperationMethods, view: ViewName, cursor: str) -> None:
    """A cursor of this walk opens no other view, no other conversation, and not itself when it was altered."""
    other: ViewName = "host_ui" if view != "host_ui" else "model_context"
    altered = ("B" if cursor[0] == "A" else "A") + cursor[1:]
    elsewhere = {"channel_id": "local", "conversation_id": "short"}
    for call in (
        lambda: memory.replay_transcript(conversation=CONVERSATION, view=other, cursor=cursor),
        lambda: memory.replay_transcript(conversation=elsewhere, view=view, cursor=cursor),
        lambda: page_of(memory, view, altered),
    ):
        with pytest.raises(InvalidRequest):
            call()


def read(memory: OperationMethods, view: ViewName, acknowledged: Acknowledged, turns: int, crowd: Crowd) -> None:
    for _ in range(PASSES):
        written = acknowledged.written
        assert walk(memory, view, acknowledged) >= turns + written
        if crowd.done.is_set():
            return


def read_over_socket(path: str, view: ViewName, acknowledged: Acknowledged, turns: int, crowd: Crowd) -> None:
    with Client(path, scope=WireScope(owner_id=OWNER), timeout=120.0) as client:
        read(client, view, acknowledged, turns, crowd)


def as_process(path: str, number: int, turns: int, stop: threading.Event, acknowledged: Acknowledged) -> None:
    """A client in a process of its own; it ends when its standard input does."""
    command = [sys.executable, "-m", "tests.governance.crowd", path, str(number), str(turns)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=ROOT, **pipes) as child:
        assert child.stdin is not None and child.stdout is not None
        ending = threading.Thread(target=lambda: (stop.wait(), cast(Any, child.stdin).close()))
        ending.start()
        try:
            for line in child.stdout:
                acknowledged.note(*line.split())
        finally:
            stopped = stop.is_set()
            stop.set()
            ending.join()
    assert stopped and child.returncode == 0, f"client {number} ended by itself"


def page_under_writers(turns: int, *, processes: bool) -> None:
    acknowledged, crowd = Acknowledged(), Crowd()
    with served(turns) as (running, memory):
        memory.commit_transcript(conversation={"channel_id": "local", "conversation_id": "short"}, turns=[made("only")])
        readers = [
            crowd.begin(read_over_socket, running.path, view, acknowledged, turns, crowd) for view in SOCKET_VIEWS
        ]
        readers.append(crowd.begin(read, memory, "raw_owner", acknowledged, turns, crowd))
        for number in range(CLIENTS):
            if processes:
                crowd.begin(as_process, running.path, number, turns, crowd.done, acknowledged)
            else:
                crowd.begin(work, running.path, number, turns, crowd.done.is_set, acknowledged.note)
        for reader in readers:
            reader.join()
        crowd.end()
        steps = acknowledged.so_far()
        assert acknowledged.written > 0 and set(steps.values()) == {"mask", "delete_raw"}
        with Client(running.path, scope=WireScope(owner_id=OWNER), timeout=120.0) as client:
            for view in SOCKET_VIEWS:
                assert walk(client, view, acknowledged) == turns + acknowledged.written
        assert walk(memory, "raw_owner", acknowledged) == turns + acknowledged.written
        assert memory.repair_transcript().clean


def test_paging_under_writers_has_no_gap_no_duplicate_and_nothing_masked() -> None:
    page_under_writers(SMALL, processes=False)


@pytest.mark.slow
def test_paging_a_hundred_thousand_turns_under_eight_client_processes() -> None:
    page_under_writers(FULL, processes=True)
