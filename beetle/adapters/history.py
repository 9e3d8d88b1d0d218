"""A conversation as a list of a framework's messages: a turn for each, so that the last one can be taken back."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Generic, Protocol, TypeVar, cast
from uuid import uuid4

from beetle.contracts.errors import NotFound
from beetle.contracts.memory import MemoryRecallReport
from beetle.contracts.methods import OperationMethods
from beetle.contracts.transcript import MemoryTranscriptTimelineReport, TranscriptTurn

T = TypeVar("T")
StoredItems = list[tuple[str, T]]
"""Messages, each with the id of its turn."""
Asking = Generator[dict[str, Any], MemoryTranscriptTimelineReport, StoredItems[T]]
"""Yields arguments of transcript.timeline, is sent the reports, and returns what was found."""
COMMIT_TURNS = 50
"""Every profile takes so many in one commit."""
PAGE_TURNS = 100
LONG_FROM_NOW = "9999-01-01T00:00:00Z"
VIEWS = ["host_ui", "model_context", "export"]


class Codec(Protocol[T]):
    """What a framework's message is to Beetle."""

    def split(self, item: T) -> dict[str, Any]:
        """Its role and content, and its tool_calls or tool_result."""
        ...

    def dump(self, item: T) -> Any:
        """All of it, as JSON: what `load` makes it of again."""
        ...

    def load(self, data: Any) -> T: ...


class History(Generic[T]):
    """The requests about one conversation. A message is evidence like any other: its words are recalled, views and
    erasure hold for it. The framework's own form is kept beside it as an attr of the turn, which goes where it goes."""

    def __init__(self, codec: Codec[T], kind: str, conversation: str, channel: str) -> None:
        """`kind` names the framework in the key of the attr."""
        self._codec = codec
        self._key = f"{kind}.message"
        self.where = {"channel_id": channel, "conversation_id": conversation}

    def commits(self, items: Sequence[T]) -> Iterator[dict[str, Any]]:
        """Arguments of transcript.commit that add the items behind the existing ones."""
        for start in range(0, len(items), COMMIT_TURNS):
            turns = [self._turn(each) for each in items[start : start + COMMIT_TURNS]]
            yield {"conversation": self.where, "turns": turns}

    def reading(self, limit: int | None = None) -> Asking[T]:
        """The newest items, or all, oldest first; without those that were erased or may not be seen."""
        found: StoredItems[T] = []
        anchor: Any = "latest"
        while limit is None or len(found) < limit:
            page = yield {"conversation": self.where, "view": "model_context", "anchor": anchor, "limit": PAGE_TURNS}
            found = [*self._items(page.turns), *found]
            if not page.turns or not page.has_before:
                break
            anchor = {"before": page.turns[0].sequence}
        return found if limit is None else found[max(0, len(found) - limit) :]

    def erasing(self, *turn_ids: str) -> dict[str, Any]:
        """Arguments of transcript.lifecycle that delete these turns for good; every one when none is named."""
        which: dict[str, Any] = {"turn_ids": list(turn_ids)} if turn_ids else {"before": LONG_FROM_NOW}
        return {"conversation": self.where, "action": "delete_raw", "reason": "removed from the history", **which}

    def _turn(self, item: T) -> dict[str, Any]:
        message = {"message_id": uuid4().hex, **self._codec.split(item)}
        whole = json.dumps(self._codec.dump(item), ensure_ascii=False)
        attr = {"key": self._key, "value": whole, "visibility": VIEWS, "export_allowed": True}
        return {"turn_id": uuid4().hex, "at": datetime.now(UTC), "messages": [message], "attrs": [attr]}

    def _items(self, turns: Sequence[TranscriptTurn]) -> StoredItems[T]:
        own = [(turn.turn_id, attr.value) for turn in turns for attr in turn.attrs if attr.key == self._key]
        return [(turn_id, self._codec.load(json.loads(value))) for turn_id, value in own if value is not None]


class Talk(Generic[T]):
    """A history of a blocking client or runtime."""

    def __init__(self, memory: OperationMethods, history: History[T]) -> None:
        self._memory = memory
        self._history = history

    def add(self, items: Sequence[T]) -> None:
        for each in self._history.commits(items):
            self._memory.call("transcript.commit", each)

    def items(self, limit: int | None = None) -> list[T]:
        asking = self._history.reading(limit)
        try:
            asked = next(asking)
            while True:
                report = self._memory.call("transcript.timeline", asked)
                asked = asking.send(cast(MemoryTranscriptTimelineReport, report))
        except NotFound:  # nothing was said yet
            return []
        except StopIteration as done:
            return [item for _, item in done.value]

    def clear(self) -> None:
        try:
            self._memory.call("transcript.lifecycle", self._history.erasing())
        except NotFound:  # nothing was said yet
            return


def as_text(report: MemoryRecallReport) -> str:
    """What recall found, as a model reads it."""
    lines = [f"[{(hit.at or '')[:10]}] {hit.title or hit.plane}: {hit.excerpt} ({hit.ref})" for hit in report.hits]
    return "\n".join(lines) or "Nothing is remembered about this."
