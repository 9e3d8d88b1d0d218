"""LlamaIndex: its memory classes over a daemon."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from beetle.client import Client
from beetle.contracts.codec import UNSET
from tests.adapters.conftest import framework
from tests.transports.conftest import commit

framework("llama_index.core", "llamaindex")

from llama_index.core.base.llms.types import (  # noqa: E402
    ChatMessage,
    ImageBlock,
    MessageRole,
    TextBlock,
    ToolCallBlock,
)
from llama_index.core.chat_engine import SimpleChatEngine  # noqa: E402
from llama_index.core.llms import MockLLM  # noqa: E402
from llama_index.core.memory import Memory  # noqa: E402

from beetle.adapters.llamaindex import BeetleMemory, BeetleMemoryBlock  # noqa: E402

SAID = [
    ChatMessage(role="system", content="Be brief."),
    ChatMessage(
        role="user", blocks=[TextBlock(text="The kettle"), TextBlock(text="is red."), ImageBlock(url="http://x/y")]
    ),
    ChatMessage(
        role="assistant",
        blocks=[ToolCallBlock(tool_name="look", tool_call_id="c1", tool_kwargs={"where": "hall"})],
    ),
    ChatMessage(role="tool", content="nothing there", additional_kwargs={"tool_call_id": "c1"}),
]


def test_a_memory_gives_back_what_was_put_into_it(memory: Client) -> None:
    kept = BeetleMemory.from_defaults(memory=memory, conversation="talk")
    assert kept.get_all() == []
    kept.reset()
    kept.put_messages(SAID)
    kept.put(ChatMessage(role="user", content="And now?"))
    again = BeetleMemory(memory, "talk", limit=2)
    assert again.get_all()[:4] == SAID
    assert [each.content for each in again.get()] == ["nothing there", "And now?"]
    again.set(SAID[:1])
    assert kept.get_all() == SAID[:1]
    assert asyncio.run(kept.aget_all()) == SAID[:1]
    where = {"channel_id": "llamaindex", "conversation_id": "talk"}
    shown = memory.replay_transcript(conversation=where, view="host_ui").turns
    deleted, kept_turn = [turn.messages[0] for turn in shown[:-1]], shown[-1].messages[0]
    assert [each.content for each in deleted] == [UNSET] * 5, "their places stay, and no word"
    assert {each.redacted is not UNSET and each.redacted.reason for each in deleted} == {"raw_deleted"}
    assert kept_turn.content == "Be brief."
    assert memory.recall("brief").hits and not memory.recall("kettle").hits


def test_what_is_known_about_the_input_comes_first(memory: Client) -> None:
    memory.commit_transcript(**commit(1, "earlier", "the shed key hangs in the hall"))
    kept = BeetleMemory(memory, "talk", context_chars=1000)
    kept.put(ChatMessage(role="user", content="Hello."))
    known, said = kept.get("where is the shed key")
    assert known.role is MessageRole.SYSTEM and "hangs in the hall" in (known.content or "")
    assert said.content == "Hello."
    assert [each.content for each in kept.get(" ")] == ["Hello."]


def test_a_chat_engine_and_a_composed_memory_use_them(memory: Client) -> None:
    memory.commit_transcript(**commit(1, "earlier", "the shed key hangs in the hall"))
    kept = BeetleMemory(memory, "engine")
    SimpleChatEngine.from_defaults(llm=MockLLM(), memory=kept).chat("Where is the key?")
    assert [each.role.value for each in kept.get_all()] == ["user", "assistant"]
    composed = Memory.from_defaults(memory_blocks=[BeetleMemoryBlock(memory=memory)], session_id="s")
    composed.put(ChatMessage(role="user", content="where is the shed key"))
    assert "hangs in the hall" in str(composed.get())


def test_the_page(run_example: Callable[[str], None]) -> None:
    run_example("LlamaIndex")
