"""Pydantic AI: a toolset over a daemon."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from uuid import uuid4

from beetle.async_client import AsyncClient
from beetle.contracts.common import WireScope
from tests.adapters.conftest import framework
from tests.running import Daemon

framework("pydantic_ai", "pydantic-ai")

from pydantic_ai import Agent  # noqa: E402
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart  # noqa: E402
from pydantic_ai.models.function import AgentInfo, FunctionModel  # noqa: E402

from beetle.adapters.pydantic_ai import BeetleToolset  # noqa: E402


def test_an_agent_notes_and_recalls(daemon: Daemon) -> None:
    offered: dict[str, list[str]] = {}
    calls = [
        ToolCallPart("note", {"text": "The shed key hangs in the hall."}),
        ToolCallPart("recall_memory", {"query": "shed key", "limit": 1}),
        ToolCallPart("recall_memory", {"query": " "}),
    ]

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        offered.update({tool.name: list(tool.parameters_json_schema["properties"]) for tool in info.function_tools})
        assert all(tool.description for tool in info.function_tools)
        returned = [part.content for each in messages for part in each.parts if isinstance(part, ToolReturnPart)]
        if len(returned) == len(calls):
            return ModelResponse(parts=[TextPart(" | ".join(map(str, returned)))])
        return ModelResponse(parts=[calls[len(returned)]])

    async def work() -> str:
        scope = WireScope(owner_id=f"owner-{uuid4().hex[:8]}")
        async with AsyncClient(daemon.socket, scope=scope) as memory:
            agent = Agent(FunctionModel(answer), toolsets=[BeetleToolset(memory, "garden")])
            return (await agent.run("Keep this.")).output

    noted, recalled, blank = asyncio.run(work()).split(" | ")
    assert offered == {"recall_memory": ["query", "limit"], "note": ["text"]}
    assert noted == "Noted." and "The shed key hangs in the hall." in recalled and blank.startswith("Give words")


def test_the_page(run_example: Callable[[str], None]) -> None:
    run_example("Pydantic AI")
