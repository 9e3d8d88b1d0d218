"""What a reader yields: turns, facts, what it leaves out and what it cannot read, each with its place in the file."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import BinaryIO, Literal, get_args

from beetle.named_tuple import NamedTuple

Role = Literal["user", "assistant", "system", "tool"]
Format = Literal[
    "jsonl", "openai", "chatgpt", "claude", "claude-code", "codex", "gemini",
    "memory-md", "basic-memory", "mem0", "mcp-memory", "mentisdb",
]  # fmt: skip
FORMATS: tuple[Format, ...] = get_args(Format)
HOSTS: dict[str, Format] = {"claude-code": "claude-code", "codex": "codex", "gemini": "gemini"}
"""Hosts whose own transcript files can be captured, and the format of those."""
ExportFormat = Literal["jsonl", "markdown"]
EXPORT_FORMATS: tuple[ExportFormat, ...] = get_args(ExportFormat)
Visible = Literal["shared", "private"]
"""What an import may make of the visibility of its messages."""
VISIBLE: tuple[Visible, ...] = get_args(Visible)


class SourceLocation(NamedTuple):
    """Where in its file something stands: a line, or an item of the file's outermost list, from 1; a byte, from 0."""

    unit: Literal["line", "item", "byte"]
    number: int

    def __str__(self) -> str:
        return f"{self.unit} {self.number}"


class ToolCall(NamedTuple):
    """A tool that was called; `arguments` is its input as JSON, or whatever text the source has."""

    name: str
    arguments: str
    call_id: str | None = None


class ToolResult(NamedTuple):
    """What a tool answered; `name` where the source says which tool it was."""

    text: str
    call_id: str | None = None
    name: str | None = None


class Spoken(NamedTuple):
    """One message: text, or the call of a tool or its result. Without an id it gets one of its turn."""

    role: Role
    content: str | ToolCall | ToolResult
    message_id: str | None = None
    speaker: str | None = None
    trigger: str | None = None


class Turn(NamedTuple):
    """One turn as the source has it.

    Args:
        conversation: the source's id of its conversation, or None where it has none.
        turn_id: the source's own id; None where it has none, then position and content make one.
        at: None where the source does not say when it was.
        position: place within its conversation, from 0, for a turn without an id. None where the content alone makes
            the id, as for a list whose items move.
        title: what the source calls the conversation.
    """

    place: SourceLocation
    conversation: str | None
    turn_id: str | None
    at: datetime | None
    messages: tuple[Spoken, ...]
    position: int | None = None
    title: str | None = None


class Committed(NamedTuple):
    """A turn that has the shape of transcript.commit already, as `beetle export` writes it.

    Args:
        turn: the fields of a turn of transcript.commit; `turn_id` and `at` may be missing.
        channel: the conversation's channel, or None where the source names none.
        partial: whether the export withheld something of it.
    """

    place: SourceLocation
    channel: str | None
    conversation: str | None
    turn: dict[str, object]
    position: int
    partial: bool = False


class Fact(NamedTuple):
    """A statement that another memory holds, to be judged as a candidate, with the words it rests on as evidence.

    Args:
        conversation: where its evidence goes; None where the source names nothing.
        source_id: the source's own id of it, which goes into the id of its evidence.
        attrs: what else the source says of it (tags, category, section), kept beside the evidence.
        claim: False keeps it as evidence alone, such as a note's prose.
    """

    place: SourceLocation
    conversation: str | None
    content: str
    kind: Literal["fact", "relationship", "preference"] = "fact"
    at: datetime | None = None
    source_id: str | None = None
    attrs: tuple[tuple[str, str], ...] = ()
    claim: bool = True


class ThoughtLink(NamedTuple):
    """A typed link to another thought by the source's id; `chain` where that one is of another chain."""

    kind: str
    target: str
    chain: str | None = None
    valid_at: str | None = None
    invalid_at: str | None = None


class Thought(NamedTuple):
    """A thought of another store's chain.

    Args:
        source_id, position, at, digest: the id, the place, the time and the hash that it has there.
        refs: indexes of other thoughts there.
        kept: what else the source says of it, by name, that has no field here.
    """

    place: SourceLocation
    chain: str
    source_id: str
    position: int
    at: str
    digest: str
    agent_id: str
    thought_type: str
    role: str
    content: str
    confidence: float | None
    importance: float | None
    tags: tuple[str, ...] = ()
    concepts: tuple[str, ...] = ()
    refs: tuple[int, ...] = ()
    links: tuple[ThoughtLink, ...] = ()
    session_id: str | None = None
    kept: tuple[tuple[str, str], ...] = ()


class AgentKey(NamedTuple):
    """A public key of an agent."""

    key_id: str
    algorithm: str
    public_key: tuple[int, ...]
    revoked: bool


class Agent(NamedTuple):
    """An agent of another store's chain."""

    place: SourceLocation | None
    chain: str
    agent_id: str
    name: str
    owner: str | None
    description: str | None
    aliases: tuple[str, ...]
    keys: tuple[AgentKey, ...]
    active: bool


class SkillVersion(NamedTuple):
    """One version of a skill; those of a skill follow each other, the oldest first. `digest` is the SHA-256 (hex)."""

    place: SourceLocation
    skill_id: str
    agent_id: str
    format: str
    content: str
    digest: str


class SkillStanding(NamedTuple):
    """What a skill is behind its last version: active, deprecated or revoked, and why."""

    place: SourceLocation
    skill_id: str
    status: str
    reason: str | None
    last_digest: str


ChainItem = Thought | Agent | SkillVersion | SkillStanding
"""What is no evidence of a conversation: it goes into chains and the skill registry."""


class LeftOut(NamedTuple):
    """Something of the file that is not taken in by design, such as `thinking` or `image`."""

    what: str


class Problem(NamedTuple):
    """Something that cannot be taken in, and why; what follows it is read all the same."""

    place: SourceLocation | None
    reason: str


Item = Turn | Committed | Fact | ChainItem | LeftOut | Problem


class Source(NamedTuple):
    """A file that is read once, from its start.

    Args:
        name: how reports name it.
        stem: what its conversation, or its chain, is called where the content does not say.
        stream: its bytes, read forward only.
        layout: whether each line is a JSON value, or the whole file is one; means nothing for Markdown.
    """

    name: str
    stem: str
    stream: BinaryIO
    layout: Literal["lines", "value"] = "value"


Items = Iterator[Item]
