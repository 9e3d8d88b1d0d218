"""Payloads with random changes and a right digest: nothing in them may be written outside their own tree."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.launcher.packed import LAUNCHER, Maker, flipped, left, start, tar_of

zstandard = pytest.importorskip("zstandard")

ENTRIES = (
    ("_internal", b"5", ""),
    ("_internal/a", b"0", ""),
    ("_internal/b", b"2", "a"),
    ("_internal/c", b"5", ""),
    ("_internal/c/d", b"2", "../a"),
    ("beetle", b"0", ""),
)
INTERESTING = b"/.\0 07531ab\x80\xff"
TOUCHED = [*range(16), *range(100, 108), *range(124, 136), *range(156, 172), *range(257, 266), 345, 346]
"""Bytes of a header: name, mode, size, type and link, magic, prefix."""
CODES = {0, 9, 126}
SANITIZED = {"ASAN_OPTIONS": "exitcode=99", "UBSAN_OPTIONS": "exitcode=99:halt_on_error=1"}


def mutated(tar: bytes, chance: random.Random) -> bytes:
    """A tar with a few changed bytes in one header, whose checksum is then mostly put right."""
    changed = bytearray(tar)
    header = chance.choice([at for at in range(0, len(tar), 512) if tar[at + 257 : at + 262] == b"ustar"])
    for _ in range(chance.randrange(1, 5)):
        at = chance.choice(TOUCHED)
        changed[header + at] = chance.choice([*INTERESTING, chance.randrange(256)])
    if chance.random() < 0.9:
        changed[header + 148 : header + 156] = b" " * 8
        changed[header + 148 : header + 156] = b"%06o\0 " % sum(changed[header : header + 512])
    return bytes(changed)


def assert_contained(file: Path, maker: Maker, place: Path, env: dict[str, str]) -> int:
    """Start a file that may hold anything: it ends as agreed and touches nothing but its place. Its exit code."""
    outside = sorted(os.listdir(maker.folder))
    ended = subprocess.run([file], env=env, capture_output=True, timeout=60)
    assert ended.returncode in CODES, ended
    assert sorted(os.listdir(maker.folder)) in (outside, sorted([*outside, place.name]))
    assert left(place) in ([], ["1.0.0-0123456789ab"])
    assert ended.returncode != 9 or left(place) == []
    shutil.rmtree(place, ignore_errors=True)
    return ended.returncode


def run_mutations(maker: Maker, place: Path, env: dict[str, str], count: int) -> None:
    program = b"#!/bin/sh\n" + b"# " * 400
    tar, size, entries = tar_of(*ENTRIES, content=program)
    frame = zstandard.ZstdCompressor(level=1).compress
    chance = random.Random(7)
    codes = []
    for _ in range(count):
        payload = frame(mutated(tar, chance))
        if chance.random() < 0.2:
            payload = flipped(payload, chance.randrange(len(payload)), chance.randrange(8))
        file = maker.by_hand("mutated", b"", size=size, entries=entries, payload=payload)
        codes.append(assert_contained(file, maker, place, env))
    assert codes.count(9) > count // 2 and 0 in codes


@pytest.fixture(scope="session")
def sanitized(tmp_path_factory: pytest.TempPathFactory, program: bytes) -> Path:
    """The launcher with the compiler's sanitizers, which end it with 99."""
    assert program
    made = tmp_path_factory.mktemp("sanitized") / "launcher"
    if subprocess.run(["sh", LAUNCHER / "build.sh", "--sanitize", made], capture_output=True).returncode != 0:
        pytest.skip("this compiler has no sanitizers, or there is no shared libzstd")
    return made


@pytest.fixture
def sanitizing(tmp_path: Path, sanitized: Path, program: bytes) -> Maker:
    return Maker(tmp_path, sanitized, program)


def test_mutated_payloads_stay_in_their_place(maker: Maker, place: Path, env: dict[str, str]) -> None:
    run_mutations(maker, place, env, count=200)


def test_mutated_payloads_find_no_fault_under_sanitizers(sanitizing: Maker, place: Path, env: dict[str, str]) -> None:
    run_mutations(sanitizing, place, {**env, **SANITIZED}, count=60)


@pytest.mark.slow
def test_many_mutated_payloads_find_no_fault_under_sanitizers(
    sanitizing: Maker, place: Path, env: dict[str, str]
) -> None:
    run_mutations(sanitizing, place, {**env, **SANITIZED}, count=5000)


def test_changed_trailers_and_files_cut_short_find_no_fault_under_sanitizers(
    sanitizing: Maker, place: Path, env: dict[str, str]
) -> None:
    made = sanitizing.pack()
    data, file = made.file.read_bytes(), sanitizing.folder / "changed"
    chance = random.Random(7)
    changes = [flipped(data, len(data) - 192 + at, at % 8) for at in range(0, 192, 5)]
    changes += [data[: len(data) - chance.randrange(1, 2000)] for _ in range(20)]
    for each in changes:
        file.unlink(missing_ok=True)
        file.write_bytes(each)
        file.chmod(0o755)
        assert start(file, env={**env, **SANITIZED}).returncode == 9
        assert left(place) == []


def test_a_whole_life_finds_no_fault_under_sanitizers(sanitizing: Maker, place: Path, env: dict[str, str]) -> None:
    checked = {**env, **SANITIZED}
    old, new, newer = (sanitizing.pack(f"one-{each}", version=f"1.0.{each}") for each in range(3))
    for each, there in ((old, {old}), (new, {old, new}), (new, {old, new}), (newer, {new, newer}), (old, {newer, old})):
        assert start(each.file, env=checked).returncode == 0
        assert left(place) == sorted(other.name for other in there)
    place.chmod(0o777)
    assert start(old.file, env=checked).returncode == 126
