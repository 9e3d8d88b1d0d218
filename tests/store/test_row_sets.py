"""Sets of rows, as arrays and as bitmaps, do what the language's own sets do."""

from __future__ import annotations

from array import array
from itertools import islice
from math import fsum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beetle.store.best_rows import ranked
from beetle.store.row_sets import (
    DENSE,
    KEY_BITS,
    PLANE_BITS,
    SHORT,
    Dense,
    after,
    common,
    descending,
    kept,
    numbers,
    rows_in,
    tiles_of,
    with_rows,
    without_plane,
    without_rows,
)

TILE = 1 << KEY_BITS
NEAR = st.integers(0, 70)
KEYS = st.one_of(NEAR, NEAR.map(lambda key: TILE - 35 + key), NEAR.map(lambda key: 5 * TILE + key))
ROWS = st.sets(st.builds(lambda key, plane: key << PLANE_BITS | plane, KEYS, st.sampled_from((0, 3, 15))), max_size=60)
FORMS = ("array", "bitmap", "list")


def made(rows: set[int], form: str = "bitmap") -> Dense | array[int] | list[int]:
    ordered = sorted(rows)
    if form == "list":
        return ordered
    held = numbers(ordered, max(rows, default=0))
    return held if form == "array" else Dense(tiles_of(held), len(held))


def told(rows: Dense | array[int]) -> set[int]:
    if not isinstance(rows, Dense):
        assert list(rows) == sorted(set(rows))
        return set(rows)
    found = [row for tile, bits in rows.tiles.items() for row in rows_in(tile, bits)]
    assert len(found) == len(set(found)) == len(rows)
    return set(found)


@given(ROWS, ROWS)
def test_rows_are_added_and_taken_away(rows: set[int], others: set[int]) -> None:
    before = made(rows)
    assert told(with_rows(before, sorted(others))) == rows | others
    for form in FORMS:
        assert told(without_rows(before, made(others, form))) == rows - others
    assert told(before) == rows, "a set is never changed"


@given(ROWS, ROWS, st.sampled_from(FORMS))
def test_those_that_two_sets_hold_are_told(rows: set[int], others: set[int], form: str) -> None:
    assert common(made(rows, "array"), made(others, form)) & rows == rows & others


@given(ROWS, KEYS)
def test_messages_behind_a_key_are_told(rows: set[int], key: int) -> None:
    assert set(after(made(rows), 0, key)) == {row for row in rows if row & 15 == 0 and row >> PLANE_BITS > key}


@given(ROWS, st.sampled_from((-1, 0, 3, 7, 15)))
def test_a_plane_is_left_out(rows: set[int], plane: int) -> None:
    assert set(without_plane(made(rows, "array"), plane)) == {row for row in rows if row & 15 != plane}


@given(ROWS)
def test_rows_are_kept_in_the_form_that_they_are_worth(rows: set[int]) -> None:
    held = kept(made(rows, "array"))
    assert told(held) == rows
    assert isinstance(held, Dense) == (bool(rows) and len(rows) * DENSE >= max(rows) >> PLANE_BITS)


def test_rows_beyond_four_bytes_are_kept() -> None:
    rows = {1, SHORT - 1, SHORT, SHORT * 3 + 5}
    assert told(made(rows, "array")) == told(made(rows)) == rows
    assert list(without_plane(made(rows, "array"), SHORT - 1 & 15)) == sorted({1, SHORT, SHORT * 3 + 5})


@given(st.sets(st.integers(0, 3_000), max_size=400))
def test_bits_are_told_the_highest_first(places: set[int]) -> None:
    assert list(descending(sum(1 << place for place in places))) == sorted(places, reverse=True)


@given(
    st.lists(st.tuples(ROWS, st.sampled_from(FORMS), st.sampled_from((0.1, 0.2, 0.3, 1.0, 7.1))), max_size=6),
    st.integers(1, 40),
)
def test_the_best_rows_are_those_of_scoring_every_row(lists: list[tuple[set[int], str, float]], most: int) -> None:
    every = {row: fsum(weight for rows, _, weight in lists if row in rows) for rows, _, _ in lists for row in rows}
    right = sorted(every.items(), key=lambda each: (-each[1], -each[0]))[:most]
    assert list(islice(ranked([(made(rows, form), weight) for rows, form, weight in lists]), most)) == right


@pytest.mark.parametrize("form", FORMS)
def test_a_long_list_of_one_weight_is_read_from_its_end(form: str) -> None:
    rows = {key << PLANE_BITS for key in range(0, 3 * TILE, 37)}
    assert list(islice(ranked([(made(rows, form), 2.0)]), 3)) == [(row, 2.0) for row in sorted(rows)[:-4:-1]]
