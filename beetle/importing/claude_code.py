"""`claude-code`: the transcripts of Claude Code, ~/.claude/projects/PROJECT/SESSION.jsonl, a record a line.

Records of type user and assistant are turns. A sub-agent's records (`isSidechain`) are a conversation of their own:
what it is told is no word of the user.

The host documents where the files are and not what is in them. This is the shape of 2025 and 2026 as issues record
it (anthropics/claude-code #60845, basicmachines-co/basic-memory #1527).
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import msgspec

from beetle.importing.blocks import Block, spoken_of
from beetle.importing.items import Item, Items, LeftOut, Role, Source, SourceLocation, Spoken, Turn
from beetle.importing.lines import records
from beetle.importing.times import moment


class _Message(msgspec.Struct):
    content: str | list[Block] = ""


class _Record(msgspec.Struct, rename="camel"):
    type: str = ""
    uuid: str | None = None
    session_id: str | None = None
    timestamp: datetime | None = None
    message: _Message | None = None
    is_meta: bool = False
    is_sidechain: bool = False
    is_compact_summary: bool = False
    agent_id: str | None = None


RECORD = msgspec.json.Decoder(_Record)
ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant"}
OF_THE_HOST = ("<command-", "<local-command-", "<system-reminder>", "<bash-", "<user-memory-input>")
"""How a text begins that the host wrote in the user's place."""


def read(source: Source) -> Items:
    """A turn a record, called by its uuid."""
    return records(source, RECORD, _record)


def _record(place: SourceLocation, found: _Record) -> Iterator[Item]:
    role = ROLES.get(found.type)
    if role is None or found.message is None:
        yield LeftOut(found.type or "record without a type")
        return
    if found.is_meta or found.is_compact_summary:
        yield LeftOut("host message" if found.is_meta else "summary")
        return
    said: list[Spoken] = []
    for item in spoken_of(role, found.message.content):
        if isinstance(item, LeftOut):
            yield item
        elif role == "user" and isinstance(item.content, str) and item.content.lstrip().startswith(OF_THE_HOST):
            yield LeftOut("host message")
        else:
            said.append(_of_subagent(item) if found.is_sidechain else item)
    if not said:
        return
    conversation = found.session_id
    if conversation is not None and found.is_sidechain:
        conversation = f"{conversation}:{found.agent_id or 'sidechain'}"
    yield Turn(place, conversation, found.uuid, moment(found.timestamp), tuple(said), place.number)


def _of_subagent(said: Spoken) -> Spoken:
    """The task of a sub-agent comes from the agent that started it."""
    return said._replace(role="assistant" if said.role == "user" else said.role, trigger="subagent")
