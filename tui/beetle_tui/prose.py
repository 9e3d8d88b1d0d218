"""Markdown as lines of a page: enough of it to read a procedure by, in a few styles, whatever a person wrote.

Nothing of the text is lost: what is not understood is shown as it is. Weight and sign tell what colour does too.
Rich's Markdown is no faster and lets a text's escape sequences through to the terminal. Textual's makes a widget of
each paragraph: a text of 2,200 lines took it 10.6 s of processor time and 123 MiB, these blocks 0.08 s and 2.7 MiB, and
another width 3.1 s to 0.05 s. To load it takes 30 ms and 1.4 MiB more, in 90 modules (markdown-it, pygments).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from textual.content import Content, Span

from beetle_tui.text import count, neutral

TAB = 4
MOST_MARKED = 300
"""Characters between two marks: what never ends is not looked for further than that."""

MOST_SHOWN = 100_000
"""Characters of one text that are shown: every width folds them anew."""

HEADING = re.compile(r" {0,3}(#{1,6})\s++(.*)\Z")
ITEM = re.compile(r"(\s*+)([-*+]|\d{1,9}[.)])\s++(.*)\Z")
QUOTE = re.compile(r" {0,3}>\s?(.*)\Z")
RULE = re.compile(r" {0,3}([-*_])(?:\s*\1){2,}\s*\Z")
FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
CODE = re.compile(r"(?: {4})(.*)\Z")
MARKED = re.compile(
    rf"(?P<code>`[^`]{{1,{MOST_MARKED}}}`)"
    rf"|\*\*(?P<strong>[^*\s](?:[^*]{{0,{MOST_MARKED}}}[^*\s])?)\*\*"
    rf"|\*(?P<soft>[^*\s](?:[^*]{{0,{MOST_MARKED}}}[^*\s])?)\*"
    rf"|\[(?P<name>[^\]\[]{{1,{MOST_MARKED}}})\]\((?P<link>[^()\s]{{1,{MOST_MARKED}}})\)"
)
STYLES = {"code": "$accent", "strong": "bold", "soft": "italic"}


class Block(NamedTuple):
    """Some text of a page, broken where it is too wide. `first` stands before its first line, `rest` before the others.

    `target` is what enter opens on its lines.
    """

    text: Content
    first: str = ""
    rest: str = ""
    target: object = None

    def lines(self, width: int) -> Iterator[Content]:
        """Its lines, of at most so many cells."""
        room = max(2, width - max(len(self.first), len(self.rest)))
        before = self.first
        for line in self.text.wrap(room):
            yield Content.assemble((before, "$label"), line) if before else line
            before = self.rest


BLANK = Block(Content())


def plain(text: str, first: str = "", rest: str | None = None, target: object = None) -> Block:
    """A text as it is, on one line where there is room; control characters are shown as escapes."""
    return Block(Content(neutral(text)), first, " " * len(first) if rest is None else rest, target)


def fact(label: str, value: str, room: int = 9, target: object = None) -> Block:
    """A value behind its label."""
    return plain(value, f"{label:<{room}} ", target=target)


def section(title: str) -> Iterator[Block]:
    """The head of a part of the page."""
    yield BLANK
    yield Block(Content.styled(title, "bold $primary"))


def prose(text: str) -> list[Block]:
    """A Markdown text as blocks; of one that is very long the beginning, and how much is left out."""
    return [*_Reading().blocks(text[:MOST_SHOWN]), *left_out(text)]


def left_out(text: str) -> Iterator[Block]:
    """Says what of a text is not shown, if anything."""
    more = len(text) - MOST_SHOWN
    if more > 0:
        yield BLANK
        yield Block(Content.styled(f"… {count(more, 'character')} more are not shown here.", "$label"))


def paragraph(text: str) -> Content:
    """One paragraph: its marks made into styles."""
    text = neutral(text)
    parts: list[str] = []
    spans: list[Span] = []
    length = done = 0
    for found in MARKED.finditer(text):
        kind = found.lastgroup or ""
        shown = f"{found['name']} <{found['link']}>" if kind == "link" else found[kind]
        before = text[done : found.start()]
        parts += (before, shown)
        start = length + len(before)
        length = start + len(shown)
        done = found.end()
        if kind in STYLES:
            spans.append(Span(start, length, STYLES[kind]))
    parts.append(text[done:])
    return Content("".join(parts), spans)


class _Reading:
    """Lines that belong together become one block."""

    def __init__(self) -> None:
        self._held: list[str] = []
        self._first = self._rest = ""

    def blocks(self, text: str) -> Iterator[Block]:
        fence = ""
        for line in text.split("\n"):
            line = line.rstrip("\r").expandtabs(TAB)
            found = FENCE.match(line)
            if fence:
                if found and found[1].startswith(fence) and not line.strip(" `~"):
                    fence = ""
                else:
                    yield _verbatim(line)
            elif found:
                fence = found[1]
                yield from self._flush()
            else:
                yield from self._line(line)
        yield from self._flush()

    def _line(self, line: str) -> Iterator[Block]:
        bare = line.strip()
        if not bare:
            yield from self._flush()
            yield BLANK
        elif found := HEADING.match(line):
            yield from self._flush()
            title = found[2].rstrip().rstrip("#").rstrip()
            yield Block(Content.styled(neutral(title), "bold"), f"{found[1]} ", " " * (len(found[1]) + 1))
        elif RULE.match(line):
            yield from self._flush()
            yield Block(Content.styled("─" * 8, "$label"))
        elif found := ITEM.match(line):
            yield from self._flush()
            mark = "•" if found[2] in "-*+" else found[2]
            self._first = f"{found[1][:16]}{mark} "
            self._rest = " " * len(self._first)
            self._held = [found[3]]
        elif found := QUOTE.match(line):
            yield from self._flush()
            yield Block(paragraph(found[1]), "│ ", "│ ")
        elif bare.startswith("|") or (not self._held and CODE.match(line)):
            yield from self._flush()
            yield _verbatim(bare if bare.startswith("|") else line[TAB:])
        else:
            self._held.append(bare)
            if line.endswith(("  ", "\\")):
                yield from self._flush(ends=False)

    def _flush(self, ends: bool = True) -> Iterator[Block]:
        """What is held; where it does not end, what follows stands below it."""
        if self._held:
            yield Block(paragraph(" ".join(self._held)), self._first, self._rest)
        self._held = []
        self._first, self._rest = ("", "") if ends else (self._rest, self._rest)


def _verbatim(line: str) -> Block:
    return Block(Content.styled(neutral(line), "$accent"), "    ", "    ")
