"""Answers of bounded size: what is listed ends at the profile's `answer_bytes`; a page goes on behind its cursor."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from beetle.contracts.codec import pack
from beetle.named_tuple import NamedTuple
from beetle.runtime.pipeline.cursor import make_cursor
from beetle.runtime.pipeline.invocation import Invocation
from beetle.store.damaged_rows import DamagedRow

R = TypeVar("R")
S = TypeVar("S")


class Room:
    """The bytes that what one answer lists may have together; the first of it is taken always.

    Attributes:
        full: something was refused; nothing is taken any more.
    """

    def __init__(self, invocation: Invocation) -> None:
        self._work = invocation.work
        self._left = invocation.shared.profile.budgets.answer_bytes
        self._begun = False
        self.full = False

    def takes(self, *parts: Any) -> bool:
        """Whether there is room for one more entry, which is made of these."""
        self._work.breathe()
        self._left -= sum(len(pack(each)) for each in parts)
        self.full = self.full or (self._begun and self._left < 0)
        self._begun = True
        return not self.full

    def fill(self, entries: Iterable[S]) -> tuple[S, ...]:
        """The first of some entries, as many as there is room for."""
        found: list[S] = []
        for each in entries:
            if not self.takes(each):
                break
            found.append(each)
        return tuple(found)


class Page(NamedTuple, Generic[S]):
    """The entries of a page; `cut` when their bytes ended it before the request's limit did."""

    entries: tuple[S, ...]
    has_more: bool
    next_cursor: str | None
    cut: bool


def page(
    invocation: Invocation,
    rows: Iterable[R],
    limit: int,
    show: Callable[[R], S],
    *,
    bound_to: tuple[Any, ...],
    place: Callable[[R], Any],
) -> Page[S]:
    """As many rows as the request's limit and the profile's bytes allow, at least one where there is one.

    Args:
        rows: in their order, with one behind the limit where there are more. They are shown one by one: what is
            large of a row is best read by `show`. Damaged ones, for which it raises `DamagedRow`, are left out.
        bound_to: what the cursor is bound to.
        place: where in the list a row stands, for the cursor behind it.
    """
    room = Room(invocation)
    shown: list[S] = []
    last: R | None = None
    more = left_out = False
    looked = 0
    for row in rows:
        if len(shown) == limit:
            more = True
            break
        looked += 1
        try:
            entry = show(row)
        except DamagedRow:
            left_out, last = True, row
            continue
        if not room.takes(entry):
            more = True
            break
        shown.append(entry)
        last = row
    else:
        # What is behind a damaged row was not read, whose place it took.
        more = left_out and looked > limit
    cursor = make_cursor(invocation.key, bound_to, place(last)) if more and last is not None else None
    return Page(tuple(shown), more, cursor, room.full)
