from __future__ import annotations

import base64

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beetle.contracts.errors import InvalidRequest
from beetle.runtime.pipeline.cursor import make_cursor, read_cursor

MODEST = settings(deadline=None, max_examples=80)
KEY = bytes(range(32))
positions = st.integers(-(2**63), 2**63 - 1) | st.text(max_size=30) | st.lists(st.integers(0, 9), max_size=3)
bindings = st.lists(st.text(max_size=10) | st.integers(0, 99) | st.booleans() | st.none(), max_size=5).map(tuple)


@MODEST
@given(bindings, positions)
def test_a_cursor_stands_where_it_was_made(bound: tuple[object, ...], position: object) -> None:
    cursor = make_cursor(KEY, bound, position)
    assert read_cursor(KEY, bound, cursor) == position
    assert make_cursor(KEY, bound, position) == cursor
    assert cursor.isascii() and "=" not in cursor


@MODEST
@given(bindings, bindings, positions)
def test_a_cursor_belongs_to_what_it_was_bound_to(
    bound: tuple[object, ...], other: tuple[object, ...], position: object
) -> None:
    cursor = make_cursor(KEY, bound, position)
    if [(type(each), each) for each in bound] == [(type(each), each) for each in other]:
        return
    with pytest.raises(InvalidRequest) as caught:
        read_cursor(KEY, other, cursor)
    assert caught.value.details["path"] == "$.args.cursor"


@MODEST
@given(positions, st.data())
def test_one_altered_byte_is_noticed(position: object, data: st.DataObject) -> None:
    raw = bytearray(base64.urlsafe_b64decode(make_cursor(KEY, ("op",), position) + "=="))
    place = data.draw(st.integers(0, len(raw) - 1))
    raw[place] ^= data.draw(st.integers(1, 255))
    with pytest.raises(InvalidRequest):
        read_cursor(KEY, ("op",), base64.urlsafe_b64encode(raw).decode().rstrip("="))


@MODEST
@given(st.text(max_size=80) | st.binary(max_size=60).map(lambda raw: base64.urlsafe_b64encode(raw).decode()))
def test_any_text_is_refused_unless_it_was_made_here(text: str) -> None:
    with pytest.raises(InvalidRequest):
        read_cursor(KEY, ("op",), text)


def test_another_store_s_cursor_is_refused() -> None:
    with pytest.raises(InvalidRequest):
        read_cursor(bytes(32), ("op",), make_cursor(KEY, ("op",), 1))
