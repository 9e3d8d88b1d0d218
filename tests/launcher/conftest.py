"""The launcher, compiled once a session, and one files around it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.launcher.packed import HERE, LAUNCHER, Maker, Packed

COMPILER = os.environ.get("CC", "gcc")
WANTS_ZSTD = "#include <zstd.h>\nint main(void) { return ZSTD_versionNumber() == 0; }\n"


def need_compiler() -> None:
    """Skip where the launcher cannot be compiled for want of a tool or library."""
    pytest.importorskip("zstandard", reason="the packer needs the package zstandard")
    if shutil.which(COMPILER) is None:
        pytest.skip(f"there is no C compiler {COMPILER}")
    probe = [COMPILER, "-static", "-x", "c", "-o", os.devnull, "-", "-lzstd"]
    if subprocess.run(probe, input=WANTS_ZSTD, text=True, capture_output=True).returncode != 0:
        pytest.skip("there is no static C library or libzstd.a; on Debian: apt-get install libc6-dev libzstd-dev")


def compiled(*words: str | Path) -> None:
    subprocess.run([COMPILER, "-std=c11", "-D_GNU_SOURCE", "-O1", "-Wall", "-Werror", *words], check=True)


@pytest.fixture(scope="session")
def launcher(tmp_path_factory: pytest.TempPathFactory) -> Path:
    need_compiler()
    made = tmp_path_factory.mktemp("launcher") / "launcher.bin"
    subprocess.run(["sh", LAUNCHER / "build.sh", "--test", made], check=True)
    return made


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    need_compiler()
    made = tmp_path_factory.mktemp("program") / "beetle"
    compiled("-static", "-s", "-o", made, HERE / "program.c")
    return made.read_bytes()


@pytest.fixture(scope="session")
def one(tmp_path_factory: pytest.TempPathFactory, launcher: Path, program: bytes) -> Packed:
    """One file, made once; nobody changes it."""
    return Maker(tmp_path_factory.mktemp("one"), launcher, program).pack()


@pytest.fixture
def maker(tmp_path: Path, launcher: Path, program: bytes) -> Maker:
    return Maker(tmp_path, launcher, program)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A cache of the test's own, not yet made."""
    return tmp_path / "cache"


@pytest.fixture
def env(place: Path) -> dict[str, str]:
    return {"BEETLE_CACHE": str(place)}


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small file system of memory, if this user may mount one. Its size is 24 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=24m,mode=755", "none", folder]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("this user may not mount a file system")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)
