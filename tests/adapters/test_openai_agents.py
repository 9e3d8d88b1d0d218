"""OpenAI Agents SDK: the session protocol over a daemon, and a run of an agent."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import uuid4

from beetle.async_client import AsyncClient
from beetle.contracts.common import WireScope
from tests.adapters.conftest import framework
from tests.running import Daemon

framework("agents", "openai-agents")

from agents import Agent, Model, ModelResponse, Runner, Usage, function_tool, set_tracing_disabled  # noqa: E402
from agents.memory import Session, SessionSettings  # noqa: E402
from openai.types.responses import (  # noqa: E402
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)

from beetle.adapters.openai_agents import BeetleSession  # noqa: E402

ITEMS: list[Any] = [
    {"role": "user", "content": "I fly on Friday."},
    {"role": "user", "content": [{"type": "input_text", "text": "From Tromsø."}]},
    {"type": "reasoning", "id": "r1", "summary": [{"type": "summary_text", "text": "think"}]},
    {"type": "function_call", "call_id": "c1", "name": "flights", "arguments": '{"from": "Tromsø"}', "id": "f1"},
    {"type": "function_call", "call_id": "c2", "name": "flights", "arguments": "not JSON"},
    {"type": "function_call_output", "call_id": "c1", "output": "none left"},
]


def run(daemon: Daemon, work: Callable[[AsyncClient], Awaitable[None]]) -> None:
    async def with_client() -> None:
        async with AsyncClient(daemon.socket, scope=WireScope(owner_id=f"owner-{uuid4().hex[:8]}")) as client:
            await work(client)

    asyncio.run(with_client())


def test_a_session_keeps_the_protocol(daemon: Daemon) -> None:
    async def work(memory: AsyncClient) -> None:
        session = BeetleSession(memory, "travel")
        assert isinstance(session, Session)
        assert await session.get_items() == [] and await session.pop_item() is None
        await session.clear_session()
        await session.add_items(ITEMS)
        assert await session.get_items() == ITEMS
        assert await session.get_items(limit=2) == ITEMS[-2:]
        assert await session.get_items(limit=0) == []
        session.session_settings = SessionSettings(limit=1)
        assert await session.get_items() == ITEMS[-1:]
        session.session_settings = None
        assert await session.pop_item() == ITEMS[-1]
        assert await session.get_items() == ITEMS[:-1]
        assert await BeetleSession(memory, "other").get_items() == []
        where = {"channel_id": "openai-agents", "conversation_id": "travel"}
        turns = (await memory.replay_transcript(conversation=where, view="host_ui")).turns
        calls = turns[3].messages[0].tool_calls
        assert calls and calls[0].arguments == {"from": "Tromsø"}
        await session.clear_session()
        assert await session.get_items() == []
        await session.add_items(ITEMS[:1])
        assert await session.get_items() == ITEMS[:1]

    run(daemon, work)


class Scripted(Model):
    """A model that calls a tool, then answers; notes what it was sent."""

    def __init__(self) -> None:
        self.sent: list[Any] = []

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        given = kwargs.get("input", args[1] if len(args) > 1 else None)
        self.sent.append(given)
        words = str(given)
        if "function_call_output" not in words:
            call = ResponseFunctionToolCall(arguments="{}", call_id="c1", name="departure", type="function_call")
            return ModelResponse(output=[call], usage=Usage(), response_id=None)
        text = ResponseOutputText(annotations=[], text="At nine.", type="output_text")
        said = ResponseOutputMessage(id="m1", content=[text], role="assistant", status="completed", type="message")
        return ModelResponse(output=[said], usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError


@function_tool
def departure() -> str:
    """When the flight leaves."""
    return "at nine"


def test_an_agent_runs_with_it_and_goes_on_where_it_was(daemon: Daemon) -> None:
    set_tracing_disabled(True)

    async def work(memory: AsyncClient) -> None:
        model = Scripted()
        agent = Agent(name="guide", model=model, tools=[departure])
        first = await Runner.run(agent, "When do I fly?", session=BeetleSession(memory, "travel"))
        assert first.final_output == "At nine."
        await Runner.run(agent, "Are you sure?", session=BeetleSession(memory, "travel"))
        assert "When do I fly?" in str(model.sent[-1]) and "Are you sure?" in str(model.sent[-1])
        kinds = [each.get("type", each.get("role")) for each in await BeetleSession(memory, "travel").get_items()]
        assert kinds[:4] == ["user", "function_call", "function_call_output", "message"]

    run(daemon, work)


def test_the_page(run_example: Callable[[str], None]) -> None:
    run_example("OpenAI Agents SDK")
