"""JSON-RPC and the session: revisions, what is no message, bounds, batches, and the end."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.forked import Daemon
from tests.mcp.host import LATEST, Host, text_of

REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
FOUR_MIB = 4 * 1024 * 1024


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_revision_is_negotiated_and_gets_only_what_it_knows(daemon: Daemon, revision: str) -> None:
    with Host("--socket", daemon.socket, "mcp", revision=revision) as host:
        assert host.told["protocolVersion"] == revision
        assert "memory_recall" in host.told["instructions"]
        recall = host.tools()["memory_recall"]
        assert ("annotations" in recall) == (revision > "2024-11-05")
        assert ("outputSchema" in recall) == ("title" in recall) == (revision > "2025-03-26")
        result = host.call("memory_recall", query="spare key")
        assert "flower pot" in text_of(result)
        assert ("structuredContent" in result) == (revision > "2025-03-26")
        pair = [{"jsonrpc": "2.0", "id": each, "method": "ping"} for each in ("a", "b")]
        host.put(pair)
        if revision == "2025-03-26":
            assert {each["id"] for each in host.answer("batch")} == {"a", "b"}
        else:
            assert host.answer(None)["error"]["code"] == -32600
        assert host.end() == 0


def test_a_revision_that_is_not_known_gets_the_latest(daemon: Daemon) -> None:
    with Host("--socket", daemon.socket, "mcp", revision="2031-01-01") as host:
        assert host.told["protocolVersion"] == LATEST


def test_a_batch_is_answered_at_once_and_one_without_requests_not(daemon: Daemon) -> None:
    with Host("--socket", daemon.socket, "mcp", revision="2025-03-26") as host:
        call = {"name": "memory_recall", "arguments": {"query": "tea"}}
        host.put([
            {"jsonrpc": "2.0", "method": "notifications/nobody-knows"},
            {"jsonrpc": "2.0", "id": "call", "method": "tools/call", "params": call},
            {"jsonrpc": "2.0", "id": "odd", "method": "no/such"},
            7,
        ])  # fmt: skip
        answers = {each["id"]: each for each in host.answer("batch")}
        assert "green tea" in text_of(answers["call"]["result"])
        assert answers["odd"]["error"]["code"] == -32601
        assert answers[None]["error"]["code"] == -32600
        host.put([])
        assert host.answer(None)["error"]["code"] == -32600
        host.put([{"jsonrpc": "2.0", "method": "notifications/initialized"}])
        assert host.ask("ping")["result"] == {}


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"no json", -32700),
        (b'{"jsonrpc": "2.0", "id": 1', -32700),
        (b"\xff\xfe", -32700),
        (b"[" * 100_000, -32700),
        (b'{"jsonrpc": "2.0", "id": 5, "method": "ping", "params": {"x": NaN}}', -32700),
        (b'{"jsonrpc": "2.0", "id": 5, "method": "ping", "params": {"x": -1e999}}', -32700),
        (b'{"jsonrpc": "2.0", "id": 5, "method": "ping", "params": {"x": "\\ud800"}}', -32700),
        (b'{"jsonrpc": "2.0", "id": "\\udfff", "method": "ping"}', -32700),
        (b'{"jsonrpc": "2.0", "id": 1%s, "method": "ping"}' % (b"0" * 5_000), -32700),
        (b"17", -32600),
        (b'{"id": 5, "method": 7, "jsonrpc": "2.0"}', -32600),
        (b'{"id": null, "method": "ping", "jsonrpc": "2.0"}', -32600),
        (b'{"id": true, "method": "ping", "jsonrpc": "2.0"}', -32600),
        (b'{"id": 5, "method": "ping"}', -32600),
        (b'{"id": 5, "method": "ping", "jsonrpc": "2.0", "params": [1]}', -32602),
        (b'{"id": 5, "method": "tools/never", "jsonrpc": "2.0"}', -32601),
        (b'{"id": 5, "method": "tools/call", "jsonrpc": "2.0"}', -32602),
        (b'{"id": 5, "method": "tools/call", "jsonrpc": "2.0", "params": {"name": "memory_recal"}}', -32602),
        (b'{"id": 5, "method": "tools/list", "jsonrpc": "2.0", "params": {"cursor": "x"}}', -32602),
        (b'{"id": 5, "method": "logging/setLevel", "jsonrpc": "2.0", "params": {"level": "loud"}}', -32602),
        (b'{"id": 5, "method": "initialize", "jsonrpc": "2.0", "params": {}}', -32602),
        (b'{"id": 5, "method": "prompts/get", "jsonrpc": "2.0", "params": {"name": "none"}}', -32602),
        (b'{"id": 5, "method": "resources/read", "jsonrpc": "2.0", "params": {"uri": "file:///etc/passwd"}}', -32002),
    ],
)
def test_what_is_no_message_is_answered_and_the_session_goes_on(host: Host, line: bytes, code: int) -> None:
    host.send(line + b"\n")
    shown = 5 if code != -32700 and b'"id": 5' in line else None
    assert host.answer(shown)["error"]["code"] == code
    assert host.ask("ping")["result"] == {}


def test_an_answer_and_an_unknown_notification_are_passed_over(host: Host) -> None:
    host.put({"jsonrpc": "2.0", "id": 99, "result": {}})
    host.note("notifications/roots/list_changed")
    host.note("notifications/cancelled", {"requestId": 12345})
    host.send(b"\r\n\n")
    assert host.ask("ping")["result"] == {}


def test_a_session_begins_with_little_memory(daemon: Daemon) -> None:
    """Peaks of memory, in KiB: a bare interpreter's, and that of a server that has answered initialize."""
    program = "import re; print(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1])"
    bare = int(subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, check=True).stdout)
    with Host("--socket", daemon.socket, "mcp") as host:
        assert peak(host) - bare < 20 * 1024


def peak(host: Host) -> int:
    lines = Path(f"/proc/{host.process.pid}/status").read_text().splitlines()
    return next(int(each.split()[1]) for each in lines if each.startswith("VmHWM:"))


def test_a_line_that_is_too_long_is_told_and_takes_no_more_memory_than_its_bound(host: Host) -> None:
    host.ask("ping")
    before = peak(host)
    for _ in range(16):
        host.send(b"x" * FOUR_MIB)
    host.send(b"\n")
    assert "bytes" in host.answer(None)["error"]["message"]
    assert host.ask("ping")["result"] == {}
    assert peak(host) - before < 24 * 1024, "KiB, of 64 MiB that were sent"


def test_requests_of_one_id_at_a_time(host: Host) -> None:
    call = {"name": "memory_recall", "arguments": {"query": "tea"}}
    request = {"jsonrpc": "2.0", "id": "same", "method": "tools/call", "params": call}
    host.put(request)
    host.put(request)
    first, second = host.answer("same"), host.answer("same")
    assert sum("result" in each for each in (first, second)) >= 1


def test_the_end_of_stdin_lets_what_was_asked_be_answered_and_ends_with_0(daemon: Daemon) -> None:
    with Host("--socket", daemon.socket, "mcp") as host:
        asked = [host.begin("tools/call", {"name": "memory_recall", "arguments": {"query": "tea"}}) for _ in range(20)]
        assert host.end() == 0
        assert all("green tea" in text_of(host.answer(each)["result"]) for each in asked)
        assert host.process.stderr is not None
        assert host.process.stderr.read() == b""
        assert all(json.loads(each)["jsonrpc"] == "2.0" for each in host.lines), "nothing but protocol"
