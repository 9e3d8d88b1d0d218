"""The packer and the compiler: the same bytes each time, and nothing packed that the launcher would refuse."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.launcher.conftest import compiled
from tests.launcher.packed import FILES, HERE, LAUNCHER, TRAILER, Maker, Packed, said, start


def test_compiling_twice_gives_the_same_bytes_wherever_the_source_stands(launcher: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(LAUNCHER, tmp_path / "another folder/launcher")
    subprocess.run(["sh", copy / "build.sh", "again.bin"], check=True, cwd=tmp_path)
    assert (tmp_path / "again.bin").read_bytes() == launcher.read_bytes()


def test_packing_twice_gives_the_same_bytes_whatever_the_times_and_the_umask(maker: Maker) -> None:
    first = maker.pack("first")
    before = os.umask(0o77)
    try:
        again = maker.pack("again", files=dict(reversed(list(FILES.items()))))
    finally:
        os.umask(before)
    for path in again.tree.rglob("*"):
        os.utime(path, (1, 1), follow_symlinks=False)
    maker.onefile.pack(again.tree, maker.launcher, again.file)
    assert again.file.read_bytes() == first.file.read_bytes()
    assert again.file.stat().st_mode & 0o777 == 0o755


def test_the_trailer_says_what_is_in_the_file(one: Packed, launcher: Path, maker: Maker) -> None:
    data = one.file.read_bytes()
    magic, name, offset, size, unpacked, entries = maker.onefile.HEAD.unpack(data[-TRAILER:-64])
    assert (magic, name.rstrip(b"\0").decode()) == (b"beetle-one-file\0", one.name)
    assert data[:offset] == launcher.read_bytes()
    assert offset + size + TRAILER == len(data)
    inside = list(one.tree.rglob("*"))
    assert unpacked == sum(each.stat().st_size for each in inside if each.is_file() and not each.is_symlink())
    assert entries == len(inside)
    assert data[-64:] == hashlib.blake2b(data[:-64]).digest()


def test_a_draft_holds_the_same_tree_in_more_bytes(maker: Maker, env: dict[str, str]) -> None:
    one = maker.pack("one")
    draft = maker.folder / "draft"
    assert maker.onefile.main(["--draft", str(one.tree), str(maker.launcher), str(draft)]) == 0
    assert maker.onefile.HEAD.unpack(draft.read_bytes()[-TRAILER:-64])[1].rstrip(b"\0").decode() == one.name
    assert said(start(draft, env=env).stdout).exe.endswith(f"/{one.name}/beetle")
    assert maker.onefile.main(["--drafty", str(one.tree), str(maker.launcher), str(draft)]) == 2


def spoil_content(tree: Path) -> None:
    (tree / "_internal/data/text").write_bytes(b"TEXT\n" * 1000)


def add_a_file(tree: Path) -> None:
    (tree / "_internal/more").touch()


def remove_a_file(tree: Path) -> None:
    (tree / "_internal/data/text").unlink()


def change_a_mode(tree: Path) -> None:
    (tree / "_internal/data/text").chmod(0o600)


def remove_the_manifest(tree: Path) -> None:
    (tree / "MANIFEST").unlink()


@pytest.mark.parametrize("change", [spoil_content, add_a_file, remove_a_file, change_a_mode, remove_the_manifest])
def test_a_tree_that_is_not_what_its_manifest_says_is_not_packed(
    maker: Maker, change: object, capsys: pytest.CaptureFixture[str]
) -> None:
    tree = maker.tree("one")
    assert callable(change)
    change(tree)
    out = maker.folder / "out"
    assert maker.onefile.main([str(tree), str(maker.launcher), str(out)]) == 1
    assert capsys.readouterr().err.startswith("cannot pack ")
    assert not out.exists()


@pytest.mark.parametrize("target", ["/etc/passwd", "../../../x", "data/../../../x", "../..", "."])
def test_a_link_that_may_lead_out_of_the_tree_is_not_packed(maker: Maker, target: str) -> None:
    tree = maker.tree("one")
    (tree / "_internal/data/link").symlink_to(target)
    maker._tree.write_manifest(tree, "1.0.0")
    with pytest.raises(maker.onefile.CannotPack, match="may lie outside"):
        maker.onefile.pack(tree, maker.launcher, maker.folder / "out")


@pytest.mark.parametrize("path", ["n" * 101, "d/" * 33 + "deep", "_internal/tab\there"])
def test_a_name_that_the_launcher_does_not_take_is_not_packed(maker: Maker, path: str) -> None:
    tree = maker.tree("one", files={path: b""})
    with pytest.raises(maker.onefile.CannotPack):
        maker.onefile.pack(tree, maker.launcher, maker.folder / "out")


def test_a_tree_without_a_program_is_not_packed(maker: Maker) -> None:
    tree = maker.tree("one", program=b"no program")
    with pytest.raises(maker.onefile.CannotPack, match="no program"):
        maker.onefile.pack(tree, maker.launcher, maker.folder / "out")


def test_blake2b_is_that_of_the_standard_library_for_every_length(launcher: Path, tmp_path: Path) -> None:
    assert launcher.exists()
    compiled("-I", LAUNCHER, "-o", tmp_path / "b", HERE / "blake2b_main.c", LAUNCHER / "blake2b.c")
    data = os.urandom(5 << 20)
    lengths = [*range(301), 1023, 1024, 1025, 1 << 20, (1 << 20) + 1, len(data)]
    command = [tmp_path / "b", *map(str, lengths)]
    out = subprocess.run(command, input=data, stdout=subprocess.PIPE, check=True, timeout=60).stdout
    assert out.decode().split() == [hashlib.blake2b(data[:length]).hexdigest() for length in lengths]
