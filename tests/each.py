"""One test of many values, where each value takes less time than a test of its own costs: some ten milliseconds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

import pytest

T = TypeVar("T")


def each_of(values: Iterable[T], name: Callable[[T], str] = str) -> Callable[[Callable[[T], None]], Callable[[], None]]:
    """Make a function of one value a test of all of them: every one is tried, and those that fail are named."""
    tried = tuple(values)
    assert tried, "a test of nothing"

    def over_all(check: Callable[[T], None]) -> Callable[[], None]:
        def test() -> None:
            failed: list[str] = []
            for value in tried:
                try:
                    check(value)
                except (AssertionError, pytest.fail.Exception) as error:
                    failed.append(f"{name(value)}: {error}")
            assert not failed, "\n".join(failed)

        test.__name__, test.__qualname__, test.__doc__ = check.__name__, check.__qualname__, check.__doc__
        test.__module__ = check.__module__
        return test

    return over_all
