"""Rows that are all there: for lists that are small by what they are."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Generic, TypeVar

from beetle_tui.rows import Rows

T = TypeVar("T")


class LoadedRows(Rows[T], Generic[T]):
    """A list that is replaced as a whole, so that nothing of it is ever awaited."""

    def __init__(self, items: Sequence[T] = ()) -> None:
        super().__init__()
        self.items: tuple[T, ...] = tuple(items)

    def hold(self, items: Sequence[T]) -> None:
        """These from now on."""
        self.items = tuple(items)

    @property
    def count(self) -> int:
        """See Rows."""
        return len(self.items)

    @property
    def loaded(self) -> int:
        """See Rows."""
        return len(self.items)

    def get(self, index: int) -> T | None:
        """See Rows."""
        return self.items[index] if 0 <= index < len(self.items) else None

    def place_of(self, wanted: Callable[[T], bool], near: int) -> int | None:
        """See Rows."""
        places = (at for at, row in enumerate(self.items) if wanted(row))
        return min(places, key=lambda place: abs(place - near), default=None)

    def missing(self, first: int, last: int) -> bool:
        """See Rows."""
        del first, last
        return False

    async def pages(self) -> AsyncIterator[Sequence[T]]:
        """See Rows."""
        yield self.items

    async def _load_page(self, page: int, current: Callable[[], bool]) -> bool:
        del page
        return current()
