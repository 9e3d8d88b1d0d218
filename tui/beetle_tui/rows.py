"""Rows of long lists, a page at a time: what is not looked at is neither asked for nor kept."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")

PAGE = 100
"""Rows of a page: what every profile answers at once."""
KEPT_PAGES = 12
"""Pages whose rows are kept; the others are asked for again when they are looked at."""


class Batch(NamedTuple, Generic[T]):
    """One page as it was answered. `total` is how many rows there are in all, where the answer says so."""

    rows: tuple[T, ...]
    next_cursor: str | None = None
    total: int | None = None


class Rows(ABC, Generic[T]):
    """A list that is read where it is looked at. All of it happens on the screen's own loop."""

    def __init__(self, size: int = PAGE) -> None:
        self.size = size
        self._kept: OrderedDict[int, tuple[T, ...]] = OrderedDict()
        self._current: set[int] = set()
        self._asked = 0

    @property
    @abstractmethod
    def count(self) -> int:
        """Rows that can be gone to, as far as that is known."""

    @property
    def loaded(self) -> int:
        """Rows that are kept in memory now."""
        return sum(len(each) for each in self._kept.values())

    def get(self, index: int) -> T | None:
        """The row as it was last read, or None where it has not been."""
        page = self._kept.get(index // self.size)
        place = index % self.size
        return page[place] if page is not None and place < len(page) else None

    def place_of(self, wanted: Callable[[T], bool], near: int) -> int | None:
        """Where the row is that is wanted, among those that are current; the nearest, where there are several."""
        places = (
            page * self.size + at for page in self._current for at, row in enumerate(self._kept[page]) if wanted(row)
        )
        return min(places, key=lambda place: abs(place - near), default=None)

    def missing(self, first: int, last: int) -> bool:
        """Whether rows of these are to be asked for; both ends are meant."""
        last = min(last, self.count - 1)
        return any(page not in self._current for page in range(max(0, first) // self.size, last // self.size + 1))

    def forget(self) -> None:
        """Nothing that is kept is current any more: it stands, and can be chosen, until it is read again."""
        self._asked += 1
        self._current.clear()

    async def load(self, first: int, last: int) -> None:
        """Ask for what is missing of these rows, as far as there are so many. What was forgotten meanwhile is dropped
        when it comes.

        Raises:
            BeetleError: what a request was answered with; what came before it is kept.
        """
        asked = self._asked
        if self.count:
            # A page behind the last one would be looked for along all that lead there.
            last = min(last, self.count - 1)
        for page in range(max(0, first) // self.size, max(0, last) // self.size + 1):
            if page in self._current:
                self._kept.move_to_end(page)
                continue
            if not await self._load_page(page, lambda: asked == self._asked):
                return

    @abstractmethod
    def pages(self) -> AsyncIterator[Sequence[T]]:
        """Every row, read anew from the first to the last; nothing of it is kept.

        Raises:
            BeetleError: what a request was answered with.
        """

    @abstractmethod
    async def _load_page(self, page: int, current: Callable[[], bool]) -> bool:
        """Keep one page; false when there is none so far, or `current` no longer holds."""

    def _keep(self, page: int, rows: tuple[T, ...]) -> None:
        self._kept[page] = rows
        self._kept.move_to_end(page)
        self._current.add(page)
        while len(self._kept) > KEPT_PAGES:
            self._current.discard(self._kept.popitem(last=False)[0])

    def _cut(self, page: int) -> None:
        """The list ends with this page: those behind it are no more."""
        for each in [kept for kept in self._kept if kept > page]:
            del self._kept[each]
            self._current.discard(each)


class CursorRows(Rows[T]):
    """A list whose pages lead from one to the next. A page that was once reached is found again by its cursor."""

    def __init__(
        self,
        fetch: Callable[[str | None, int], Awaitable[Batch[T]]],
        on_progress: Callable[[int, int], None] | None = None,
    ) -> None:
        """`fetch` answers the page at a cursor. `on_progress` is told how far a long way is gone: rows, of how many."""
        super().__init__()
        self._fetch = fetch
        self._on_progress = on_progress
        self._cursors: list[str | None] = [None]
        self._ended = False
        self._reached = 0
        self._total: int | None = None

    @property
    def count(self) -> int:
        """See Rows: the total where the list tells it, else what was reached, and one more while there is more."""
        if self._total is not None:
            return self._total
        return self._reached + (not self._ended and self._reached > 0)

    async def pages(self) -> AsyncIterator[Sequence[T]]:
        """See Rows."""
        cursor: str | None = None
        while True:
            batch = await self._fetch(cursor, self.size)
            yield batch.rows
            cursor = batch.next_cursor
            if cursor is None:
                return

    async def _load_page(self, page: int, current: Callable[[], bool]) -> bool:
        while True:
            at = min(page, len(self._cursors) - 1)
            batch = await self._fetch(self._cursors[at], self.size)
            if not current():
                return False
            self._take(at, batch)
            if at == page or batch.next_cursor is None:
                return at == page
            if self._on_progress is not None:
                self._on_progress(self._reached, self.count)

    def _take(self, page: int, batch: Batch[T]) -> None:
        self._keep(page, batch.rows)
        last = page == len(self._cursors) - 1
        if batch.total is not None:
            self._total = batch.total
        if batch.next_cursor is None:
            # The list ends here now, whatever it did before.
            del self._cursors[page + 1 :]
            self._cut(page)
            self._ended, self._reached = True, page * self.size + len(batch.rows)
            self._total = self._reached
        elif last:
            self._cursors.append(batch.next_cursor)
            self._ended, self._reached = False, (page + 1) * self.size
        elif batch.next_cursor != self._cursors[page + 1]:
            # Rows came or went before: the page behind begins elsewhere now.
            self._cursors[page + 1] = batch.next_cursor
            self._current.discard(page + 1)


class NumberedRows(Rows[T]):
    """A list whose rows are numbered from 0, so that any page can be asked for."""

    def __init__(self, fetch: Callable[[int, int], Awaitable[Batch[T]]], count: int, size: int = PAGE) -> None:
        """`fetch` answers so many rows from a number on."""
        super().__init__(size)
        self._fetch = fetch
        self._count = count

    @property
    def count(self) -> int:
        """See Rows."""
        return self._count

    def grow(self, count: int) -> None:
        """There are that many now; the page that was the last is asked for again."""
        if count != self._count:
            self._current.discard(max(0, self._count - 1) // self.size)
            self._count = count

    async def pages(self) -> AsyncIterator[Sequence[T]]:
        """See Rows."""
        start, total = 0, max(1, self._count)
        while start < total:
            batch = await self._fetch(start, self.size)
            yield batch.rows
            start += self.size
            total = self._count if batch.total is None else batch.total

    async def _load_page(self, page: int, current: Callable[[], bool]) -> bool:
        batch = await self._fetch(page * self.size, self.size)
        if not current():
            return False
        if batch.total is not None:
            self._count = batch.total
        self._keep(page, batch.rows)
        return True
