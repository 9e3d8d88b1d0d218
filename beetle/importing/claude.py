"""`claude`: conversations.json of Claude's data export: a list of conversations with `chat_messages`.

The service publishes no description of its export. This is the shape of exports from 2026 as others document it
(whychose.com, "Claude Conversation Export Format: field reference", 2026); a conversation a line is read as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import msgspec

from beetle.importing.blocks import Block, spoken_of
from beetle.importing.items import Item, Items, LeftOut, Role, Source, SourceLocation, Spoken, ToolResult, Turn
from beetle.importing.lines import records
from beetle.importing.times import moment


class _File(msgspec.Struct):
    file_name: str | None = None
    extracted_content: str | None = None


class _Message(msgspec.Struct):
    uuid: str
    sender: str
    text: str | None = None
    content: list[Block] | None = None
    created_at: datetime | None = None
    attachments: list[_File] | None = None
    files: list[_File] | None = None


class _Conversation(msgspec.Struct):
    uuid: str
    chat_messages: list[_Message]
    name: str | None = None
    created_at: datetime | None = None


CONVERSATION = msgspec.json.Decoder(_Conversation)
ROLES: dict[str, Role] = {"human": "user", "user": "user", "assistant": "assistant"}


def read(source: Source) -> Items:
    """A turn a message; the text of an attachment is a message of role tool, since no user said it."""
    return records(source, CONVERSATION, _conversation)


def _conversation(place: SourceLocation, found: _Conversation) -> Iterator[Item]:
    latest = found.created_at
    for position, message in enumerate(found.chat_messages):
        latest = message.created_at or latest
        role = ROLES.get(message.sender)
        if role is None:
            raise msgspec.ValidationError(f"the sender is none of {', '.join(ROLES)}")
        said: list[Spoken] = []
        for item in spoken_of(role, message.content or message.text or ""):
            if isinstance(item, LeftOut):
                yield item
            else:
                said.append(item)
        for file in message.attachments or ():
            if file.extracted_content:
                said.append(Spoken("tool", ToolResult(file.extracted_content, name=file.file_name or "attachment")))
            else:
                yield LeftOut("attachment")
        for _ in message.files or ():
            yield LeftOut("file")
        if said:
            yield Turn(place, found.uuid, message.uuid, moment(latest), tuple(said), position, found.name or None)
        else:
            yield LeftOut("empty message")
