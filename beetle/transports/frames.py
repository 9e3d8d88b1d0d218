"""Cuts a byte stream into MessagePack maps with string keys, and refuses what is too large before it has arrived.

The scan looks at every token once, wherever the chunks were cut, and makes no Python object of a value: what it keeps
is a position, a count for each open container and the keys of the open maps.
"""

from __future__ import annotations

import math
import struct
from array import array
from collections.abc import Callable, Iterator
from heapq import merge
from itertools import pairwise
from typing import Final, Literal, TypeAlias

import msgspec

from beetle.contracts.codec import json_text
from beetle.contracts.errors import InvalidFrame, PayloadTooLarge
from beetle.named_tuple import NamedTuple

_PLAIN, _NUMBER, _STR, _EXTENSION, _REFUSED, _ARRAY, _MAP = range(7)
_JUDGED: Final = (_NUMBER, _EXTENSION)
_READ_LENGTH: Final = -1

_UNUSED: Final = 0xC1
_FLOAT32: Final = 0xCA
_FLOAT64: Final = 0xCB
_UINT64: Final = 0xCF
_TIMESTAMP: Final = 0xFF
"""The extension type -1 as a byte: the one that MessagePack itself defines."""

_HIGHEST_NUMBER: Final = 2**32 - 1
"""Of a request whose bytes are looked into no further: it is no float, and far below 63 bits."""
_QUICK_BYTES: Final = 16_384
"""Longest frame that is looked at whole."""
_CONTAINERS: Final = bytes((*range(0x80, 0xA0), *range(0xDC, 0xE0)))
_SUSPECTS: Final = bytes((_UNUSED, *range(0xC4, 0xCC), _UINT64, *range(0xD4, 0xD9)))
"""Unused, bins, extensions, floats and what may be beyond 63 bits: as a value, or as any byte of a text."""
_UNSUSPECTED: Final = bytes(byte for byte in range(256) if byte not in _SUSPECTS)
_INNOCENT: Final = bytes(byte for byte in range(256) if byte not in _CONTAINERS + _SUSPECTS)

_STRETCH: Final = 4096
"""Bytes, or keys, that are looked at without a breath: about a millisecond."""
_KEYS_IN_A_SET: Final = 1024
_TEXT_PIECE: Final = 65_536
_NAME_SHOWN: Final = 64


class FrameLimits(NamedTuple):
    """`frame_bytes`: longest frame, in bytes. `nesting`: deepest container; the frame's own map is at depth 1."""

    frame_bytes: int
    nesting: int


class Fault(NamedTuple):
    """Why one request is invalid although its frame is well formed: `path` like `$.args.turns[3].at`, and `reason`."""

    path: str
    reason: str


class Frame(NamedTuple):
    """One complete map as it was sent, and its first fault in the order of the bytes (a duplicate key in a map of
    more than 1,024 keys is found where that map ends, and its path is the map's).

    Faults: duplicate key, lone surrogate, a number that is not finite, an integer beyond signed 64 bits, an extension
    other than the timestamp.
    """

    data: bytes
    fault: Fault | None


def _go_on() -> None:
    """Whoever has nobody to wait for."""


def _token_tables() -> tuple[bytes, bytes, tuple[int, ...]]:
    """For each first byte: its kind, its header's bytes (a scalar is all header), its length or `_READ_LENGTH`.

    A bin is plain: a header and a length, and nothing in its bytes to look at.
    """
    kinds, headers, lengths = bytearray(256), bytearray(b"\x01" * 256), [0] * 256
    for first, last, kind in ((0x80, 0x8F, _MAP), (0x90, 0x9F, _ARRAY), (0xA0, 0xBF, _STR)):
        for byte in range(first, last + 1):
            kinds[byte], lengths[byte] = kind, byte - first
    sized = ((0xC4, _PLAIN, (1, 2, 4)), (0xD9, _STR, (1, 2, 4)), (0xDC, _ARRAY, (2, 4)), (0xDE, _MAP, (2, 4)))
    for first, kind, widths in sized:
        for byte, width in enumerate(widths, first):
            kinds[byte], headers[byte], lengths[byte] = kind, 1 + width, _READ_LENGTH
    for first, widths in ((0xCA, (4, 8)), (0xCC, (1, 2, 4, 8)), (0xD0, (1, 2, 4, 8))):
        for byte, width in enumerate(widths, first):
            headers[byte] = 1 + width
    for byte in (_FLOAT32, _FLOAT64, _UINT64):
        kinds[byte] = _NUMBER
    # The type of an extension is the last byte of its header.
    for byte, width in enumerate((1, 2, 4), 0xC7):
        kinds[byte], headers[byte], lengths[byte] = _EXTENSION, 2 + width, _READ_LENGTH
    for byte, length in enumerate((1, 2, 4, 8, 16), 0xD4):
        kinds[byte], headers[byte], lengths[byte] = _EXTENSION, 2, length
    kinds[_UNUSED] = _REFUSED
    return bytes(kinds), bytes(headers), tuple(lengths)


_KIND, _HEADER, _LENGTH = _token_tables()
_KEY_KIND = bytes(_STR if kind == _STR else _REFUSED for kind in _KIND)


class _KeyRuns:
    """The keys of one huge map, as sorted runs of 64-bit hashes: 8 bytes a key, where a set takes about 100.

    Two different keys of one map are taken for the same with a chance of about n² / 2⁶⁵.
    """

    def __init__(self) -> None:
        self._open: set[int] = set()
        self._runs: list[array[int]] = []

    def __contains__(self, key: bytes) -> bool:
        return hash(key) in self._open

    def add(self, key: bytes) -> None:
        self._open.add(hash(key))
        if len(self._open) == _KEYS_IN_A_SET:
            self._runs.append(array("q", sorted(self._open)))
            self._open.clear()

    def repeated(self, breathe: Callable[[], None]) -> bool:
        """Whether two runs share a key; within one run `in` has already told."""
        for number, (left, right) in enumerate(pairwise(merge(*self._runs, sorted(self._open)))):
            if left == right:
                return True
            if not number % _STRETCH:
                breathe()
        return False


_Keys: TypeAlias = set[bytes] | _KeyRuns
_Open: TypeAlias = tuple[int, _Keys | None, bytes | int]
"""A container: its items still to come (a key and its value are two), the keys of a map, the last key or the length."""

_OUTSIDE: Final[_Open] = (1, None, 1)


class FrameReader:
    """One connection's incoming frames: `feed` a chunk, then call `next_frame` until it answers None.

    After InvalidFrame or PayloadTooLarge the connection is to be closed; the reader would raise the same again.
    """

    def __init__(self, limits: FrameLimits) -> None:
        self._limits = limits
        self._buffer: bytes | bytearray = b""
        self._start: int = 0
        self._breathe = _go_on
        self._restart()

    @property
    def buffered(self) -> int:
        """Bytes held that no returned frame contains."""
        return len(self._buffer) - self._start

    @property
    def begun(self) -> bool:
        """Once `next_frame` has answered None: whether the first bytes of a further frame are held."""
        return self.buffered > 0

    def drop(self) -> None:
        """Let go of what is held; nothing more is read."""
        self._buffer, self._start = b"", 0
        self._restart()

    def feed(self, data: bytes) -> None:
        """Takes one chunk as it came from the socket. The reader bounds what it waits for, not the chunk's size."""
        if not self.buffered:
            # What was held is cut out whole: the reader stands at the start.
            self._buffer = data
            return
        if isinstance(self._buffer, bytes):
            self._buffer = bytearray(memoryview(self._buffer)[self._start :])
            self._position -= self._start
            self._edge -= self._start
            self._start = 0
        self._buffer += data

    def next_frame(self, breathe: Callable[[], None] = _go_on) -> Frame | None:
        """The next complete frame, or None when more bytes are needed; raises InvalidFrame, PayloadTooLarge.

        Args:
            breathe: called at every so many bytes, and may wait.
        """
        data = self._buffer
        if len(data) == self._start:
            return None
        if self._position == self._start == 0 and isinstance(data, bytes) and _is_sound(data, self._limits):
            # Nothing else of the reader has moved.
            self._buffer = b""
            return Frame(data, None)
        if self._position == self._start and _KIND[self._buffer[self._start]] != _MAP:
            raise InvalidFrame(reason="a frame begins with a byte that no MessagePack map begins with")
        self._breathe = breathe
        while (whole := self._scan()) is None:
            breathe()
        if not whole:
            return None
        end = self._position
        frame = Frame(bytes(memoryview(self._buffer)[self._start : end]), self._fault)
        if isinstance(self._buffer, bytes) and end < len(self._buffer):
            self._start = end
        else:
            self._buffer, self._start = bytes(self._buffer[end:]), 0
        self._restart()
        return frame

    def _restart(self) -> None:
        self._position: int = self._start
        self._edge: int = self._start + self._limits.frame_bytes
        self._here = _OUTSIDE
        self._outer: list[_Open] = []
        self._fault: Fault | None = None

    def _scan(self) -> bool | None:
        """Moves over the whole tokens of a stretch; True where the frame ends, False where more
        bytes are needed, None where there is more to look at.

        `edge` is where the bytes of the open container must end at the latest: the frame's limit less one byte for
        each item that the containers around it still owe.
        """
        buffer, size, outer = self._buffer, len(self._buffer), self._outer
        position, edge = self._position, self._edge
        left, keys, name = self._here
        stop = min(size, position + _STRETCH)
        try:
            while position < stop or not left:
                if not left:
                    if not outer:
                        return True
                    left, keys, name = self._leave(keys)
                    edge += left
                    continue
                byte = buffer[position]
                is_key = keys is not None and not left & 1
                kind = _KEY_KIND[byte] if is_key else _KIND[byte]
                if kind == _REFUSED:
                    raise InvalidFrame(reason=_refusal(byte))
                body = position + _HEADER[byte]
                length = _LENGTH[byte]
                if length == _READ_LENGTH:
                    # The first bytes of a length that has not wholly come are a lower bound of it.
                    length = int.from_bytes(buffer[position + 1 : body - (kind == _EXTENSION)], "big")
                end = body + (2 * length if kind == _MAP else length)
                if end + left - 1 > edge:
                    raise _too_large("frame_bytes", self._limits.frame_bytes, "bytes")
                if kind >= _ARRAY and (length or len(outer) >= self._limits.nesting):
                    if body > size:
                        return False
                    left, keys, name = self._enter(kind, length, (left - 1, keys, name))
                    edge -= outer[-1][0]
                    position = body
                    continue
                if end > size:
                    return False
                if kind == _STR:
                    raw = buffer[body:end]
                    known = False
                    if is_key and keys is not None:
                        name = bytes(raw)
                        known = name in keys
                        keys.add(name)
                    if known or not raw.isascii():
                        self._judge_text(raw, known, (left - 1, keys, name))
                elif kind in _JUDGED:
                    self._judge_header(kind, buffer[position:body], (left - 1, keys, name))
                position = end
                left -= 1
            return None if position < size else False
        finally:
            self._position, self._edge, self._here = position, edge, (left, keys, name)

    def _enter(self, kind: int, length: int, here: _Open) -> _Open:
        if len(self._outer) >= self._limits.nesting:
            raise _too_large("nesting", self._limits.nesting, "levels")
        self._outer.append(here)
        if kind == _ARRAY:
            return length, None, length
        return 2 * length, set() if length <= _KEYS_IN_A_SET else _KeyRuns(), b""

    def _leave(self, keys: _Keys | None) -> _Open:
        outer = self._outer.pop()
        if isinstance(keys, _KeyRuns) and keys.repeated(self._breathe):
            self._note("duplicate key", outer)
        return outer

    def _judge_text(self, raw: bytes | bytearray, known: bool, here: _Open) -> None:
        """Raises InvalidFrame for bytes that are no UTF-8."""
        if known:
            self._note("duplicate key", here)
        if _holds_surrogate(raw):
            self._note("lone surrogate: the text is not valid Unicode", here)

    def _judge_header(self, kind: int, token: bytes | bytearray, here: _Open) -> None:
        """Of a number, which is all header, and of an extension, whose type is the last byte of its header."""
        if kind == _EXTENSION:
            if token[-1] != _TIMESTAMP:
                self._note("an extension of MessagePack other than its timestamp", here)
        elif token[0] == _UINT64:
            if token[1] >= 0x80:
                self._note("integer beyond signed 64 bits", here)
        elif not math.isfinite(struct.unpack(">f" if token[0] == _FLOAT32 else ">d", token[1:])[0]):
            self._note("number that is not finite", here)

    def _note(self, reason: str, here: _Open) -> None:
        """Keeps the first fault. `here` is the container to blame, its count already without the faulty item."""
        if self._fault is None:
            below_the_stream = (*self._outer, here)[1:]
            self._fault = Fault("$" + "".join(_step(*place) for place in below_the_stream), reason)


def _is_sound(data: bytes, limits: FrameLimits) -> bool:
    """Whether the bytes are one whole frame that is sure to have no fault; a no says nothing.

    What is written again as the same bytes has no key twice, no text that is none, and nothing behind it. What the
    library would let through is told by single bytes, which mean nothing in a text: then the scan judges.
    """
    if len(data) > min(_QUICK_BYTES, limits.frame_bytes) or _KIND[data[0]] != _MAP:
        return False
    found = data.translate(None, _INNOCENT)
    if len(found) > limits.nesting:
        return False
    suspects = found.translate(None, _CONTAINERS)
    try:
        # A key that is no text becomes one here, or is refused.
        texts = msgspec.to_builtins(msgspec.msgpack.decode(data), str_keys=True)
        return (not suspects or suspects == _suspects_of_id(texts)) and msgspec.msgpack.encode(texts) == data
    except (msgspec.DecodeError, ValueError, TypeError, RecursionError):
        return False


def _suspects_of_id(frame: dict[str, object]) -> bytes:
    """The bytes to look into that a frame has for the sake of its number alone: one in twenty numbers has some."""
    number = frame.get("id")
    if type(number) is not int or not 0 <= number <= _HIGHEST_NUMBER:
        return b""
    return msgspec.msgpack.encode(number).translate(None, _UNSUSPECTED)


def _step(left: int, keys: _Keys | None, name: bytes | int) -> str:
    if isinstance(name, int):
        return f"[{name - left - 1}]"
    # Never fails, and never yields what cannot be sent back: bad bytes, and a character cut in two, become \\xed.
    text = name[:_NAME_SHOWN].decode("utf-8", "backslashreplace") + ("…" if len(name) > _NAME_SHOWN else "")
    return f".{text}" if text.isidentifier() else f"[{json_text(text)}]"


def _holds_surrogate(raw: bytes | bytearray) -> bool:
    """Whether UTF-8-encoded surrogates are in otherwise good UTF-8; raises InvalidFrame where it is not good."""
    found = False
    for piece in _pieces(raw):
        try:
            piece.decode()
        except UnicodeDecodeError:
            try:
                piece.decode("utf-8", "surrogatepass")
            except UnicodeDecodeError:
                raise InvalidFrame(reason="a string is not valid UTF-8") from None
            found = True
    return found


def _pieces(raw: bytes | bytearray) -> Iterator[bytes | bytearray]:
    """Parts that end between characters: decoded whole, one emoji makes a text take four times its bytes."""
    start = 0
    while start < len(raw):
        end = start + _TEXT_PIECE
        # No character has more than three continuation bytes.
        for _ in range(3):
            if end < len(raw) and raw[end] & 0xC0 == 0x80:
                end -= 1
        yield raw[start:end]
        start = end


def _refusal(byte: int) -> str:
    if byte == _UNUSED:
        return "the byte c1 is not MessagePack"
    return "a map key is not a string"


def _too_large(limit: Literal["frame_bytes", "nesting"], maximum: int, unit: str) -> PayloadTooLarge:
    what = "a frame" if limit == "frame_bytes" else "a frame's nesting"
    return PayloadTooLarge(what=what, limit=limit, maximum=maximum, unit=unit)
