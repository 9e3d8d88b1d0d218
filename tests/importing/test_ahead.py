"""What is made beforehand on a thread: all of it, in its order, and nothing more once nobody takes it."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beetle.importing.ahead import AT_ONCE, MOST, ahead


@given(st.integers(0, 3 * AT_ONCE + 1), st.booleans())
def test_all_come_in_their_order_and_an_error_where_the_next_one_would(count: int, fails: bool) -> None:
    def things() -> Iterator[int]:
        yield from range(count)
        if fails:
            raise ValueError("torn")

    taken: list[int] = []
    if fails:
        with pytest.raises(ValueError, match="torn"):
            taken.extend(ahead(things()))
    else:
        taken += ahead(things())
    assert taken == list(range(count))


def test_few_are_made_beforehand_and_none_when_nobody_takes_them() -> None:
    threads, made = threading.active_count(), 0

    def things() -> Iterator[int]:
        nonlocal made
        while True:
            yield made
            made += 1

    taking = ahead(things())
    assert [next(taking) for _ in range(3)] == [0, 1, 2]
    taking.close()
    assert threading.active_count() == threads
    assert made <= (MOST + 3) * AT_ONCE
