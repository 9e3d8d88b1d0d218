"""A host's own transcript file as turns for turn.capture: the readers of imports, numbered within each session.

The number of a turn is its place among the turns of its session in the file: hosts only add to these files, so a second
reading gives the same turns the same numbers. What one record says becomes one turn (its text, with the tools that it
calls), and each result of a tool another.
"""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, cast

from beetle.importing.files import NoFile, Opened, SourceFile, opened
from beetle.importing.formats import READERS
from beetle.importing.items import HOSTS, Items, LeftOut, Problem, SourceLocation, Spoken, ToolCall, ToolResult, Turn
from beetle.named_tuple import NamedTuple

BRIEF_CHARS = 200
BRIEFS = ("description", "command", "cmd", "file_path", "path", "query")
CALLS = 128
POLL_S = 0.5
HEAD_BYTES = 64 * 1024


class HostTurn(NamedTuple):
    """One turn as turn.capture takes it, and where it stands."""

    place: SourceLocation
    request: dict[str, Any]


Captured = HostTurn | LeftOut | Problem


class Numbering:
    """Turns numbered within their sessions."""

    def __init__(self, host: str, stem: str, version: str | None = None) -> None:
        self._host = host
        self._stem = stem
        self._version = version
        self._next: dict[str, int] = {}

    def numbered(self, items: Items) -> Iterator[Captured]:
        """What a reader yields, as turns."""
        for item in items:
            if isinstance(item, Turn):
                yield from self._turns(item)
            elif isinstance(item, LeftOut | Problem):
                yield item

    def _turns(self, turn: Turn) -> Iterator[HostTurn]:
        session = (turn.conversation or self._stem)[:256]
        for role, content, calls in _said(turn.messages):
            index = self._next.get(session, 0)
            self._next[session] = index + 1
            request: dict[str, Any] = {
                "host_session_id": session, "host_turn_index": index, "role": role, "content": content,
                "host_kind": self._host,
            }  # fmt: skip
            if self._version is not None:
                request["host_version"] = self._version
            if calls:
                request["tool_calls"] = calls
            if turn.at is not None:
                request["timestamp_iso"] = turn.at
            if turn.turn_id is not None:
                request["metadata"] = {"record_id": turn.turn_id}
            yield HostTurn(turn.place, request)


def _said(messages: tuple[Spoken, ...]) -> Iterator[tuple[str, str, list[dict[str, str]]]]:
    """(role, content, tool calls) of each turn that a record is: what stands in a row of one speaker is one."""
    role, texts, calls = "", list[str](), list[dict[str, str]]()

    def told() -> Iterator[tuple[str, str, list[dict[str, str]]]]:
        if texts or calls:
            yield (role if texts else "tool_use"), "\n\n".join(texts), calls[:CALLS]

    for each in messages:
        if isinstance(each.content, ToolResult):
            yield from told()
            texts, calls = [], []
            yield "tool_result", each.content.text, []
            continue
        if each.role != role:
            yield from told()
            role, texts, calls = each.role, [], []
        if isinstance(each.content, ToolCall):
            calls.append({"tool": _name(each.content.name), "brief": brief(each.content.arguments)})
        else:
            texts.append(each.content)
    yield from told()


def _name(name: str) -> str:
    return "".join(c for c in name if c.isprintable())[:256] or "unknown"


def brief(arguments: str) -> str:
    """A tool's arguments in a line: the description, command, file or query, else the first of them."""
    try:
        found = json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments[:BRIEF_CHARS]
    if not isinstance(found, dict) or not found:
        return arguments[:BRIEF_CHARS]
    given = cast("dict[str, Any]", found)
    name = next((each for each in BRIEFS if isinstance(given.get(each), str)), None)
    if name is not None:
        return str(given[name])[:BRIEF_CHARS]
    first = next(iter(given))
    return f"{first}={given[first]}"[:BRIEF_CHARS]


class Reading(NamedTuple):
    """A file that is being read: its turns, its size in bytes, and how far it was read."""

    turns: Iterator[Captured]
    size: int
    done: Callable[[], int]


def version_of(host: str, stream: BinaryIO) -> str | None:
    """The host's version, where the first records of its file say it; the stream stands at its start again."""
    data = stream.read(HEAD_BYTES)
    stream.seek(0)
    for line in data.split(b"\n"):
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            inside = found.get("payload") if host == "codex" else found
            told = inside.get("version", inside.get("cli_version")) if isinstance(inside, dict) else None
            if isinstance(told, str) and told:
                return told[:256]
    return None


def read_host(file: Opened, host: str) -> Reading:
    """The turns of an open file, as it is now."""
    source = file.source
    numbering = Numbering(host, source.stem, version_of(host, source.stream))
    return Reading(numbering.numbered(READERS[HOSTS[host]](source)), file.size, source.stream.tell)


def followed(path: str, host: str, waits: Callable[[], None] = lambda: time.sleep(POLL_S)) -> Iterator[Captured]:
    """The turns of a file, and those that are added to it, without an end; `waits` between two looks.

    A line counts when it is whole. A file that is one JSON value is read again when it has changed: its turns come
    again with the numbers that they had.

    Raises:
        NoFile: there is no regular file of that name.
    """
    while True:
        with opened(SourceFile(path, _stem(path), True), HOSTS[host]) as file:
            if file.source.layout == "lines":
                growing = Growing(path, file.source.stream, waits)
                version = version_of(host, file.source.stream)
                source = file.source._replace(stream=cast(BinaryIO, growing))
                yield from Numbering(host, source.stem, version).numbered(READERS[HOSTS[host]](source))
            else:
                before = _mark(path)
                yield from read_host(file, host).turns
                while _mark(path) == before:
                    waits()


class Growing:
    """A file of lines that is written to meanwhile: a line is given when it is whole, and its end is waited for.

    It ends when another file stands at the path, or the file got shorter.
    """

    def __init__(self, path: str, stream: BinaryIO, waits: Callable[[], None]) -> None:
        self._path = path
        self._stream = stream
        self._waits = waits
        self._inode = os.fstat(stream.fileno()).st_ino

    def readline(self, size: int = -1) -> bytes:
        """The next whole line, or `size` bytes of it; empty at the end."""
        line = b""
        while True:
            line += self._stream.readline(size - len(line) if size >= 0 else -1)
            if line.endswith(b"\n") or 0 <= size <= len(line):
                return line
            if self._is_over():
                return line
            self._waits()

    def _is_over(self) -> bool:
        try:
            there = os.stat(self._path)
        except FileNotFoundError:
            return True
        return there.st_ino != self._inode or there.st_size < self._stream.tell()


def _mark(path: str) -> tuple[int, int, int]:
    try:
        found = os.stat(path)
    except OSError as error:
        raise NoFile(path=path, reason=(error.strerror or "unreadable").lower()) from None
    if not stat.S_ISREG(found.st_mode):
        raise NoFile(path=path, reason="it is no regular file any more")
    return found.st_ino, found.st_size, found.st_mtime_ns


def _stem(path: str) -> str:
    return os.path.splitext(os.path.basename(os.path.abspath(path)))[0]
