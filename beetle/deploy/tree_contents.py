"""What of an installed tree is ours, by its MANIFEST, and what somebody else put into it."""

from __future__ import annotations

import contextlib
import os
import posixpath
import shutil
from pathlib import Path

from beetle.contracts.errors import IntegrityViolation
from beetle.deploy.frozen import IN_USE
from beetle.deploy.install_tree import PROGRAM, is_regular
from beetle.deploy.manifest import MANIFEST, SIGNATURE, Manifest, read_manifest
from beetle.deploy.steps import DRAFT, sync_folder
from beetle.named_tuple import NamedTuple

LIBRARIES = "_internal"
"""What a tree has beside its program: the folder of which nothing else is known once MANIFEST is gone."""
OWN: tuple[str, ...] = (PROGRAM, IN_USE, SIGNATURE, MANIFEST)


class Contents(NamedTuple):
    """Paths relative to the tree. `ours` are files, links and whole folders of ours, in the order in which they go;
    `folders` are those that we made, deepest first; `foreign` is everything else, a folder of which nothing is ours as
    one."""

    ours: tuple[str, ...]
    folders: tuple[str, ...]
    foreign: tuple[str, ...]


def contents_of(tree: Path) -> Contents:
    """Look through a tree, never through a link in it."""
    manifest = _manifest(tree)
    whole = set[str]()
    files = set(OWN)
    if manifest is not None:
        files.update(each.path for each in manifest.entries)
    elif is_regular(tree / PROGRAM):
        # The program goes after its libraries: without it, what is in their folder is all somebody else's.
        whole.add(LIBRARIES)
    files.update(_draft(each) for each in tuple(files))
    parents = {str(parent) for each in files for parent in Path(each).parents} - {"."}
    ours: list[str] = []
    folders: list[str] = []
    foreign: list[str] = []

    def look(inside: str) -> None:
        with os.scandir(tree / inside) as entries:
            children = sorted(entries, key=lambda each: each.name)
        for each in children:
            path = posixpath.join(inside, each.name)
            is_folder = each.is_dir(follow_symlinks=False)
            if is_folder and path in parents:
                look(path)
                folders.append(path)
            elif path in (whole if is_folder else files):
                ours.append(path)
            else:
                foreign.append(path)

    look("")
    # MANIFEST last: it tells the next removal what is ours, when this one is interrupted.
    ours.sort(key=lambda each: OWN.index(each) if each in OWN else -1)
    return Contents(tuple(ours), tuple(folders), tuple(foreign))


def remove_ours(tree: Path, contents: Contents) -> None:
    """Remove what is ours where it stands: what is not keeps its place."""
    for each in contents.ours:
        place = tree / each
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        else:
            place.unlink()
    for each in (*contents.folders, ""):
        # What is left holds something of somebody else's.
        with contextlib.suppress(OSError):
            (tree / each).rmdir()
    sync_folder(tree.parent)


def _manifest(tree: Path) -> Manifest | None:
    """The list of a tree's files; None where it cannot be read, or is that of another tree."""
    try:
        manifest = read_manifest(str(tree / MANIFEST))
    except (FileNotFoundError, IntegrityViolation):
        return None
    return manifest if tree.name == manifest.name else None


def _draft(path: str) -> str:
    folder, name = posixpath.split(path)
    return posixpath.join(folder, f".{name}{DRAFT}")
