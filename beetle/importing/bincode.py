"""Values of the `bincode` encoding (version 2, standard configuration) out of untrusted bytes. Pure.

Integers are little endian: below 251 one byte, else a byte 251 to 253 and 2, 4 or 8 bytes. Text, bytes, lists and maps
begin with their length, an optional value with 0 or 1, an enumeration with the number of its variant.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from math import isfinite
from typing import Final, TypeVar
from uuid import UUID

T = TypeVar("T")

WIDTHS: Final = {251: 2, 252: 4, 253: 8}
UUID_BYTES: Final = 16
SINGLE_DIGITS: Final = range(6, 10)
"""Digits that are enough for a number of single precision, the fewest first."""


class Malformed(ValueError):
    """Bytes that are not what they should be.

    Args:
        position: where, in bytes from the begin of the file.
    """

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(reason)
        self.position = position
        self.reason = reason


class Decoder:
    """Reads one value after the other. A length is compared with the bytes that are left before anything is made of it.

    Args:
        data: the bytes.
        begin: where they stand in their file.
    """

    def __init__(self, data: bytes, begin: int = 0) -> None:
        self._data = data
        self._begin = begin
        self._at = 0

    @property
    def position(self) -> int:
        """Where the next value stands in the file."""
        return self._begin + self._at

    @property
    def left(self) -> int:
        """Bytes that are not read yet."""
        return len(self._data) - self._at

    def number(self, bits: int = 64) -> int:
        """An unsigned number of at most so many bits.

        Raises:
            Malformed: this, like all that follows, where the bytes are no such value.
        """
        begin = self.position
        first = self._take(1)[0]
        value = first
        if first >= min(WIDTHS):
            width = WIDTHS.get(first)
            if width is None:
                raise Malformed(begin, f"the byte {first} begins no number")
            value = int.from_bytes(self._take(width), "little")
        if value >> bits:
            raise Malformed(begin, f"{value} is larger than {bits} bits")
        return value

    def single(self) -> float | None:
        """A number of single precision by the fewest digits that mean it; None for one that is not finite."""
        data = self._take(4)
        (value,) = struct.unpack("<f", data)
        if not isfinite(value):
            return None
        for digits in SINGLE_DIGITS:
            short = float(f"{value:.{digits}g}")
            if abs(short) < 3.4e38 and struct.pack("<f", short) == data:
                return short
        return float(value)

    def data(self) -> bytes:
        """Bytes with their length."""
        return self._take(self._length("bytes"))

    def text(self) -> str:
        """UTF-8 with its length."""
        begin = self.position
        try:
            return self.data().decode()
        except UnicodeDecodeError:
            raise Malformed(begin, "not UTF-8") from None

    def uuid(self) -> str:
        """A UUID as it is written."""
        begin = self.position
        data = self.data()
        if len(data) != UUID_BYTES:
            raise Malformed(begin, f"a UUID has {UUID_BYTES} bytes, and not {len(data)}")
        return str(UUID(bytes=data))

    def optional(self, read: Callable[[], T]) -> T | None:
        """A value that may be missing."""
        begin = self.position
        there = self._take(1)[0]
        if there > 1:
            raise Malformed(begin, f"{there} says neither that a value is there nor that it is missing")
        return read() if there else None

    def variant(self, names: Sequence[str]) -> str:
        """The name of an enumeration's variant."""
        begin = self.position
        number = self.number(32)
        if number >= len(names):
            raise Malformed(begin, f"there is no variant {number}, but {len(names)}")
        return names[number]

    def many(self, read: Callable[[], T], most: int) -> Iterator[T]:
        """The values of a list, one after the other; more than `most` are refused before the first is read."""
        begin = self.position
        length = self._length("values")
        if length > most:
            raise Malformed(begin, f"a list of {length:,} values; at most {most:,} are read")
        for _ in range(length):
            yield read()

    def _length(self, of: str) -> int:
        begin = self.position
        length = self.number()
        # The shortest value has one byte.
        if length > self.left:
            raise Malformed(begin, f"{length:,} {of} are announced, and {self.left:,} bytes are left")
        return length

    def _take(self, count: int) -> bytes:
        if count > self.left:
            raise Malformed(self.position, f"it ends {count - self.left:,} bytes too early")
        self._at += count
        return self._data[self._at - count : self._at]
