"""Files that are not what was packed, and files that no packer would write."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.launcher.packed import TRAILER, Maker, Packed, assert_failed, flipped, left, said, start, tar_of

zstandard = pytest.importorskip("zstandard")

FILE, FOLDER, LINK = b"0", b"5", b"2"
PROGRAM = ("beetle", FILE, "")


def assert_refused(file: Path, data: bytes, place: Path) -> None:
    """The file with these bytes says that it is damaged, and leaves nothing."""
    file.unlink(missing_ok=True)
    file.write_bytes(data)
    file.chmod(0o755)
    assert_failed(start(file, env={"BEETLE_CACHE": str(place)}), 9, f"damaged file: {file}: ")
    assert left(place) == []


def test_a_changed_bit_in_any_byte_of_the_trailer_is_found(one: Packed, tmp_path: Path, place: Path) -> None:
    data = one.file.read_bytes()
    for at in range(TRAILER):
        assert_refused(tmp_path / "spoilt", flipped(data, len(data) - TRAILER + at, at * 5 % 8), place)


def test_a_changed_bit_in_the_high_bytes_of_a_number_is_not_taken_for_a_full_disk(
    one: Packed, tmp_path: Path, place: Path
) -> None:
    data = one.file.read_bytes()
    for field in (80, 88, 96, 104):
        for bit in range(64):
            at = len(data) - TRAILER + field + bit // 8
            assert_refused(tmp_path / "spoilt", flipped(data, at, bit % 8), place)


def test_a_changed_bit_in_the_payload_is_found(one: Packed, launcher: Path, tmp_path: Path, place: Path) -> None:
    data = one.file.read_bytes()
    begin, end = launcher.stat().st_size, len(data) - TRAILER
    for number, at in enumerate([*range(begin, begin + 24), *range(begin, end, (end - begin) // 150), end - 1]):
        assert_refused(tmp_path / "spoilt", flipped(data, at, number % 8), place)


@pytest.mark.parametrize("text", [b"and the next start unpacks it again", b"mounted noexec", b"mount /proc"])
def test_a_changed_bit_in_the_launcher_is_found(one: Packed, tmp_path: Path, place: Path, text: bytes) -> None:
    data = one.file.read_bytes()
    assert data.count(text) == 1
    assert_refused(tmp_path / "spoilt", flipped(data, data.index(text) + 3, 0), place)


def test_a_file_that_is_cut_short_is_found(one: Packed, launcher: Path, tmp_path: Path, place: Path) -> None:
    data, begin = one.file.read_bytes(), launcher.stat().st_size
    middle = (begin + len(data)) // 2
    for size in (len(data) - 1, len(data) - 64, len(data) - TRAILER, middle, begin + 192, begin + 1, begin):
        assert_refused(tmp_path / "spoilt", data[:size], place)


def test_a_file_with_something_appended_is_found(one: Packed, tmp_path: Path, place: Path) -> None:
    data = one.file.read_bytes()
    for more in (b"\n", bytes(TRAILER), data[-TRAILER:]):
        assert_refused(tmp_path / "spoilt", data + more, place)


def test_a_damaged_file_runs_the_tree_that_is_already_there(
    one: Packed, env: dict[str, str], place: Path, tmp_path: Path
) -> None:
    start(one.file, env=env)
    data, spoilt = one.file.read_bytes(), tmp_path / "spoilt"
    spoilt.write_bytes(flipped(data, len(data) - TRAILER - 100, 3))
    spoilt.chmod(0o755)
    assert said(start(spoilt, env=env).stdout).exe == str(place / one.name / "beetle")


def test_a_damaged_file_on_a_full_disk_is_called_damaged(maker: Maker, disk: Path) -> None:
    made = maker.pack(files={"_internal/large": bytes(30 << 20)})
    data = made.file.read_bytes()
    assert_refused(maker.folder / "spoilt", flipped(data, len(data) - TRAILER - 100, 3), disk / "cache")


@pytest.mark.parametrize(
    "entries",
    [
        [("/beetle", FILE, "")],
        [("../beetle", FILE, "")],
        [("a", FOLDER, ""), ("a/../../beetle", FILE, "")],
        [("a", FOLDER, ""), ("a/./beetle", FILE, "")],
        [("a", FOLDER, ""), ("a//beetle", FILE, "")],
        [("..", FOLDER, "")],
        [(".", FOLDER, "")],
        [("a\x01b", FILE, "")],
        [("d/" * 32 + "deep", FILE, "")],
        [PROGRAM, PROGRAM],
        [("a", FOLDER, ""), ("a", FOLDER, "")],
        [("a", FILE, ""), ("a/b", FILE, "")],
        [("a", LINK, "/etc")],
        [("a", LINK, "..")],
        [("a", LINK, "")],
        [("a", LINK, ".")],
        [("a", FOLDER, ""), ("a/b", LINK, "../../x")],
        [("a", FOLDER, ""), ("a/b", LINK, "c/../../../x")],
        [("a", FOLDER, ""), ("a/b", LINK, "../a/../..")],
        [("a", FOLDER, ""), ("b", LINK, "a"), ("b/c", FILE, "")],
        [("b", LINK, "outside"), ("b", FILE, "")],
        [("a", b"1", "beetle")],
        [("a", b"3", "")],
        [("a", b"6", "")],
        [("a", b"x", "")],
        [("a", b"L", "")],
    ],
    ids=lambda entries: " ".join(f"{name}{kind.decode()}{target}" for name, kind, target in entries)[:40],
)
def test_a_payload_that_no_packer_writes_is_refused_though_its_digest_is_right(
    maker: Maker, env: dict[str, str], place: Path, entries: list[tuple[str, bytes, str]]
) -> None:
    tar, size, count = tar_of(*entries)
    file = maker.by_hand("hostile", tar, size=size, entries=count)
    before = sorted(os.listdir(maker.folder))
    assert_failed(start(file, env=env), 9, "in its payload: ")
    assert left(place) == []
    assert sorted(os.listdir(maker.folder)) in (before, sorted([*before, place.name]))


def good(maker: Maker) -> tuple[bytes, int, int]:
    """A payload that is taken: a folder, a program, a link."""
    return tar_of(("a", FOLDER, ""), ("a/b", LINK, "../beetle"), PROGRAM, content=maker.program)


def test_a_payload_made_by_hand_as_the_packer_makes_it_is_taken(maker: Maker, env: dict[str, str]) -> None:
    tar, size, count = good(maker)
    assert said(start(maker.by_hand("good", tar, size=size, entries=count), env=env).stdout).pid


@pytest.mark.parametrize(("more_bytes", "more_entries"), [(1, 0), (-1, 0), (0, 1), (0, -1)])
def test_a_trailer_that_promises_more_or_less_than_the_payload_holds_is_refused(
    maker: Maker, env: dict[str, str], place: Path, more_bytes: int, more_entries: int
) -> None:
    tar, size, count = good(maker)
    file = maker.by_hand("hostile", tar, size=size + more_bytes, entries=count + more_entries)
    assert_failed(start(file, env=env), 9, "the trailer says")
    assert left(place) == []


def other_payloads(tar: bytes) -> dict[str, bytes]:
    """Payloads that are not one complete frame of zstd with one complete tar in it."""
    frame = zstandard.ZstdCompressor(level=1, write_checksum=True).compress
    wide = zstandard.ZstdCompressionParameters(window_log=27, write_content_size=False)
    wide_frame = zstandard.ZstdCompressor(compression_params=wide).compressobj()
    no_mode, bad_sum = bytearray(tar), bytearray(tar)
    no_mode[100:107] = b"0000666"
    bad_sum[148] ^= 1
    return {
        "nothing": b"",
        "no zstd": os.urandom(1000),
        "no tar": frame(os.urandom(5000)),
        "not compressed": tar,
        "two frames": frame(tar) + frame(tar),
        "a frame and a byte": frame(tar) + b"x",
        "half a frame": frame(tar)[:-100],
        "no checksum at its end": frame(tar)[:-4],
        "a wide window": wide_frame.compress(tar + bytes(64 << 20)) + wide_frame.flush(),
        "half a tar": frame(tar[: len(tar) // 2]),
        "a tar without an end": frame(tar[: len(tar) // 512 * 512].rstrip(b"\0") + bytes(100)),
        "no end blocks": frame(tar[:512]),
        "two tars": frame(tar + tar),
        "a mode of its own": frame(bytes(no_mode)),
        "a wrong sum": frame(bytes(bad_sum)),
        "a long end": frame(tar + bytes(64 << 20)),
    }


def test_a_payload_that_is_not_one_tar_in_one_frame_is_refused(maker: Maker, env: dict[str, str], place: Path) -> None:
    tar, size, count = good(maker)
    for what, payload in other_payloads(tar).items():
        file = maker.by_hand("hostile", tar, size=size, entries=count, payload=payload)
        ended = start(file, env=env)
        assert (ended.returncode, ended.stdout) == (9, ""), (what, ended)
        assert left(place) == [], what
