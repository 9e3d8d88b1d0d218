"""Versions held as what differs: every one comes back byte for byte, and packed bytes cannot blow up."""

from __future__ import annotations

import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beetle.domain.deltas import Damaged, Packed, pack_next, pack_whole, unpack

LINES = st.lists(st.sampled_from([b"one", b"two lines\r", b"", b"x" * 40, "größe".encode(), b"\x00\xff"]), max_size=30)
MODEST = settings(deadline=None, max_examples=60, derandomize=True)


@MODEST
@given(st.lists(LINES, min_size=1, max_size=6), st.binary(max_size=300))
def test_every_version_comes_back(versions: list[list[bytes]], odd: bytes) -> None:
    before = odd
    for lines in versions:
        text = b"\n".join(lines)
        assert unpack(pack_next(before, text), len(text), before) == text
        before = text
    assert unpack(pack_whole(odd), len(odd), None) == odd


def test_a_small_change_takes_little_and_moved_lines_are_not_stored_again() -> None:
    before = b"".join(f"step {n}: {zlib.crc32(b'%d' % n):x}\n".encode() for n in range(4000))
    changed = before.replace(b"step 2000", b"step two thousand")
    moved = before[40_000:] + before[:40_000]
    for text in (changed, moved):
        packed = pack_next(before, text)
        assert packed.encoding == "delta" and len(packed.data) < 200
        assert unpack(packed, len(text), before) == text
    one_line = before.replace(b"\n", b" ")
    assert len(pack_next(one_line, one_line.replace(b"step 2000", b"step")).data) < 100


@MODEST
@given(st.binary(max_size=60), st.sampled_from(["whole", "delta"]))
def test_bytes_that_are_no_delta_are_damaged_and_nothing_else(data: bytes, encoding: str) -> None:
    for packed in (data, zlib.compress(data)):
        try:
            found = unpack(Packed(encoding, packed), 20, b"the text before it")  # type: ignore[arg-type]
        except Damaged:
            continue
        assert len(found) == 20


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [
        ("whole", zlib.compress(b"0" * 5_000_000)),
        ("delta", zlib.compress(b"\xff" * 8 + b"\x01" + b"\x00")),  # one copy of 2**55 bytes
        ("delta", zlib.compress(b"\x21\x00" * 100_000)),  # copies of 16 bytes, over and over
        ("delta", zlib.compress(b"\xff" * 1000)),  # a number without an end
        ("delta", zlib.compress(b"0" * 5_000_000)),
    ],
)
def test_what_would_grow_beyond_its_size_is_refused(encoding: str, packed: bytes) -> None:
    with pytest.raises(Damaged):
        unpack(Packed(encoding, packed), 1000, b"x" * 100)  # type: ignore[arg-type]


def test_a_delta_without_what_it_differs_from_is_damaged() -> None:
    with pytest.raises(Damaged):
        unpack(Packed("delta", zlib.compress(b"")), 0, None)
