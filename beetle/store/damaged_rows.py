"""Rows that a flipped bit has damaged: a value may be of another type than its column, whatever the schema says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import apsw

from beetle.contracts.codec import FIRST_US, LAST_US, format_us
from beetle.contracts.errors import IntegrityViolation

DAMAGE = (TypeError, ValueError, ArithmeticError, AttributeError, LookupError, AssertionError)
"""What Python raises for a value of another type, or beyond all bounds."""
UNFORESEEN = (*DAMAGE, apsw.ConstraintError)
"""As `DAMAGE`, of a write: what was read may not be written again."""
IS_TIME = f"typeof({{column}}) = 'integer' AND {{column}} BETWEEN {FIRST_US} AND {LAST_US}"
"""Whether a column holds what `is_time` takes for one, in SQL."""

R = TypeVar("R")
S = TypeVar("S")


class DamagedRow(IntegrityViolation):
    """One row cannot be shown. A list leaves it out, and `store.verify` names it."""

    def __init__(self, kind: str, key: Any) -> None:
        super().__init__(reason=f"the row of {kind} {key} is damaged")


def is_readable(
    *,
    texts: Iterable[Any] = (),
    numbers: Iterable[Any] = (),
    times: Iterable[Any] = (),
    reals: Iterable[Any] = (),
    blobs: Iterable[Any] = (),
) -> bool:
    """Whether values that were read of a row are of their columns' types, and times of years that can be shown."""
    return (
        all(type(each) is str for each in texts)
        and all(type(each) is int for each in numbers)
        and all(is_time(each) for each in times)
        and all(type(each) is float or type(each) is int for each in reals)
        and all(type(each) is bytes for each in blobs)
    )


def check_row(
    kind: str, key: Any, *, texts: Iterable[Any] = (), numbers: Iterable[Any] = (), times: Iterable[Any] = ()
) -> None:
    """Look at values that were read of a row.

    Raises:
        DamagedRow: one is of another type, or a time of no year that can be shown.
    """
    if not is_readable(texts=texts, numbers=numbers, times=times):
        raise DamagedRow(kind, key)


def is_time(at: Any) -> bool:
    """Whether a value that was read is microseconds of a year that can be shown."""
    return type(at) is int and FIRST_US <= at <= LAST_US


def shown_time(at: Any, kind: str, key: Any) -> str:
    """A time that was read of a row, as answers have it.

    Raises:
        DamagedRow: it is none.
    """
    if not is_time(at):
        raise DamagedRow(kind, key)
    return format_us(at)


def known_time(at: Any) -> str | None:
    """As `shown_time`, where an answer may leave the time out; None also for none."""
    return format_us(at) if is_time(at) else None


def whole(rows: Iterable[R], show: Callable[[R], S]) -> Iterator[S]:
    """Rows as answers have them, without the damaged ones."""
    for row in rows:
        try:
            entry = show(row)
        except DamagedRow:
            continue
        yield entry
