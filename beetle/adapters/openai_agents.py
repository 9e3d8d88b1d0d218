"""OpenAI Agents SDK: a session over `AsyncClient` (`pip install beetle-memory[openai-agents]`)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

from agents.memory import SessionSettings

from beetle.adapters.history import History, StoredItems
from beetle.contracts.async_methods import AsyncOperationMethods
from beetle.contracts.errors import NotFound
from beetle.contracts.transcript import MemoryTranscriptTimelineReport

if TYPE_CHECKING:
    from agents.items import TResponseInputItem

ROLES = {"user": "user", "assistant": "assistant", "system": "system", "developer": "system"}


class _Items:
    """Input items of the Responses API: messages, calls of functions, their outputs, and whatever else there is."""

    def split(self, item: TResponseInputItem) -> dict[str, Any]:
        given = cast("dict[str, Any]", item)
        kind = given.get("type", "message")
        if kind == "function_call":
            call = {"tool": given["name"], "call_id": given["call_id"], "arguments": _object(given.get("arguments"))}
            return {"role": "assistant", "content": "", "tool_calls": [call]}
        if kind == "function_call_output":
            result = {"call_id": given["call_id"]}
            return {"role": "tool", "content": _text(given.get("output")), "tool_result": result}
        if kind == "message":
            return {"role": ROLES.get(given.get("role", "user"), "user"), "content": _text(given.get("content"))}
        return {"role": "assistant", "content": _text(given.get("summary"))}

    def dump(self, item: TResponseInputItem) -> Any:
        return item

    def load(self, data: Any) -> TResponseInputItem:
        return data


class BeetleSession:
    """The items of one conversation: the `Session` protocol of `agents.memory`.

    `pop_item` and `clear_session` delete for good what they take out.
    """

    session_settings: SessionSettings | None

    def __init__(
        self,
        memory: AsyncOperationMethods,
        session_id: str,
        *,
        channel: str = "openai-agents",
        session_settings: SessionSettings | None = None,
    ) -> None:
        """`memory` is an AsyncClient, or a session of one; `session_id` the id of the conversation."""
        self.session_id = session_id
        self.session_settings = session_settings
        self._memory = memory
        self._history: History[TResponseInputItem] = History(_Items(), "openai-agents", session_id, channel)

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        settings = self.session_settings
        most = limit if limit is not None or settings is None else settings.limit
        return [item for _, item in await self._found(most)]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        for each in self._history.commits(items):
            await self._memory.call("transcript.commit", each)

    async def pop_item(self) -> TResponseInputItem | None:
        found = await self._found(1)
        if not found:
            return None
        ((turn_id, item),) = found
        await self._memory.call("transcript.lifecycle", self._history.erasing(turn_id))
        return item

    async def clear_session(self) -> None:
        try:
            await self._memory.call("transcript.lifecycle", self._history.erasing())
        except NotFound:  # nothing was said yet
            return

    async def _found(self, limit: int | None) -> StoredItems[TResponseInputItem]:
        asking = self._history.reading(limit)
        try:
            asked = next(asking)
            while True:
                report = await self._memory.call("transcript.timeline", asked)
                asked = asking.send(cast(MemoryTranscriptTimelineReport, report))
        except NotFound:  # nothing was said yet
            return []
        except StopIteration as done:
            return done.value


def _text(content: Any) -> str:
    """The words of a content, which is text or a list of parts."""
    if isinstance(content, str):
        return content
    parts = [each.get("text") or each.get("refusal") for each in content or () if isinstance(each, dict)]
    return "\n".join(each for each in parts if isinstance(each, str))


def _object(arguments: Any) -> dict[str, Any] | None:
    """A call's arguments; None where a model wrote something else than an object, which the item itself keeps."""
    try:
        found = json.loads(arguments or "{}")
    except (TypeError, ValueError):
        return None
    return found if isinstance(found, dict) else None
