"""A host of the tests' own: `beetle mcp` as a child, and messages over its pipes."""

from __future__ import annotations

import itertools
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

ROOT = Path(__file__).parents[2]
PATIENCE_S = 60.0
LATEST = "2025-11-25"


class Host:
    """One session. What the server sends is sorted: answers by id, notifications in their order."""

    def __init__(
        self,
        *words: str,
        revision: str | None = LATEST,
        env: dict[str, str] | None = None,
        program: Sequence[str] = (sys.executable, "-m", "beetle"),
    ) -> None:
        self.process = subprocess.Popen(
            [*program, *words],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ, **(env or {})},
        )  # fmt: skip
        self._ids = itertools.count(1)
        self._answers: dict[Any, queue.Queue[Any]] = {}
        self._guard = threading.Lock()
        self.notes: queue.Queue[dict[str, Any]] = queue.Queue()
        self.lines: list[bytes] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.told: dict[str, Any] = {}
        if revision is not None:
            client = {"name": "tests", "version": "1"}
            asked = {"protocolVersion": revision, "capabilities": {}, "clientInfo": client}
            self.told = self.ask("initialize", asked)["result"]
            self.note("notifications/initialized")

    def _of(self, request_id: Any) -> queue.Queue[Any]:
        with self._guard:
            return self._answers.setdefault(request_id, queue.Queue())

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line)
            message = json.loads(line)
            if isinstance(message, list):
                self._of("batch").put(message)
            elif "method" in message:
                self.notes.put(message)
            else:
                self._of(message["id"]).put(message)

    def send(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def put(self, message: Any) -> None:
        self.send(json.dumps(message).encode() + b"\n")

    def begin(self, method: str, params: Any = None) -> int:
        request_id = next(self._ids)
        message = {"jsonrpc": "2.0", "id": request_id, "method": method}
        self.put(message if params is None else {**message, "params": params})
        return request_id

    def answer(self, request_id: Any) -> Any:
        """The answer to a request; None is the id of what was answered without one."""
        return self._of(request_id).get(timeout=PATIENCE_S)

    def ask(self, method: str, params: Any = None) -> dict[str, Any]:
        return self.answer(self.begin(method, params))

    def note(self, method: str, params: Any = None) -> None:
        message = {"jsonrpc": "2.0", "method": method}
        self.put(message if params is None else {**message, "params": params})

    def call(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """The result of a tool."""
        return self.ask("tools/call", {"name": tool, "arguments": arguments})["result"]

    def tools(self) -> dict[str, dict[str, Any]]:
        return {each["name"]: each for each in self.ask("tools/list")["result"]["tools"]}

    def end(self) -> int:
        """Close stdin; the exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        code = self.process.wait(PATIENCE_S)
        self._reader.join(PATIENCE_S)
        return code

    def __enter__(self) -> Host:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self._reader.join(PATIENCE_S)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()


def text_of(result: dict[str, Any]) -> str:
    """The text that a model reads."""
    return "\n".join(each["text"] for each in result["content"])
