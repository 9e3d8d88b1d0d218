"""JSON values of a file in bounded memory, and the one place where they are decoded."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import TypeVar

import msgspec

from beetle.contracts.codec import in_words
from beetle.importing.elements import Element, elements
from beetle.importing.items import Item, Problem, Source, SourceLocation

T = TypeVar("T")

LINE_BYTES = 16 * 2**20
"""Longest line that is read: a message of full size with a picture beside it fits; a file that is one line does not."""
SKIP_BYTES = 2**20
REASON_CHARS = 300
UNREADABLE = (msgspec.DecodeError, UnicodeError, RecursionError)


def values(source: Source, within: Collection[str] = ()) -> Iterator[Element | Problem]:
    """The JSON values of a file: those of its lines, or as `elements` finds them in its one value."""
    return lines(source) if source.layout == "lines" else elements(source, within)


def lines(source: Source) -> Iterator[Element | Problem]:
    """The lines that hold something, with their numbers; one that is too long is passed over."""
    number = 0
    while line := source.stream.readline(LINE_BYTES + 1):
        number += 1
        place = SourceLocation("line", number)
        if len(line) > LINE_BYTES and not line.endswith(b"\n"):
            yield Problem(place, f"the line is longer than {LINE_BYTES:,} bytes")
            while line and not line.endswith(b"\n"):
                line = source.stream.readline(SKIP_BYTES)
            continue
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        if line.strip():
            yield Element(None, place, line)


def records(
    source: Source, decoder: msgspec.json.Decoder[T], read: Callable[[SourceLocation, T], Iterator[Item]]
) -> Iterator[Item]:
    """What `read` makes of each value; one that cannot be decoded is a problem, and the next one is read."""
    for found in values(source):
        if isinstance(found, Problem):
            yield found
        else:
            yield from decoded(found.place, found.data, decoder, read)


def decoded(
    place: SourceLocation,
    data: bytes,
    decoder: msgspec.json.Decoder[T],
    read: Callable[[SourceLocation, T], Iterator[Item]],
) -> list[Item]:
    """What `read` makes of one value, or the problem with it: all of its items or none."""
    try:
        return list(read(place, decoder.decode(data)))
    except UNREADABLE as error:
        return [Problem(place, why(error))]


def why(error: Exception) -> str:
    """What is wrong with a value, in words that do not depend on the decoder."""
    if isinstance(error, RecursionError):
        return "nested too deeply"
    if isinstance(error, UnicodeError):
        return "not UTF-8"
    return in_words(str(error))[:REASON_CHARS]
