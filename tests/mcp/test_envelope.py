"""Revision 2026-07-28: no handshake; each request names its revision."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.forked import Daemon
from tests.mcp.host import Host, text_of

NEW = "2026-07-28"
PREFIX = "io.modelcontextprotocol/"


def meta(version: Any = NEW, **more: Any) -> dict[str, Any]:
    return {f"{PREFIX}protocolVersion": version, f"{PREFIX}clientCapabilities": {}, **more}


def ask(host: Host, method: str, **params: Any) -> dict[str, Any]:
    return host.ask(method, {**params, "_meta": meta()})


@pytest.fixture(scope="module")
def enveloped(daemon: Daemon) -> Iterator[Host]:
    with Host("--socket", daemon.socket, "mcp", revision=None) as host:
        assert ask(host, "server/discover")["result"]["supportedVersions"] == [NEW]
        yield host


def test_every_result_says_what_it_is_and_whose(enveloped: Host) -> None:
    found = ask(enveloped, "server/discover")["result"]
    assert set(found["capabilities"]) == {"tools", "resources", "prompts"}, "no logging: this revision gave it up"
    assert "memory_recall" in found["instructions"]
    lists = ("tools/list", "resources/list", "resources/templates/list", "prompts/list")
    answers = [(found, True), *((ask(enveloped, method)["result"], True) for method in lists)]
    answers.append((ask(enveloped, "resources/read", uri="beetle://guide")["result"], True))
    called = ask(enveloped, "tools/call", name="memory_recall", arguments={"query": "spare key"})["result"]
    prompt = ask(enveloped, "prompts/get", name="resume", arguments={"topic": "key"})["result"]
    for result, kept in (*answers, (called, False), (prompt, False)):
        assert result["resultType"] == "complete"
        assert result["_meta"][f"{PREFIX}serverInfo"]["name"] == "beetle"
        assert ("ttlMs" in result) == (result.get("cacheScope") == "private") == kept
    assert called["structuredContent"]["hits"] and "flower pot" in text_of(called)


def test_an_error_of_a_tool_keeps_its_own_fields(enveloped: Host) -> None:
    result = ask(enveloped, "tools/call", name="memory_recall", arguments={"query": 7})["result"]
    assert result["isError"] and result["_meta"]["beetle/error"]["path"] == "$.args.query"
    assert f"{PREFIX}serverInfo" in result["_meta"]


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("tools/list", {}, -32602),
        ("tools/list", {"_meta": {f"{PREFIX}protocolVersion": NEW}}, -32602),
        ("tools/list", {"_meta": meta(7)}, -32602),
        ("tools/list", {"_meta": meta("2031-01-01")}, -32022),
        ("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {}}, -32022),
        ("ping", {"_meta": meta()}, -32601),
        ("logging/setLevel", {"_meta": meta(), "level": "debug"}, -32601),
        ("subscriptions/listen", {"_meta": meta(), "notifications": {}}, -32601),
        ("resources/read", {"_meta": meta(), "uri": "beetle://nothing"}, -32602),
    ],
)
def test_what_is_not_of_this_revision_is_refused(
    enveloped: Host, method: str, params: dict[str, Any], code: int
) -> None:
    error = enveloped.ask(method, params)["error"]
    assert error["code"] == code
    if code == -32022:
        assert error["data"]["supported"] == [NEW]
    assert ask(enveloped, "tools/list")["result"]["tools"], "the session goes on"


def test_a_session_with_a_handshake_takes_no_request_that_names_its_revision(host: Host) -> None:
    assert host.ask("tools/list", {"_meta": meta()})["error"]["code"] == -32600
    assert host.ask("server/discover", {})["error"]["code"] == -32601
    assert host.ask("tools/list")["result"]["tools"]


def test_a_revision_that_is_not_known_decides_nothing(daemon: Daemon) -> None:
    with Host("--socket", daemon.socket, "mcp", revision=None) as host:
        assert host.ask("server/discover", {"_meta": meta("2031-01-01")})["error"]["code"] == -32022
        asked = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        assert host.ask("initialize", asked)["result"]["protocolVersion"] == "2025-06-18"


def test_progress_and_cancelling_are_as_before(daemon: Daemon) -> None:
    with Host("--socket", daemon.socket, "mcp", "--toolset", "all", revision=None) as host:
        params = {"name": "store_verify", "arguments": {}, "_meta": meta(progressToken="p")}
        result = host.ask("tools/call", params)["result"]
        assert result["structuredContent"]["clean"] and result["resultType"] == "complete"
        assert host.notes.get(timeout=30)["params"]["progressToken"] == "p"
        host.note("notifications/cancelled", {"requestId": 99})
        assert ask(host, "tools/list")["result"]["tools"]
