"""LlamaIndex: a chat memory, and a block for its composed memory (`pip install beetle-memory[llamaindex]`)."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, MessageRole, TextBlock, ToolCallBlock
from llama_index.core.bridge.pydantic import ConfigDict, PrivateAttr
from llama_index.core.memory.memory import BaseMemoryBlock
from llama_index.core.memory.types import BaseMemory

from beetle.adapters.history import History, Talk, as_text
from beetle.contracts.methods import OperationMethods

ROLES = {"assistant": "assistant", "chatbot": "assistant", "model": "assistant", "system": "system",
         "developer": "system", "tool": "tool", "function": "tool"}  # fmt: skip


class _Messages:
    """LlamaIndex's messages; what Beetle has no field for is kept in LlamaIndex's own form."""

    def split(self, item: ChatMessage) -> dict[str, Any]:
        role = ROLES.get(item.role.value, "user")
        content = "\n".join(each.text for each in item.blocks if isinstance(each, TextBlock))
        parts: dict[str, Any] = {"role": role, "content": content}
        calls = [each for each in item.blocks if isinstance(each, ToolCallBlock)]
        if calls:
            parts["tool_calls"] = [
                {"tool": each.tool_name, "call_id": each.tool_call_id, "arguments": _arguments(each.tool_kwargs)}
                for each in calls
            ]
        if role == "tool":
            parts["tool_result"] = {"call_id": item.additional_kwargs.get("tool_call_id")}
        return parts

    def dump(self, item: ChatMessage) -> Any:
        return item.model_dump(mode="json")

    def load(self, data: Any) -> ChatMessage:
        return ChatMessage.model_validate(data)


class BeetleMemory(BaseMemory):
    """The messages of one conversation; with `context_chars`, what memory knows about the input comes first. `reset`
    and `set` delete the existing messages for good."""

    conversation: str
    channel: str = "llamaindex"
    limit: int | None = None
    """Newest messages that `get` answers; all when None."""
    context_chars: int = 0
    """Most characters of what is projected for the input; 0 for none."""
    _memory: OperationMethods = PrivateAttr()
    _talk: Talk[ChatMessage] = PrivateAttr()

    def __init__(self, memory: OperationMethods, conversation: str, **fields: Any) -> None:
        """`memory` is a Client, a session of one, or a MemoryRuntime."""
        super().__init__(conversation=conversation, **fields)
        self._memory = memory
        self._talk = Talk(memory, History(_Messages(), "llamaindex", self.conversation, self.channel))

    @classmethod
    def class_name(cls) -> str:
        return "BeetleMemory"

    @classmethod
    def from_defaults(cls, **fields: Any) -> BeetleMemory:
        return cls(**fields)

    def get(self, input: str | None = None, **kwargs: Any) -> list[ChatMessage]:
        said = self._talk.items(self.limit)
        if not self.context_chars or not input or not input.strip():
            return said
        report = self._memory.project(input, system_max_len=self.context_chars, recent_messages_limit=0)
        known = report.system_memory_block
        return [ChatMessage(role=MessageRole.SYSTEM, content=known), *said] if known else said

    def get_all(self) -> list[ChatMessage]:
        return self._talk.items()

    def put(self, message: ChatMessage) -> None:
        self._talk.add([message])

    def put_messages(self, messages: list[ChatMessage]) -> None:
        self._talk.add(messages)

    def set(self, messages: list[ChatMessage]) -> None:
        self.reset()
        self._talk.add(messages)

    def reset(self) -> None:
        self._talk.clear()


class BeetleMemoryBlock(BaseMemoryBlock[str]):
    """What memory recalls about the newest user message, as a block of `llama_index.core.memory.Memory`."""

    model_config = ConfigDict(arbitrary_types_allowed=True)
    memory: OperationMethods
    name: str = "beetle"
    limit: int = 8

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        said = [each.content or "" for each in messages or [] if each.role is MessageRole.USER]
        if not said or not said[-1].strip():
            return ""
        return as_text(await asyncio.to_thread(self.memory.recall, said[-1], limit=self.limit))

    async def _aput(self, messages: list[ChatMessage]) -> None:
        """What leaves the short-term memory is evidence already where a `BeetleMemory` or a host commits it."""


def _arguments(given: dict[str, Any] | str) -> dict[str, Any]:
    found = json.loads(given) if isinstance(given, str) and given else given or {}
    return found if isinstance(found, dict) else {"value": found}
