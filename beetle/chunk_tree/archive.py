"""The archive that carries a tree: a tar of regular files, compressed by gzip, written and read piece by piece.

Written here rather than with `tarfile`, which loads half a megabyte of modules, and reads what a stranger's header
says of sizes, links and devices before it can be asked to refuse them.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from beetle.chunk_tree.document import Unreadable, name_fault, path_text
from beetle.named_tuple import NamedTuple

BLOCK: Final = 512
GZIP_WINDOW: Final = 31
"""zlib's way to say: with the header and the checksum of gzip."""
GZIP_MAGIC: Final = b"\x1f\x8b"
LEVEL: Final = 6
PIECE: Final = 64 * 1024
MOST_NAME: Final = 4096
MOST_PAX: Final = 2**20
"""Of a header of pax, which may hold attributes of its file besides."""
PAX_DIGITS: Final = len(str(MOST_PAX))
TOO_LONG: Final = "{} in it is longer than {} bytes"
MOST_SHOWN: Final = 160
NAME_FIELD: Final = 100
REGULAR: Final = (b"0", b"\0", b"7")
FOLDER: Final = b"5"
LONG_NAME: Final = b"L"
PAX: Final = b"x"
PASSED_OVER: Final = (b"g", b"K")
"""A pax header of all files, and a long target of a link, which is refused with its link."""
KINDS: Final = {b"1": "a hard link", b"2": "a symbolic link", b"3": "a device", b"4": "a device", b"6": "a named pipe"}


class DamagedArchive(Exception):
    """What carries the files cannot be read any further."""


class Member(NamedTuple):
    """One file of an archive: where it stands, and its bytes."""

    path: str
    data: bytes


class Limits(NamedTuple):
    """How much an archive may hold: bytes of one file, bytes in all once they are uncompressed, entries."""

    file_bytes: int
    total_bytes: int
    entries: int


class Packing:
    """An archive that grows. `close` ends it; `bytes` is how large it is by then."""

    def __init__(self) -> None:
        self._deflate = zlib.compressobj(LEVEL, zlib.DEFLATED, GZIP_WINDOW)
        self._parts: list[bytes] = []
        self.bytes = 0

    def add(self, path: str, data: bytes) -> None:
        """One file with its content."""
        self.begin(path, len(data))
        self.write(data)
        self.end(len(data))

    def begin(self, path: str, size: int) -> None:
        """A file of so many bytes, which `write` takes one after another, and `end` ends."""
        name = path.encode()
        if len(name) > NAME_FIELD:
            self.write(_header(b"././@LongLink", len(name) + 1, LONG_NAME))
            self.write(name + b"\0")
            self.end(len(name) + 1)
        self.write(_header(name[:NAME_FIELD], size, b"0"))

    def write(self, data: bytes) -> None:
        """The next bytes."""
        self._keep(self._deflate.compress(data))

    def end(self, size: int) -> None:
        """The file that was begun with this size is complete."""
        self.write(b"\0" * (-size % BLOCK))

    def close(self) -> bytes:
        """All of it."""
        self.write(b"\0" * (2 * BLOCK))
        self._keep(self._deflate.flush())
        return b"".join(self._parts)

    def _keep(self, data: bytes) -> None:
        if data:
            self._parts.append(data)
            self.bytes += len(data)


def packed(files: Iterable[Member]) -> bytes:
    """An archive of files."""
    packing = Packing()
    for each in files:
        packing.add(*each)
    return packing.close()


def members(archive: bytes, limits: Limits, look: Callable[[], None] = lambda: None) -> Iterator[Member | Unreadable]:
    """The files of an archive in their order, one at a time in memory; what is none of a tree's, with its reason.

    Folders are passed over. Compressed or not, names of ustar, GNU and pax are read. `look` is called at each header,
    of which there may be many without a file, and may raise.

    Raises:
        DamagedArchive: it is no such archive, ends before its end, or holds more than the limits allow.
    """
    source = _Source(archive, limits.total_bytes)
    named: str | None = None
    entries = 0
    while (header := source.header()) is not None:
        look()
        size, kind = _number(header[124:136]), header[156:157]
        if kind in (LONG_NAME, PAX):
            most = (MOST_NAME, "a name") if kind == LONG_NAME else (MOST_PAX, "a header of pax")
            said = source.take(size, *most)
            named = _text(said.rstrip(b"\0")) if kind == LONG_NAME else _pax_path(said) or named
        elif kind in PASSED_OVER:
            source.skip(size)
        else:
            entries += 1
            if entries > limits.entries:
                raise DamagedArchive(f"it has more than {limits.entries} entries")
            path, named = named if named is not None else _name(header), None
            if kind != FOLDER:
                yield _member(source, path, size, kind, limits.file_bytes)
            else:
                source.skip(size)
    source.finish()


def _member(source: _Source, path: str, size: int, kind: bytes, most: int) -> Member | Unreadable:
    place, reason = _place(path), name_fault(path)
    if kind not in REGULAR:
        reason = f"it is {KINDS.get(kind, 'no regular file')}"
    elif reason is None and place is None:
        reason = "its path leads out of the tree"
    elif reason is None and size > most:
        reason = f"it is larger than {most} bytes"
    if reason is None and place is not None:
        return Member(place, source.take(size, most, "a file"))
    source.skip(size)
    return Unreadable(path_text(path)[:MOST_SHOWN], reason or "")


def _place(path: str) -> str | None:
    """A path within the tree; None of one that is absolute, or goes up."""
    if path.startswith("/") or "\0" in path:
        return None
    parts = [each for each in path.split("/") if each not in ("", ".")]
    return None if not parts or ".." in parts else "/".join(parts)


class _Source:
    """The bytes of an archive, as they are uncompressed, block by block."""

    def __init__(self, archive: bytes, most: int) -> None:
        self._view = memoryview(archive)
        self._inflate = zlib.decompressobj(GZIP_WINDOW) if archive[:2] == GZIP_MAGIC else None
        self._ready = b""
        self._left = most
        self._most = most

    def header(self) -> bytes | None:
        """The next header; None at the end."""
        block = self._exactly(BLOCK)
        if not block.strip(b"\0"):
            return None
        said = _number(block[148:156])
        if said != sum(block[:148]) + 8 * 32 + sum(block[156:]):
            raise DamagedArchive("it is no tar archive, or is damaged: the checksum of a header is wrong")
        return block

    def take(self, size: int, most: int, what: str) -> bytes:
        """The bytes of an entry, without what fills its last block."""
        if size > most:
            raise DamagedArchive(TOO_LONG.format(what, most))
        return self._exactly(size + -size % BLOCK)[:size]

    def skip(self, size: int) -> None:
        """Past the bytes of an entry."""
        left = size + -size % BLOCK
        if left > self._left + len(self._ready):
            raise DamagedArchive(f"it holds more than {self._most} bytes, or ends too early")
        while left:
            left -= len(self._exactly(min(left, PIECE)))

    def finish(self) -> None:
        """Look that what was compressed is all there, which its checksum at the end tells."""
        while self._more():
            pass
        if self._inflate is not None and not self._inflate.eof:
            raise DamagedArchive("it ends before its end")

    def _exactly(self, size: int) -> bytes:
        parts = [self._ready[:size]]
        self._ready = self._ready[size:]
        missing = size - len(parts[0])
        while missing:
            piece = self._more()
            if not piece:
                raise DamagedArchive("it ends before its end")
            parts.append(piece[:missing])
            self._ready = piece[missing:]
            missing -= len(parts[-1])
        return b"".join(parts)

    def _more(self) -> bytes:
        """Some more bytes, none at the end."""
        if self._inflate is None:
            piece, self._view = bytes(self._view[:PIECE]), self._view[PIECE:]
        else:
            piece = self._inflated(self._inflate)
        self._left -= len(piece)
        if self._left < 0:
            raise DamagedArchive(f"it holds more than {self._most} bytes")
        return piece

    def _inflated(self, inflate: zlib._Decompress) -> bytes:
        while not inflate.eof:
            given = inflate.unconsumed_tail
            if not given:
                given, self._view = bytes(self._view[:PIECE]), self._view[PIECE:]
            try:
                piece = inflate.decompress(given, PIECE)
            except zlib.error:
                raise DamagedArchive("its compression is damaged") from None
            if piece or not given:
                return piece
        return b""


def _header(name: bytes, size: int, kind: bytes) -> bytes:
    block = bytearray(BLOCK)
    block[: len(name)] = name
    block[100:108], block[108:116], block[116:124] = b"0000600\0", b"0000000\0", b"0000000\0"
    block[124:136] = b"%011o\0" % size
    # The time is the same for all: an export of the same store is the same archive.
    block[136:148] = b"00000000000\0"
    block[148:156] = b" " * 8
    block[156:157] = kind
    block[257:265] = b"ustar  \0" if kind == LONG_NAME else b"ustar\x0000"
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


def _number(field: bytes) -> int:
    """An octal number; a negative or binary one, which stands for more than 8 GiB, is damage here."""
    text = field.strip(b" \0")
    if not text:
        return 0
    if text.strip(b"01234567"):
        raise DamagedArchive("it is no tar archive, or is damaged: a number of a header is none")
    return int(text, 8)


def _name(header: bytes) -> str:
    name = header[:100].partition(b"\0")[0]
    prefix = header[345:500].partition(b"\0")[0] if header[257:263] == b"ustar\0" else b""
    return _text(prefix + b"/" + name if prefix else name)


def _text(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")


def _pax_path(said: bytes) -> str | None:
    """The path of a pax header: records of `LENGTH KEY=VALUE` and a line end, of which others are passed over."""
    found, at = None, 0
    while at < len(said):
        space = said.find(b" ", at, at + PAX_DIGITS + 1)
        digits = said[at : max(at, space)]
        end = at + int(digits) if digits.isdigit() else 0
        if not space < end <= len(said):
            raise DamagedArchive("a header of pax in it is damaged")
        if said.startswith(b"path=", space + 1):
            value = said[space + 6 : end].removesuffix(b"\n")
            if len(value) > MOST_NAME:
                raise DamagedArchive(TOO_LONG.format("a name", MOST_NAME))
            found = _text(value)
        elif said.startswith(b"size=", space + 1):
            raise DamagedArchive("a file in it is larger than 8 GiB")
        at = end
    return found
