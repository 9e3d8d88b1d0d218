"""MessagePack for what must start fast: maps, lists, text, numbers; no library."""

from __future__ import annotations

import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SIZES = {
    0xC4: "B",
    0xC5: ">H",
    0xC6: ">I",
    0xD9: "B",
    0xDA: ">H",
    0xDB: ">I",
    0xDC: ">H",
    0xDD: ">I",
    0xDE: ">H",
    0xDF: ">I",
}
NUMBERS = {
    0xCA: ">f",
    0xCB: ">d",
    0xCC: "B",
    0xCD: ">H",
    0xCE: ">I",
    0xCF: ">Q",
    0xD0: "b",
    0xD1: ">h",
    0xD2: ">i",
    0xD3: ">q",
}
CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}


def pack(value: Any) -> bytes:
    """One value.

    Raises:
        ValueError: it has no form in MessagePack.
    """
    parts: list[bytes] = []
    _pack(value, parts.append)
    return b"".join(parts)


def _pack(value: Any, put: Any) -> None:
    if value is None or isinstance(value, bool):
        put(b"\xc0" if value is None else b"\xc3" if value else b"\xc2")
    elif isinstance(value, int):
        if not -(1 << 63) <= value < 1 << 64:
            raise ValueError("a number is longer than 64 bits")
        put(struct.pack(">BQ", 0xCF, value) if value >= 0 else struct.pack(">Bq", 0xD3, value))
    elif isinstance(value, float):
        put(struct.pack(">Bd", 0xCB, value))
    elif isinstance(value, str):
        data = value.encode("utf-8", "replace")
        put(struct.pack(">BI", 0xDB, len(data)))
        put(data)
    elif isinstance(value, dict):
        put(struct.pack(">BI", 0xDF, len(value)))
        for key, each in value.items():
            _pack(str(key), put)
            _pack(each, put)
    elif isinstance(value, list | tuple):
        put(struct.pack(">BI", 0xDD, len(value)))
        for each in value:
            _pack(each, put)
    else:
        raise ValueError(f"{type(value).__name__} has no form in MessagePack")


class _Short(Exception):
    """More bytes are needed."""


def unpack(data: bytes) -> Any:
    """The first value of some bytes; None while they do not hold all of it, and for what is no MessagePack."""
    try:
        return _unpack(data, 0)[0]
    except (_Short, UnicodeDecodeError):
        return None


def _unpack(data: bytes, at: int) -> tuple[Any, int]:
    if at >= len(data):
        raise _Short
    head, at = data[at], at + 1
    if head < 0x80 or head >= 0xE0:
        return head - (256 if head >= 0xE0 else 0), at
    if head in CONSTANTS:
        return CONSTANTS[head], at
    if head in NUMBERS:
        end = at + struct.calcsize(NUMBERS[head])
        if end > len(data):
            raise _Short
        return struct.unpack(NUMBERS[head], data[at:end])[0], end
    if head < 0xC0:
        size = head & (0x1F if head >= 0xA0 else 0x0F)
    elif head in SIZES:
        end = at + struct.calcsize(SIZES[head])
        if end > len(data):
            raise _Short
        (size,), at = struct.unpack(SIZES[head], data[at:end]), end
    else:
        raise _Short
    if head < 0x90 or head in (0xDE, 0xDF):
        return _map(data, at, size)
    if head < 0xA0 or head in (0xDC, 0xDD):
        items: list[Any] = []
        for _ in range(size):
            each, at = _unpack(data, at)
            items.append(each)
        return items, at
    if at + size > len(data):
        raise _Short
    found = data[at : at + size]
    return found if head in (0xC4, 0xC5, 0xC6) else found.decode(), at + size


def _map(data: bytes, at: int, size: int) -> tuple[dict[Any, Any], int]:
    found: dict[Any, Any] = {}
    for _ in range(size):
        key, at = _unpack(data, at)
        found[key], at = _unpack(data, at)
    return found, at
