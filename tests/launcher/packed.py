"""One files for the tests: packed from small trees, or made by hand as no packer would make them."""

from __future__ import annotations

import importlib.util
import io
import os
import subprocess
import tarfile
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
LAUNCHER = ROOT / "packaging/launcher"
HERE = Path(__file__).parent
TRAILER = 192
FILES: dict[str, bytes] = {
    "_internal/a.so.1": b"\x7fELF" + bytes(range(256)) * 40,
    "_internal/data/empty": b"",
    "_internal/data/one block": b"x" * 512,
    "_internal/data/text": b"text\n" * 1000,
}
LINKS = {"_internal/a.so": "a.so.1", "_internal/data/up": "../a.so.1"}


def module(name: str) -> ModuleType:
    """A module of packaging/, which is no package."""
    spec = importlib.util.spec_from_file_location(f"packaging_{name}", ROOT / f"packaging/{name}.py")
    assert spec is not None and spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


class Packed(NamedTuple):
    """A one file, the name of its tree, and the tree it was packed from."""

    file: Path
    name: str
    tree: Path


class Maker:
    """Makes one files in a folder, around one launcher and one program."""

    def __init__(self, folder: Path, launcher: Path, program: bytes) -> None:
        self.folder, self.launcher, self.program = folder, launcher, program
        self.onefile = module("onefile")
        # The tables of the level of a release take a tenth of a second to make, whatever is compressed.
        self.onefile.LEVEL = 3
        self._tree = module("tree")

    def tree(self, name: str, files: Mapping[str, bytes] = FILES, version: str = "1.0.0", program: bytes = b"") -> Path:
        tree = self.folder / f"{name}.tree"
        for path, data in {"beetle": program or self.program, **files}.items():
            (tree / path).parent.mkdir(parents=True, exist_ok=True)
            (tree / path).write_bytes(data)
        for path, target in LINKS.items():
            (tree / path).parent.mkdir(parents=True, exist_ok=True)
            (tree / path).symlink_to(target)
        self._tree.write_manifest(tree, version)
        return tree

    def pack(self, name: str = "one", **of_tree: Any) -> Packed:
        """A one file as the packer makes it."""
        tree = self.tree(name, **of_tree)
        file = self.folder / name
        return Packed(file, self.onefile.pack(tree, self.launcher, file), tree)

    def by_hand(self, file: str, tar: bytes, *, size: int, entries: int, **other: Any) -> Path:
        """A one file with a right digest around any bytes at all. `payload` replaces the compressed tar."""
        payload = other.get("payload", self.onefile.compress(tar))
        launcher = other.get("launcher", self.launcher).read_bytes()
        made = self.folder / file
        name = other.get("name", "1.0.0-0123456789ab")
        made.write_bytes(self.onefile.join(launcher, name, payload, size, entries))
        made.chmod(0o755)
        return made


def tar_of(*entries: tuple[str, bytes, str], content: bytes = b"content") -> tuple[bytes, int, int]:
    """A tar of (name, type, link target) in this order, each file with `content`; its files' bytes; its entries."""
    buffer = io.BytesIO()
    files = 0
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, kind, target in entries:
            info = tarfile.TarInfo(name)
            info.type, info.linkname, info.mode = kind, target, 0o755
            files += kind == tarfile.REGTYPE
            info.size = len(content) if kind == tarfile.REGTYPE else 0
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue(), files * len(content), len(entries)


def flipped(data: bytes, at: int, bit: int) -> bytes:
    """The same bytes but for one bit."""
    changed = bytearray(data)
    changed[at] ^= 1 << bit
    return bytes(changed)


def start(file: Path, *words: str, env: Mapping[str, str], **options: Any) -> subprocess.CompletedProcess[str]:
    """Start a one file with nothing but `env` in its environment."""
    return subprocess.run([file, *words], env=dict(env), capture_output=True, text=True, timeout=60, **options)


class Said(NamedTuple):
    """What the stand-in program said of how it was started."""

    pid: int
    exe: str
    umask: int
    arguments: list[str]
    environment: dict[str, str]
    descriptors: dict[int, str]
    signals: list[int]


def said(output: str) -> Said:
    """Read what the stand-in program printed; fails if it did not print all of it."""
    lines = [line.split(" ", 1) for line in output.splitlines()]
    assert lines and lines[-1] == ["end"], output

    def all_of(key: str) -> list[str]:
        return [line[1] for line in lines if line[0] == key]

    return Said(
        pid=int(all_of("pid")[0]),
        exe=all_of("exe")[0],
        umask=int(all_of("umask")[0], 8),
        arguments=all_of("arg"),
        environment=dict(each.split("=", 1) for each in all_of("env")),
        descriptors={int(number): target for number, target in (each.split(" ", 1) for each in all_of("fd"))},
        signals=[int(each) for each in all_of("signal")],
    )


def left(place: Path | int) -> list[str]:
    """The names in a place, but for its lock."""
    if isinstance(place, Path) and not place.exists():
        return []
    return sorted(name for name in os.listdir(place) if name != ".lock")


def assert_failed(ended: subprocess.CompletedProcess[str], code: int, words: str) -> None:
    """A start that failed in the agreed way: its code, one line with these words, at most one more."""
    assert (ended.returncode, ended.stdout) == (code, ""), ended
    lines = ended.stderr.splitlines()
    assert lines[0].startswith("beetle: ") and words in lines[0], ended.stderr
    assert len(lines) <= 2 and not any(line.startswith("beetle: ") for line in lines[1:]), ended.stderr


def assert_same(tree: Path, source: Path) -> None:
    """The unpacked tree is the packed one: names, contents, links and modes."""

    def listing(folder: Path) -> dict[str, tuple[int, bytes | str]]:
        found: dict[str, tuple[int, bytes | str]] = {}
        for path in folder.rglob("*"):
            mode = path.lstat().st_mode
            content = os.readlink(path) if path.is_symlink() else b"" if path.is_dir() else path.read_bytes()
            found[path.relative_to(folder).as_posix()] = (mode, content)
        return found

    assert listing(tree) == listing(source)
    assert tree.stat().st_mode & 0o7777 == 0o755
