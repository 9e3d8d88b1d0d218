"""Rows that a flipped bit has damaged: a value may be of another type than its column, whatever the schema says."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from beetle.contracts.codec import FIRST_US, LAST_US
from beetle.contracts.errors import IntegrityViolation


def check_row(
    kind: str, key: Any, *, texts: Iterable[Any] = (), numbers: Iterable[Any] = (), times: Iterable[Any] = ()
) -> None:
    """Look at values that were read of a row.

    Raises:
        IntegrityViolation: one is of another type, or a time of no year that can be shown.
    """
    integers = all(type(each) is int for each in (*numbers, *times))
    if not (integers and all(type(each) is str for each in texts) and all(FIRST_US <= at <= LAST_US for at in times)):
        raise IntegrityViolation(reason=f"the row of {kind} {key} is damaged")
