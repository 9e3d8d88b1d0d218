"""What a built tree says of itself (its MANIFEST), and whether that is so."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from io import FileIO
from itertools import pairwise

from beetle.contracts.errors import IntegrityViolation
from beetle.deploy.frozen import IN_USE
from beetle.named_tuple import NamedTuple

MANIFEST = "MANIFEST"
SIGNATURE = "MANIFEST.sig"
"""The release's Ed25519 signature of MANIFEST, 64 bytes; a build that is no release has none."""
KIND = "beetle-tree"
FORMAT = "1"
NAME_BYTES = 63
"""Longest name of a tree: the one file keeps it in 64 bytes with a closing NUL."""
BLOCK = 1 << 20
MODES = ("644", "755")


class Entry(NamedTuple):
    """One file of a tree, or one symbolic link: then `target` is where it leads, and the other three say nothing.

    `path` is relative to the tree; `mode` is octal (0o644 or 0o755); `size` in bytes; `sha256` in hex.
    """

    path: str
    sha256: str = ""
    mode: int = 0
    size: int = 0
    target: str | None = None


class Manifest(NamedTuple):
    """A tree's name (`VERSION-HASH`) and everything in it, sorted by path, but MANIFEST, its signature and `in-use`."""

    name: str
    entries: tuple[Entry, ...]


class BrokenManifest(IntegrityViolation):
    """The MANIFEST cannot be read as one."""

    template = "{path} is not a valid list of files: {reason}"
    hint_template = "get this build again; the present one is incomplete"


class NotAFile(IntegrityViolation):
    template = "{path}: it is not a file"
    hint_template = "get this build again, and run its `beetle install`"


def read_manifest(path: str) -> Manifest:
    """Read a tree's MANIFEST; nothing else of the tree is looked at.

    Raises:
        BrokenManifest: it is no manifest of this format, its name is not that of its lines, or a path leads out of the
            tree.
        NotAFile: it is no file.
        OSError: it cannot be read.
    """
    with open_regular(path) as file:
        data = file.readall()
    head, _, body = data.partition(b"\n")
    try:
        words, lines = head.decode().split(" "), body.decode().split("\n")
    except UnicodeDecodeError:
        raise BrokenManifest(path=path, reason="it is not UTF-8") from None
    if len(words) != 3 or words[:2] != [KIND, FORMAT]:
        raise BrokenManifest(path=path, reason=f"it does not begin with `{KIND} {FORMAT} NAME`")
    name = words[2]
    if name.rpartition("-")[2] != hashlib.sha256(body).hexdigest()[:12] or not _names_a_folder(name):
        raise BrokenManifest(path=path, reason="its name is not that of its lines")
    if lines.pop() != "":
        raise BrokenManifest(path=path, reason="its last line has no end")
    entries = tuple(_entry(line, number, path) for number, line in enumerate(lines, 2))
    paths = [os.fsencode(each.path) for each in entries]
    if any(one >= other for one, other in pairwise(paths)):
        raise BrokenManifest(path=path, reason="its lines are not sorted by path")
    return Manifest(name, entries)


def _names_a_folder(name: str) -> bool:
    return "/" not in name and not name.startswith(".") and len(name.encode()) <= NAME_BYTES


def _entry(line: str, number: int, source: str) -> Entry:
    words = line.split(" ", 3)
    if len(words) == 4 and words[:3] == ["link", "-", "-"]:
        path, arrow, target = words[3].partition(" -> ")
        if arrow and target and _stays_inside(path):
            return Entry(path, target=target)
    elif len(words) == 4 and words[1] in MODES and words[2].isascii() and words[2].isdigit():
        sha256, mode, size, path = words
        if len(sha256) == 64 and _stays_inside(path):
            return Entry(path, sha256, int(mode, 8), int(size))
    raise BrokenManifest(path=source, reason=f"line {number} is none of a file or a link")


def _stays_inside(path: str) -> bool:
    return all(part not in ("", ".", "..") for part in path.split("/"))


def verify_tree(tree: str) -> list[str]:
    """What is not as it was built: a line for each file that is missing, changed, has another mode, or is too many.

    The owner, the times and the modes of folders are nobody's business: a tree is copied and packed.

    Raises:
        BrokenManifest: the tree's MANIFEST cannot be understood.
        OSError: a file or folder that is there cannot be read.
    """
    manifest = read_manifest(os.path.join(tree, MANIFEST))
    found = [problem for entry in manifest.entries for problem in differences(tree, entry)]
    known = {each.path for each in manifest.entries} | {MANIFEST, SIGNATURE, IN_USE}
    if not os.path.lexists(os.path.join(tree, IN_USE)):
        found.append(f"{IN_USE} is missing")
    return found + [f"{path} does not belong there" for path in sorted(_paths(tree, "")) if path not in known]


def differences(tree: str, entry: Entry, *, modes: bool = True) -> Iterator[str]:
    """What of one entry is not as its line says; `modes` too. Raises OSError for what is there and cannot be read."""
    path = os.path.join(tree, entry.path)
    try:
        there = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        yield f"{entry.path} is missing"
        return
    if entry.target is not None:
        if not stat.S_ISLNK(there.st_mode):
            yield f"{entry.path} is not a symbolic link"
        elif (target := os.readlink(path)) != entry.target:
            yield f"{entry.path} leads to {target}, not to {entry.target}"
    elif not stat.S_ISREG(there.st_mode):
        yield f"{entry.path} is not a file"
    elif there.st_size != entry.size:
        yield f"{entry.path} has {there.st_size} bytes, not {entry.size}"
    elif modes and (mode := stat.S_IMODE(there.st_mode)) != entry.mode:
        # Before its content is read: it may be one that nobody may read.
        yield f"{entry.path} has the mode {mode:o}, not {entry.mode:o}"
    elif sha256_of(path) != entry.sha256:
        yield f"{entry.path} has other content"


def open_regular(path: str | os.PathLike[str]) -> FileIO:
    """A file that is neither a link nor anything that could block or be a device.

    Raises:
        NotAFile: it is something else.
        OSError: it cannot be opened.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        # A link, and a socket or a device without a driver.
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.ENODEV):
            raise NotAFile(path=os.fspath(path)) from None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NotAFile(path=os.fspath(path))
    return FileIO(descriptor)


def sha256_of(path: str) -> str:
    """SHA-256 of a file's bytes, in hex."""
    digest = hashlib.sha256()
    with open(path, "rb", buffering=0) as file:
        while block := file.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _paths(tree: str, inside: str) -> Iterator[str]:
    """Everything in the tree but its folders, and empty folders, relative to it."""
    with os.scandir(os.path.join(tree, inside)) as entries:
        children = list(entries)
    if not children and inside:
        yield inside
    for each in children:
        path = f"{inside}/{each.name}" if inside else each.name
        if each.is_dir(follow_symlinks=False):
            yield from _paths(tree, path)
        else:
            yield path
