"""LangChain: its own test suites, and what they leave out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from beetle.client import Client
from tests.adapters.conftest import framework
from tests.transports.conftest import commit

framework("langchain_core", "langchain")
framework("langchain_tests", "langchain")

from langchain_core.messages import (  # noqa: E402
    AIMessage,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_tests.integration_tests import RetrieversIntegrationTests, ToolsIntegrationTests  # noqa: E402
from langchain_tests.unit_tests import ToolsUnitTests  # noqa: E402

from beetle.adapters.langchain import BeetleChatMessageHistory, BeetleRecallTool, BeetleRetriever  # noqa: E402

SAID = [
    SystemMessage("Be brief."),
    HumanMessage([{"type": "text", "text": "The kettle is red."}], name="Ada", additional_kwargs={"seen": True}),
    AIMessage("", tool_calls=[{"name": "look", "args": {"where": "hall", "n": 2}, "id": "c1"}]),
    ToolMessage("nothing\nthere", tool_call_id="c1", name="look", status="error", artifact={"raw": [1, 2]}),
    ChatMessage("as a narrator", role="narrator"),
]


@pytest.fixture
def filled(memory: Client, request: pytest.FixtureRequest) -> Client:
    for number in range(5):
        memory.commit_transcript(**commit(number, f"c{number}", f"kettle number {number} is on"))
    request.instance.memory = memory
    return memory


class TestRetriever(RetrieversIntegrationTests):
    """LangChain's suite for retrievers."""

    memory: Client

    @pytest.fixture(autouse=True)
    def _memory(self, filled: Client) -> None: ...

    retriever_constructor = BeetleRetriever  # type: ignore[assignment]
    retriever_query_example = "kettle"  # type: ignore[assignment]

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"memory": self.memory}


class TestToolUnit(ToolsUnitTests):
    """LangChain's suite for tools, without calls."""

    memory: Client

    @pytest.fixture(autouse=True)
    def _memory(self, filled: Client) -> None: ...

    tool_constructor = BeetleRecallTool  # type: ignore[assignment]
    tool_invoke_params_example = {"query": "kettle"}  # type: ignore[assignment]  # noqa: RUF012

    @property
    def tool_constructor_params(self) -> dict[str, Any]:
        return {"memory": self.memory}


class TestToolCalls(ToolsIntegrationTests):
    """LangChain's suite for tools that are called."""

    memory: Client

    @pytest.fixture(autouse=True)
    def _memory(self, filled: Client) -> None: ...

    tool_constructor = BeetleRecallTool  # type: ignore[assignment]
    tool_invoke_params_example = {"query": "kettle", "limit": 2}  # type: ignore[assignment]  # noqa: RUF012

    @property
    def tool_constructor_params(self) -> dict[str, Any]:
        return {"memory": self.memory}


def test_a_history_gives_back_what_it_was_given(memory: Client) -> None:
    history = BeetleChatMessageHistory(memory, "talk")
    assert history.messages == []
    history.clear()
    history.add_messages(SAID)
    history.add_user_message("And now?")
    again = BeetleChatMessageHistory(memory, "talk")
    assert again.messages == [*SAID, HumanMessage("And now?")]
    assert BeetleChatMessageHistory(memory, "another").messages == []
    again.clear()
    assert history.messages == []
    history.add_user_message("Afresh.")
    assert [each.content for each in history.messages] == ["Afresh."]


def test_a_history_is_evidence_with_its_tool_calls(memory: Client) -> None:
    BeetleChatMessageHistory(memory, "talk").add_messages(SAID)
    where = {"channel_id": "langchain", "conversation_id": "talk"}
    turns = memory.replay_transcript(conversation=where, view="host_ui").turns
    messages = [turn.messages[0] for turn in turns]
    assert [(each.role, each.content) for each in messages] == [
        ("system", "Be brief."),
        ("user", "The kettle is red."),
        ("assistant", ""),
        ("tool", "nothing\nthere"),
        ("user", "as a narrator"),
    ]
    assert messages[2].tool_calls and messages[2].tool_calls[0].arguments == {"where": "hall", "n": 2}
    assert messages[3].tool_result and messages[3].tool_result.failed
    assert memory.recall("hall").hits


def test_a_long_history_is_read_whole_and_in_order(memory: Client) -> None:
    history = BeetleChatMessageHistory(memory, "long")
    history.add_messages([HumanMessage(str(number)) for number in range(230)])
    assert [each.content for each in history.messages] == [str(number) for number in range(230)]


def test_the_page(run_example: Callable[[str], None]) -> None:
    run_example("LangChain")
