"""The protocol's official client drives every list, tool, resource and prompt, and checks results against schemas."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from beetle.mcp.tools import Tools
from tests.mcp.host import ROOT
from tests.running import Daemon

pytest.importorskip("mcp", reason="the official client is in the dev extra: pip install 'mcp>=2.0'")

Session = Any


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


def test_every_tool_is_called_and_its_result_fits_its_schema(daemon: Daemon) -> None:
    """With the example of its row; the client refuses a structured result that does not fit."""
    told: dict[str, Any] = {}

    async def work(session: Session) -> None:
        listed = {each.name: each for each in (await session.list_tools()).tools}
        for name in Tools("all").names():
            if name not in listed:
                continue
            row = Tools("all").get(name).row
            if row.effect == "admin" or row.name in ("memory.maintain", "memory.finalize_turn"):
                continue  # they change the daemon under the other tests, or ask a model
            arguments = {key: value for key, value in row.example.items() if key != "kind"}
            told[name] = await session.call_tool(name, arguments)

    drive(["--socket", daemon.socket], work, "--toolset", "all")
    assert len(told) > 30
    good = [name for name, result in told.items() if not result.is_error]
    assert len(good) > 20, {name: each.content for name, each in told.items() if each.is_error}
    assert all(told[name].structured_content is not None for name in good)


def test_the_tools_that_change_the_daemon_are_called_on_a_store_of_their_own(tmp_path: Path) -> None:
    told: dict[str, Any] = {}

    async def work(session: Session) -> None:
        tools = Tools("all")
        for name in tools.names():
            row = tools.get(name).row
            if row.effect == "admin" or row.name in ("memory.maintain", "memory.finalize_turn"):
                arguments = {key: value for key, value in row.example.items() if key != "kind"}
                told[name] = await session.call_tool(name, arguments)

    drive(["--store", str(tmp_path / "b.db")], work, "--toolset", "all")
    assert len(told) > 5
    for name, each in told.items():
        assert each.is_error or each.structured_content is not None, name
    assert not told["snapshot_create"].is_error and not told["memory_recover"].is_error


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
