"""The formats: how each is called, what reads it, and how a file's own content tells which it is."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO, Literal, cast

from beetle.contracts.errors import InvalidRequest
from beetle.importing import (
    basic_memory,
    chatgpt,
    claude,
    claude_code,
    codex,
    gemini,
    mcp_memory,
    mem0,
    memory_md,
    mentisdb,
    openai,
    own,
)
from beetle.importing.elements import TOKEN
from beetle.importing.items import Format, Items, Source
from beetle.named_tuple import NamedTuple

READERS: Mapping[Format, Callable[[Source], Items]] = {
    "jsonl": own.read,
    "openai": openai.read,
    "chatgpt": chatgpt.read,
    "claude": claude.read,
    "claude-code": claude_code.read,
    "codex": codex.read,
    "gemini": gemini.read,
    "memory-md": memory_md.read,
    "basic-memory": basic_memory.read,
    "mem0": mem0.read,
    "mcp-memory": mcp_memory.read,
    "mentisdb": mentisdb.read,
}
MARKDOWN: tuple[Format, ...] = ("memory-md", "basic-memory")
HEAD_BYTES = 256 * 1024
HEAD_LINES = 20
"""So much of a file is looked at to tell its format."""
LINE_ENDINGS = (".jsonl", ".ndjson")


class UnknownFormat(InvalidRequest):
    """A file's content is of none of the formats."""

    template = "{path} is of no format that is known"
    hint_template = "name its format with --format; see `beetle help import`"


class Head(NamedTuple):
    """What the first bytes of a file say: its format, and for JSON whether each line is a value."""

    format: Format
    layout: Literal["lines", "value"]


def head_of(stream: BinaryIO, name: str, forced: Format | None = None) -> Head:
    """What a file is; the stream stands at its start again.

    Raises:
        UnknownFormat: its content tells none, and none is forced.
    """
    data = stream.read(HEAD_BYTES)
    stream.seek(0)
    text = data.removeprefix(b"\xef\xbb\xbf").lstrip()
    layout = _layout(text, name, len(data) < HEAD_BYTES)
    found = (
        forced
        or mentisdb.of_name(name)
        or (_of_json(text, layout) if text[:1] in (b"{", b"[") else _of_text(text, name))
    )
    if found is None:
        raise UnknownFormat(path=name)
    return Head(found, layout)


def _layout(text: bytes, name: str, whole: bool) -> Literal["lines", "value"]:
    if text[:1] != b"{":
        return "lines" if text[:1] != b"[" or name.endswith(LINE_ENDINGS) else "value"
    if name.endswith(LINE_ENDINGS):
        return "lines"
    line, newline, rest = text.partition(b"\n")
    # Of one object on one line alone both are true; a file that grows has one more line one day.
    return "lines" if newline and (rest.strip() or not whole) and _object(line) is not None else "value"


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else None


def _of_json(text: bytes, layout: str) -> Format | None:
    if layout == "value":
        return _of_keys(keys_of(text))
    for line in text.split(b"\n")[:HEAD_LINES]:
        found = _object(line)
        # The last line may be cut off, and the first may be of the sort that no reader takes.
        known = _of_keys(set(found)) if found is not None else _of_keys(keys_of(line)) if line.strip() else None
        if known is not None:
            return known
    return None


SHAPES: tuple[tuple[Format, tuple[set[str], ...]], ...] = (
    ("mentisdb", ({"thought_type", "prev_hash"},)),
    ("chatgpt", ({"mapping"},)),
    ("claude", ({"chat_messages"},)),
    ("mcp-memory", ({"entityType"}, {"relationType"}, {"entities", "relations"})),
    ("codex", ({"type", "payload"}, {"record_type"}, {"instructions", "timestamp", "id"}, {"type", "call_id"})),
    ("gemini", ({"projectHash"}, {"role", "parts"}, {"history"}, {"clientHistory"}, {"$set"})),
    ("claude-code", ({"sessionId", "type"}, {"parentUuid"}, {"leafUuid"}, {"isSidechain"},
                     {"type", "snapshot", "messageId"})),
    ("jsonl", ({"turns"}, {"turn_id"}, {"conversation", "messages"}, {"conversation", "role"}, {"speaker", "role"},
               {"at", "role"})),
    ("mem0", ({"memory"}, {"memories"}, {"results"}, {"source", "relationship", "target"})),
    ("openai", ({"messages"}, {"role", "content"}, {"role", "tool_calls"})),
)  # fmt: skip
"""The keys that only the objects of a format have together; the first that fits decides."""


def _of_keys(keys: set[str]) -> Format | None:
    for name, shapes in SHAPES:
        if any(shape <= keys for shape in shapes):
            return name
    return None


def keys_of(text: bytes) -> set[str]:
    """The keys of the outermost object, or of a list's first items, as far as the bytes go."""
    depth, wanted = 0, 2 if text[:1] == b"[" else 1
    keys: set[str] = set()
    for found in TOKEN.finditer(text):
        first = text[found.start() : found.start() + 1]
        if first in (b"{", b"["):
            depth += 1
        elif first in (b"}", b"]"):
            depth -= 1
        elif depth == wanted and found[1] and text[found.end() : found.end() + 16].lstrip()[:1] == b":":
            keys.add(found[0][1:-1].decode(errors="replace"))
    return keys


def _of_text(text: bytes, name: str) -> Format | None:
    if not name.lower().endswith((".md", ".markdown")) and not re.match(rb"#{1,6} |---\r?\n|[-*] ", text):
        return None
    shown = text.decode(errors="replace")
    has_permalink = re.match(r"---\r?\n(?:(?!---).*\n)*?permalink:", shown) is not None
    return "basic-memory" if has_permalink or basic_memory.NOTE.search(shown) else "memory-md"
