"""Pages reach the database file without the remains that SQLite leaves between a page's cells.

`secure_delete` zeroes a cell where it is freed. But when b-tree pages are balanced, cells move to another page, and the
copy on the old one is left in the unallocated gap, where a later deletion does not reach it. That gap means nothing to
SQLite, so it is zeroed here, as the page is written. What is not a page of a b-tree is told apart by its first byte: an
overflow or free-list page begins with a page number, whose first byte is below 2 in every database under 128 GiB.
"""

from __future__ import annotations

import os
import threading
import time
from struct import Struct
from typing import Any

import apsw

HEADER = Struct(">BHHH")
"""What a page of a b-tree begins with: its kind, its first free block, how many cells it has, and where their content
begins (Database File Format, 1.6)."""
HEADER_BYTES = {0x0A: 8, 0x0D: 8, 0x02: 12, 0x05: 12}
"""By the kind of a page, leaf or interior: cell pointers stand behind so many bytes."""
FILE_HEADER = 100

_registered: dict[str, ScrubbingVFS] = {}
_guard = threading.Lock()
_lent: dict[str, int] = {}


def scrubbing(base: str | None) -> str:
    """Name of the VFS that scrubs what it writes and leaves the rest to `base` (None: the system's own)."""
    with _guard:
        name = base or ""
        if name not in _registered:
            _registered[name] = ScrubbingVFS(name)
        return _registered[name].name


def lend(path: str, descriptor: int | None) -> None:
    """Have the database file at `path` synced through this descriptor of it, which stays open until None is lent. One
    that was opened for each sync could not be closed: that drops the locks that SQLite holds for this process."""
    if descriptor is None:
        _lent.pop(os.path.realpath(path), None)
    else:
        _lent[os.path.realpath(path)] = descriptor


def gap_of(page: bytes, offset: int) -> tuple[int, int] | None:
    """Where the gap between a page's cell pointers and its cells begins and ends, if anything is left in it."""
    start = FILE_HEADER if offset == 0 else 0
    if len(page) < 512 or page[start] not in HEADER_BYTES:
        return None
    kind, _, cells, content = HEADER.unpack_from(page, start)
    gap, content = start + HEADER_BYTES[kind] + 2 * cells, content or 65_536
    if not gap < content <= len(page) or not page[gap:content].strip(b"\x00"):
        return None
    return gap, content


def scrubbed(page: bytes, offset: int) -> bytes:
    """One page as it goes to the file, the gap between its cell pointers and its cells zeroed."""
    found = gap_of(page, offset)
    return page if found is None else page[: found[0]] + bytes(found[1] - found[0]) + page[found[1] :]


def scrub_file(descriptor: int, page_size: int, start: int, size: int) -> int | None:
    """Zero the gaps of the pages from `start` on, in place: they mean nothing to SQLite, so readers may go on.

    Nobody may write to the file meanwhile.

    Args:
        start: an offset that a page begins at.
        size: how many bytes to look at, of whole pages.

    Returns:
        The offset behind, or None when that was the end of the file.

    Raises:
        OSError: the disk refused.
    """
    data = os.pread(descriptor, size, start)
    for at in range(0, len(data), page_size):
        if (found := gap_of(data[at : at + page_size], start + at)) is not None:
            os.pwrite(descriptor, bytes(found[1] - found[0]), start + at + found[0])
    if len(data) == size:
        return start + size
    os.fsync(descriptor)
    return None


class ScrubbingVFS(apsw.VFS):
    """Passes everything on to another VFS but the writes to a main database."""

    def __init__(self, base: str) -> None:
        self.name = f"beetle-scrub-{base}"
        self._base = base
        super().__init__(self.name, base)

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:
        if flags[0] & apsw.SQLITE_OPEN_MAIN_DB:
            return ScrubbingFile(self._base, name, flags)
        if flags[0] & apsw.SQLITE_OPEN_WAL and not self._base:
            return LogFile(self._base, name, flags)
        return apsw.VFSFile(self._base, name, flags)

    def xSleep(self, microseconds: int) -> int:
        # A checkpoint sleeps while it waits for readers. The binding's own sleep keeps the interpreter meanwhile.
        time.sleep(microseconds / 1_000_000)
        return microseconds


class ScrubbingFile(apsw.VFSFile):
    def __init__(self, base: str, name: Any, flags: list[int]) -> None:
        super().__init__(base, name, flags)
        self._path = "" if base or name is None else _path(name)

    def xWrite(self, data: Any, offset: int) -> None:
        super().xWrite(scrubbed(bytes(data), offset), offset)

    def xSync(self, flags: int) -> None:
        descriptor = _lent.get(self._path)
        if descriptor is None:
            super().xSync(flags)
        else:
            _sync(descriptor)


class LogFile(apsw.VFSFile):
    """A write-ahead log, which SQLite holds no locks on: a descriptor of our own may be closed again."""

    def __init__(self, base: str, name: Any, flags: list[int]) -> None:
        super().__init__(base, name, flags)
        self._descriptor: int | None = os.open(_path(name), os.O_RDONLY | os.O_CLOEXEC)

    def xSync(self, flags: int) -> None:
        if self._descriptor is None:
            super().xSync(flags)
        else:
            _sync(self._descriptor)

    def xClose(self) -> None:
        super().xClose()
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _path(name: Any) -> str:
    return name.filename() if isinstance(name, apsw.URIFilename) else name


def _sync(descriptor: int) -> None:
    """Wait for the disk. The binding's own call keeps the interpreter for so long, and nobody is answered."""
    try:
        os.fsync(descriptor)
    except OSError as error:
        raise apsw.IOError(f"the disk does not take it ({error.strerror})") from error
