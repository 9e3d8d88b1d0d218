"""The protocol's official client drives every list, tool, resource and prompt, and checks results against schemas."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from beetle.contracts.capabilities import APART, CAPABILITIES
from beetle.contracts.names import VIEW_NAMES
from beetle.mcp.tools import Tools
from beetle.sdk import MemoryRuntime
from tests.cases import Prepared
from tests.forked import Daemon
from tests.mcp.arguments import ERRORS, OWNERS, arguments_of, in_order, prepared
from tests.mcp.host import ROOT

pytest.importorskip("mcp", reason="the official client is in the dev extra: pip install 'mcp>=2.0'")

Session = Any
WHOLE = "profile-server-linux-dev-full"


def drive(where: list[str], work: Callable[[Session], Awaitable[None]], *words: str) -> None:
    import anyio
    from mcp import ClientSession, StdioServerParameters, stdio_client

    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "beetle", *where, "mcp", *words],
        cwd=str(ROOT),
        env=dict(os.environ),
    )

    async def run() -> None:
        async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
            await session.initialize()
            await work(session)

    anyio.run(run)


def test_it_lists_and_reads_and_calls(daemon: Daemon) -> None:
    async def work(session: Session) -> None:
        assert session.protocol_version == "2025-11-25"
        assert "memory_recall" in session.instructions
        tools = {each.name: each for each in (await session.list_tools()).tools}
        assert tools["memory_recall"].annotations.read_only_hint
        found = await session.call_tool("memory_recall", {"query": "spare key"})
        assert not found.is_error
        assert found.structured_content["hits"]
        wrong = await session.call_tool("memory_recall", {"query": 7})
        assert wrong.is_error
        for each in (await session.list_resources()).resources:
            assert (await session.read_resource(each.uri)).contents[0].text
        assert len((await session.list_resource_templates()).resource_templates) == 2
        assert "Mara" in (await session.read_resource("beetle://conversation/local/kitchen")).contents[0].text
        (prompt,) = (await session.list_prompts()).prompts
        assert "flower pot" in (await session.get_prompt(prompt.name, {"topic": "key"})).messages[0].content.text
        await session.send_ping()

    drive(["--socket", daemon.socket], work)


class Called(NamedTuple):
    """What the tools answered, by their names."""

    results: dict[str, Any]

    def succeeded(self) -> None:
        """Every one did; or said that no model is there to be asked."""
        for name, result in self.results.items():
            key = ERRORS.get(Tools("all").get(name).row.name)
            assert bool(result.is_error) is (key is not None), (name, result.content)
            if key is not None:
                assert result.meta["beetle/error"]["key"] == key, name
            else:
                # The client itself has refused a structured result that does not fit the tool's schema.
                assert result.structured_content is not None and result.content[0].text, name


def call_all(where: list[str], got: Prepared) -> Called:
    told = Called({})

    async def work(session: Session) -> None:
        listed = [each.name for each in (await session.list_tools()).tools]
        for tool in in_order(listed):
            told.results[tool.name] = await session.call_tool(tool.name, arguments_of(tool, got))

    drive(where, work, "--toolset", "all")
    return told


def test_every_tool_of_a_daemon_is_called_and_its_result_fits_its_schema(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its owner, in a profile that hides nothing."""
    config = tmp_path / "beetle.toml"
    capabilities = json.dumps([each.name for each in (*CAPABILITIES, *APART)])
    granted = f"capabilities = {capabilities}\nviews = {json.dumps(VIEW_NAMES)}\n"
    config.write_text(f'[principals.me]\nuid = {os.getuid()}\nowner_id = "ann"\nagent_id = "agent-main"\n{granted}')
    monkeypatch.setenv("BEETLE_CONFIG", str(config))
    with Daemon(profile=WHOLE) as running:
        with running.client() as client:
            got = prepared(client, *OWNERS)
        called = call_all(["--socket", running.socket], got)
    called.succeeded()
    assert set(called.results) == set(Tools("all").names())


def test_every_tool_is_called_on_a_store_that_is_opened_here(tmp_path: Path) -> None:
    """As the operator, who is not the owner."""
    store = str(tmp_path / "b.db")
    with MemoryRuntime.open(store, profile=WHOLE) as memory:
        got = prepared(memory, *OWNERS)
    called = call_all(["--store", store, "--profile", WHOLE], got)
    told = {name: called.results.pop(name) for name in ("private_list", "private_get", "private_delete")}
    assert {each.meta["beetle/error"]["key"] for each in told.values()} == {"forbidden"}
    called.succeeded()
    assert {*called.results, *told} == set(Tools("all").names())


def test_a_client_of_the_revision_without_a_handshake_finds_out_and_drives_it(daemon: Daemon) -> None:
    import anyio
    from mcp import Client, StdioServerParameters, stdio_client

    words = ["-m", "beetle", "--socket", daemon.socket, "mcp"]
    server = StdioServerParameters(command=sys.executable, args=words, cwd=str(ROOT), env=dict(os.environ))

    async def run() -> None:
        async with Client(stdio_client(server)) as client:
            assert client.session.protocol_version == "2026-07-28"
            assert (await client.call_tool("memory_recall", {"query": "spare key"})).structured_content["hits"]
            assert (await client.call_tool("memory_recall", {"query": 7})).is_error
            assert len((await client.list_tools()).tools) >= 5
            for each in (await client.list_resources()).resources:
                assert (await client.read_resource(each.uri)).contents[0].text
            assert (await client.list_resource_templates()).resource_templates
            (prompt,) = (await client.list_prompts()).prompts
            assert (await client.get_prompt(prompt.name, {"topic": "key"})).messages

    anyio.run(run)


def test_progress_reaches_the_client(tmp_path: Path) -> None:
    """Of a store that is opened here: its steps are told before the answer, however quick they are."""
    steps: list[float] = []
    guard = threading.Lock()

    async def follow(progress: float, total: float | None, message: str | None) -> None:
        with guard:
            steps.append(progress)

    async def work(session: Session) -> None:
        await session.call_tool("store_verify", {}, progress_callback=follow)

    drive(["--store", str(tmp_path / "b.db")], work, "--toolset", "all")
    assert steps == sorted(steps)
    assert steps
