"""Pydantic AI: a toolset (`pip install beetle-memory[pydantic-ai]`)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from pydantic_ai.toolsets import FunctionToolset

from beetle.adapters.history import as_text
from beetle.contracts.async_methods import AsyncOperationMethods
from beetle.contracts.errors import InvalidRequest


class BeetleToolset(FunctionToolset[Any]):
    """Tools by which an agent recalls, and notes what should be recalled later."""

    def __init__(
        self, memory: AsyncOperationMethods, conversation: str, *, channel: str = "pydantic-ai", id: str = "beetle"
    ) -> None:
        """`memory` is an AsyncClient, or a session of one; notes are turns of the conversation."""
        super().__init__(id=id)
        self._memory = memory
        self._where = {"channel_id": channel, "conversation_id": conversation}
        self.add_function(self.recall_memory)
        self.add_function(self.note)

    async def recall_memory(self, query: str, limit: int = 5) -> str:
        """Look up what is remembered from earlier conversations: facts, preferences, procedures.

        Args:
            query: words to look for.
            limit: how many memories at most.
        """
        if not query.strip():
            return "Give words to look for."
        return as_text(await self._memory.recall(query, limit=max(1, limit)))

    async def note(self, text: str) -> str:
        """Keep a sentence, so that it can be recalled later.

        Args:
            text: what to keep, in words that need no context.
        """
        message = {"message_id": uuid4().hex, "role": "assistant", "content": text}
        turn = {"turn_id": uuid4().hex, "at": datetime.now(UTC), "messages": [message]}
        try:
            await self._memory.commit_transcript(conversation=self._where, turns=[turn])
        except InvalidRequest as error:
            return error.message
        return "Noted."
