"""Holding a tree's files against its MANIFEST one by one, and copying them."""

from __future__ import annotations

import hashlib
import os
import posixpath
from collections.abc import Iterable, Iterator
from io import FileIO
from pathlib import Path

from beetle.deploy.frozen import IN_USE
from beetle.deploy.manifest import MANIFEST, SIGNATURE, Entry, Manifest, differences, open_regular, read_manifest
from beetle.deploy.steps import DRAFT, Damaged, content, make_folder, sync_folder

PROGRAM = "beetle"
CHUNK = 2**20
COPY_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


def manifest_of(tree: Path) -> Manifest:
    """What a tree says of itself, when root may copy that.

    Raises:
        IntegrityViolation: there is no MANIFEST, it is none or no file, or something in it leads out of the tree.
    """
    file = str(tree / MANIFEST)
    try:
        manifest = read_manifest(file)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise Damaged(path=file, reason=error.strerror) from None
    # Root copies what a user unpacked: with a link to /etc as a folder, a path could name any file of the system.
    links = {each.path for each in manifest.entries if each.target is not None}
    for each in manifest.entries:
        parents = (each.path[:at] for at, letter in enumerate(each.path) if letter == "/")
        if any(parent in links for parent in parents) or _leads_out(each) or each.path in (MANIFEST, SIGNATURE, IN_USE):
            raise Damaged(path=file, reason=f"{each.path[:80]!r} leads out of the tree")
    if PROGRAM not in {each.path for each in manifest.entries}:
        raise Damaged(path=file, reason="the program is not in it")
    return manifest


def _leads_out(entry: Entry) -> bool:
    if entry.target is None:
        return False
    inside = posixpath.normpath(posixpath.join(posixpath.dirname(entry.path), entry.target))
    return inside.startswith("/") or inside.split("/")[0] == ".."


def faults(tree: Path, entries: Iterable[Entry], *, modes: bool) -> Iterator[Entry]:
    """What is missing, or is not what its line says. `modes` too: a cache may be more private than a prefix."""
    return (each for each in entries if any(differences(str(tree), each, modes=modes)))


def check(tree: Path, manifest: Manifest, *, modes: bool) -> None:
    """Raises Damaged unless every file of the tree is what its MANIFEST says."""
    for entry in faults(tree, manifest.entries, modes=modes):
        raise Damaged(path=str(tree / entry.path), reason="it is missing, or not what MANIFEST says")


def copy_entries(source: Path, target: Path, manifest: Manifest, entries: Iterable[Entry]) -> None:
    """Copy these entries, MANIFEST, its signature and `in-use`, each put in place whole; all is on the disk afterwards.

    Never a hard link: whoever cleans or changes the source must not reach the copy.

    Raises:
        Damaged: a file was not what the manifest says at the moment it was copied.
    """
    folders = {target}
    make_folder(target)
    for entry in entries:
        place = target / entry.path
        make_folder(place.parent)
        folders.update(each for each in place.parents if each.is_relative_to(target))
        part = place.with_name(f".{place.name}{DRAFT}")
        part.unlink(missing_ok=True)
        if entry.target is None:
            _copy(source / entry.path, part, entry)
        else:
            os.symlink(entry.target, part)
        os.replace(part, place)
    if not is_regular(target / IN_USE):
        # Only then: whoever holds the lock on `in-use` holds it on that very file.
        _write(target / IN_USE, b"")
    if (signature := content(source / SIGNATURE)) is not None:
        _write(target / SIGNATURE, signature)
    _write(target / MANIFEST, content(source / MANIFEST) or b"")
    if manifest_of(target) != manifest:
        raise Damaged(path=str(source / MANIFEST), reason="it changed while it was copied")
    for folder in sorted(folders, key=lambda each: len(each.parts), reverse=True):
        sync_folder(folder)


def is_regular(path: Path) -> bool:
    """Whether a file is there, and no link to one."""
    return path.is_file() and not path.is_symlink()


def _write(path: Path, data: bytes) -> None:
    part = path.with_name(f".{path.name}{DRAFT}")
    part.unlink(missing_ok=True)
    with open(os.open(part, COPY_FLAGS, 0o600), "wb") as stream:
        os.fchmod(stream.fileno(), 0o644)
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(part, path)


def _copy(source: Path, part: Path, entry: Entry) -> None:
    digest = hashlib.sha256()
    with open_regular(source) as stream, FileIO(os.open(part, COPY_FLAGS, 0o600), "w") as copy:
        while data := stream.read(CHUNK):
            digest.update(data)
            view = memoryview(data)
            while view:
                view = view[copy.write(view) :]
        if digest.hexdigest() != entry.sha256:
            raise Damaged(path=str(source), reason="it changed while it was copied")
        os.fchmod(copy.fileno(), entry.mode)
        os.fsync(copy.fileno())
