"""Conversations as files again: JSON lines that an import takes in unchanged, and Markdown for people."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from typing import Any, cast

from beetle.asking import Ask, Asked
from beetle.contracts.codec import UNSET, pack_json
from beetle.contracts.common import Conversation
from beetle.contracts.transcript import (
    MemoryTranscriptConversationsReport,
    MemoryTranscriptExportReport,
    TranscriptMessage,
    TranscriptTurn,
)
from beetle.importing.items import ExportFormat

PAGE = 200
"""Turns asked for at once; a profile may give fewer."""


Exporting = Generator[Asked | str, Any, None]
"""Yields requests, each of which it is sent the report of, and the lines that are made of them."""


def exported(work: Exporting, ask: Ask) -> Iterator[str]:
    """The lines that an export yields; `ask` runs an operation."""
    with closing(work):
        found = next(work, None)
        while found is not None:
            if isinstance(found, str):
                yield found
                found = next(work, None)
            else:
                found = sent(work, ask(*found))


def sent(work: Exporting, report: Any) -> Asked | str | None:
    """What an export yields next, now that its request was answered; None at its end."""
    try:
        return work.send(report)
    except StopIteration:
        return None


def exporting(conversations: Sequence[Conversation], form: ExportFormat, include_private: bool) -> Exporting:
    """The lines of an export, each with its end; what the export view may not show is not among them.

    Args:
        conversations: these; all of the memory space when there are none.

    Raises:
        BeetleError: what the operations answered.
    """
    if conversations:
        for where in conversations:
            yield from _conversation(where, form, include_private)
        return
    asked: dict[str, Any] = {"limit": PAGE}
    while True:
        page = cast(MemoryTranscriptConversationsReport, (yield Asked("transcript.conversations", asked)))
        for each in page.conversations:
            where = Conversation(channel_id=each.channel_id, conversation_id=each.conversation_id)
            yield from _conversation(where, form, include_private)
        if page.next_cursor is None:
            return
        asked["cursor"] = page.next_cursor


def _conversation(where: Conversation, form: ExportFormat, include_private: bool) -> Exporting:
    asked: dict[str, Any] = {"conversation": where, "include_private": include_private, "limit": PAGE}
    first = True
    while True:
        page = cast(MemoryTranscriptExportReport, (yield Asked("transcript.export", asked)))
        for turn in page.turns:
            if form == "jsonl":
                yield pack_json({"conversation": where, **_plain(turn)}).decode() + "\n"
                continue
            if first:
                yield f"# {_line(where.channel_id)}/{_line(where.conversation_id)}\n\n"
            first = False
            yield from _markdown(turn)
        if page.next_cursor is None:
            return
        asked["cursor"] = page.next_cursor


def _plain(turn: TranscriptTurn) -> dict[str, Any]:
    """A turn with the fields that transcript.commit takes; what was redacted keeps its reason."""
    found: dict[str, Any] = {
        "turn_id": turn.turn_id,
        "at": turn.at,
        "messages": [_message(each, turn.at) for each in turn.messages],
    }
    if turn.host_refs:
        found["host_refs"] = [
            {name: value for name, value in _fields(ref).items() if value is not None} for ref in turn.host_refs
        ]
    if turn.attrs:
        found["attrs"] = [
            {
                "key": attr.key,
                "value": attr.value,
                "target": "turn" if attr.message_id is None else {"message_id": attr.message_id},
                "visibility": attr.visibility,
                "export_allowed": attr.export_allowed,
            }
            for attr in turn.attrs
        ]
    return found


def _message(message: TranscriptMessage, at: str) -> dict[str, Any]:
    found: dict[str, Any] = {"message_id": message.message_id, "role": message.role}
    if message.content is UNSET:
        found["redacted"] = message.redacted
    else:
        found["content"] = message.content
    if message.at != at:
        found["at"] = message.at
    if message.visibility != "shared":
        found["visibility"] = message.visibility
    if message.actor is not None:
        actor = {name: value for name, value in _fields(message.actor).items() if value is not None}
        if actor:
            found["actor"] = actor
    return found


def _fields(struct: Any) -> dict[str, Any]:
    return {name: getattr(struct, name) for name in struct.__struct_fields__}


def _markdown(turn: TranscriptTurn) -> Iterator[str]:
    for message in turn.messages:
        speaker = message.actor.speaker if message.actor is not None else None
        yield f"## {_line(speaker or message.role)}, {message.at}\n\n"
        if message.content is UNSET:
            reason = "withheld" if message.redacted is UNSET else message.redacted.reason
            yield f"_{reason.replace('_', ' ')}_\n\n"
        else:
            # A heading inside a message would read as one of the page.
            yield "".join(f"{_quoted(line)}\n" for line in str(message.content).split("\n")) + "\n"


def _quoted(line: str) -> str:
    return f"\\{line}" if line.startswith("#") else line


def _line(text: str) -> str:
    return " ".join(text.split())
