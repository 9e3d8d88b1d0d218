"""`jsonl`: turns of transcript.commit, one a line, as `beetle export` writes them; or a message a line.

From docs/operations.md (transcript.commit) and docs/import.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from datetime import datetime
from typing import Annotated, Any, cast

import msgspec

from beetle.contracts.transcript import TranscriptMessage, TranscriptTurn
from beetle.contracts.turns import MessageDelta
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
    tool_calls: list[dict[str, Any]] | None = None
    tool_result: dict[str, Any] | None = None
    partial: Any = None


LINE = msgspec.json.Decoder(dict[str, Any])
MESSAGES = Annotated[list[dict[str, Any]], msgspec.Meta(min_length=1)]
OF_MESSAGE = MessageDelta.__struct_fields__
REPORTED = {*TranscriptTurn.__struct_fields__, *TranscriptMessage.__struct_fields__}
"""What a report of turns says beside what transcript.commit takes; its fields are left out and not counted."""
ROLES = {"tool_use": "tool", "tool_result": "tool", "other": "system", "developer": "system", "function": "tool"}
"""Roles that a store may show and transcript.commit does not take."""


def read(source: Source) -> Items:
    """Each turn as it stands; what an export's view had redacted is left out, and fields that no turn has."""
    counts: Counter[str] = Counter()

    def each(place: SourceLocation, found: dict[str, Any]) -> Iterator[Item]:
        line = msgspec.convert(found, _JsonLine)
        yield from _unknown(found, _JsonLine.__struct_fields__)
        where = line.conversation
        if isinstance(where, str):
            where = _Conversation(where)
        channel, name = (None, None) if where is None else (where.channel_id, where.conversation_id)
        for turn in _turns(line):
            messages = cast("list[dict[str, Any]]", turn["messages"])
            for message in messages:
                yield from _unknown(message, OF_MESSAGE)
            shown = [_message(message) for message in messages if "redacted" not in message]
            for _ in range(len(messages) - len(shown)):
                yield LeftOut("redacted")
            if shown:
                turn["messages"] = shown
                counts[name or ""] += 1
                yield Committed(place, channel, name, turn, counts[name or ""] - 1, line.partial is True)

    return records(source, LINE, each)


def _turns(line: _JsonLine) -> list[dict[str, Any]]:
    if line.turns is not None:
        if not line.turns:
            raise msgspec.ValidationError("a line of turns needs one")
        for turn in line.turns:
            try:
                msgspec.convert(turn.get("messages"), MESSAGES)
            except msgspec.ValidationError:
                raise msgspec.ValidationError("a turn needs messages") from None
        return line.turns
    turn: dict[str, Any] = {"turn_id": line.turn_id, "at": line.at, "messages": line.messages}
    turn |= {"host_refs": line.host_refs, "attrs": line.attrs}
    if line.messages == []:
        raise msgspec.ValidationError("a turn needs messages")
    if line.messages is None:
        if line.role is None or line.content is None:
            raise msgspec.ValidationError("a line needs messages, turns, or role and content")
        message = {name: getattr(line, name) for name in OF_MESSAGE if name != "at"}
        message["actor"] = line.actor or (line.speaker and {"speaker": line.speaker})
        turn["messages"] = [{name: value for name, value in message.items() if value is not None}]
    return [{name: value for name, value in turn.items() if value is not None}]


def _message(message: dict[str, Any]) -> dict[str, Any]:
    """With what transcript.commit takes alone."""
    kept = {name: message[name] for name in OF_MESSAGE if message.get(name) is not None}
    role = kept.get("role")
    if isinstance(role, str):
        kept["role"] = ROLES.get(role, role)
    return kept


def _unknown(fields: dict[str, Any], known: Collection[str]) -> Iterator[LeftOut]:
    """What is left out as nobody knows it; the file's own names of it are not told, as there may be any number."""
    for name in fields:
        if name not in known and name not in REPORTED:
            yield LeftOut("unknown field")
