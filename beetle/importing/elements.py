"""The parts of one large JSON value, one after the other: a list's items, an object's members.

The exports of chat services are one list of some hundred megabytes. Only brackets and strings are looked at here, so
that an item is held as bytes alone until its reader decodes what it needs of it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from beetle.importing.items import Problem, Source, SourceLocation
from beetle.named_tuple import NamedTuple

ITEM_BYTES = 64 * 2**20
"""Largest item that is read: a conversation of years has some megabytes."""
DEPTH = 256
CHUNK = 256 * 1024
SCALAR_BYTES = 4096
# Each string, whole or cut off by the end of what was read, and each bracket.
TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+("?)|[\[\]{}]', re.DOTALL)
QUOTE, OPENING = ord('"'), b"[{"
SCALAR = re.compile(rb"[^\s,\]}]*+")
SPACE = re.compile(rb"\s*+")


class Element(NamedTuple):
    """One item. `key` names the member of the outermost object that it is, or is in; None in an outermost list."""

    key: str | None
    place: SourceLocation
    data: bytes


class _Broken(Exception):
    """The text is no JSON from here on."""


def elements(source: Source, within: Collection[str] = ()) -> Iterator[Element | Problem]:
    """The items of the outermost list; or the members of the outermost object, and of the members named in `within`
    that are lists the items instead.

    A file whose JSON breaks off yields what came before, then a problem.
    """
    scanner = _Scanner(source)
    try:
        yield from scanner.run(within)
    except _Broken as broken:
        yield Problem(SourceLocation("item", max(1, scanner.count)), str(broken))


class _Scanner:
    def __init__(self, source: Source) -> None:
        self._stream = source.stream
        self._buffer = b""
        self._at = 0
        self.count = 0

    def run(self, within: Collection[str]) -> Iterator[Element | Problem]:
        if self._peek() == b"\xef":
            self._more()
            self._at += len(b"\xef\xbb\xbf")
        match self._peek():
            case b"[":
                yield from self._list(None)
            case b"{":
                yield from self._object(within)
            case b"":
                return
            case _:
                raise _Broken("neither a list nor an object")
        if self._peek():
            raise _Broken("there is more behind the end")

    def _list(self, key: str | None) -> Iterator[Element | Problem]:
        self._at += 1
        if self._peek() == b"]":
            self._at += 1
            return
        while True:
            yield self._value(key)
            if self._separator(b"]"):
                return

    def _object(self, within: Collection[str]) -> Iterator[Element | Problem]:
        self._at += 1
        if self._peek() == b"}":
            self._at += 1
            return
        while True:
            if self._peek() != b'"':
                raise _Broken("a name was expected")
            name = self._bytes() or b'""'
            key = name[1:-1].decode(errors="replace")
            if self._peek() != b":":
                raise _Broken("a colon was expected")
            self._at += 1
            if key in within and self._peek() == b"[":
                yield from self._list(key)
            else:
                yield self._value(key)
            if self._separator(b"}"):
                return

    def _separator(self, end: bytes) -> bool:
        found = self._peek()
        if found not in (b",", end):
            raise _Broken("the file ends inside a value" if not found else "a comma was expected")
        self._at += 1
        return found == end

    def _value(self, key: str | None) -> Element | Problem:
        self.count += 1
        place = SourceLocation("item", self.count)
        self._peek()
        data = self._bytes()
        if data is None:
            return Problem(place, f"larger than {ITEM_BYTES:,} bytes, or nested deeper than {DEPTH}")
        return Element(key, place, data)

    def _bytes(self) -> bytes | None:
        """The value that begins here, None where it is too large to be held; what follows it comes next."""
        if self._buffer[self._at : self._at + 1] not in (b"{", b"[", b'"'):
            return self._scalar()
        start, depth, bad = self._at, 0, False
        while True:
            cut = False
            for found in TOKEN.finditer(self._buffer, self._at):
                first = self._buffer[found.start()]
                if first == QUOTE:
                    if cut := not found[1]:
                        self._at = found.start()
                        break
                else:
                    depth += 1 if first in OPENING else -1
                    bad = bad or depth > DEPTH
                self._at = found.end()
                if depth == 0:
                    return None if bad else self._buffer[start : self._at]
            if not cut:
                self._at = len(self._buffer)
            if bad := bad or len(self._buffer) - start > ITEM_BYTES:
                self._forget(cut)
                start = 0
            else:
                start -= self._drop(start)
            if not self._more():
                raise _Broken("the file ends inside a value")

    def _forget(self, cut: bool) -> None:
        """Keep of a value that is too large only what its end is found by: whether a string or an escape is open."""
        escapes = len(self._buffer) - len(self._buffer.rstrip(b"\\"))
        self._buffer = (b'"' + b"\\" * (escapes % 2)) if cut else b""
        self._at = 0

    def _scalar(self) -> bytes:
        start = self._at
        while True:
            found = SCALAR.match(self._buffer, self._at)
            assert found is not None
            self._at = found.end()
            if self._at < len(self._buffer) or not self._more():
                break
            if self._at - start > SCALAR_BYTES:
                raise _Broken("a number or word without an end")
        if self._at == start:
            raise _Broken("a value was expected" if self._at < len(self._buffer) else "the file ends inside a value")
        return self._buffer[start : self._at]

    def _peek(self) -> bytes:
        """The next byte that is no space, where reading goes on; empty at the end of the file."""
        while True:
            found = SPACE.match(self._buffer, self._at)
            assert found is not None
            self._at = found.end()
            if self._at < len(self._buffer):
                return self._buffer[self._at : self._at + 1]
            self._drop(self._at)
            if not self._more():
                return b""

    def _drop(self, upto: int) -> int:
        """Forget what stands before a place; how many bytes that were."""
        self._buffer = self._buffer[upto:]
        self._at -= upto
        return upto

    def _more(self) -> bool:
        # As much again as there is, so that a long string is not looked through once for each chunk of it.
        data = self._stream.read(max(CHUNK, min(len(self._buffer), ITEM_BYTES)))
        self._buffer += data
        return bool(data)
