"""Packs a tree behind the launcher: the one file that a device gets.

    python packaging/onefile.py [--draft] TREE LAUNCHER OUT

With --draft it is packed in two seconds instead of a minute, and a tenth larger: for tests.

The file is the launcher (packaging/launcher/), a tar of the tree compressed with zstd, and a trailer of 192 bytes, all
numbers little endian: `magic[16]`, `name[64]`, `u64` payload offset, payload size, unpacked bytes and entries, sixteen
zeros, and the BLAKE2b-512 of everything before it. What is packed is what the tree's MANIFEST lists, with MANIFEST
and its signature, and the same tree and launcher give the same bytes.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import struct
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import zstandard

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from beetle.contracts.errors import BeetleError
from beetle.deploy.frozen import IN_USE
from beetle.deploy.manifest import MANIFEST, SIGNATURE, Entry, read_manifest, sha256_of, verify_tree

MAGIC = b"beetle-one-file\0"
HEAD = struct.Struct("<16s64sQQQQ16x")
NAME = re.compile(r"[0-9][0-9A-Za-z.+_-]*-[0-9a-f]{12}")
"""The shape of a tree's name, as is_tree_name() of the launcher has it."""
DEEPEST = 32
"""Folders inside each other, as the launcher's tar.c allows."""
LEVEL = 22
DRAFT_LEVEL = 9
"""A twentieth of the work, a tenth more bytes: what a check of the checkout pays for the one file."""
WINDOW_LOG_MAX = 22
"""4 MiB: the launcher holds the whole window in memory, on boards that have 64 MiB, and its unpack.c refuses more. With
8 MiB the file would be one part in a hundred smaller."""


class CannotPack(Exception):
    """The launcher would not unpack this tree to what its MANIFEST says."""


def _check(name: str, entries: Sequence[Entry]) -> None:
    """Refuse what the launcher would refuse on the device."""
    if not NAME.fullmatch(name):
        raise CannotPack(f"{name!r} is not a name that the launcher takes")
    if not any(each.path == "beetle" and each.mode == 0o755 for each in entries):
        raise CannotPack("it contains no program `beetle`")
    for each in entries:
        if each.path.count("/") >= DEEPEST or any(char < " " for char in each.path):
            raise CannotPack(f"{each.path!r} is not a name that the launcher takes")
        if each.target is not None and not _target_stays_inside(each.path, each.target):
            raise CannotPack(f"{each.path}: its target {each.target} may lie outside the tree")


def _target_stays_inside(path: str, target: str) -> bool:
    """Whether a link climbs no further than it lies deep, and only at the start of its target."""
    parts = target.split("/")
    above = path.count("/")
    while above > 0 and parts[0] == ".." and len(parts) > 1:
        parts.pop(0)
        above -= 1
    return {"", ".", ".."}.isdisjoint(parts)


def make_tar(tree: Path, entries: Sequence[Entry]) -> tuple[bytes, int, int]:
    """A tar of the entries and the folders they lie in, sorted by path; its files' bytes; how many entries it has.

    Raises:
        CannotPack: a name has no room in a ustar header.
        OSError: a file cannot be read.
    """
    by_path: dict[str, Entry | None] = {each.path: each for each in entries}
    for each in entries:
        by_path.update({str(above): None for above in PurePosixPath(each.path).parents if above.name})
    buffer = io.BytesIO()
    unpacked_bytes = 0
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT, encoding="utf-8") as tar:
        for path in sorted(by_path, key=os.fsencode):
            info, data = _header(tree, path, by_path[path])
            unpacked_bytes += len(data)
            try:
                tar.addfile(info, io.BytesIO(data))
            except ValueError as error:
                raise CannotPack(f"{path}: {error}") from None
    return buffer.getvalue(), unpacked_bytes, len(by_path)


def _header(tree: Path, path: str, entry: Entry | None) -> tuple[tarfile.TarInfo, bytes]:
    """An entry's header, without times and owners, and its content; None is a folder."""
    info = tarfile.TarInfo(path)
    data = b""
    if entry is None:
        info.type, info.mode = tarfile.DIRTYPE, 0o755
    elif entry.target is not None:
        info.type, info.mode, info.linkname = tarfile.SYMTYPE, 0o777, entry.target
    else:
        data = (tree / path).read_bytes()
        info.mode, info.size = entry.mode, len(data)
    return info, data


def compress(data: bytes, level: int = LEVEL) -> bytes:
    """One zstd frame with a checksum, in one thread, with a window no larger than the data or WINDOW_LOG_MAX."""
    window_log = min(max(len(data) - 1, 1).bit_length(), WINDOW_LOG_MAX)
    parameters = zstandard.ZstdCompressionParameters.from_level(
        level,
        source_size=len(data),
        window_log=max(window_log, zstandard.WINDOWLOG_MIN),
        write_checksum=True,
        write_content_size=True,
        threads=0,
    )
    return zstandard.ZstdCompressor(compression_params=parameters).compress(data)


def join(launcher: bytes, name: str, payload: bytes, unpacked_bytes: int, entries: int) -> bytes:
    """The whole file: launcher, payload, trailer."""
    head = HEAD.pack(MAGIC, name.encode(), len(launcher), len(payload), unpacked_bytes, entries)
    front = launcher + payload + head
    return front + hashlib.blake2b(front).digest()


def pack(tree: Path, launcher: Path, out: Path, level: int = LEVEL) -> str:
    """Write the one file, with mode 755; the tree's name.

    Raises:
        CannotPack: the tree is not what its MANIFEST says, or not one that the launcher takes.
        BrokenManifest: its MANIFEST cannot be understood.
        OSError: a file cannot be read or written.
    """
    differences = verify_tree(str(tree))
    if differences:
        raise CannotPack("; ".join(differences))
    name, listed = read_manifest(str(tree / MANIFEST))
    names = [each for each in (MANIFEST, SIGNATURE, IN_USE) if (tree / each).exists()]
    own = [Entry(each, sha256_of(str(tree / each)), 0o644, (tree / each).stat().st_size) for each in names]
    entries = [*listed, *own]
    _check(name, entries)
    data, unpacked_bytes, count = make_tar(tree, entries)
    # Beside the old file and renamed, since that one may be running.
    made = out.with_name(f"{out.name}.new")
    made.write_bytes(join(launcher.read_bytes(), name, compress(data, level), unpacked_bytes, count))
    made.chmod(0o755)
    made.replace(out)
    return name


def main(arguments: list[str]) -> int:
    """Pack what the arguments name; the process's exit code."""
    level = LEVEL
    if arguments[:1] == ["--draft"]:
        level, arguments = DRAFT_LEVEL, arguments[1:]
    if len(arguments) != 3:
        print("usage: python packaging/onefile.py [--draft] TREE LAUNCHER OUT", file=sys.stderr)
        return 2
    tree, launcher, out = map(Path, arguments)
    try:
        name = pack(tree, launcher, out, level)
    except (CannotPack, BeetleError, OSError) as error:
        print(f"cannot pack {tree}: {error}", file=sys.stderr)
        return 1
    print(f"{out}: {name}, {out.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
