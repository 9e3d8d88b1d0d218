"""The C library that a build needs is looked for before anything is unpacked."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.launcher.packed import TRAILER, Maker, Packed, assert_failed, flipped, left, said, start
from tests.running import ROOT

HERE = os.confstr("CS_GNU_LIBC_VERSION") if "CS_GNU_LIBC_VERSION" in os.confstr_names else None
"""The version of this system's library: `glibc 2.36`."""
needs_glibc = pytest.mark.skipif(HERE is None, reason="this system has another C library")
LOADERS = ("lib64/ld-linux-x86-64.so.2", "lib/ld-linux-aarch64.so.1", "lib/ld-linux-armhf.so.3")
IN_ROOT = """
mount -t proc proc "$1/proc" && exec env -i BEETLE_CACHE=/cache "$(command -v chroot)" "$1" /one
"""


def here() -> tuple[int, int]:
    assert HERE is not None
    major, minor = HERE.split()[1].split(".")[:2]
    return int(major), int(minor)


@needs_glibc
def test_too_old_a_library_is_told_with_both_versions_before_anything_is_unpacked(
    maker: Maker, env: dict[str, str], place: Path
) -> None:
    major, minor = here()
    for needed in ((major, minor + 1), (major + 1, 0)):
        file = maker.pack(f"one-{needed[1]}", libc=needed).file
        text = f"it needs glibc {needed[0]}.{needed[1]} or newer, and {HERE} is there"
        ended = start(file, env=env)
        assert_failed(ended, 126, text)
        assert "take a newer system" in ended.stderr
        assert not place.exists()


@needs_glibc
def test_a_library_that_is_new_enough_will_do(maker: Maker, env: dict[str, str]) -> None:
    major, minor = here()
    for needed in ((major, minor), (major, minor - 1), (major - 1, minor + 9)):
        assert said(start(maker.pack(f"one-{needed}", libc=needed).file, env=env).stdout).pid


@needs_glibc
def test_what_is_unpacked_already_is_run_without_a_look_at_the_library(maker: Maker, env: dict[str, str]) -> None:
    assert said(start(maker.pack("one").file, env=env).stdout).pid
    assert said(start(maker.pack("again", libc=(99, 0)).file, env=env).stdout).pid


@needs_glibc
def test_a_changed_bit_of_the_version_is_damage(maker: Maker, env: dict[str, str], place: Path) -> None:
    data = maker.pack("one", libc=here()).file.read_bytes()
    for at in range(112, 120):
        spoilt = maker.folder / f"spoilt-{at}"
        spoilt.write_bytes(flipped(data, len(data) - TRAILER + at, 6))
        spoilt.chmod(0o755)
        assert_failed(start(spoilt, env=env), 9, "damaged file")
        assert left(place) == []


def start_in(root: Path, one: Packed) -> subprocess.CompletedProcess[str]:
    """Start a one file in a root of its own."""
    for folder in ("proc", "cache"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    (root / "cache").chmod(0o755)
    (root / "one").write_bytes(one.file.read_bytes())
    (root / "one").chmod(0o755)
    words = ["unshare", "--mount", "sh", "-c", IN_ROOT, "sh", root]
    return subprocess.run(words, capture_output=True, text=True, timeout=60)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Where another system may stand, if this user may change into it."""
    probe = ["unshare", "--mount", "true"]
    if os.geteuid() != 0 or subprocess.run(probe, capture_output=True).returncode != 0:
        pytest.skip("this user may not change into another root")
    return tmp_path / "root"


def test_in_an_older_system_its_version_is_told(maker: Maker, root: Path) -> None:
    for each in LOADERS:
        (root / each).parent.mkdir(parents=True, exist_ok=True)
        (root / each).touch()
        library = (root / each).with_name("libc.so.6")
        library.write_bytes(b"\x7fELF" + bytes(5000) + b"GNU C Library (Old 2.17-1) stable release version 2.17.\n\0")
    one = maker.pack("one", libc=(2, 31))
    assert_failed(start_in(root, one), 126, "it needs glibc 2.31 or newer, and glibc 2.17 is there")
    assert left(root / "cache") == []
    for each in LOADERS:  # who cannot tell its version is not refused
        (root / each).with_name("libc.so.6").write_bytes(b"\x7fELF release version unknown")
    assert said(start_in(root, one).stdout).pid


def test_in_a_system_without_the_library_that_is_told(maker: Maker, root: Path) -> None:
    one = maker.pack("one", libc=(2, 31))
    assert_failed(start_in(root, one), 126, "it needs glibc 2.31 or newer, and there is none")
    assert left(root / "cache") == []


@pytest.mark.parametrize("page", ["README.md", "docs/install.md"])
def test_the_pages_say_which_system_processor_and_library_a_build_needs(page: str) -> None:
    words = (ROOT / page).read_text()
    assert all(each in words for each in ("Linux", "processor", "x86_64", "glibc"))
