"""Excerpts: the part of a text that says most of what was asked for."""

from __future__ import annotations

from unicodedata import category

from beetle.domain.lexical import ParsedQuery, stem_of

_BORDER_CHARS = 24
"""How far an excerpt gives way to end between words; some scripts have no spaces, and some tokens no end."""


def excerpt(content: str, parsed: ParsedQuery, length: int = 240) -> str:
    """At most `length` characters around the place that holds most of the query's words, … marking what is left out."""
    if len(content) <= length:
        return content
    room = length - 2
    if room < 1:
        return ""
    first, last = _densest(content, parsed, room)
    start = max(0, min(first - (room - (last - first)) // 2, len(content) - room))
    end = start + room
    if start:
        space = content.find(" ", start, min(first, start + _BORDER_CHARS))
        start = space + 1 if space >= 0 else start
    if end < len(content):
        space = content.rfind(" ", max(last, end - _BORDER_CHARS), end + 1)
        end = space if space > start else end
    while 0 < start < end and _joined(content, start):
        start += 1
    while start < end < len(content) and _joined(content, end):
        end -= 1
    return ("…" if start else "") + content[start:end] + ("…" if end < len(content) else "")


def _densest(content: str, parsed: ParsedQuery, room: int) -> tuple[int, int]:
    """Where the first window of `room` characters with most distinct query words begins and ends its words."""
    lower = content.lower()
    if len(lower) != len(content):  # a letter that grows in lower case would shift every place after it
        lower = content
    places = sorted(
        (start, start + len(stem), stem)
        for stem in {stem_of(word) for word in (*parsed.terms, *parsed.phrases)}
        for start in _starts(lower, stem)
    )
    best, found, left = 0, (0, 0), 0
    inside: dict[str, int] = {}
    for start, end, stem in places:
        inside[stem] = inside.get(stem, 0) + 1
        while places[left][0] < end - room and places[left][0] < start:
            gone = places[left][2]
            inside[gone] -= 1
            if not inside[gone]:
                del inside[gone]
            left += 1
        if len(inside) > best:
            best, found = len(inside), (places[left][0], end)
    return found


def _starts(text: str, stem: str) -> list[int]:
    """Up to 64 places where a word begins with `stem`; a script without spaces has no such border."""
    starts: list[int] = []
    at = text.find(stem)
    while at >= 0 and len(starts) < 64:
        if not at or not stem.isascii() or not text[at - 1].isalnum():
            starts.append(at)
        at = text.find(stem, at + 1)
    return starts


def _joined(text: str, at: int) -> bool:
    """Whether the characters before and after `at` are drawn as one: a cut there would change either."""
    before, after = text[at - 1], text[at]
    if after.isascii():
        return before == "\r" and after == "\n"
    if before == "\u200d" or after == "\u200d" or category(after)[0] == "M":
        return True
    if "\U0001f3fb" <= after <= "\U0001f3ff" or "\U000e0020" <= after <= "\U000e007f" or "\u1160" <= after <= "\u11ff":
        return True
    flags = 0
    while flags < 256 and at - flags > 0 and "\U0001f1e6" <= text[at - flags - 1] <= "\U0001f1ff":
        flags += 1
    return flags % 2 == 1 and "\U0001f1e6" <= after <= "\U0001f1ff"
