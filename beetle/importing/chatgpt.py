"""`chatgpt`: conversations.json of ChatGPT's data export.

A list of conversations; in each a tree of messages (`mapping`), of which `current_node` ends the branch that the person
saw last. That branch is read; the answers that were generated anew and the questions that were edited are left out.

The service publishes no description of its export. This is the shape of exports of 2026 as converters document it
(difegam's chatgpt-to-markdown, "ChatGPT Export Format"; portable-ai-memory.org, "OpenAI / ChatGPT"): newer exports are
several files, conversations-NNN.json, each such a list.
"""

from __future__ import annotations

from collections.abc import Iterator

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
from beetle.importing.lines import records
from beetle.importing.times import moment


class _Author(msgspec.Struct):
    role: str = ""
    name: str | None = None


class _Part(msgspec.Struct):
    content_type: str = "part"
    text: str = ""


class _Content(msgspec.Struct):
    content_type: str = ""
    parts: list[str | _Part | None] | None = None
    text: str | None = None


class _Metadata(msgspec.Struct):
    is_visually_hidden_from_conversation: bool = False


class _Message(msgspec.Struct):
    id: str
    author: _Author
    content: _Content
    create_time: float | None = None
    recipient: str | None = None
    metadata: _Metadata | None = None


class _Node(msgspec.Struct):
    message: _Message | None = None
    parent: str | None = None
    children: list[str] | None = None


class _Conversation(msgspec.Struct):
    mapping: dict[str, _Node]
    title: str | None = None
    conversation_id: str | None = None
    id: str | None = None
    create_time: float | None = None
    current_node: str | None = None


CONVERSATION = msgspec.json.Decoder(_Conversation)
ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system", "tool": "tool"}
TEXTS = ("text", "multimodal_text", "code", "execution_output", "tether_quote", "tether_browsing_display")
TRANSCRIBED = "audio_transcription"
EVERYBODY = (None, "", "all")


def read(source: Source) -> Items:
    """A turn a message, in the order of the branch."""
    return records(source, CONVERSATION, _conversation)


def _conversation(place: SourceLocation, found: _Conversation) -> Iterator[Item]:
    name = found.conversation_id or found.id
    if not name:
        raise msgspec.ValidationError("a conversation needs conversation_id or id")
    branch = _branch(found)
    others = sum(node.message is not None for node in found.mapping.values()) - len(branch)
    for _ in range(others):
        yield LeftOut("other branch")
    latest = found.create_time
    for position, message in enumerate(branch):
        latest = message.create_time if message.create_time is not None else latest
        said: Spoken | None = None
        for item in _said(message):
            if isinstance(item, LeftOut):
                yield item
            else:
                said = item
        if said is not None:
            yield Turn(place, name, message.id, moment(latest), (said,), position, found.title)


def _branch(found: _Conversation) -> list[_Message]:
    """The messages from the root to the current node; without one, to the newest leaf."""
    node_id = found.current_node
    if node_id not in found.mapping:
        leaves = [name for name, node in found.mapping.items() if not node.children]
        node_id = max(leaves, key=lambda name: _time(found.mapping[name]), default=None)
    branch: list[_Message] = []
    seen: set[str] = set()
    while node_id is not None and node_id in found.mapping and node_id not in seen:
        seen.add(node_id)
        node = found.mapping[node_id]
        if node.message is not None:
            branch.append(node.message)
        node_id = node.parent
    return branch[::-1]


def _time(node: _Node) -> float:
    return 0.0 if node.message is None or node.message.create_time is None else node.message.create_time


def _said(message: _Message) -> Iterator[Spoken | LeftOut]:
    content = message.content
    role = ROLES.get(message.author.role)
    if role is None:
        raise msgspec.ValidationError(f"the author's role is none of {', '.join(ROLES)}")
    if message.metadata is not None and message.metadata.is_visually_hidden_from_conversation:
        yield LeftOut("hidden message")
        return
    if content.content_type not in TEXTS:
        yield LeftOut(content.content_type or "message without content")
        return
    texts = [content.text] if content.text else []
    for part in content.parts or ():
        if isinstance(part, str):
            texts.append(part)
        elif part is not None and part.content_type == TRANSCRIBED:
            texts.append(part.text)
        elif part is not None:
            yield LeftOut(part.content_type)
    text = "\n".join(each for each in texts if each)
    if not text:
        yield LeftOut("empty message")
    elif role == "tool":
        yield Spoken("tool", ToolResult(text, name=message.author.name))
    elif message.recipient not in EVERYBODY:
        yield Spoken("tool", ToolCall(message.recipient or "", text))
    else:
        yield Spoken(role, text)
