"""Conversations as files again: JSON lines that an import takes in unchanged, and Markdown for people."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from typing import Any, cast

from beetle.asking import Ask, Asked
from beetle.contracts.codec import UNSET, pack_json
from beetle.contracts.common import Conversation
from beetle.contracts.tool_parts import lines_of
from beetle.contracts.transcript import (
    MemoryTranscriptConversationsReport,
    MemoryTranscriptExportReport,
    TranscriptMessage,
    TranscriptTurn,
)
from beetle.importing.items import ExportFormat

PAGE = 200
"""Turns asked for at once; a profile may give fewer."""

LINE_END = re.compile("\r\n|[\n\v\f\r\x1c-\x1e\x85\u2028\u2029]")
"""CommonMark's line endings, and what programs take for one beside them."""
TAG = re.compile(r"<(?=[A-Za-z/!?])")
"""What may begin HTML: a tag could end the block quote that it stands in."""
MARK = re.compile(r"[\\#`]")
"""What could end a heading before its end, or hold the rest of it; escaped with a backslash."""

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
        in_part = _in_part(page)
        for turn in page.turns:
            if form == "jsonl":
                mark = {"partial": True} if turn.turn_id in in_part else {}
                yield pack_json({"conversation": where, **_plain(turn), **mark}).decode() + "\n"
                continue
            if first:
                yield f"# {_named(where.channel_id)}/{_named(where.conversation_id)}\n\n"
            first = False
            yield from _markdown(turn)
        if page.next_cursor is None:
            return
        asked["cursor"] = page.next_cursor


def _in_part(page: MemoryTranscriptExportReport) -> set[str]:
    """The turns of a page of which a message, a host ref or the label of one is withheld, as its redactions say.

    Where their list was clipped, those behind it may be.
    """
    named = {each.turn_id for each in page.redactions if each.field != "attr"}
    audit = page.audit
    taken = audit.messages_redacted + audit.host_refs_redacted + audit.labels_redacted + audit.attrs_redacted
    if len(page.redactions) < taken:
        last = page.redactions[-1].turn_id if page.redactions else None
        ids = [turn.turn_id for turn in page.turns]
        named.update(ids[ids.index(last) if last in ids else 0 :])
    return named


def _plain(turn: TranscriptTurn) -> dict[str, Any]:
    """A turn with the fields that transcript.commit takes; what was redacted keeps its reason."""
    found: dict[str, Any] = {
        "turn_id": turn.turn_id,
        "at": turn.at,
        "messages": [_message(each, turn.at) for each in turn.messages],
    }
    if turn.host_refs:
        found["host_refs"] = [_given(ref) for ref in turn.host_refs]
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
    if message.actor is not None and (actor := _given(message.actor)):
        found["actor"] = actor
    if message.tool_calls is not UNSET:
        found["tool_calls"] = [_given(each) for each in message.tool_calls]
    if message.tool_result is not UNSET:
        found["tool_result"] = _given(message.tool_result)
    return found


def _given(struct: Any) -> dict[str, Any]:
    """The fields that say something."""
    named = {name: getattr(struct, name) for name in struct.__struct_fields__}
    return {name: value for name, value in named.items() if value is not None}


def _markdown(turn: TranscriptTurn) -> Iterator[str]:
    for message in turn.messages:
        speaker = message.actor.speaker if message.actor is not None else None
        yield f"## {_named(speaker or message.role)}, {message.at}\n\n"
        if message.content is UNSET:
            reason = "withheld" if message.redacted is UNSET else message.redacted.reason
            yield f"_{reason.replace('_', ' ')}_\n\n"
            continue
        tools = lines_of(message)
        if message.content or not tools:
            yield _quoted(message.content)
        for line in tools:
            yield _quoted(line)


def _quoted(text: str) -> str:
    """A text as a block quote: whatever stands in it, it begins nothing outside of the quote."""
    lines = LINE_END.split(TAG.sub("&lt;", text))
    return "".join(f"> {line}\n" if line else ">\n" for line in lines) + "\n"


def _named(text: str) -> str:
    """A name within a heading."""
    return MARK.sub(r"\\\g<0>", TAG.sub("&lt;", " ".join(text.split())))
