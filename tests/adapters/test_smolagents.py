"""smolagents: a tool over a daemon."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from beetle.client import Client
from tests.adapters.conftest import framework
from tests.transports.conftest import commit

framework("smolagents", "smolagents")

from smolagents import ChatMessage, Model, ToolCallingAgent  # noqa: E402
from smolagents.models import (  # noqa: E402
    ChatMessageToolCall,
    ChatMessageToolCallFunction,
    MessageRole,
)

from beetle.adapters.smolagents import BeetleRecallTool  # noqa: E402


class Scripted(Model):
    """A model that recalls, then answers with what it was told."""

    def generate(self, messages: list[ChatMessage], *args: Any, **kwargs: Any) -> ChatMessage:
        told = [each for each in messages if "hangs in the hall" in str(each.content)]
        name, arguments = ("final_answer", {"answer": "in the hall"}) if told else ("recall_memory", {"query": "key"})
        call = ChatMessageToolCall(
            id="c1", type="function", function=ChatMessageToolCallFunction(name=name, arguments=arguments)
        )
        return ChatMessage(role=MessageRole.ASSISTANT, content="", tool_calls=[call])


def test_an_agent_recalls(memory: Client) -> None:
    memory.commit_transcript(**commit(1, "earlier", "the shed key hangs in the hall"))
    recall = BeetleRecallTool(memory)
    assert "hangs in the hall" in recall(query="shed key", limit=1)
    agent = ToolCallingAgent(tools=[recall], model=Scripted(), max_steps=3, verbosity_level=0)
    assert agent.run("Where is the key?") == "in the hall"


def test_the_page(run_example: Callable[[str], None]) -> None:
    run_example("smolagents")
