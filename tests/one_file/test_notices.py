"""NOTICES of the built tree: each library, package and Go module in it has its entry. Skipped without a build."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from beetle.deploy.manifest import read_manifest
from tests.built import ROOT, TREE, need_build

RULE = "=" * 100


@pytest.fixture(scope="module")
def notices() -> dict[str, str]:
    """The entries: a title without its version, and its text."""
    need_build()
    parts = re.split(f"^{RULE}\n(.+)\n{RULE}$", (TREE / "_internal/NOTICES").read_text(), flags=re.MULTILINE)
    return {re.sub(r" \S+$", "", title): text for title, text in zip(parts[1::2], parts[2::2], strict=True)}


def title_of(path: str) -> str:
    """The entry that speaks of a file with machine code: by where it stands."""
    folders, name = path.split("/")[:-1], path.rpartition("/")[2]
    if folders == ["_internal"] and name.startswith("lib"):
        return name.partition(".so")[0]
    if folders[:2] in (["_internal", "libc"], ["_internal", "python3.11"]):
        return {"libc": "glibc", "python3.11": "Python"}[folders[1]]
    alone = {"beetle": "glibc", "litestream": "litestream", "_internal/interpreter": "Python"}
    return alone.get(path) or {"_cffi_backend": "cffi"}.get(name.partition(".")[0]) or folders[1]


def test_each_file_with_machine_code_has_an_entry_with_its_terms(notices: dict[str, str]) -> None:
    entries = read_manifest(str(TREE / "MANIFEST")).entries
    code = [each.path for each in entries if each.target is None and starts_as_elf(TREE / each.path)]
    assert len(code) > 25
    assert [path for path in code if title_of(path) not in notices] == []
    for title in {title_of(path) for path in code} | {"SQLite", "in cryptography", "textual", "urllib3"}:
        assert len(notices[title]) > 100, title
    for title in ("glibc", "libgcc_s", "libcrypto", "Python"):
        assert "https://snapshot.debian.org/package/" in notices[title] or "from the build machine" in notices[title]
    assert "openssl 4." in notices["in cryptography"], "the library inside of another is named with its version"


def starts_as_elf(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def test_each_go_module_of_litestream_has_its_text(notices: dict[str, str]) -> None:
    said = re.findall(rb"\ndep\t(\S+)\t(\S+)", (TREE / "litestream").read_bytes())
    modules = {f"{path.decode()} {version.decode()}" for path, version in said}
    assert len(modules) > 80
    blocks = [each.partition("\n\n") for each in notices["litestream"].split("-" * 100 + "\n")]
    assert modules <= {name for names, _, text in blocks if len(text) > 400 for name in names.splitlines()}
    assert "Go's runtime and standard library" in notices["litestream"]


def test_what_is_in_the_tree_without_an_entry_is_named(tmp_path: Path, notices: dict[str, str]) -> None:
    inside = tmp_path / "_internal"
    inside.mkdir()
    (tmp_path / "beetle").symlink_to(TREE / "beetle")
    for each in (TREE / "_internal").iterdir():
        (inside / each.name).symlink_to(each)
    (inside / "libmore.so.1").touch()
    (inside / "another").mkdir()
    (inside / "NOTICES").unlink()
    heads = re.compile(f"^{RULE}\n(cffi|libz|urllib3)( .+)?\n{RULE}$", re.MULTILINE)
    (inside / "NOTICES").write_text(heads.sub("", (TREE / "_internal/NOTICES").read_text()))
    command = [ROOT / "build/venv/bin/python", ROOT / "packaging/notices.py", "--check", tmp_path]
    said = subprocess.run(command, capture_output=True, text=True, timeout=60)
    named = re.findall(r": (\S+) has no entry in NOTICES$", said.stderr, re.MULTILINE)
    assert (said.returncode, sorted(named)) == (1, ["_cffi_backend", "another", "libmore", "libz", "urllib3"])
