"""Content blocks as Claude's interface, export and transcripts have them: text, tool_use, tool_result, and the rest."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from beetle.importing.items import LeftOut, Role, Spoken, ToolCall, ToolResult
from beetle.importing.lines import UNREADABLE

NOTHING = msgspec.Raw(b"null")


class Block(msgspec.Struct):
    """One block; what a tool was given and what it answered stay encoded until they are needed."""

    type: str = ""
    text: str | None = None
    id: str | None = None
    tool_use_id: str | None = None
    name: str | None = None
    input: msgspec.Raw = NOTHING
    content: msgspec.Raw = NOTHING


class _Inner(msgspec.Struct):
    type: str = ""
    text: str | None = None


RESULT = msgspec.json.Decoder(str | list[_Inner] | None)


def spoken_of(role: Role, content: str | list[Block]) -> Iterator[Spoken | LeftOut]:
    """The messages of a content: its text as one, each call of a tool and each result as one of role tool."""
    if isinstance(content, str):
        if content:
            yield Spoken(role, content)
        return
    texts = [block.text for block in content if block.type == "text" and block.text]
    if texts:
        yield Spoken(role, "\n".join(texts))
    for block in content:
        if block.type == "tool_use":
            yield Spoken("tool", ToolCall(block.name or "tool", bytes(block.input).decode(), block.id))
        elif block.type == "tool_result":
            text, left_out = _result(block.content)
            yield from left_out
            yield Spoken("tool", ToolResult(text, block.tool_use_id, block.name)) if text else LeftOut("empty result")
        elif block.type != "text":
            yield LeftOut(block.type or "block")


def _result(content: msgspec.Raw) -> tuple[str, list[LeftOut]]:
    try:
        found = RESULT.decode(content)
    except UNREADABLE:
        # A result of a shape of its own is kept as it is written.
        return bytes(content).decode(), []
    if found is None or isinstance(found, str):
        return found or "", []
    texts = [each.text for each in found if each.text]
    return "\n".join(texts), [LeftOut(each.type or "block") for each in found if each.text is None]
