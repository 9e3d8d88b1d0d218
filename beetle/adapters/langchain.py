"""LangChain: a chat history, a retriever and a tool (`pip install beetle-memory[langchain]`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun, CallbackManagerForToolRun
from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage, message_to_dict, messages_from_dict
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import BaseTool
from pydantic import BaseModel, ConfigDict, Field

from beetle.adapters.history import History, Talk, as_text
from beetle.contracts.methods import OperationMethods

ROLES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool", "function": "tool"}


class _Messages:
    """LangChain's messages; what Beetle has no field for is kept in LangChain's own form."""

    def split(self, item: BaseMessage) -> dict[str, Any]:
        parts: dict[str, Any] = {"role": ROLES.get(item.type, "user"), "content": str(item.text)}
        if isinstance(item, AIMessage) and item.tool_calls:
            parts["tool_calls"] = [
                {"tool": call["name"], "call_id": call["id"], "arguments": call["args"]} for call in item.tool_calls
            ]
        if isinstance(item, ToolMessage):
            parts["tool_result"] = {"call_id": item.tool_call_id, "tool": item.name, "failed": item.status == "error"}
        return parts

    def dump(self, item: BaseMessage) -> Any:
        return message_to_dict(item)

    def load(self, data: Any) -> BaseMessage:
        return messages_from_dict([data])[0]


class BeetleChatMessageHistory(BaseChatMessageHistory):
    """The messages of one conversation, as `RunnableWithMessageHistory` takes them. `clear` deletes them for good."""

    def __init__(self, memory: OperationMethods, conversation: str, *, channel: str = "langchain") -> None:
        """`memory` is a Client, a session of one, or a MemoryRuntime."""
        self._talk = Talk(memory, History(_Messages(), "langchain", conversation, channel))

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]
        return self._talk.items()

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        self._talk.add(messages)

    def clear(self) -> None:
        self._talk.clear()


class BeetleRetriever(BaseRetriever):
    """Recall over every plane: the excerpt of a hit is a document, its ref the document's id."""

    model_config = ConfigDict(arbitrary_types_allowed=True)
    memory: OperationMethods
    k: int = 8
    planes: list[str] | None = None

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        asked = {"query": query, "limit": self.k if k is None else k, "planes": self.planes}
        report: Any = self.memory.call("memory.recall", asked)
        return [
            Document(
                id=hit.ref,
                page_content=hit.excerpt or "",
                metadata={"ref": hit.ref, "plane": hit.plane, "score": hit.score, "at": hit.at},
            )
            for hit in report.hits
        ]


class RecallInput(BaseModel):
    """Arguments of the tool."""

    query: str = Field(description="words to look for in memory")
    limit: int = Field(default=5, ge=1, description="how many memories at most")


class BeetleRecallTool(BaseTool):
    """Recall for an agent to call."""

    model_config = ConfigDict(arbitrary_types_allowed=True)
    memory: OperationMethods
    name: str = "recall_memory"
    description: str = "Look up what is remembered from earlier conversations: facts, preferences, procedures."
    args_schema: type[BaseModel] = RecallInput  # type: ignore[assignment]

    def _run(self, query: str, limit: int = 5, run_manager: CallbackManagerForToolRun | None = None) -> str:
        return as_text(self.memory.recall(query, limit=limit))
