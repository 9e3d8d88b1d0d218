"""The files of an import: regular ones alone, opened so that no name leads elsewhere, and folders of them."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import BinaryIO

from beetle.contracts.errors import InvalidRequest
from beetle.importing import mentisdb_folder
from beetle.importing.formats import LINE_ENDINGS, MARKDOWN, head_of
from beetle.importing.items import Format, Problem, Source
from beetle.named_tuple import NamedTuple

ENDINGS = {True: (".md", ".markdown"), False: (".json", *LINE_ENDINGS)}
"""Names of the files that are taken out of a folder, for Markdown formats and for the others."""
MOST_DEPTH = 32


class NoFile(InvalidRequest):
    """Something else than a regular file, or one that cannot be read."""

    template = "{path}: {reason}"
    hint_template = "give a regular file, or a folder; copy what stands behind a link or a pipe"


class SourceFile(NamedTuple):
    """One file to be read. `named` says that it was given itself, and is not out of a folder.

    `format` and `guessed` are of a data folder's file: whether its chain's key is what its name tells.
    """

    path: str
    stem: str
    named: bool
    format: Format | None = None
    guessed: bool = False


class Opened(NamedTuple):
    """A file that is open: its source, its format, its size in bytes and the time of its last change; `guessed` says
    that its chain's key is what its name tells.
    """

    source: Source
    format: Format
    size: int
    changed: datetime
    guessed: bool


def found_files(paths: Iterable[str], forced: Format | None) -> Iterator[SourceFile | Problem]:
    """The files that paths name, those of a folder in the order of their names. Links in a folder are passed over.

    Raises:
        NoFile: a path that names neither a regular file nor a folder, or a folder that holds no file that is read.
    """
    for path in paths:
        mode = _mode(path)
        if stat.S_ISDIR(mode) and forced in (None, "mentisdb") and (names := _files_of(path, forced)):
            yield from _data_folder(path, names)
        elif stat.S_ISDIR(mode):
            yield from _folder(path, ENDINGS[forced is None or forced in MARKDOWN])
        elif stat.S_ISREG(mode):
            yield SourceFile(path, _stem(path), True)
        else:
            raise NoFile(path=path, reason=_sort(mode))


def _mode(path: str) -> int:
    try:
        return os.lstat(path).st_mode
    except (OSError, ValueError) as error:
        raise NoFile(path=path, reason=_words(error)) from None


def _words(error: OSError | ValueError) -> str:
    return (error.strerror or "unreadable").lower() if isinstance(error, OSError) else "a path has no NUL"


def _sort(mode: int) -> str:
    for test, name in ((stat.S_ISLNK, "a symbolic link"), (stat.S_ISFIFO, "a named pipe"), (stat.S_ISSOCK, "a socket")):
        if test(mode):
            return f"it is {name}, and no regular file"
    return "it is a device, and no regular file"


def _stem(path: str) -> str:
    """The name without its ending; a page's with its folder, since many are called MEMORY.md."""
    folder, name = os.path.split(os.path.abspath(path))
    return f"{os.path.basename(folder)}/{name}" if name.endswith(ENDINGS[True]) else os.path.splitext(name)[0]


def _folder(path: str, endings: tuple[str, ...]) -> Iterator[SourceFile | Problem]:
    inside = _walk(path, os.path.basename(os.path.abspath(path)), endings, 0)
    first = next(inside, None)
    if first is None:
        reason = f"the folder holds no file named {' or '.join(f'*{each}' for each in endings)}"
        raise NoFile(
            path=path, reason=reason, hint="for files of another format: name them, or the format with --format"
        )
    yield first
    yield from inside


def _walk(folder: str, name: str, endings: tuple[str, ...], depth: int) -> Iterator[SourceFile | Problem]:
    if depth > MOST_DEPTH:
        yield Problem(None, f"{folder}: folders are nested deeper than {MOST_DEPTH}")
        return
    try:
        with os.scandir(folder) as entries:
            inside = sorted(entries, key=lambda each: each.name)
    except OSError as error:
        yield Problem(None, f"{folder}: {_words(error)}")
        return
    for entry in inside:
        if entry.name.startswith(".") or entry.is_symlink():
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(entry.path, f"{name}/{entry.name}", endings, depth + 1)
        elif entry.is_file(follow_symlinks=False) and entry.name.lower().endswith(endings):
            stem = f"{name}/{entry.name}" if endings == ENDINGS[True] else os.path.splitext(entry.name)[0]
            yield SourceFile(entry.path, stem, False)


def _files_of(folder: str, forced: Format | None) -> list[str]:
    """The regular files of a data folder by their names; none where it is another sort of folder."""
    try:
        with os.scandir(folder) as entries:
            names = [each.name for each in entries if each.is_file(follow_symlinks=False)]
    except OSError as error:
        raise NoFile(path=folder, reason=_words(error)) from None
    return names if forced is not None or mentisdb_folder.is_data_folder(names) else []


def _data_folder(folder: str, names: list[str]) -> Iterator[SourceFile | Problem]:
    registry: bytes | None = None
    if mentisdb_folder.REGISTRY_NAME in names:
        place = os.path.join(folder, mentisdb_folder.REGISTRY_NAME)
        try:
            with _regular(place) as stream:
                registry = stream.read(mentisdb_folder.MOST_REGISTRY_BYTES)
        except NoFile as error:
            yield Problem(None, error.message)
    for each in mentisdb_folder.members(names, registry):
        yield SourceFile(os.path.join(folder, each.name), each.chain, False, "mentisdb", each.guessed)


@contextmanager
def opened(found: SourceFile, forced: Format | None) -> Iterator[Opened]:
    """A file from its start.

    Raises:
        NoFile: it is no regular file, or cannot be read.
        UnknownFormat: its content tells no format, and none is forced.
    """
    with _regular(found.path) as stream:
        status = os.fstat(stream.fileno())
        head = head_of(stream, found.path, forced or found.format)
        stem, guessed = found.stem, found.guessed
        if head.format == "mentisdb" and found.format is None:
            _, stem, guessed = mentisdb_folder.chain_of_name(os.path.basename(found.path))
        source = Source(found.path, stem, stream, head.layout)
        changed = datetime.fromtimestamp(status.st_mtime, UTC)
        yield Opened(source, head.format, status.st_size, changed, guessed)


def check(found: SourceFile, forced: Format | None) -> None:
    """Raises NoFile or UnknownFormat, before anything of any file is taken in, for a file that was named itself."""
    with opened(found, forced):
        pass


@contextmanager
def _regular(path: str) -> Iterator[BinaryIO]:
    try:
        # A pipe is opened to be refused; nobody waits for its other end.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError as error:
        raise NoFile(path=path, reason=_words(error)) from None
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        if stat.S_ISDIR(mode):
            raise NoFile(path=path, reason="it is a folder, and no regular file", hint="give a file in it")
        raise NoFile(path=path, reason=_sort(mode))
    with open(descriptor, "rb", buffering=256 * 1024) as stream:
        yield stream
