"""MCP: lines of JSON-RPC to the real server, whose tools ask a daemon."""

from __future__ import annotations

import json
import os
from pathlib import Path
from random import Random
from typing import Any

from beetle.client import Client
from beetle.mcp.calls import MemoryAccess
from beetle.mcp.messages import INTERNAL_ERROR
from beetle.mcp.server import Output
from beetle.mcp.server import Server as McpServer
from beetle.mcp.tools import Tools
from beetle.open import Embedded
from tests.cases import CASES
from tests.fuzz.contract import DAMAGED, Broken
from tests.fuzz.mutation import changed_bytes, changed_lines
from tests.fuzz.targets.serving import Server
from tests.fuzz.targets.target import Target

ENDS = ("memory.close", "transport.update", "snapshot.restore")
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "x", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


class McpLines(Target):
    most_bytes = 8_192
    tokens = (
        b'{"jsonrpc":"2.0","id":7,"method":"ping"}\n', b'"jsonrpc":"2.0"', b'"id":1', b'"method":"tools/call"',
        b'"params":{"name":"memory_recall","arguments":{"query":"x"}}', b'"arguments":{}', b"[", b"]", b",", b"\n",
        b'"_meta":{"progressToken":1}', b'"\\ud800"', b"\xff", b"1e999", b"9" * 40, b'"notifications/cancelled"',
    )  # fmt: skip

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._server = Server()

    def __call__(self, data: bytes) -> None:
        given, taken = os.memfd_create("given"), os.memfd_create("taken")
        try:
            os.write(given, data)
            os.lseek(given, 0, os.SEEK_SET)
            access = MemoryAccess(lambda seconds: Client(self._server.path, timeout=seconds, retry=False), _nowhere)
            McpServer(Output(taken), access, "all").run(given)
            os.lseek(taken, 0, os.SEEK_SET)
            answers = os.read(taken, 1 << 26)
        finally:
            os.close(given)
            os.close(taken)
        errors = [_error_of(each) for line in answers.splitlines() for each in _messages(line)]
        self._server.look(errors)

    def seeds(self) -> list[bytes]:
        tools = Tools("all")
        by_operation = {tools.get(name).row.name: name for name in tools.names()}
        calls = []
        for case in CASES:
            if case.op in by_operation and case.op not in ENDS:
                try:
                    arguments = json.loads(json.dumps(self._server.request(case)))
                except TypeError:
                    continue
                calls.append(_line("tools/call", {"name": by_operation[case.op], "arguments": arguments}))
        hello = _line("initialize", {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {}})
        ready = b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
        reads = [
            _line("tools/list", {}), _line("resources/list", {}), _line("resources/templates/list", {}),
            _line("prompts/list", {}), _line("ping", {}), _line("logging/setLevel", {"level": "debug"}),
            _line("resources/read", {"uri": "beetle://guide"}), _line("prompts/get", {"name": "remember"}),
            _line("server/discover", {"_meta": META}), _line("tools/list", {"_meta": META}),
        ]  # fmt: skip
        batch = b"[" + b",".join(each.strip() for each in (*reads[:2], *calls[:2])) + b"]\n"
        return [hello + ready + b"".join(reads), hello + ready + batch, *(hello + each for each in calls), *calls[::5]]

    def changed(self, dice: Random, data: bytes) -> bytes:
        """A message with another value in it, or one more."""
        return changed_lines(dice, data) if dice.random() < 0.75 else changed_bytes(dice, data, self.tokens)

    def renew(self) -> None:
        self._server.renew()

    def close(self) -> None:
        self._server.close()


def _line(method: str, params: dict[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode() + b"\n"


def _nowhere() -> Embedded:
    raise AssertionError("a daemon is there")


def _messages(line: bytes) -> list[dict[str, Any]]:
    value = json.loads(line)
    found = value if isinstance(value, list) else [value]
    if not all(isinstance(each, dict) and each.get("jsonrpc") == "2.0" for each in found):
        raise Broken(f"no message of JSON-RPC: {line[:500]!r}")
    return found


def _error_of(message: dict[str, Any]) -> str | None:
    """The key of what a message refuses, `protocol` where that is none of ours; None for a result."""
    error = message.get("error")
    if error is not None:
        key = (error.get("data") or {}).get("key", "protocol")
        if key in DAMAGED or (error["code"] == INTERNAL_ERROR and key == "protocol"):
            raise Broken(f"{error}")
        return key
    told = message.get("result", {}).get("_meta", {}).get("beetle/error")
    if told is not None and told["key"] in DAMAGED:
        raise Broken(f"{told}")
    return None if told is None else told["key"]
