"""Reads a damaged database page by page, without SQLite, which gives up at the first malformed one.

What SQLite's file format says of each page is believed as far as it can be true: a cell that cannot be is left out, the
ones beside it are read. The write-ahead log, or the rollback journal, counts as SQLite would have it.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from typing import Any

from beetle.named_tuple import NamedTuple
from beetle.store.engine import log_sums
from beetle.store.engine.connection import PAGE_SIZE
from beetle.store.engine.log_sums import HEADER_BYTES as LOG_HEADER

LEAF, INTERIOR = 0x0D, 0x05
"""Pages of a table with rowids."""
KEY_LEAF, KEY_INTERIOR = 0x0A, 0x02
"""Pages of an index, or of a table without rowids."""
KINDS = (LEAF, INTERIOR, KEY_LEAF, KEY_INTERIOR)
FILE_HEADER = 100
MOST_DEPTH = 20
FRAME_HEADER, JOURNAL_HEADER = 24, 28
_JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")
_INTEGERS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}


class Malformed(Exception):
    """What is read cannot be what was written."""


class Entry(NamedTuple):
    """One row, or one key of an index: its rowid, None without, and its columns."""

    rowid: int | None
    values: tuple[Any, ...]


class Tree:
    """The pages of one b-tree, as far as they can be told."""

    def __init__(self, root: int) -> None:
        self.root = root
        self.holds: list[tuple[int, int]] = []
        """Pages with rows, and as what kind they are read."""
        self.pages: set[int] = set()
        self.damaged: set[int] = set()
        """Pages of it that cannot be read as a whole."""
        self.lost = 0
        """Cells that were there and cannot be read."""
        self.torn = False
        """Whether a page is missing from which others hang."""

    def take(self, other: Tree) -> None:
        """Another one, which turned out to be a part of this."""
        self.holds += other.holds
        self.pages |= other.pages
        self.damaged |= other.damaged


class DamagedFile:
    """A database file with what its log or journal says of it; close it."""

    def __init__(self, path: str) -> None:
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self.pages = -(-os.fstat(self._descriptor).st_size // PAGE_SIZE)
        self._over: dict[int, bytes] = {}
        self.notes: list[str] = []
        journal, log = (_read(path + each) for each in ("-journal", "-wal"))
        if journal:
            self._roll_back(journal)
        elif log:
            self._fold(log)

    def close(self) -> None:
        """The file stays as it is."""
        os.close(self._descriptor)

    def page(self, number: int) -> bytes:
        """One page; the first is number 1.

        Raises:
            Malformed: there is none of that number.
        """
        if not 1 <= number <= self.pages:
            raise Malformed
        if number in self._over:
            return self._over[number]
        return os.pread(self._descriptor, PAGE_SIZE, (number - 1) * PAGE_SIZE).ljust(PAGE_SIZE, b"\0")

    def _fold(self, log: bytes) -> None:
        """Take every whole commit of a write-ahead log."""
        if len(log) < LOG_HEADER:
            return
        if not log_sums.is_sound(log[:LOG_HEADER], PAGE_SIZE):
            if any(log[:LOG_HEADER]):
                self.notes.append(
                    "the write-ahead log's header is damaged: commits that stood in the log alone are gone"
                )
            return
        order = log_sums.byte_order(log)
        salt, sums = log[16:24], struct.unpack(">2I", log[24:32])
        at, pending, whole = LOG_HEADER, {}, 0
        while at + FRAME_HEADER + PAGE_SIZE <= len(log) and log[at + 8 : at + 16] == salt:
            number, commit = struct.unpack(">2I", log[at : at + 8])
            data = log[at + FRAME_HEADER : at + FRAME_HEADER + PAGE_SIZE]
            sums = log_sums.summed(log[at : at + 8] + data, sums, order)
            if sums != struct.unpack(">2I", log[at + 16 : at + 24]):
                self.notes.append("the write-ahead log breaks off: commits behind that place, if any, are gone")
                break
            pending[number] = data
            at += FRAME_HEADER + PAGE_SIZE
            if commit:
                self._over |= pending
                pending, whole = {}, commit
        self.pages = whole or self.pages

    def _roll_back(self, journal: bytes) -> None:
        """Undo a transaction that was not committed; a journal has a header before each part of it that was synced."""
        at, before, whole = 0, None, True
        while whole and at + JOURNAL_HEADER <= len(journal):
            magic, records, nonce, pages, sector, size = struct.unpack(">8s5I", journal[at : at + JOURNAL_HEADER])
            if magic != _JOURNAL_MAGIC or size != PAGE_SIZE or not sector:
                break
            at += sector
            for _ in range(records):
                record = journal[at : at + PAGE_SIZE + 8]
                data = record[4 : 4 + PAGE_SIZE]
                whole = len(record) == PAGE_SIZE + 8
                if not whole or _journal_sum(data, nonce) != int.from_bytes(record[-4:], "big"):
                    whole = False
                    break
                self._over.setdefault(int.from_bytes(record[:4], "big"), data)
                before = pages if before is None else before
                at += PAGE_SIZE + 8
            at = -(-at // sector) * sector
        self.pages = self.pages if before is None else before

    def tree(self, root: int, kinds: tuple[int, int] = (LEAF, INTERIOR)) -> Tree:
        """All that can be read of the b-tree at `root`, whose pages are of these kinds: leaves, and the others."""
        tree = Tree(root)
        self._walk(tree, root, 0, kinds)
        return tree

    def _walk(self, tree: Tree, number: int, depth: int, kinds: tuple[int, int]) -> None:
        """Take in a page and what hangs from it."""
        if number in tree.pages or depth > MOST_DEPTH:
            return
        try:
            page = self.page(number)
        except Malformed:
            tree.torn = True
            return
        tree.pages.add(number)
        start = FILE_HEADER if number == 1 else 0
        found, leaf, interior = page[start], *kinds
        if _told(page, start, 12 if found == interior else 8) is None:
            tree.damaged.add(number)
        if found not in kinds or (found == interior and not self._leads(tree, page, start, kinds)):
            tree.damaged.add(number)
            # Which kind of page it is may be all that is damaged.
            found = interior if self._leads(tree, page, start, kinds) else leaf
        if found == interior:
            if interior == KEY_INTERIOR:
                tree.holds.append((number, found))
            for child in self._children(tree, number, page, start):
                self._walk(tree, child, depth + 1, kinds)
        else:
            tree.holds.append((number, found))
            if number in tree.damaged and not any(self._cells(page, start, found)):
                # What it was, nobody can tell: rows, or the way to other pages.
                tree.torn = True

    def entries(self, tree: Tree) -> Iterator[Entry]:
        """Its rows, in the order of its pages; what cannot be read of them is counted in the tree."""
        for number, kind in tree.holds:
            page = self.page(number)
            for entry in self._cells(page, FILE_HEADER if number == 1 else 0, kind):
                if entry is None:
                    tree.lost += 1
                    tree.damaged.add(number)
                else:
                    yield entry

    def _leads(self, tree: Tree, page: bytes, start: int, kinds: tuple[int, int]) -> bool:
        """Whether it leads to pages of such a tree, most of them: then it is no leaf."""
        named = [int.from_bytes(page[at : at + 4], "big") for at in _pointers(page, start, 12)]
        named.append(int.from_bytes(page[start + 8 : start + 12], "big"))
        right = sum(
            2 <= each <= self.pages and each not in tree.pages and self.page(each)[0] in kinds for each in named
        )
        return 2 * right > len(named)

    def _children(self, tree: Tree, number: int, page: bytes, start: int) -> Iterator[int]:
        """The pages that hang from one; see `_cells` of those that stand behind its last."""
        told = _told(page, start, 12) or 0
        for place, at in enumerate(_pointers(page, start, 12, behind=True)):
            child = int.from_bytes(page[at : at + 4], "big")
            if place < told:
                if 2 <= child <= self.pages:
                    yield child
                else:
                    tree.damaged.add(number)
                    tree.torn = True
            elif 2 <= child <= self.pages and child not in tree.pages and self.page(child)[0] in KINDS:
                tree.damaged.add(number)
                yield child
        last = int.from_bytes(page[start + 8 : start + 12], "big")
        if 2 <= last <= self.pages:
            yield last
        else:
            tree.damaged.add(number)
            tree.torn = True

    def _cells(self, page: bytes, start: int, kind: int) -> Iterator[Entry | None]:
        """A page's rows, and None for each that cannot be read.

        A cell that is deleted is zeroed. So one that can be read behind the last one that the page counts is alive, and
        its count is what was damaged.
        """
        header = 8 if kind in (LEAF, KEY_LEAF) else 12
        told = _told(page, start, header) or 0
        taken: list[tuple[int, int]] = []
        for place, at in enumerate(_pointers(page, start, header, behind=True)):
            try:
                entry, end = self._cell(page, at, kind)
                if any(at < b and a < end for a, b in taken):
                    raise Malformed
            except (Malformed, IndexError, UnicodeDecodeError, struct.error):
                if place < told:
                    yield None
                continue
            taken.append((at, end))
            yield entry

    def _cell(self, page: bytes, at: int, kind: int) -> tuple[Entry, int]:
        """A row, and where its cell ends."""
        begun = at
        if kind == KEY_INTERIOR:
            at += 4
        size, at = _varint(page, at)
        rowid = None
        if kind == LEAF:
            rowid, at = _varint(page, at)
            rowid = rowid - 2**64 if rowid >= 2**63 else rowid
        most = PAGE_SIZE - 35 if kind == LEAF else (PAGE_SIZE - 12) * 64 // 255 - 23
        if not 2 <= size <= self.pages * PAGE_SIZE or at - begun > 24:
            raise Malformed
        if size <= most:
            if at + size > len(page):
                raise Malformed
            return Entry(rowid, _values(page[at : at + size])), at + size
        least = (PAGE_SIZE - 12) * 32 // 255 - 23
        here = least + (size - least) % (PAGE_SIZE - 4)
        here = here if here <= most else least
        rest = self._overflow(int.from_bytes(page[at + here : at + here + 4], "big"), size - here)
        return Entry(rowid, _values(page[at : at + here] + rest)), at + here + 4

    def _overflow(self, number: int, left: int) -> bytes:
        parts, seen = [], set()
        while left > 0:
            if number in seen:
                raise Malformed
            seen.add(number)
            page = self.page(number)
            parts.append(page[4 : 4 + left])
            left -= len(parts[-1])
            number = int.from_bytes(page[:4], "big")
        if number:
            raise Malformed
        return b"".join(parts)

    def loose(self, known: set[int]) -> dict[int, int]:
        """Pages of b-trees that hang from none of the known ones: their number, and their kind."""
        kinds = {}
        for number in range(2, self.pages + 1):
            if number not in known and (kind := self.page(number)[0]) in KINDS:
                kinds[number] = kind
        return kinds


def _journal_sum(data: bytes, nonce: int) -> int:
    return (nonce + sum(data[PAGE_SIZE - 200 : 0 : -200])) & 0xFFFFFFFF


def _read(path: str) -> bytes:
    if not os.path.exists(path):
        return b""
    with open(path, "rb") as file:
        return file.read()


def _pointers(page: bytes, start: int, header: int, *, behind: bool = False) -> Iterator[int]:
    """Where a page's cells begin: those that it counts, where it can have so many, and when asked those that stand
    behind them. What no cell can begin at is told as the page's end."""
    first, told = start + header, _told(page, start, header)
    end = PAGE_SIZE if told is None else _content(page, start) if behind else first
    most = (end - first) // 2
    for place in range(max(told or 0, most)):
        at = int.from_bytes(page[first + 2 * place : first + 2 * place + 2], "big")
        if first <= at < PAGE_SIZE - 3:
            yield at
        elif told is None or place >= told:
            return
        else:
            yield PAGE_SIZE


def _content(page: bytes, start: int) -> int:
    """Where a page's cells may begin; its end where that cannot be."""
    found = int.from_bytes(page[start + 5 : start + 7], "big")
    return found if start + 8 <= found <= PAGE_SIZE else PAGE_SIZE


def _told(page: bytes, start: int, header: int) -> int | None:
    """How many cells a page counts; None where it has no room for so many."""
    told = int.from_bytes(page[start + 3 : start + 5], "big")
    return told if start + header + 2 * told <= _content(page, start) else None


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for place in range(9):
        byte = data[at + place]
        if place == 8:
            return value << 8 | byte, at + 9
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + place + 1
    raise Malformed


def _values(payload: bytes) -> tuple[Any, ...]:
    """The columns of a record, which must be exactly as long as its header says."""
    size, at = _varint(payload, 0)
    if not at <= size <= len(payload):
        raise Malformed
    found, body = [], size
    while at < size:
        kind, at = _varint(payload, at)
        value, body = _value(payload, kind, body)
        found.append(value)
    if body != len(payload) or at != size:
        raise Malformed
    return tuple(found)


def _value(payload: bytes, kind: int, at: int) -> tuple[Any, int]:
    if kind >= 12:
        end = at + (kind - 12) // 2
        if end > len(payload):
            raise Malformed
        return (payload[at:end].decode() if kind & 1 else payload[at:end]), end
    if kind in (0, 8, 9):
        return {0: None, 8: 0, 9: 1}[kind], at
    size = 8 if kind == 7 else _INTEGERS.get(kind, 0)
    if not size or at + size > len(payload):
        raise Malformed
    if kind == 7:
        return struct.unpack(">d", payload[at : at + 8])[0], at + 8
    return int.from_bytes(payload[at : at + size], "big", signed=True), at + size
