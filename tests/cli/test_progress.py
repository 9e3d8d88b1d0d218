"""How far a long command is: a line at the terminal that stderr is, and nothing where it is none."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NoReturn

import pytest

from beetle.client import Client
from beetle.contracts.methods import OperationMethods
from beetle.contracts.operations import OPERATIONS
from beetle.runtime.areas.recovery import plan
from beetle.runtime.areas.table import HANDLERS
from beetle.runtime.pipeline.handlers import Write
from beetle.sdk import MemoryRuntime
from tests.cli.conftest import CommandLine
from tests.running import ROOT
from tests.store.conftest import turn
from tests.transports.serving import PATIENCE_S, HeldErasure, Served, until, writer_held

PLAN = plan()
FIRST = f"memory recover: {PLAN[0].replace('_', ' ')}, step 1 of {len(PLAN)}"


@pytest.fixture
def served(folder: Path) -> Iterator[Served]:
    with Served(folder) as running:
        yield running


class Watched:
    """A command whose stderr is a terminal of 60 columns; its stdout is a pipe."""

    def __init__(self, *words: str) -> None:
        self._controller, terminal = pty.openpty()
        environment = {**os.environ, "COLUMNS": ""}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "beetle", *words], cwd=ROOT, env=environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=terminal,
        )  # fmt: skip
        os.close(terminal)
        self.said = ""

    def reads(self, words: str) -> None:
        """Wait for some words on the terminal."""
        while words not in self.said:
            self.said += os.read(self._controller, 4096).decode()

    def ends(self) -> tuple[int, str]:
        """Its exit code, and what is left to be read on the terminal's lines."""
        out, _ = self.process.communicate(timeout=60)
        self.out = out.decode()
        while True:
            try:
                part = os.read(self._controller, 4096)
            except OSError:  # Linux says so when the other end is closed
                break
            if not part:
                break
            self.said += part.decode()
        os.close(self._controller)
        return self.process.returncode, "\n".join(shown(line) for line in self.said.split("\r\n")).strip()


def shown(line: str) -> str:
    """What a terminal shows of a line in which the cursor went back."""
    found = ""
    for part in line.split("\r"):
        found = part + found[len(part) :]
    return found.rstrip()


def test_a_terminal_shows_the_step_in_one_line_that_is_gone_at_the_end(served: Served) -> None:
    with writer_held(served.store) as free:
        watched = Watched("--socket", served.path, "memory", "recover")
        watched.reads(FIRST)
        free.set()
        assert watched.ends() == (0, "")
    assert "step" not in watched.out


def test_forgetting_shows_its_steps(served: Served) -> None:
    with Client(served.path) as client:
        message = {"message_id": "m1", "role": "user", "content": "hello"}
        said = {"turn_id": "t1", "at": "2026-01-02T03:04:05Z", "messages": [message]}
        client.commit_transcript(conversation={"conversation_id": "c"}, turns=[said])
        token = client.forget(conversation={"conversation_id": "c"}, dry_run=True).token
    asked = ["forget", "--conversation", "c", "--token", token or ""]
    watched = Watched("--socket", served.path, *asked)
    assert watched.ends() == (0, "")
    shown = re.findall(r"\r(?:memory )?forget: ([a-z ]+), step (\d) of 3", watched.said)
    names = [name for name, _ in dict.fromkeys(shown)]
    # For a slow reader a later step replaces those before it.
    assert names and names == [each for each in ("look", "erase", "cut log") if each in names], watched.said


def test_a_pipe_is_told_nothing(served: Served) -> None:
    words = [sys.executable, "-m", "beetle", "--socket", served.path, "memory", "recover"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_store_that_is_opened_here_tells_it_too(folder: Path) -> None:
    MemoryRuntime.open(str(folder / "s.db"), profile="compact").close()
    watched = Watched("--store", str(folder / "s.db"), "verify")
    code, left = watched.ends()
    steps = re.findall(r"\rverify: [a-z ]+, step (\d+) of (\d+)", watched.said)
    assert (code, left) == (0, "") and "\n" not in watched.said, "it renews itself"
    assert steps[0][0] == "1" and steps[-1][0] == steps[-1][1] == str(len(steps))


def test_an_error_begins_on_a_line_of_its_own(served: Served) -> None:
    watched = Watched("--socket", served.path, "snapshot", "restore", "s-0000000000000000")
    code, left = watched.ends()
    assert code == 3 and left.startswith("beetle: not_found: ")


def test_what_is_called_off_says_that_the_daemon_ends_what_it_writes(served: Served) -> None:
    with writer_held(served.store) as free:
        watched = Watched("--socket", served.path, "memory", "recover")
        watched.reads(FIRST)
        watched.process.send_signal(signal.SIGINT)
        told = f"beetle: called off; the daemon at {served.path} finishes what it has begun, and it may have been done"
        code, left = watched.ends()
        assert code == 130 and re.fullmatch(rf"{told}: repeat it with the idempotency key [0-9a-f]{{32}}", left)
        free.set()
    with Client(served.path) as client:

        def logged() -> list[str]:
            return [each.event for each in client.read_event_log(newest_first=True).rows]

        until(lambda: "recovered" in logged(), "the end of the recovery")
        assert client.verify_store().clean


ERASURES = {
    "forget": ("forget", "--conversation", "c", "--yes"),
    "delete_raw": ("transcript", "lifecycle", "c", "--action", "delete_raw", "--before", "2099-01-01T00:00:00Z",
                   "--reason", "asked"),
}  # fmt: skip
SAID = [f"pelican{number}" for number in range(8)]


def half_is_gone(asked: OperationMethods) -> None:
    """Of what was said, the two slices that were begun are erased, whole, and the rest is as it was."""
    event = asked.read_event_log(newest_first=True, limit=1).rows[0]
    assert (event.event, event.subject["turns"]) == ("erasure_called_off", 4)
    assert [bool(asked.recall(query=word).hits) for word in SAID] == [False] * 4 + [True] * 4
    assert asked.verify_store().clean


@pytest.mark.parametrize("words", ERASURES.values(), ids=ERASURES)
def test_an_interrupt_calls_off_an_erasure_of_the_daemon_between_two_slices(
    served: Served, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    with Client(served.path) as client:
        client.commit_transcript(conversation={"conversation_id": "c"}, turns=list(map(turn, SAID, SAID)))
        held = HeldErasure(monkeypatch)
        watched = Watched("--socket", served.path, *words)
        assert held.begun.wait(PATIENCE_S)
        watched.process.send_signal(signal.SIGINT)
        code, left = watched.ends()
        assert code == 130 and "called off; the daemon at" in left
        held.free.set()
        until(lambda: served.server.connections == 1, "the end of its connection")
        half_is_gone(client)


@pytest.mark.parametrize("words", ERASURES.values(), ids=ERASURES)
def test_an_interrupt_calls_off_an_erasure_in_this_process_between_two_slices(
    beetle: CommandLine, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    with MemoryRuntime.open(beetle.store, profile="standalone") as memory:
        memory.commit_transcript(conversation={"conversation_id": "c"}, turns=list(map(turn, SAID, SAID)))
    held = HeldErasure(monkeypatch)

    def interrupt() -> None:
        assert held.begun.wait(PATIENCE_S)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        held.free.set()

    with ThreadPoolExecutor(1) as person:
        pressed = person.submit(interrupt)
        told = beetle.here(*words)
        pressed.result()
    assert told.code == 130 and "Erased" not in told.out
    assert told.err == "beetle: called off; before all was erased: 4 of 8 were, and stay erased\n"
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with MemoryRuntime.open(beetle.store, profile="standalone") as memory:
        assert not memory.open_report.findings
        half_is_gone(memory)


def test_a_write_in_this_process_that_is_called_off_may_have_been_done(
    beetle: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pressed(*_: object) -> NoReturn:
        signal.raise_signal(signal.SIGINT)
        raise AssertionError("it is raised here")

    monkeypatch.setitem(HANDLERS, "transcript.commit", Write(pressed))
    said: dict[str, Any] = turn("t", "words")
    arguments = {"conversation": {"conversation_id": "c"}, "turns": [said]}
    told = beetle.here("call", "transcript.commit", json.dumps(arguments), "--idempotency-key", "k1")
    line = "beetle: called off; it may have been done: repeat it with the idempotency key k1\n"
    assert (told.code, told.err) == (130, line)
    file = beetle.folder / "turns.jsonl"
    file.write_text(json.dumps({"conversation": "c", **said}))
    told = beetle.here("import", str(file))
    assert (told.code, told.err) == (130, "beetle: called off; what was taken in stays: run it again for the rest\n")


def test_an_import_that_is_called_off_while_it_is_sent_leaves_nothing(served: Served, folder: Path) -> None:
    given = folder / "given"
    with MemoryRuntime.open(str(folder / "s.db"), profile="compact") as memory:
        for n in range(8):
            message = {"message_id": f"m{n}", "role": "user", "content": f"{n} " * 25_000}
            turn = {"turn_id": f"t{n}", "at": "2026-01-02T03:04:05Z", "messages": [message]}
            memory.commit_transcript(conversation={"conversation_id": "c"}, turns=[turn])
        given.write_bytes(memory.export_snapshot("c").snapshot or b"")
    words = ("memory", "import", str(given), "--target-chat-id", "c", "--mode", "bootstrap_import")
    with ExitStack() as held:
        for name in ("one", "other"):
            turns = served.dispatcher.shared.large_turns
            held.enter_context(turns.held(name, time.monotonic() + 60, None))
        watched = Watched("--socket", served.path, *words)
        watched.reads(f"memory import: send, 0 of {given.stat().st_size:,}")
        watched.process.send_signal(signal.SIGINT)
        code, _ = watched.ends()
        assert code == 130
    with Client(served.path) as client:
        assert client.list_conversations().conversations == ()
        assert [each.name for each in folder.iterdir() if "transfer" in each.name] == []
    until(lambda: served.server.connections == 0, "the end of the connections")


def test_what_tells_its_progress_is_what_the_docs_name() -> None:
    page = " ".join((ROOT / "docs/socket.md").read_text().split())
    sentence = page.partition("These operations report progress: ")[2].partition(". ")[0]
    named = {word.strip("`,") for word in sentence.split() if word.startswith("`")}
    assert named == {row.name for row in OPERATIONS if row.progress}
