"""A thin client: of a daemon that restarts, of none, of one that it starts; what is cancelled, and how far it is."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from beetle.runtime.areas.table import HANDLERS
from beetle.runtime.pipeline.handlers import Read
from tests.forked import Daemon
from tests.mcp.conftest import KITCHEN, PROFILE
from tests.mcp.host import ROOT, Host, text_of
from tests.transports.serving import PATIENCE_S, Served, until
from tests.transports.standin import Far, Scripted, serve_well
from tests.transports.test_gone import Readings


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with a short path, for a socket."""
    with tempfile.TemporaryDirectory(prefix="bm-") as made:
        yield Path(made)


@pytest.fixture
def own() -> Iterator[Daemon]:
    """A daemon that a test may kill."""
    with Daemon(profile=PROFILE) as running:
        with running.client() as client:
            client.call("transcript.commit", KITCHEN)
        yield running


def recall(host: Host) -> str:
    return text_of(host.call("memory_recall", query="spare key"))


def message_of(number: int) -> dict[str, Any]:
    message = {"message_id": f"m{number}", "role": "user", "content": f"the parcel number {number}"}
    return {"turn_id": f"t{number}", "at": "2026-03-02T09:00:00Z", "messages": [message]}


def test_a_daemon_that_was_killed_and_started_again_is_found(own: Daemon) -> None:
    with Host("--socket", own.socket, "mcp", "--toolset", "all") as host:
        assert "flower pot" in recall(host)
        own.kill()
        written = host.begin(
            "tools/call",
            {
                "name": "transcript_commit",
                "arguments": {"conversation": {"conversation_id": "later"}, "turns": [message_of(1)]},
            },
        )
        while host.notes.get(timeout=60)["params"]["level"] != "warning":
            pass  # it has seen that the daemon is gone
        own.start()
        assert host.answer(written)["result"]["structuredContent"]["committed"] == 1
        assert "parcel" in text_of(host.call("memory_recall", query="parcel number"))


def test_without_a_daemon_the_store_is_opened_and_given_back(tmp_path: Path) -> None:
    store = str(tmp_path / "b.db")
    with Host("--store", store, "mcp", "--toolset", "all") as host, Host("--store", store, "mcp") as other:
        assert "holds nothing" in recall(other), "a store that is not there yet is made"
        result = host.call("transcript_commit", **KITCHEN)
        assert result["structuredContent"]["committed"] == 1
        assert "flower pot" in recall(other), "no process keeps the store"
        with Daemon(profile=PROFILE, folder=str(tmp_path)) as daemon:
            assert "flower pot" in recall(host), "a daemon that comes is found"
            with daemon.client() as client:
                assert client.hello().principal == "operator"
        assert host.end() == 0
    assert not list(tmp_path.glob("*.sock"))


def test_a_named_socket_where_nobody_answers_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    with Host("--socket", str(tmp_path / "none.sock"), "mcp") as host:
        result = host.call("memory_recall", query="x")
        assert result["isError"]
        assert result["_meta"]["beetle/error"]["key"] == "daemon_unavailable"
        assert "beetle" in result["_meta"]["beetle/error"]["hint"]
        assert host.tools(), "tools are listed all the same"


def test_autostart_starts_a_daemon_that_stays(tmp_path: Path) -> None:
    options = ["--store", str(tmp_path / "b.db"), "--profile", PROFILE]
    env = {"BEETLE_SOCKET": "", "XDG_RUNTIME_DIR": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    socket = ["--socket", str(tmp_path / "b.sock")]
    try:
        with Host(*socket, *options, "mcp", "--autostart", env=env) as host:
            assert "holds nothing" in recall(host)
            assert host.end() == 0
            assert all(json.loads(each)["jsonrpc"] == "2.0" for each in host.lines)
        status = subprocess.run(
            [sys.executable, "-m", "beetle", *socket, "status"], cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert status.returncode == 0, status
    finally:
        subprocess.run([sys.executable, "-m", "beetle", *socket, "stop"], cwd=ROOT, capture_output=True, check=True)


def test_a_host_asks_as_its_principal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "beetle.toml"
    config.write_text('[principals.host]\nowner_id = "ada"\nagent_id = "host"\ncapabilities = ["recall", "project"]\n')
    monkeypatch.setenv("BEETLE_CONFIG", str(config))
    with Daemon(profile=PROFILE, folder=str(tmp_path)) as daemon:
        with Host("--socket", daemon.socket, "--as", "host", "mcp", "--toolset", "all") as host:
            tools = host.tools()
            assert {"memory_recall", "memory_project"} <= set(tools)
            assert "transcript_commit" not in tools
            assert "holds nothing" in recall(host)
            told = host.call("transcript_commit", **KITCHEN)["_meta"]["beetle/error"]
            assert told["key"] == "forbidden"
            assert "tell the user" in told["hint"]
        with Host("--socket", daemon.socket, "--as", "nobody", "mcp") as host:
            assert host.call("memory_recall", query="x")["_meta"]["beetle/error"]["key"] == "unauthorized"
    with Host("--store", daemon.store, "--as", "host", "mcp") as host:
        told = host.call("memory_recall", query="x")["_meta"]["beetle/error"]
        assert told["key"] == "daemon_unavailable", "nothing was refused to this host"
        assert " start`, or leave --as out" in told["hint"]


def test_a_host_waits_for_its_daemon_that_is_started_again_and_asks_as_the_same_principal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "beetle.toml"
    config.write_text('[principals.host]\nowner_id = "ada"\nagent_id = "host"\ncapabilities = ["recall"]\n')
    monkeypatch.setenv("BEETLE_CONFIG", str(config))
    with (
        Daemon(profile=PROFILE, folder=str(tmp_path)) as daemon,
        Host("--socket", daemon.socket, "--as", "host", "mcp", "--toolset", "all") as host,
    ):
        assert "holds nothing" in recall(host)
        daemon.kill()
        asked = host.begin("tools/call", {"name": "memory_recall", "arguments": {"query": "spare key"}})
        while host.notes.get(timeout=60)["params"]["level"] != "warning":
            pass  # it has seen that the daemon is gone
        daemon.start()
        assert "holds nothing" in text_of(host.answer(asked)["result"])
        assert host.call("transcript_commit", **KITCHEN)["_meta"]["beetle/error"]["key"] == "forbidden"


def walk(far: Far) -> None:
    """Answers one call that is followed, after it has said how far it is."""
    far.answer(far.request(), {"sub": "s1", "topics": ["lifecycle"]})
    request = far.request()
    for number, done in ((1, 0), (1, 5), (1, 5), (2, 0)):
        step = {"event": "progress", "step": "read_pages", "number": number, "steps": 2, "done": done, "of": 10}
        far.send({"v": 1, "sub": "s1", "topic": "lifecycle", "event": step})
    far.answer(request)
    far.answer(far.request(), {"sub": "s1"})


def test_progress_is_told_to_who_gave_a_token_and_grows(tmp_path: Path) -> None:
    path = str(tmp_path / "b.sock")
    with Scripted(path, walk), Host("--socket", path, "mcp", "--toolset", "all") as host:
        params = {"name": "skill_list", "arguments": {}, "_meta": {"progressToken": "walk"}}
        assert "result" in host.ask("tools/call", params)
        told = [host.notes.get()["params"] for _ in range(host.notes.qsize())]
    assert [each["progress"] for each in told] == [0, 0.5, 1]
    assert {(each["progressToken"], each["total"]) for each in told} == {("walk", 2)}
    assert told[1]["message"] == "read pages (5 of 10)"


def test_progress_is_not_followed_for_who_gave_no_token(tmp_path: Path) -> None:
    path = str(tmp_path / "b.sock")
    with Scripted(path, serve_well) as daemon, Host("--socket", path, "mcp", "--toolset", "all") as host:
        assert "result" in host.ask("tools/call", {"name": "skill_list", "arguments": {}})
        assert [each["op"] for each in daemon.requests] == ["skill.list"]
        assert host.notes.empty()


def test_a_cancelled_call_gets_no_answer_and_its_work_ends(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A read without an end, which nothing but the cancellation can stop."""
    readings = Readings()
    monkeypatch.setitem(HANDLERS, "memory.inspect", Read(readings.endless))
    with (
        Served(folder, default_deadline_ms=3_600_000) as served,
        Host("--socket", served.path, "mcp", "--toolset", "all") as host,
    ):
        host.ask("logging/setLevel", {"level": "debug"})
        asked = host.begin("tools/call", {"name": "memory_inspect", "arguments": {}})
        assert readings.begun.acquire(timeout=PATIENCE_S)
        assert readings.ended == []
        host.note("notifications/cancelled", {"requestId": asked, "reason": "not wanted"})
        while "was cancelled" not in host.notes.get(timeout=60)["params"]["data"]:
            pass
        assert host.ask("ping")["result"] == {}, "the session goes on"
        until(lambda: len(readings.ended) == 1, "the end of the daemon's read")
        assert "holds nothing" in recall(host)
        assert not any(json.loads(each).get("id") == asked for each in host.lines)


def test_logs_are_sent_from_the_level_that_was_set(tmp_path: Path) -> None:
    with Host("--store", str(tmp_path / "b.db"), "mcp", "--toolset", "all") as host:
        assert host.ask("logging/setLevel", {"level": "emergency"})["result"] == {}
        host.note("notifications/cancelled", {"requestId": "none"})
        host.ask("ping")
        assert host.notes.empty()
