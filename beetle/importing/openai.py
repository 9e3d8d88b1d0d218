"""`openai`: message lists as the Chat Completions interface takes them.

A list of messages; an object with `messages`; lines of such objects (files for fine-tuning), a conversation each; or
lines of messages. The format has no times; ids and times of messages are used where a host has added some.

From the reference of the Chat Completions interface: the types of request messages, with `refusal`, custom tools, and
the deprecated `function_call`; and its guide to fine-tuning files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime

import msgspec

from beetle.importing.items import (
    Item,
    Items,
    LeftOut,
    Problem,
    Role,
    Source,
    SourceLocation,
    Spoken,
    ToolCall,
    ToolResult,
    Turn,
)
from beetle.importing.lines import decoded, values
from beetle.importing.times import moment


class _Part(msgspec.Struct):
    type: str = ""
    text: str = ""
    refusal: str = ""


class _Function(msgspec.Struct):
    name: str = ""
    arguments: str = ""


class _Custom(msgspec.Struct):
    name: str = ""
    input: str = ""


class _ToolCall(msgspec.Struct):
    id: str | None = None
    function: _Function = msgspec.field(default_factory=_Function)
    custom: _Custom | None = None


class _Message(msgspec.Struct):
    role: str
    content: str | list[_Part] | None = None
    name: str | None = None
    tool_calls: list[_ToolCall] | None = None
    function_call: _Function | None = None
    refusal: str | None = None
    tool_call_id: str | None = None
    id: str | None = None
    timestamp: datetime | float | None = None
    created_at: datetime | float | None = None


class _Conversation(msgspec.Struct):
    messages: list[_Message]
    id: str | None = None


class _Either(msgspec.Struct):
    """Enough of a value to say whether it is a conversation."""

    messages: msgspec.Raw = msgspec.Raw(b"")


MESSAGE = msgspec.json.Decoder(_Message)
CONVERSATION = msgspec.json.Decoder(_Conversation)
EITHER = msgspec.json.Decoder(_Either)
ROLES: dict[str, Role] = {
    "user": "user", "assistant": "assistant", "system": "system", "developer": "system", "tool": "tool",
    "function": "tool",
}  # fmt: skip
TEXTS = ("text", "input_text", "output_text", "refusal")


def read(source: Source) -> Items:
    """A turn a message. Of several conversations each is called by its own id, or the file's name and its number."""
    reader = _Reader(source.stem)
    for found in values(source, {"messages"}):
        if isinstance(found, Problem):
            yield found
        elif found.key == "messages":
            yield from decoded(found.place, found.data, MESSAGE, reader.message)
        elif found.key is None:
            yield from decoded(
                found.place, found.data, EITHER, lambda place, one, data=found.data: reader.either(place, one, data)
            )


class _Reader:
    """Counts the messages of each conversation: without ids, their places are what tells equal ones apart."""

    def __init__(self, stem: str) -> None:
        self._stem = stem
        self._counts: Counter[str] = Counter()

    def either(self, place: SourceLocation, found: _Either, data: bytes) -> Iterator[Item]:
        """A message, or a whole conversation."""
        if not bytes(found.messages):
            yield from self.message(place, MESSAGE.decode(data))
            return
        conversation = CONVERSATION.decode(data)
        name = conversation.id or f"{self._stem}:{place.number}"
        for index, message in enumerate(conversation.messages):
            yield from _turn(place, message, name, index)
        if not conversation.messages:
            yield LeftOut("conversation without messages")

    def message(self, place: SourceLocation, message: _Message) -> Iterator[Item]:
        """One message of the file's only conversation."""
        self._counts[""] += 1
        return _turn(place, message, None, self._counts[""] - 1)


def _turn(place: SourceLocation, message: _Message, conversation: str | None, position: int) -> Iterator[Item]:
    role = ROLES.get(message.role)
    if role is None:
        raise msgspec.ValidationError(f"the role is none of {', '.join(ROLES)}")
    said: list[Spoken] = []
    parts = [_Part("text", message.content)] if isinstance(message.content, str) else message.content or []
    for part in parts:
        if part.type not in TEXTS:
            yield LeftOut(part.type or "part")
    texts = [part.text or part.refusal for part in parts if part.type in TEXTS]
    if text := "\n".join(each for each in (*texts, message.refusal) if each):
        result = ToolResult(text, message.tool_call_id, message.name)
        said.append(Spoken(role, result) if role == "tool" else Spoken(role, text, speaker=message.name))
    said.extend(Spoken("tool", call) for call in _calls(message))
    if said:
        at = moment(message.timestamp if message.timestamp is not None else message.created_at)
        yield Turn(place, conversation, message.id, at, tuple(said), position)
    else:
        yield LeftOut("empty message")


def _calls(message: _Message) -> Iterator[ToolCall]:
    if message.function_call is not None:
        yield ToolCall(message.function_call.name, message.function_call.arguments)
    for call in message.tool_calls or ():
        if call.custom is not None:
            yield ToolCall(call.custom.name, call.custom.input, call.id)
        else:
            yield ToolCall(call.function.name, call.function.arguments, call.id)
