"""Rows that a flipped bit has damaged: a value may be of another type than its column, whatever the schema says."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from beetle.contracts.codec import FIRST_US, LAST_US
from beetle.contracts.errors import IntegrityViolation

DAMAGE = (TypeError, ValueError, ArithmeticError, AttributeError, LookupError, AssertionError)
"""What Python raises for a value of another type, or beyond all bounds."""


def is_readable(
    *,
    texts: Iterable[Any] = (),
    numbers: Iterable[Any] = (),
    times: Iterable[Any] = (),
    reals: Iterable[Any] = (),
    blobs: Iterable[Any] = (),
) -> bool:
    """Whether values that were read of a row are of their columns' types, and times of years that can be shown."""
    integers = all(type(each) is int for each in (*numbers, *times))
    others = all(type(each) is str for each in texts) and all(type(each) is bytes for each in blobs)
    return (
        integers
        and others
        and all(type(each) is float or type(each) is int for each in reals)
        and all(FIRST_US <= at <= LAST_US for at in times)
    )


def check_row(
    kind: str, key: Any, *, texts: Iterable[Any] = (), numbers: Iterable[Any] = (), times: Iterable[Any] = ()
) -> None:
    """Look at values that were read of a row.

    Raises:
        IntegrityViolation: one is of another type, or a time of no year that can be shown.
    """
    if not is_readable(texts=texts, numbers=numbers, times=times):
        raise IntegrityViolation(reason=f"the row of {kind} {key} is damaged")
