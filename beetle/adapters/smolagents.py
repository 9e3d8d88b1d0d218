"""smolagents: a tool (`pip install beetle-memory[smolagents]`)."""

from __future__ import annotations

from typing import Any

from smolagents import Tool

from beetle.adapters.history import as_text
from beetle.contracts.methods import OperationMethods


class BeetleRecallTool(Tool):
    """Recall for an agent to call."""

    name = "recall_memory"
    description = "Looks up what is remembered from earlier conversations: facts, preferences, procedures."
    inputs = {  # noqa: RUF012 - so the base class declares it
        "query": {"type": "string", "description": "words to look for in memory"},
        "limit": {"type": "integer", "description": "how many memories at most", "nullable": True},
    }
    output_type = "string"

    def __init__(self, memory: OperationMethods, **fields: Any) -> None:
        """`memory` is a Client, a session of one, or a MemoryRuntime."""
        super().__init__(**fields)
        self.memory = memory

    def forward(self, query: str, limit: int | None = None) -> str:
        return as_text(self.memory.recall(query, limit=limit or 5))
