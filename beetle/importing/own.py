"""`jsonl`: turns of transcript.commit, one a line, as `beetle export` writes them; or a message a line.

From docs/operations.md (transcript.commit) and docs/import.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import Any, cast

import msgspec

from beetle.importing.items import Committed, Item, Items, LeftOut, Source, SourceLocation
from beetle.importing.lines import records


class _Conversation(msgspec.Struct):
    conversation_id: str
    channel_id: str | None = None


class _JsonLine(msgspec.Struct):
    """A turn with `messages`, a request with `turns`, or a message with `role` and `content`."""

    conversation: _Conversation | str | None = None
    turn_id: str | None = None
    at: datetime | None = None
    messages: list[dict[str, Any]] | None = None
    host_refs: list[dict[str, Any]] | None = None
    attrs: list[dict[str, Any]] | None = None
    turns: list[dict[str, Any]] | None = None
    message_id: str | None = None
    role: str | None = None
    content: str | None = None
    visibility: str | None = None
    speaker: str | None = None
    actor: dict[str, Any] | None = None


LINE = msgspec.json.Decoder(_JsonLine)
ROLES = {"tool_use": "tool", "tool_result": "tool", "other": "system", "developer": "system", "function": "tool"}
"""Roles that a store may show and transcript.commit does not take."""


def read(source: Source) -> Items:
    """Each turn as it stands; what an export's view had redacted is left out."""
    counts: Counter[str] = Counter()

    def each(place: SourceLocation, line: _JsonLine) -> Iterator[Item]:
        where = line.conversation
        if isinstance(where, str):
            where = _Conversation(where)
        channel, name = (None, None) if where is None else (where.channel_id, where.conversation_id)
        for turn in _turns(line):
            messages = cast("list[dict[str, Any]]", turn["messages"])
            shown = [_message(message) for message in messages if "redacted" not in message]
            for _ in range(len(messages) - len(shown)):
                yield LeftOut("redacted")
            if shown:
                turn["messages"] = shown
                counts[name or ""] += 1
                yield Committed(place, channel, name, turn, counts[name or ""] - 1)

    return records(source, LINE, each)


def _turns(line: _JsonLine) -> list[dict[str, Any]]:
    if line.turns is not None:
        if not all(isinstance(turn.get("messages"), list) for turn in line.turns):
            raise msgspec.ValidationError("a turn needs messages")
        return line.turns
    turn: dict[str, Any] = {"turn_id": line.turn_id, "at": line.at, "messages": line.messages}
    turn |= {"host_refs": line.host_refs, "attrs": line.attrs}
    if line.messages is None:
        if line.role is None or line.content is None:
            raise msgspec.ValidationError("a line needs messages, turns, or role and content")
        message: dict[str, Any] = {"message_id": line.message_id, "role": line.role, "content": line.content}
        message |= {"visibility": line.visibility, "actor": line.actor or (line.speaker and {"speaker": line.speaker})}
        turn["messages"] = [{name: value for name, value in message.items() if value is not None}]
    return [{name: value for name, value in turn.items() if value is not None}]


def _message(message: dict[str, Any]) -> dict[str, Any]:
    """Without what only a report says."""
    known = ("message_id", "role", "content", "at", "visibility", "actor")
    kept = {name: message[name] for name in known if message.get(name) is not None}
    role = kept.get("role")
    if isinstance(role, str):
        kept["role"] = ROLES.get(role, role)
    return kept
