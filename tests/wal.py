"""What commits write to a store's write-ahead log: its frames, counted by the table or index that each page is of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from os import PathLike, fspath, stat

import apsw

from beetle.store.engine.connection import PAGE_SIZE
from beetle.store.engine.log_sums import HEADER_BYTES

FRAME_BYTES = PAGE_SIZE + 24
"""A page and its header."""
PLACES_SQL = "SELECT pageno, name FROM dbstat"


class Written:
    """Frames that a number of commits added to a log, which nobody folds meanwhile."""

    def __init__(self, path: str | PathLike[str], first: int, commits: int, turns: int) -> None:
        """`first`: the frames that were there before."""
        self.commits, self.turns = commits, turns
        pages = _pages(fspath(path) + "-wal", first)
        connection = apsw.Connection(fspath(path), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            names = dict(connection.execute(PLACES_SQL))
        finally:
            connection.close()
        self.trees: Counter[str] = Counter(names.get(page, "free pages") for page in pages)

    @property
    def pages(self) -> float:
        """Pages a commit."""
        return self.trees.total() / self.commits

    @property
    def bytes_a_turn(self) -> float:
        return self.trees.total() * FRAME_BYTES / self.turns


def written(path: str | PathLike[str], commit: Callable[[int, int], object], commits: int, size: int) -> Written:
    """What commits of `size` turns each write; `commit` is told which, and how many turns."""
    first = _frames(fspath(path) + "-wal")
    for number in range(commits):
        commit(number, size)
    return Written(path, first, commits, commits * size)


def _frames(log: str) -> int:
    return max(0, stat(log).st_size - HEADER_BYTES) // FRAME_BYTES


def _pages(log: str, first: int) -> list[int]:
    with open(log, "rb") as file:
        file.seek(HEADER_BYTES + first * FRAME_BYTES)
        frames = iter(lambda: file.read(FRAME_BYTES), b"")
        return [int.from_bytes(frame[:4], "big") for frame in frames]
