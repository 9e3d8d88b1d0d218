"""Cut a text into chunks of 100 to 800 tokens.

Every chunk is a slice of the text: between two of them lies white space and nothing else, so no word is lost, moved or
changed, and code, tables and lists keep their lines. Paragraphs stay whole where they fit. A short one is joined to the
next one of the same type. A longer one is cut where it hurts least: between items, rows, lines or sentences, else
between words, else between characters as a reader sees them. A fence, a table or a list that fits in a chunk is never
cut.

A chunk is shorter than the minimum only where its neighbours are of another type or would not fit. None is longer than
the maximum; a single character of more combining marks than that is the one thing cut inside.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Final

from beetle.contracts.chunks import ChunkType
from beetle.domain.chunks.graphemes import boundary_before
from beetle.domain.chunks.kinds import Cue, cues, winner
from beetle.domain.chunks.tokens import TokenRuler, count_tokens
from beetle.named_tuple import NamedTuple

MIN_TOKENS: Final = 100
MAX_TOKENS: Final = 800

_FENCE = re.compile(r"^[ \t>]*+(`{3,}+|~{3,}+)([^\n]*)", re.MULTILINE)
_BREAK = re.compile(r"\n(?:[ \t]*+\n)+")
_TABLE = re.compile(r"[ \t>]*+\|")
_ITEM = re.compile(r"[ \t>]*+(?:[-*+\u2022]|[0-9]{1,9}[.)])[ \t]")
_ITEM_LINE = re.compile(rf"\n(?={_ITEM.pattern})")
_SENTENCE = re.compile(
    "[.!?\u2026\u061f\u06d4\u0964\u3002\uff01\uff1f]++[\"')\\]\u2019\u201d\u00bb\u300d\u300f\uff09]*+"
)
_UNSPACED = frozenset("\u3002\uff01\uff1f")
_BEFORE_NEXT = re.compile(r"\s*+")
_LAST_WORD = re.compile(r"\w[\w.]{0,23}\Z")
_SHORTENED = frozenset(
    """
    dr mr mrs ms prof st jr sr vs etc approx fig no vol pp ed eds inc ltd co corp dept est al cf ca bzw usw nr str
    """.split()  # noqa: SIM905
)
_SPACES: Final = (" ", "\n", "\t", "\u3000", "\xa0")
_REACH: Final = 256
_SHORT: Final = 24
"""How far back the word before a full stop is looked at."""


class Piece(NamedTuple):
    """A chunk of a text: `content` is the slice `text[start:end]`."""

    start: int
    end: int
    content: str
    tokens: int
    kind: ChunkType


class _Span(NamedTuple):
    start: int
    end: int


class _Block(NamedTuple):
    """A fence, table, list or prose within a paragraph."""

    start: int
    end: int
    shape: str


class _Typed(NamedTuple):
    """A span with its type."""

    start: int
    end: int
    kind: ChunkType


def split(text: str, *, min_tokens: int = MIN_TOKENS, max_tokens: int = MAX_TOKENS) -> list[Piece]:
    """A text as chunks in its own order; none for a blank one.

    Args:
        max_tokens: at least 1; a smaller `min_tokens` never makes a chunk longer than this.
    """
    source = _Source(text, min_tokens, max_tokens)
    fitting: list[_Span] = []
    for paragraph in source.paragraphs():
        if source.fits(*paragraph):
            fitting.append(paragraph)
        else:
            fitting += source.fit(paragraph)
    return [
        Piece(each.start, each.end, content, count_tokens(content), each.kind)
        for each in source.join_short(source.typed(fitting))
        for content in (text[each.start : each.end],)
    ]


def paragraphs(text: str) -> list[str]:
    """The paragraphs of a text, stripped: what blank lines part. A fence keeps its blank lines."""
    return [text[each.start : each.end].strip() for each in _Source(text, 1, 1).paragraphs()]


def sentences(text: str) -> list[str]:
    """The sentences of a text, stripped. "Dr. Smith" is not cut."""
    cuts = [0, *_sentence_ends(text, 0, len(text)), len(text)]
    return [found for first, last in pairwise(cuts) if (found := text[first:last].strip())]


class _Source:
    """A text that is being cut. `lines` has the text's offsets, and \\n for every line end."""

    def __init__(self, text: str, min_tokens: int, max_tokens: int) -> None:
        self.text = text
        self.lines = text.replace("\r\n", " \n").replace("\r", "\n")
        self.ruler = TokenRuler(text)
        self.max_tokens = max(1, max_tokens)
        self.min_tokens = min(min_tokens, self.max_tokens)

    def paragraphs(self) -> Iterator[_Span]:
        """What blank lines part, without the white space around it; the first line keeps its indentation."""
        fences = self._fences(0, len(self.lines))
        at, fence = 0, next(fences, None)
        for match in _BREAK.finditer(self.lines):
            while fence and fence.end <= match.start():
                fence = next(fences, None)
            if fence and fence.start <= match.start() < fence.end:
                continue
            if span := self._stripped(at, match.start()):
                yield span
            at = match.end()
        if span := self._stripped(at, len(self.lines)):
            yield span

    def fit(self, span: _Span) -> Iterator[_Span]:
        """A paragraph that does not fit in pieces that do; neighbouring blocks stay together where both fit."""
        open_span: _Span | None = None
        for block in self._blocks(span):
            for piece in self._cut(block):
                if open_span and self.fits(open_span.start, piece.end):
                    open_span = _Span(open_span.start, piece.end)
                    continue
                if open_span:
                    yield open_span
                open_span = piece
        if open_span:
            yield open_span

    def typed(self, spans: list[_Span]) -> Iterator[_Typed]:
        """Spans with the type that their words tell."""
        found = cues(self.text)
        cue: Cue | None = next(found, None)
        for start, end in spans:
            kinds: set[ChunkType] = set()
            while cue and cue.at < end:
                if cue.at >= start:
                    kinds.add(cue.kind)
                cue = next(found, None)
            yield _Typed(start, end, winner(kinds) if kinds else "note")

    def join_short(self, spans: Iterator[_Typed]) -> list[_Typed]:
        """A span below the minimum joins the next one, the last one the one before, if both are of one type."""
        joined: list[_Typed] = []
        start = end = 0
        kind: ChunkType | None = None
        for span in spans:
            if span.kind == kind and self._is_short(start, end) and self.fits(start, span.end):
                end = span.end
                continue
            if kind:
                joined.append(_Typed(start, end, kind))
            start, end, kind = span
        if kind:
            if joined and joined[-1].kind == kind and self._is_short(start, end) and self.fits(joined[-1].start, end):
                start = joined.pop().start
            joined.append(_Typed(start, end, kind))
        return joined

    def fits(self, start: int, end: int) -> bool:
        """Whether a slice has no more tokens than a chunk may have."""
        # No token is shorter than a character, which saves counting most of many short paragraphs.
        return end - start <= self.max_tokens or self.ruler.count(start, end) <= self.max_tokens

    def _is_short(self, start: int, end: int) -> bool:
        return end - start < self.min_tokens or self.ruler.count(start, end) < self.min_tokens

    def _stripped(self, start: int, end: int) -> _Span | None:
        """A slice without the white space around it, but for the indentation of a line; None if it is blank."""
        words = self.lines[start:end]
        content = words.strip()
        if not content:
            return None
        first = start + words.index(content[0])
        line = self.lines.rfind("\n", max(start - 1, 0), first) + 1
        return _Span(line if line or not start else first, first + len(content))

    def _fences(self, start: int, end: int) -> Iterator[_Span]:
        """Fenced code, with its fences, from the begin of a line on; one that is never closed lasts to the end."""
        opened: re.Match[str] | None = None
        for match in _FENCE.finditer(self.lines, start, end):
            mark, rest = match.groups()
            if opened is None:
                if mark[0] == "~" or "`" not in rest:
                    opened = match
            elif mark.startswith(opened[1]) and not rest.strip():
                yield _Span(opened.start(), match.end())
                opened = None
        if opened:
            yield _Span(opened.start(), end)

    def _blocks(self, span: _Span) -> Iterator[_Block]:
        """A paragraph as fences, tables, lists and prose; together they are the paragraph."""
        at = span.start
        for fence in self._fences(*span):
            yield from self._plain_blocks(at, fence.start)
            yield _Block(fence.start, fence.end, "lines")
            at = fence.end
        yield from self._plain_blocks(at, span.end)

    def _plain_blocks(self, start: int, end: int) -> Iterator[_Block]:
        opened, shape, at = start, "", start
        while at < end:
            line_end = self.lines.find("\n", at, end) + 1 or end
            found = self._shape_of_line(at, shape)
            if found != shape:
                if opened < at:
                    yield _Block(opened, at, shape)
                opened, shape = at, found
            at = line_end
        if opened < end:
            yield _Block(opened, end, shape)

    def _shape_of_line(self, at: int, before: str) -> str:
        """What a line belongs to. What stands behind an item without a mark of its own continues the list."""
        if _TABLE.match(self.lines, at):
            return "lines"
        if _ITEM.match(self.lines, at):
            return "items"
        return "items" if before == "items" else "prose"

    def _cut(self, block: _Block) -> Iterator[_Span]:
        """A block in pieces that fit, none below the minimum."""
        start, end = block.start, block.end
        while not self.fits(start, end):
            left = self.ruler.count(start, end)
            most = max(min(self.max_tokens, left - self.min_tokens), 1)
            latest = self.ruler.after(start, most)
            earliest = min(self.ruler.after(start, min(self.min_tokens, most)), latest)
            cut = self._best_cut(block.shape, start, earliest, latest)
            if span := self._stripped(start, cut):
                yield span
            start = cut
        if span := self._stripped(start, end):
            yield span

    def _best_cut(self, shape: str, start: int, earliest: int, latest: int) -> int:
        ways = (way(self, earliest, latest) for way in _WAYS[shape])
        cut = next((each for each in ways if each is not None), latest)
        between = boundary_before(self.text, cut, start)
        return between if between > start else latest

    def item_cut(self, earliest: int, latest: int) -> int | None:
        """Before the last item that begins in reach; None where none does."""
        cut = None
        for match in _ITEM_LINE.finditer(self.lines, max(earliest - 1, 0), latest):
            cut = match.end()
        return cut

    def line_cut(self, earliest: int, latest: int) -> int | None:
        """Behind the last line end in reach."""
        found = self.lines.rfind("\n", max(earliest - 1, 0), latest)
        return None if found < 0 else found + 1

    def sentence_cut(self, earliest: int, latest: int) -> int | None:
        """Behind the last sentence that ends in reach."""
        reach = _REACH
        while True:
            # The last one counts, and mostly stands near the end.
            since = max(earliest, latest - reach)
            ends = list(_sentence_ends(self.text, since, latest))
            if ends or since == earliest:
                return ends[-1] if ends else None
            reach *= 4

    def word_cut(self, earliest: int, latest: int) -> int | None:
        """Before the last space in reach."""
        found = max(self.lines.rfind(space, earliest, latest) for space in _SPACES)
        return None if found < 0 else found


_WAYS: Final[dict[str, tuple[Callable[[_Source, int, int], int | None], ...]]] = {
    "lines": (_Source.line_cut, _Source.word_cut),
    "items": (_Source.item_cut, _Source.line_cut, _Source.sentence_cut, _Source.word_cut),
    "prose": (_Source.sentence_cut, _Source.line_cut, _Source.word_cut),
}
"""How a block is cut, best way first."""


def _sentence_ends(text: str, earliest: int, latest: int) -> Iterator[int]:
    """Where sentences end, from `earliest` to `latest`."""
    for match in _SENTENCE.finditer(text, earliest, latest):
        end = match.end()
        follows = _BEFORE_NEXT.match(text, end, end + _SHORT)
        assert follows
        if match.group()[0] in _UNSPACED:
            yield end
        elif follows.end() == end or text[follows.end() : follows.end() + 1].islower():
            continue
        elif match.group() != "." or not _is_shortened(text, match.start()):
            yield end


def _is_shortened(text: str, stop: int) -> bool:
    """Whether the word before a full stop is a shortened one, an initial, or has full stops within (e.g., U.S.)."""
    found = _LAST_WORD.search(text[max(stop - _SHORT, 0) : stop])
    word = found[0] if found else ""
    return "." in word or word.lower() in _SHORTENED or (len(word) == 1 and word.isalpha())
