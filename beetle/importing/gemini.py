"""`gemini`: the sessions of Gemini CLI, ~/.gemini/tmp/PROJECT/chats/session-*.json and .jsonl, and its checkpoints.

A session is one object with `messages`, or lines of messages behind a line that names the session. A checkpoint is a
list of contents with `parts`, or an object that holds one as `clientHistory` or `history`; it has no ids and no times.

From chatRecordingTypes.ts and checkpoints of google-gemini/gemini-cli: one object up to 0.57, lines since 0.58. Lines
name a message again when it has got its tool calls, and `$set` may hold all messages so far: each is read once.
"""

from __future__ import annotations

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
from beetle.importing.lines import UNREADABLE, decoded, values
from beetle.importing.times import moment

NOTHING = msgspec.Raw(b"null")


class _Call(msgspec.Struct):
    name: str = "tool"
    args: msgspec.Raw = NOTHING
    id: str | None = None


class _Response(msgspec.Struct):
    name: str | None = None
    response: msgspec.Raw = NOTHING
    id: str | None = None


class _Part(msgspec.Struct, rename="camel"):
    text: str | None = None
    thought: bool | str | None = None
    function_call: _Call | None = None
    function_response: _Response | None = None


Parts = str | _Part | list[str | _Part] | None


class _ToolCall(msgspec.Struct):
    id: str
    name: str = "tool"
    args: msgspec.Raw = NOTHING
    result: msgspec.Raw = NOTHING
    timestamp: datetime | None = None


class _Update(msgspec.Struct):
    messages: list[_Record] | None = None


class _Record(msgspec.Struct, rename="camel"):
    id: str | None = None
    type: str = ""
    timestamp: datetime | None = None
    content: Parts = None
    tool_calls: list[_ToolCall] | None = None
    thoughts: list[msgspec.Raw] | None = None
    role: str = ""
    parts: list[_Part] | None = None
    session_id: str | None = None
    rewind_to: str | None = msgspec.field(default=None, name="$rewindTo")
    update: _Update | None = msgspec.field(default=None, name="$set")


RECORD = msgspec.json.Decoder(_Record)
NAME = msgspec.json.Decoder(str)
PARTS = msgspec.json.Decoder(Parts)
OUTPUT = msgspec.json.Decoder(dict[str, msgspec.Raw])
ROLES: dict[str, Role] = {"user": "user", "gemini": "assistant", "model": "assistant"}
LISTS = {"messages", "history", "clientHistory"}
OF_THE_HOST = "<session_context>"
"""How the text begins that the host writes in the user's place."""


def read(source: Source) -> Items:
    """A turn a message, and one for each tool call with its result: calls are added to a message that is there."""
    reader = _Reader()
    for found in values(source, LISTS):
        if isinstance(found, Problem):
            yield found
        elif found.key == "sessionId":
            reader.session = _text(found.data)
        elif found.key is None or found.key in LISTS:
            yield from decoded(found.place, found.data, RECORD, reader.record)


def _text(data: bytes) -> str | None:
    try:
        return NAME.decode(data)
    except UNREADABLE:
        return None


class _Reader:
    """Remembers the session, how far a checkpoint is, and the hashes of the turns that were read."""

    def __init__(self) -> None:
        self.session: str | None = None
        self._position = 0
        self._read: set[int] = set()

    def record(self, place: SourceLocation, found: _Record) -> Iterator[Item]:
        """One message, one content of a checkpoint, or a line about the session."""
        if found.parts is not None:
            yield from self._content(place, found)
        elif found.session_id is not None and not found.type:
            self.session = self.session or found.session_id
        elif found.rewind_to is not None:
            yield LeftOut("rewind")
        elif found.update is not None:
            for each in found.update.messages or ():
                yield from self.record(place, each)
            yield LeftOut("update of the session")
        elif found.type in ROLES and found.id:
            for item in self._message(place, found):
                if isinstance(item, Turn):
                    known = hash((item.turn_id, item.messages))
                    if known in self._read:
                        continue
                    self._read.add(known)
                yield item
        else:
            yield LeftOut(found.type or "record without a type")

    def _message(self, place: SourceLocation, found: _Record) -> Iterator[Item]:
        role = ROLES[found.type]
        at = moment(found.timestamp)
        for _ in found.thoughts or ():
            yield LeftOut("thought")
        said: list[Spoken] = []
        for item in _spoken(role, found.content):
            if isinstance(item, LeftOut):
                yield item
            elif role == "user" and isinstance(item.content, str) and item.content.lstrip().startswith(OF_THE_HOST):
                yield LeftOut("host message")
            else:
                said.append(item)
        if said:
            yield Turn(place, self.session, found.id, at, tuple(said))
        for call in found.tool_calls or ():
            asked = Spoken("tool", ToolCall(call.name, bytes(call.args).decode(), call.id))
            yield Turn(place, self.session, f"{found.id}:{call.id}", moment(call.timestamp) or at, (asked,))
            if text := _result(call.result):
                answered = Spoken("tool", ToolResult(text, call.id, call.name))
                result_id = f"{found.id}:{call.id}:result"
                yield Turn(place, self.session, result_id, moment(call.timestamp) or at, (answered,))

    def _content(self, place: SourceLocation, found: _Record) -> Iterator[Item]:
        role = ROLES.get(found.role)
        if role is None:
            raise msgspec.ValidationError("the role is neither user nor model")
        said: list[Spoken] = []
        for item in _spoken(role, list[str | _Part](found.parts or ())):
            if isinstance(item, LeftOut):
                yield item
            else:
                said.append(item)
        self._position += 1
        if said:
            yield Turn(place, self.session, None, None, tuple(said), self._position)


def _spoken(role: Role, content: Parts) -> Iterator[Spoken | LeftOut]:
    parts = content if isinstance(content, list) else [content]
    texts: list[str] = []
    for part in parts:
        if part is None:
            continue
        if isinstance(part, str):
            texts.append(part)
        elif part.thought:
            yield LeftOut("thought")
        elif part.text is not None:
            texts.append(part.text)
        elif part.function_call is None and part.function_response is None:
            yield LeftOut("part")
    if text := "\n".join(each for each in texts if each):
        yield Spoken(role, text)
    for part in parts:
        if not isinstance(part, _Part):
            continue
        if (call := part.function_call) is not None:
            yield Spoken("tool", ToolCall(call.name, bytes(call.args).decode(), call.id))
        if (answer := part.function_response) is not None:
            yield Spoken("tool", ToolResult(_response(answer.response), answer.id, answer.name))


def _result(raw: msgspec.Raw) -> str:
    """The text of a tool's result, which is a list of parts."""
    try:
        found = PARTS.decode(raw)
    except UNREADABLE:
        return bytes(raw).decode()
    texts: list[str] = []
    for part in found if isinstance(found, list) else [found]:
        if isinstance(part, str):
            texts.append(part)
        elif part is not None and part.function_response is not None:
            texts.append(_response(part.function_response.response))
        elif part is not None and part.text:
            texts.append(part.text)
    return "\n".join(texts)


def _response(raw: msgspec.Raw) -> str:
    """What a tool answered: its `output` where it has one, else all of it as JSON."""
    try:
        return NAME.decode(OUTPUT.decode(raw).get("output", NOTHING))
    except UNREADABLE:
        return bytes(raw).decode()
