"""From items to what transcript.commit and memory.write take: ids, times and speakers that a source does not have."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import datetime
from typing import Any

from msgspec import field

from beetle.contracts.codec import convert_request
from beetle.contracts.common import DEFAULT_CHANNEL, Conversation
from beetle.contracts.fields import Id, Label, Request, Time
from beetle.contracts.governance import Authority
from beetle.contracts.refs import EvidenceRef
from beetle.contracts.tool_parts import tail_of
from beetle.contracts.turns import CanonicalTurnDelta
from beetle.importing.items import Committed, Fact, Role, SourceLocation, Spoken, ToolCall, ToolResult, Turn, Visible
from beetle.named_tuple import NamedTuple

ID_CHARS = 256
CLAIMED: dict[Authority, Role] = {
    "host": "assistant", "assistant_claimed": "assistant", "tool_observed": "tool", "user_asserted": "user",
    "operator": "user",
}  # fmt: skip
"""The role of the message that stands for a fact of another memory, by whose word it is taken."""
SHOWN = ["host_ui", "export"]


class Options(Request, frozen=True, kw_only=True):
    """What the caller says of the files.

    `conversation` takes in everything as this one; `channel` is of conversations that a file names without one, the
    format's name when left out; `speakers` are display names by role, for messages without one; `time` is of what has
    none, the file's last change when left out; `authority` says whose word facts are.
    """

    conversation: Conversation | None = None
    channel: Id | None = None
    speakers: dict[Role, Label] = field(default_factory=dict[Role, Label])
    time: Time | None = None
    authority: Authority = "host"
    visibility: Visible = "shared"


class Prepared(NamedTuple):
    """A turn as it is sent. `made_id` says that content and position made its id: the same id is the same content.

    `claim` is the candidate that rests on it; `partial` says that an export withheld something of the turn.
    """

    place: SourceLocation
    conversation: Conversation
    turn: dict[str, Any]
    size: int
    made_id: bool
    claim: dict[str, Any] | None = None
    partial: bool = False


class Preparer:
    """Prepares the items of one file, in their order."""

    def __init__(
        self, options: Options, format_name: str, stem: str, changed: datetime, derived: Callable[[str, str], None]
    ) -> None:
        self._options = options
        self._channel = options.channel or (DEFAULT_CHANNEL if format_name == "jsonl" else format_name)
        self._stem = stem
        self._time = options.time or changed
        self._time_words = "--time" if options.time else f"the file's last change, {changed.isoformat()}"
        self._derived = derived
        self._speakers: dict[str, str] = {**options.speakers}
        self._last: tuple[str | None, datetime] | None = None
        self._same: dict[str, int] = {}

    def prepared(self, item: Turn | Committed | Fact) -> Prepared:
        """The item with all that a store needs.

        Raises:
            InvalidRequest: it is not as a turn must be.
        """
        if isinstance(item, Turn):
            return self._turn(item)
        return self._committed(item) if isinstance(item, Committed) else self._fact(item)

    def _turn(self, item: Turn) -> Prepared:
        where = self._where(item.conversation)
        at = self._at(where, item.at)
        shown = [(each.role, _text(each)) for each in item.messages]
        turn_id = item.turn_id or _made_id(str(item.position), *(part for pair in shown for part in pair))
        turn_id = turn_id if len(turn_id) <= ID_CHARS - 8 else _made_id(turn_id)
        messages = [
            self._message(turn_id, index, each, text)
            for index, (each, (_, text)) in enumerate(zip(item.messages, shown, strict=True))
        ]
        turn: dict[str, Any] = {"turn_id": turn_id, "at": at, "messages": messages}
        if item.title and item.position == 0:
            turn["attrs"] = [_attr("title", item.title)]
        return self._checked(item.place, where, turn, item.turn_id is None)

    def _message(self, turn_id: str, index: int, said: Spoken, text: str) -> dict[str, Any]:
        message_id = said.message_id or (turn_id if index == 0 else f"{turn_id}.{index}")
        message: dict[str, Any] = {"message_id": message_id, "role": said.role, "content": text}
        if self._options.visibility != "shared":
            message["visibility"] = self._options.visibility
        speaker = said.speaker or self._speakers.get(said.role)
        if speaker or said.trigger:
            message["actor"] = {"speaker": speaker, "trigger": said.trigger}
        return message

    def _committed(self, item: Committed) -> Prepared:
        where = self._where(item.conversation, item.channel)
        turn = dict(item.turn)
        messages: Any = turn["messages"]
        contents = [str(each.get(name)) for each in messages for name in ("role", "content")]
        # Those of a turn without any say nothing here: the ids of such turns are as they were before there were some.
        contents += [str(each[name]) for each in messages for name in ("tool_calls", "tool_result") if name in each]
        made = turn.get("turn_id") is None
        turn_id = str(turn.setdefault("turn_id", _made_id(str(item.position), *contents)))
        given = turn.get("at")
        turn["at"] = (
            self._at(where, given if isinstance(given, datetime) else None) if not isinstance(given, str) else given
        )
        for index, message in enumerate(messages):
            message.setdefault("message_id", turn_id if index == 0 else f"{turn_id}.{index}")
            if self._options.visibility != "shared":
                message.setdefault("visibility", self._options.visibility)
            if (speaker := self._speakers.get(str(message.get("role")))) is not None:
                message.setdefault("actor", {"speaker": speaker})
        return self._checked(item.place, where, turn, made)._replace(partial=item.partial)

    def _fact(self, item: Fact) -> Prepared:
        where = self._where(item.conversation)
        at = item.at or self._untimed()
        role = CLAIMED[self._options.authority]
        turn_id = _made_id(role, item.source_id or "", item.content)
        message: dict[str, Any] = {"message_id": turn_id, "role": role, "content": item.content}
        private = self._options.visibility == "private"
        if private:
            message["visibility"] = "private"
        turn: dict[str, Any] = {"turn_id": turn_id, "at": at, "messages": [message]}
        turn["attrs"] = [_attr(key, value) for key, value in item.attrs]
        found = self._checked(item.place, where, turn, True)
        if not item.claim:
            return found
        ref = EvidenceRef(where.channel_id, where.conversation_id, turn_id, turn_id)
        claim = {
            "candidate_id": turn_id, "authority": self._options.authority, "target": "long_term",
            "privacy": "subject_private" if private else "shared_with_subject", "content": item.content,
            "evidence_refs": [str(ref)], "kind": item.kind,
        }  # fmt: skip
        return found._replace(claim=claim)

    def _where(self, name: str | None, channel: str | None = None) -> Conversation:
        if self._options.conversation is not None:
            return self._options.conversation
        if name is None:
            name = self._stem
            self._derived("conversation", "the file's name")
        if len(name) > ID_CHARS:
            name = _made_id(name)
        return Conversation(channel_id=channel or self._channel, conversation_id=name)

    def _at(self, where: Conversation, at: datetime | None) -> datetime:
        """The time of a turn; of one without, the time of the turn before it."""
        name = where.conversation_id
        if at is None:
            if self._last is not None and self._last[0] == name:
                self._derived("time", "the turn before")
                return self._last[1]
            return self._untimed()
        self._last = (name, at)
        return at

    def _untimed(self) -> datetime:
        self._derived("time", self._time_words)
        return self._time

    def _checked(self, place: SourceLocation, where: Conversation, turn: dict[str, Any], made_id: bool) -> Prepared:
        checked = convert_request(turn, CanonicalTurnDelta, "$")
        size = 256
        for message in checked.messages:
            text = message.content
            size += 128 + (len(text) if text.isascii() else len(text.encode()))
            if message.tool_calls or message.tool_result is not None:
                size += len(tail_of(message.tool_calls, message.tool_result).encode())
        for attr in checked.attrs:
            size += 128 + 4 * len(attr.value)
        return Prepared(place, where, turn, size, made_id)


def _text(said: Spoken) -> str:
    """The content of a message; a call of a tool is its name and what it was given."""
    content = said.content
    if isinstance(content, ToolCall):
        return f"{content.name}({content.arguments})"
    if isinstance(content, ToolResult):
        return content.text
    return content


def _attr(key: str, value: str) -> dict[str, Any]:
    return {"key": key, "value": value, "visibility": SHOWN, "export_allowed": True}


def _made_id(*parts: str) -> str:
    digest = hashlib.blake2b(digest_size=12)
    for part in parts:
        data = part.encode(errors="surrogatepass")
        digest.update(len(data).to_bytes(8, "big") + data)
    return f"import-{digest.hexdigest()}"
