from __future__ import annotations

import math
import struct
import tracemalloc
from collections.abc import Iterable
from typing import Any

import msgpack
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from beetle.contracts.errors import BeetleError, InvalidFrame, PayloadTooLarge
from beetle.transports.frames import Fault, Frame, FrameLimits, FrameReader

MEBIBYTE = 1 << 20
GIBIBYTE = struct.pack(">I", 1 << 30)
ROOMY = FrameLimits(frame_bytes=MEBIBYTE, nesting=64)
NARROW = FrameLimits(frame_bytes=64, nesting=4)

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.binary()
)
values = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20)
maps = st.dictionaries(st.text(), values, max_size=20)
cuts = st.lists(st.integers(1, 40), max_size=60)
TOKENS = """80 81 82 90 92 a0 a161 a162 a2c3a9 a3eda080 a1ff 01 c0 c1 c40100 c70000 d40102 d9026162 dc0002 de0001 df
    cb7ff8000000000000 ca00000000 cfffffffffffffffff"""
tokens = st.sampled_from([bytes.fromhex(token) for token in TOKENS.split()])
garbage = st.binary(max_size=80) | st.lists(tokens, max_size=30).map(b"".join)


@st.composite
def damaged_frames(draw: st.DrawFn) -> bytes:
    data = bytearray(packed(draw(maps)))
    at = draw(st.integers(0, len(data) - 1))
    data[at : at + draw(st.integers(0, 2))] = draw(st.binary(max_size=2) | tokens)
    return bytes(data)


def packed(value: Any) -> bytes:
    return msgpack.packb(value)


def in_map(value: bytes) -> bytes:
    """A frame `{"a": value}`."""
    return b"\x81\xa1a" + value


def cut(data: bytes, lengths: Iterable[int]) -> list[bytes]:
    chunks: list[bytes] = []
    for length in lengths:
        chunks.append(data[:length])
        data = data[length:]
    return [*chunks, data]


def read(chunks: Iterable[bytes], limits: FrameLimits = ROOMY) -> tuple[list[Frame], BeetleError | None]:
    """The frames, and the error that ended the reading."""
    reader, frames = FrameReader(limits), list[Frame]()
    try:
        for chunk in chunks:
            reader.feed(chunk)
            while (frame := reader.next_frame()) is not None:
                frames.append(frame)
    except (InvalidFrame, PayloadTooLarge) as error:
        return frames, error
    return frames, None


def fault_of(data: bytes) -> Fault | None:
    """The fault of one frame, after which the reader goes on with the next one."""
    sound = packed({"id": 2})
    (first, second), error = read([data + sound])
    assert error is None
    assert first.data == data
    assert second == Frame(sound, None)
    return first.fault


def error_of(data: bytes, limits: FrameLimits = ROOMY) -> BeetleError:
    frames, error = read([data], limits)
    assert frames == []
    assert error is not None
    assert read(cut(data, [1] * len(data)), limits)[1].__class__ is error.__class__
    return error


def is_sound(data: bytes) -> bool:
    """msgpack's own opinion: one whole map of string keys without any of the faults."""

    def pairs(items: list[tuple[Any, Any]]) -> dict[Any, Any]:
        if any(not isinstance(key, str) for key, _ in items) or len(dict(items)) < len(items):
            raise ValueError("keys")
        return dict(items)

    def refuse(code: int, content: bytes) -> None:
        raise ValueError("ext")

    def is_allowed(value: Any) -> bool:
        if isinstance(value, dict):
            return all(map(is_allowed, value.values()))
        if isinstance(value, list):
            return all(map(is_allowed, value))
        if isinstance(value, float):
            return math.isfinite(value)
        return not isinstance(value, int) or value < 2**63

    try:
        value = msgpack.unpackb(data, object_pairs_hook=pairs, ext_hook=refuse)
    except (ValueError, msgpack.UnpackException):
        return False
    return isinstance(value, dict) and is_allowed(value)


@given(st.lists(maps, max_size=4), cuts)
def test_frames_come_out_the_same_wherever_the_stream_is_cut(wanted: list[dict[str, Any]], lengths: list[int]) -> None:
    frames = [packed(value) for value in wanted]
    assert read(cut(b"".join(frames), lengths)) == ([Frame(data, None) for data in frames], None)


@given(garbage | damaged_frames(), cuts)
@example(b"\x81\xa1a\xdb\xff\xff", [])
@example(b"\x80\x80\x80\x81", [1, 1])
def test_any_bytes_end_the_same_way_however_they_are_cut(data: bytes, lengths: list[int]) -> None:
    whole, whole_error = read([data], NARROW)
    parts, parts_error = read(cut(data, lengths), NARROW)
    assert parts == whole
    assert type(parts_error) is type(whole_error)


NUMBERS = (
    0,
    0xC1,
    0xC4,
    0xCB,
    0xCF,
    0xC4C4,
    0xCFCBCA,
    2**32 - 1,
    2**32,
    2**63 - 1,
    2**63,
    -1,
    -60,
    -(2**40),
    1.5,
    "Ë",
    None,
)
LOOKED_INTO = (
    1, "kettle", "Ë", 0.5, 2**40, 2**63, 2**64 - 1, math.nan, -math.inf, b"\xcb", msgpack.ExtType(7, b""),
    msgpack.Timestamp(0),
)  # fmt: skip


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("value", LOOKED_INTO, ids=repr)
def test_what_a_frame_holds_beside_its_number_is_looked_into_whatever_the_number_is(number: Any, value: Any) -> None:
    for frame in (
        {"v": 1, "id": number, "args": {"a": value}},
        {"args": [{"id": number}, value], "id": number},
        {"args": {"id": value}, "v": number},
    ):
        data = msgpack.packb(frame)
        assert read([data]) == read([data[:1], data[1:]]), "as the scan judges it, which a cut one is left to"
        assert (read([data]) == ([Frame(data, None)], None)) == is_sound(data) or isinstance(value, msgpack.Timestamp)


@given(garbage | damaged_frames() | maps.map(packed))
def test_a_frame_is_sound_exactly_when_msgpack_reads_it_as_a_map_without_faults(data: bytes) -> None:
    assert (read([data]) == ([Frame(data, None)], None)) == is_sound(data)


@given(garbage | damaged_frames())
def test_a_slow_sender_never_gets_more_than_the_limit_buffered(data: bytes) -> None:
    reader = FrameReader(NARROW)
    try:
        for byte in data:
            reader.feed(bytes([byte]))
            while reader.next_frame() is not None:
                assert not reader.begun
            assert reader.buffered <= NARROW.frame_bytes
    except (InvalidFrame, PayloadTooLarge):
        assert reader.buffered <= NARROW.frame_bytes


@pytest.mark.parametrize("first", sorted(set(range(256)) - {*range(0x80, 0x90), 0xDE, 0xDF}))
def test_a_first_byte_that_no_map_begins_with_is_refused_at_once(first: int) -> None:
    assert isinstance(error_of(bytes([first])), InvalidFrame)


@pytest.mark.parametrize("first", [*range(0x81, 0x90), 0xDE, 0xDF])
def test_a_first_byte_that_a_map_begins_with_is_waited_on(first: int) -> None:
    reader = FrameReader(ROOMY)
    reader.feed(bytes([first]))
    assert reader.next_frame() is None
    assert reader.begun
    assert reader.buffered == 1


@pytest.mark.parametrize(
    "data",
    [in_map(b"\xc1"), b"\x81\xc1", in_map(b"\x92\x01\xc1"), packed({"a": 1}) + b"\xc1"],
    ids=["value", "key", "in an array", "between frames"],
)
def test_the_byte_that_messagepack_never_uses_is_an_invalid_frame(data: bytes) -> None:
    assert isinstance(read([data])[1], InvalidFrame)


@pytest.mark.parametrize("key", [1, None, True, 1.5, b"id", -40, 2**40, 300])
def test_a_key_that_is_no_string_is_an_invalid_frame_before_the_rest_of_it_has_come(key: Any) -> None:
    for nest in (lambda head: head, in_map, lambda head: in_map(b"\x91" + head)):
        assert isinstance(error_of(nest(b"\x81" + packed(key)[:1])), InvalidFrame)


@pytest.mark.parametrize(
    "head", [b"\x80", b"\x90", b"\x91", b"\xdf" + GIBIBYTE, b"\xdd" + GIBIBYTE, b"\xc6" + GIBIBYTE]
)
def test_a_container_or_a_bin_as_a_key_is_an_invalid_frame(head: bytes) -> None:
    assert isinstance(error_of(b"\x81" + head), InvalidFrame)


@pytest.mark.parametrize(
    "text", [b"\xff", b"\xc3", b"\xc0\x80", b"\xe2\x82", b"\xf4\x90\x80\x80", b"\xed\xa0", b"\x80" * 9]
)
@pytest.mark.parametrize("padding", [0, 65_535, 65_536, 65_537, 131_070])
def test_bad_utf8_in_a_key_or_a_value_is_an_invalid_frame(text: bytes, padding: int) -> None:
    raw = b"x" * padding + text
    token = b"\xdb" + struct.pack(">I", len(raw)) + raw
    assert isinstance(read([in_map(token)])[1], InvalidFrame)
    assert isinstance(read([b"\x81" + token + b"\xc0"])[1], InvalidFrame)


@pytest.mark.parametrize("character", ["é", "€", "🐞"])
@pytest.mark.parametrize("padding", range(65_532, 65_538))
def test_a_character_over_the_edge_of_a_decoded_piece_is_no_fault(character: str, padding: int) -> None:
    assert fault_of(packed({"a": "x" * padding + character * 30_000})) is None


EXTENSIONS = [
    (b"\xc7\x03", 3), (b"\xc8\x00\x03", 3), (b"\xc9\x00\x00\x00\x03", 3),
    (b"\xd4", 1), (b"\xd5", 2), (b"\xd6", 4), (b"\xd7", 8), (b"\xd8", 16),
]  # fmt: skip


@pytest.mark.parametrize(("head", "length"), EXTENSIONS)
def test_an_extension_is_a_fault_with_its_path_unless_it_is_a_timestamp(head: bytes, length: int) -> None:
    for kind in range(256):
        fault = fault_of(in_map(head + bytes([kind]) + b"\xc1" * length))
        expected = Fault("$.a", "an extension of MessagePack other than its timestamp")
        assert fault == (None if kind == 0xFF else expected)


def test_an_extension_as_a_key_is_an_invalid_frame() -> None:
    assert isinstance(read([b"\x81\xd4\xff\x00\xc0"])[1], InvalidFrame)


@pytest.mark.parametrize("outer", [b"", b"\x81\xa1a", b"\x92", b"\x92\xc0", b"\x81\xa1a\x91\x82\xa1b\x01\xa1c"])
@pytest.mark.parametrize(
    "head", [b"\xdb", b"\xc6", b"\xdd", b"\xdf", b"\xc9"], ids=["str", "bin", "array", "map", "ext"]
)
def test_a_length_claim_of_a_gibibyte_is_refused_at_its_header(outer: bytes, head: bytes) -> None:
    error = error_of(in_map(outer + head + GIBIBYTE))
    assert isinstance(error, PayloadTooLarge)


@pytest.mark.parametrize("outer", [b"", in_map(b""), in_map(b"\x92\xc0")])
def test_a_key_that_claims_a_gibibyte_is_refused_at_its_header(outer: bytes) -> None:
    assert isinstance(error_of(outer + b"\x81\xdb" + GIBIBYTE), PayloadTooLarge)


def test_a_frame_whose_own_map_claims_a_gibibyte_of_pairs_is_refused_at_its_header() -> None:
    error = error_of(b"\xdf" + GIBIBYTE)
    assert isinstance(error, PayloadTooLarge)
    assert error.details["limit"] == "frame_bytes"
    assert error.details["maximum"] == MEBIBYTE


def test_a_length_is_refused_as_soon_as_its_first_bytes_are_over_the_limit() -> None:
    assert isinstance(error_of(in_map(b"\xdb\x40\x00\x00")), PayloadTooLarge)


def test_a_length_that_leaves_no_room_for_the_items_still_owed_is_refused_at_its_header() -> None:
    # 64 bytes: 4 of headers, 2 of the string's own header, 5 owed by the array: 53 are left.
    assert read([in_map(b"\x96\xd9\x35")], NARROW)[1] is None
    assert isinstance(error_of(in_map(b"\x96\xd9\x36"), NARROW), PayloadTooLarge)


def test_a_map_needs_room_for_a_key_and_a_value_of_each_pair() -> None:
    # 64 bytes: 3 of the frame's own header and key, 3 of the map's header: 29 pairs fit.
    assert read([in_map(b"\xde\x00\x1d")], NARROW)[1] is None
    assert isinstance(error_of(in_map(b"\xde\x00\x1e"), NARROW), PayloadTooLarge)


def test_what_follows_a_container_that_has_ended_may_fill_the_frame() -> None:
    data = b"\x83\xa1a\x92\x01\x91\x02\xa1b\xd9\x32" + b"x" * 50 + b"\xa1c\x03"
    assert len(data) == NARROW.frame_bytes
    assert read([data], NARROW) == ([Frame(data, None)], None)


@pytest.mark.parametrize("kind", ["str", "bin", "array", "map", "many small tokens"])
def test_a_frame_of_exactly_the_limit_passes_and_one_byte_more_does_not(kind: str) -> None:
    def frame(size: int) -> bytes:
        body = {
            "str": lambda: b"\xda" + struct.pack(">H", size - 6) + b"x" * (size - 6),
            "bin": lambda: b"\xc5" + struct.pack(">H", size - 6) + b"\xff" * (size - 6),
            "array": lambda: b"\xdc" + struct.pack(">H", size - 6) + b"\x80" * (size - 6),
            "map": lambda: b"\xde" + struct.pack(">H", (size - 6) // 4) + pairs(size - 6),
            "many small tokens": lambda: b"\xdc" + struct.pack(">H", (size - 6) // 3) + shorts(size - 6),
        }[kind]()
        return in_map(body)

    def pairs(size: int) -> bytes:
        keys = b"".join(b"\xa2%02d\x01" % i for i in range(size // 4))
        return keys[:-1] + b"\xcc\x01" if size % 4 else keys

    def shorts(size: int) -> bytes:
        return b"\xcd\x01\x01" * (size // 3 - 1) + (b"\xa3abc" if size % 3 else b"\xcd\x01\x01")

    size = 6 + 12 * 20
    assert len(frame(size)) == size
    assert len(frame(size + 1)) == size + 1
    limits = FrameLimits(frame_bytes=size, nesting=4)
    assert read([frame(size)] * 2, limits) == ([Frame(frame(size), None)] * 2, None)
    assert read(cut(frame(size) * 2, [7] * 60), limits) == ([Frame(frame(size), None)] * 2, None)
    error = error_of(frame(size + 1), limits)
    assert isinstance(error, PayloadTooLarge)
    assert error.details["limit"] == "frame_bytes"


@pytest.mark.parametrize(
    "innermost", [b"\x80", b"\x90", b"\x81\xa1b\xc0", b"\x91\xc0", b"\xdc\x00\x00", b"\xdf\0\0\0\0"]
)
def test_nesting_of_exactly_the_limit_passes_and_one_level_more_does_not(innermost: bytes) -> None:
    for level in (b"\x81\xa1a", b"\x91"):
        deepest = in_map(level * 2 + innermost)
        assert read([deepest], NARROW) == ([Frame(deepest, None)], None)
        error = error_of(in_map(level * 3 + innermost), NARROW)
        assert isinstance(error, PayloadTooLarge)
        assert error.details == {
            "what": "a frame's nesting", "limit": "nesting", "maximum": 4, "unit": "levels"
        }  # fmt: skip


def test_siblings_do_not_add_to_the_nesting() -> None:
    data = packed({"a": [[[]]] * 2, "b": {"c": {"d": {}}}, "e": [[], {}]})
    assert read([data], NARROW) == ([Frame(data, None)], None)


def text(raw: bytes) -> bytes:
    return bytes([0xA0 + len(raw)]) + raw


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"\x82\xa2id\x01\xa2id\x01", Fault("$.id", "duplicate key")),
        (
            b"\x82\xa2id\x01\xa4args\x82\xa5limit\x01\xa5limit\x02",
            Fault("$.args.limit", "duplicate key"),
        ),
        (in_map(b"\x92\x80\x82\xa1b\x01\xa1b\x02"), Fault("$.a[1].b", "duplicate key")),
        (in_map(text(b"\xed\xa0\x80")), Fault("$.a", "lone surrogate: the text is not valid Unicode")),
        (in_map(text(b"\xed\xa0\xbd\xed\xb2\xa9")), Fault("$.a", "lone surrogate: the text is not valid Unicode")),
        (
            b"\x81" + text(b"x\xed\xbf\xbf") + b"\x01",
            Fault('$["x\\\\xed\\\\xbf\\\\xbf"]', "lone surrogate: the text is not valid Unicode"),
        ),
        (packed({"a": {"b": [1, [2, math.nan]]}}), Fault("$.a.b[1][1]", "number that is not finite")),
        (packed({"a": math.inf}), Fault("$.a", "number that is not finite")),
        (packed({"a": -math.inf}), Fault("$.a", "number that is not finite")),
        (in_map(b"\xca\x7f\xc0\x00\x00"), Fault("$.a", "number that is not finite")),
        (in_map(b"\xca\xff\x80\x00\x00"), Fault("$.a", "number that is not finite")),
        (packed({"args": {"limit": 2**63}}), Fault("$.args.limit", "integer beyond signed 64 bits")),
        (packed({"args": {"limit": 2**64 - 1}}), Fault("$.args.limit", "integer beyond signed 64 bits")),
        (packed({"a b": [math.nan]}), Fault('$["a b"][0]', "number that is not finite")),
        (packed({'"': math.nan}), Fault('$["\\""]', "number that is not finite")),
        (packed({"": math.nan}), Fault('$[""]', "number that is not finite")),
        (packed({"größe": math.nan}), Fault("$.größe", "number that is not finite")),
    ],
)
def test_a_fault_of_one_request_names_its_place_and_the_stream_goes_on(data: bytes, fault: Fault) -> None:
    assert fault_of(data) == fault
    assert read(cut(data, [1] * len(data))) == ([Frame(data, fault)], None)


def test_the_first_fault_in_the_order_of_the_bytes_is_the_one_told() -> None:
    assert fault_of(packed({"a": 1, "b": [2**63], "c": math.nan})) == Fault("$.b[0]", "integer beyond signed 64 bits")


def test_a_fault_does_not_hide_that_the_frame_is_broken_further_on() -> None:
    assert isinstance(error_of(b"\x82\xa1a\xcb\x7f\xf8" + bytes(6) + b"\xa1b\xc1"), InvalidFrame)


@pytest.mark.parametrize("value", [2**63 - 1, -(2**63), 1.7976931348623157e308, 5e-324, -0.0])
def test_the_outermost_numbers_that_are_allowed_are_no_fault(value: float) -> None:
    assert fault_of(packed({"a": value})) is None


def test_the_largest_single_precision_number_and_a_small_uint64_are_no_fault() -> None:
    assert fault_of(in_map(b"\xca\x7f\x7f\xff\xff")) is None
    assert fault_of(in_map(b"\xcf\x7f" + b"\xff" * 7)) is None


def test_the_same_key_in_two_maps_is_no_duplicate() -> None:
    assert fault_of(packed({"a": {"a": [{"a": 1}, {"a": 1}]}, "b": {"a": 1}})) is None


def test_a_key_written_with_another_header_is_still_a_duplicate() -> None:
    assert fault_of(b"\x82\xa1a\x01\xd9\x01a\x02") == Fault("$.a", "duplicate key")


def test_a_very_long_key_is_cut_in_the_path() -> None:
    fault = fault_of(packed({"é" * 50_000: math.nan}))
    assert fault is not None
    assert fault.path == '$["' + "é" * 32 + '…"]'


@pytest.mark.parametrize("count", [1023, 1024, 1025, 5000])
def test_a_map_of_many_different_keys_has_no_fault(count: int) -> None:
    assert fault_of(packed({"args": {str(i): i for i in range(count)}})) is None


@pytest.mark.parametrize(("first", "second"), [(0, 1), (0, 4999), (1023, 1024), (4000, 4100), (3, 1500)])
@pytest.mark.parametrize(("before", "path"), [(b"", "$"), (b"\x81\xa1a", "$.a"), (b"\x81\xa1a\x91", "$.a[0]")])
def test_a_duplicate_in_a_map_of_thousands_of_keys_is_found_wherever_it_stands(
    first: int, second: int, before: bytes, path: str
) -> None:
    keys = [str(i) for i in range(5000)]
    keys[second] = keys[first]
    data = before + b"\xde" + struct.pack(">H", len(keys)) + b"".join(packed(key) + b"\xc0" for key in keys)
    in_one_run = first // 1024 == second // 1024
    assert fault_of(data) == Fault(f'{path}["{first}"]' if in_one_run else path, "duplicate key")


def test_several_frames_in_one_chunk_come_one_by_one_and_the_rest_is_kept() -> None:
    first, second, third = packed({"id": 1}), packed({"id": 2}), packed({"id": 3})
    reader = FrameReader(ROOMY)
    reader.feed(first + second + third[:2])
    assert reader.next_frame() == Frame(first, None)
    assert reader.buffered == len(second) + 2
    assert reader.next_frame() == Frame(second, None)
    assert reader.next_frame() is None
    assert reader.begun
    reader.feed(third[2:] + first)
    assert reader.next_frame() == Frame(third, None)
    assert reader.next_frame() == Frame(first, None)
    assert reader.next_frame() is None
    assert not reader.begun
    assert reader.buffered == 0


def test_a_frame_in_the_middle_of_a_chunk_has_the_whole_limit_to_itself() -> None:
    full = in_map(b"\xd9\x3b" + b"x" * 59)
    assert len(full) == NARROW.frame_bytes
    small = packed({"id": 1})
    frames, error = read([small + full[:10], full[10:] + full + small], NARROW)
    assert error is None
    assert [frame.data for frame in frames] == [small, full, full, small]


def test_a_frame_that_began_in_the_middle_of_a_chunk_has_no_more_than_the_limit() -> None:
    small, over = packed({"id": 1}), in_map(b"\x91\xd9\x3b" + b"x" * 59)
    assert len(over) == NARROW.frame_bytes + 1
    frames, error = read([small + over[:4], over[4:]], NARROW)
    assert frames == [Frame(small, None)]
    assert isinstance(error, PayloadTooLarge)


def test_a_new_reader_and_an_empty_chunk_have_nothing_to_give() -> None:
    reader = FrameReader(ROOMY)
    assert reader.next_frame() is None
    reader.feed(b"")
    assert reader.next_frame() is None
    assert not reader.begun


def test_after_a_refusal_the_reader_gives_the_same_refusal_again() -> None:
    reader = FrameReader(ROOMY)
    reader.feed(b"\x81\xa1a\x92\x01\xc1" + packed({"id": 1}))
    for _ in range(3):
        with pytest.raises(InvalidFrame, match="c1"):
            reader.next_frame()


def distinct_keys(count: int) -> bytes:
    """`count` different keys of three characters, each with nil: 5 bytes a pair."""
    return b"".join(
        b"\xa3" + bytes((0x20 + i % 64, 0x20 + i // 64 % 64, 0x20 + i // 4096)) + b"\xc0" for i in range(count)
    )


def hostile(shape: str, size: int) -> bytes:
    """A frame that just fits `size` bytes."""
    room = size - 400
    if shape == "empty maps":
        return in_map(b"\xdd" + struct.pack(">I", room) + b"\x80" * room)
    if shape == "arrays of one":
        return in_map(b"\xdd" + struct.pack(">I", room // 2) + b"\x91\xc0" * (room // 2))
    if shape == "one map of keys":
        return b"\xdf" + struct.pack(">I", room // 5) + distinct_keys(room // 5)
    if shape.startswith("open maps"):
        # In 32 levels, as many keys as exact sets are kept for, or as many as the frame holds.
        count = min(room // 5 // 31, 1023 if shape == "open maps of some keys" else room)
        return (b"\xdf" + struct.pack(">I", count + 1) + distinct_keys(count) + b"\xa1z") * 31 + b"\x80"
    if shape == "surrogates":
        return in_map(b"\xdb" + struct.pack(">I", room // 3 * 3) + b"\xed\xa0\x80" * (room // 3))
    assert shape == "one long key"
    key = "🐞".encode() + b"x" * room
    return b"\x81\xdb" + struct.pack(">I", len(key)) + key + b"\xc0"


@pytest.mark.parametrize(
    ("shape", "size"),
    [
        ("empty maps", MEBIBYTE // 8),
        pytest.param("empty maps", MEBIBYTE, marks=pytest.mark.slow),
        ("arrays of one", MEBIBYTE // 8),
        ("one map of keys", MEBIBYTE // 8),
        ("open maps of some keys", MEBIBYTE // 4),
        ("open maps of many keys", MEBIBYTE // 8),
        pytest.param("open maps of many keys", MEBIBYTE, marks=pytest.mark.slow),
        ("surrogates", MEBIBYTE),
        ("one long key", MEBIBYTE),
    ],
)
def test_a_hostile_frame_costs_a_few_times_its_bytes(shape: str, size: int) -> None:
    data = hostile(shape, size)
    assert size * 0.98 < len(data) <= size or shape == "open maps of some keys"
    chunks = [data[at : at + 65_536] for at in range(0, len(data), 65_536)]
    tracemalloc.start()
    try:
        frames, error = read(chunks, FrameLimits(frame_bytes=size, nesting=32))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert error is None
    assert [frame.data for frame in frames] == [data]
    assert peak < 2 * MEBIBYTE + 4 * size
