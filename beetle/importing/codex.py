"""`codex`: the transcripts of Codex, ~/.codex/sessions/YYYY/MM/DD/rollout-TIME-ID.jsonl, a record a line.

`response_item` records are turns; `event_msg` says the same again for the screen. Files of the first versions hold the
items bare, behind a first line with the session's id.

From openai/codex: `RolloutLine`, `SessionMeta` and `ResponseItem` of its protocol, seen up to 0.148; items were bare
until September 2025 (openai/codex #3380).
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import msgspec

from beetle.importing.items import (
    Item,
    Items,
    LeftOut,
    Role,
    Source,
    SourceLocation,
    Spoken,
    ToolCall,
    ToolResult,
    Turn,
)
from beetle.importing.lines import UNREADABLE, records
from beetle.importing.times import moment

NOTHING = msgspec.Raw(b"null")


class _Part(msgspec.Struct):
    type: str = ""
    text: str | None = None


class _Item(msgspec.Struct):
    type: str = ""
    id: str | None = None
    role: str = ""
    content: list[_Part] | str | None = None
    name: str | None = None
    arguments: str | None = None
    input: str | None = None
    action: msgspec.Raw = NOTHING
    output: msgspec.Raw = NOTHING
    call_id: str | None = None


class _Record(_Item):
    timestamp: datetime | None = None
    payload: _Item | None = None
    record_type: str | None = None


class _Output(msgspec.Struct):
    content: str | list[_Part] | None = None
    output: str | None = None


RECORD = msgspec.json.Decoder(_Record)
OUTPUT = msgspec.json.Decoder(str | list[_Part] | None)
WRAPPED = msgspec.json.Decoder(_Output)
ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant"}
OF_THE_HOST = ("<environment_context>", "<user_instructions>", "# AGENTS.md instructions", "<permissions instructions>",
               "<INSTRUCTIONS>", "<turn_aborted>", "<skill>")  # fmt: skip
"""How a text begins that the host wrote in the user's place."""
CALLS = ("function_call", "custom_tool_call", "local_shell_call")
RESULTS = ("function_call_output", "custom_tool_call_output")


def read(source: Source) -> Items:
    """A turn an item, called by its line: the items have no ids of their own."""
    reader = _Reader()
    return records(source, RECORD, reader.record)


class _Reader:
    """Remembers the session, which the first record names."""

    def __init__(self) -> None:
        self._session: str | None = None

    def record(self, place: SourceLocation, found: _Record) -> Iterator[Item]:
        """One line."""
        if found.type == "session_meta" and found.payload is not None:
            # A fork begins with the records of its origin, that one's meta among them: the first is its own.
            self._session = self._session or found.payload.id
        elif not found.type and found.id and found.record_type is None:
            self._session = self._session or found.id
        elif found.type == "response_item" and found.payload is not None:
            yield from self._item(place, found, found.payload)
        elif found.type in ("message", *CALLS, *RESULTS):
            yield from self._item(place, found, found)
        else:
            yield LeftOut(found.type or found.record_type or "record without a type")

    def _item(self, place: SourceLocation, record: _Record, item: _Item) -> Iterator[Item]:
        said: Spoken | None = None
        if item.type in CALLS:
            arguments = item.arguments or item.input or bytes(item.action).decode()
            said = Spoken("tool", ToolCall(item.name or item.type, arguments, item.call_id))
        elif item.type in RESULTS:
            text = _output(item.output)
            said = Spoken("tool", ToolResult(text, item.call_id)) if text else None
        elif item.type == "message" and item.role in ROLES:
            parts = [_Part("text", item.content)] if isinstance(item.content, str) else item.content or []
            for part in parts:
                if part.text is None:
                    yield LeftOut(part.type or "part")
            text = "\n".join(part.text for part in parts if part.text)
            if ROLES[item.role] == "user" and text.lstrip().startswith(OF_THE_HOST):
                yield LeftOut("host message")
                return
            said = Spoken(ROLES[item.role], text) if text else None
        else:
            yield LeftOut("host message" if item.type == "message" else item.type or "item without a type")
            return
        if said is None:
            yield LeftOut("empty message")
        else:
            yield Turn(place, self._session, None, moment(record.timestamp), (said,), place.number)


def _output(raw: msgspec.Raw) -> str:
    for decoder in (OUTPUT, WRAPPED):
        try:
            found = decoder.decode(raw)
        except UNREADABLE:
            continue
        if isinstance(found, _Output):
            found = found.content if found.content is not None else found.output
        if isinstance(found, list):
            return "\n".join(part.text for part in found if part.text)
        return found or ""
    return bytes(raw).decode()
