"""Hooks of hosts, files of their spool, and lines of `beetle capture`."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random

from beetle.cli.capturing import lines_of
from beetle.client import Client
from beetle.hook import Link, drain
from beetle.hook import main as hook
from beetle.spool import spool_names
from tests.cases import CAPTURED, INGESTED
from tests.fuzz.contract import Broken, refusal_of
from tests.fuzz.mutation import changed_bytes, changed_json
from tests.fuzz.targets.serving import Server
from tests.fuzz.targets.target import Target

TRIES = 3
"""A daemon that is busy takes an event the next time."""
SPOOLED = "00000000000000000001-1-00000000.json"


class Hooks(Target):
    most_bytes = 4_096
    tokens = (
        b'"hook_event_name":"PostToolUse"', b'"tool_response":{}', b'"session_id":"s"', b'"timestamp":"', b"1e999",
        b"9" * 40, b'"\\ud800"', b'"sockets":[[]]', b'"scope":1', b'"op":"turn.capture"', b"[" * 200,
        b'"identity":{"auth_file":"/dev/zero"}', b'"identity":1',
    )  # fmt: skip

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._server = Server()
        self._spool = folder / "beetle/spool"
        self._env = {"XDG_STATE_HOME": str(folder), "BEETLE_HOOK_MS": "20000"}

    def __call__(self, data: bytes) -> None:
        self._hook(data)
        self._drain(data.replace(b"SOCKET", self._server.path.encode()))
        self._capture(data)
        self._server.look([])

    def _hook(self, data: bytes) -> None:
        """A host is never told of a failure, and waits for one line."""
        out, told = io.StringIO(), io.StringIO()
        with _environment(self._env), _input(data), contextlib.redirect_stdout(out), contextlib.redirect_stderr(told):
            code = hook(["--socket", self._server.path])
        if (code, out.getvalue()) != (0, '{"continue":true}\n'):
            raise Broken(f"the hook ended with {code} and said {out.getvalue()!r}")

    def _drain(self, data: bytes) -> None:
        """Whatever a file of the spool holds, those behind it are delivered."""
        shutil.rmtree(self._spool, ignore_errors=True)
        self._spool.mkdir(mode=0o700, parents=True)
        (self._spool / SPOOLED).write_bytes(data)
        good = {"op": "event.ingest", "args": INGESTED, "scope": {}, "sockets": [self._server.path], "identity": None}
        (self._spool / SPOOLED.replace("1", "2", 1)).write_text(json.dumps(good))
        link = Link.first([self._server.path], None, 20.0)
        assert link is not None
        try:
            for _ in range(TRIES):
                drain(str(self._spool), link, 20.0)
        finally:
            link.close()
        left = list(spool_names(str(self._spool)))
        if any(each.startswith(SPOOLED.replace("1", "2", 1).removesuffix(".json")) for each in left):
            raise Broken(f"an event is held up by the one before it: {left}")

    def _capture(self, data: bytes) -> None:
        read, write = os.pipe()
        os.write(write, data)
        os.close(write)
        with Client(self._server.path, retry=False) as client:
            for turn in lines_of(read):
                if turn is not None and turn.problem is None:
                    refusal_of(lambda request=turn.request: client.call("turn.capture", request))
        os.close(read)

    def seeds(self) -> list[bytes]:
        events = [
            {"hook_event_name": "SessionStart", "session_id": "s1", "cwd": "/w", "source": "startup"},
            {"hook_event_name": "UserPromptSubmit", "session_id": "s1", "prompt": "the key is under the pot"},
            {"hook_event_name": "PreToolUse", "session_id": "s1", "tool_name": "Bash", "tool_input": {"command": "ls"}},
            {"hook_event_name": "PostToolUse", "session_id": "s1", "tool_name": "B", "tool_response": {"stdout": "x"}},
            {"type": "agent-turn-complete", "thread-id": "t", "turn-id": "1", "input-messages": ["a"],
             "last-assistant-message": "b"},
            {"hook_event_name": "AfterAgent", "session_id": "s", "prompt_response": "done", "timestamp": 1738281600000},
            {"hook_event_name": "Stop", "session_id": "s", "timestamp": "2026-01-01T00:00:00Z", "agent": "sub"},
            CAPTURED,
            {"op": "event.ingest", "args": INGESTED, "scope": {"owner_id": "o"}, "sockets": ["SOCKET"],
             "identity": None},
            {"op": "turn.capture", "args": CAPTURED, "sockets": ["SOCKET", "/other"],
             "identity": {"auth_file": "/none", "device_id": "d"}},
        ]  # fmt: skip
        return [json.dumps(each).encode() for each in events]

    def changed(self, dice: Random, data: bytes) -> bytes:
        """With other values in its JSON."""
        return changed_json(dice, data) if dice.random() < 0.8 else changed_bytes(dice, data, self.tokens)

    def renew(self) -> None:
        self._server.renew()

    def close(self) -> None:
        self._server.close()


@contextlib.contextmanager
def _environment(wanted: dict[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(wanted)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextlib.contextmanager
def _input(data: bytes) -> Iterator[None]:
    """Standard input as a host gives it."""
    before, given = os.dup(0), os.memfd_create("input")
    try:
        os.write(given, data)
        os.lseek(given, 0, os.SEEK_SET)
        os.dup2(given, 0)
        yield
    finally:
        os.dup2(before, 0)
        os.close(before)
        os.close(given)
