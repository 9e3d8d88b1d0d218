"""What the two Markdown formats share: the front matter, and a page cut into headings, list items and paragraphs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from beetle.importing.items import Problem, Source, SourceLocation
from beetle.named_tuple import NamedTuple

PAGE_BYTES = 4 * 2**20
"""Largest page that is read; notes have some kilobytes."""
HEADING = re.compile(r"#{1,6}\s++(.*)$")
ITEM = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])\s+(.*)$")
FENCE = re.compile(r"\s*(`{3,}|~{3,})")
FIELD = re.compile(r"([A-Za-z_][\w -]{0,63}):\s*(.*?)\s*$")


class Page(NamedTuple):
    """The fields of the front matter that are on one line each, lists as words, and the lines behind it."""

    fields: dict[str, str]
    lines: list[tuple[int, str]]


class Block(NamedTuple):
    """One list item or paragraph: its first line's number, its text on one line, the heading it stands under.

    `kind` is code for a fenced block, whose lines stay as they are.
    """

    kind: str
    number: int
    text: str
    heading: str


def page(source: Source) -> Page | Problem:
    """The page, or why it cannot be read."""
    data = source.stream.read(PAGE_BYTES + 1)
    if len(data) > PAGE_BYTES:
        return Problem(SourceLocation("line", 1), f"the page is larger than {PAGE_BYTES:,} bytes")
    try:
        text = data.removeprefix(b"\xef\xbb\xbf").decode()
    except UnicodeDecodeError as error:
        return Problem(SourceLocation("line", data.count(b"\n", 0, error.start) + 1), "not UTF-8")
    numbered = list(enumerate(text.split("\n"), start=1))
    numbered = [(number, line.rstrip("\r")) for number, line in numbered]
    if numbered[0][1].rstrip() != "---":
        return Page({}, numbered)
    end = next((index for index, (_, line) in enumerate(numbered[1:], 1) if line.rstrip() in ("---", "...")), None)
    return Page({}, numbered) if end is None else Page(_fields(numbered[1:end]), numbered[end + 1 :])


def _fields(lines: list[tuple[int, str]]) -> dict[str, str]:
    """Of YAML what notes use: a value on the line of its name, or a list below it."""
    fields: dict[str, str] = {}
    last = ""
    for _, line in lines:
        if (field := FIELD.match(line)) is not None:
            last = field[1].lower()
            fields[last] = (
                field[2].strip("[]").replace(",", " ").strip() if field[2].startswith("[") else _plain(field[2])
            )
        elif last and (item := re.match(r"\s*-\s+(.*)$", line)) is not None:
            fields[last] = f"{fields[last]} {_plain(item[1])}".strip()
    return fields


def _plain(value: str) -> str:
    value = value.strip()
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"" else value


def blocks(lines: list[tuple[int, str]]) -> Iterator[Block]:
    """The page in its order; headings are told by what stands under them."""
    cutter = _Cutter()
    for number, line in lines:
        yield from cutter.line(number, line)
    yield from cutter.ended()


class _Cutter:
    def __init__(self) -> None:
        self._heading = ""
        self._fence = ""
        self._kind = ""
        self._first = 0
        self._parts: list[str] = []

    def line(self, number: int, line: str) -> Iterator[Block]:
        """The block that this line ends, if it ends one."""
        fence = FENCE.match(line)
        if self._fence:
            if fence is not None and fence[1].startswith(self._fence):
                self._fence = ""
                yield from self.ended()
            else:
                self._parts.append(line)
        elif fence is not None:
            yield from self.ended()
            self._fence = fence[1]
            self._kind, self._first = "code", number
        elif not line.strip():
            yield from self.ended()
        elif (heading := HEADING.match(line)) is not None:
            yield from self.ended()
            self._heading = heading[1].rstrip().rstrip("#").rstrip()
        elif (item := ITEM.match(line)) is not None:
            yield from self.ended()
            self._kind, self._first, self._parts = "item", number, [item[1]]
        else:
            if not self._parts:
                self._kind, self._first = "paragraph", number
            self._parts.append(line.strip())

    def ended(self) -> Iterator[Block]:
        """The block that was open."""
        text = ("\n" if self._kind == "code" else " ").join(self._parts).strip()
        if text:
            yield Block(self._kind, self._first, text, self._heading)
        self._parts = []
        self._kind = ""
