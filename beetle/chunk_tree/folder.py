"""The folder of a tree: its files read without following a link out of it, and written so that each is old or new."""

from __future__ import annotations

import errno
import os
import secrets
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

from beetle.chunk_tree.archive import Member
from beetle.chunk_tree.document import ENDING, LARGEST, Unreadable, name_fault, path_text
from beetle.contracts.errors import BeetleError, InvalidRequest, NoDescriptor, StorageFull, StoreReadOnly
from beetle.named_tuple import NamedTuple

CHUNKS: Final = "chunks"
ARCHIVE: Final = "archive"
INDEX: Final = "index"
FOLDERS: Final = (CHUNKS, INDEX, ARCHIVE)
TEMPORARY: Final = (".beetle-", ".tmp")
STALE_S: Final = 3600.0
"""A temporary file that old was left by a process that died."""
_FOLDER_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW_FLAGS: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
FOLDER_MODE: Final = 0o700
FILE_MODE: Final = 0o600


class NoTree(InvalidRequest):
    """A folder that cannot be read or written as a tree."""

    template = "{path}: {reason}"
    hint_template = "name the folder that holds chunks/ and archive/, or for an export a new one"


class Obstructed(InvalidRequest):
    """Something else stands where a file or a folder of a tree is to be."""

    template = "{path}: {reason}"
    hint_template = "move away what stands there, or name another folder"


class Written(NamedTuple):
    """What an export did to a folder. `left`: chunk files there that the export does not hold; they stay."""

    written: int
    unchanged: int
    removed: int
    left: int


class TreeFolder:
    """An open folder. Paths are relative to it, with `/` between their parts, and never lead out of it."""

    def __init__(self, path: str, *, make: bool = False) -> None:
        """Open it; `make` makes it and its three folders where they are missing.

        Raises:
            NoTree: it is no folder, or cannot be opened or made.
            OSError: the system refuses one of the three.
        """
        self.path = path
        self._unsettled: set[str] = set()
        try:
            if make:
                os.makedirs(path, FOLDER_MODE, exist_ok=True)
            # The folder itself may be reached by a link: whoever names it has chosen that.
            self._descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except (OSError, ValueError) as error:
            raise _no_tree(path, error) from None
        if make:
            try:
                for each in FOLDERS:
                    with self._named(each):
                        self._make(each)
            except OSError:
                self.close()
                raise

    def __enter__(self) -> TreeFolder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the descriptor back."""
        os.close(self._descriptor)

    def names(self, folder: str) -> list[str]:
        """The names in one of its folders, in order; none where it is missing or is no folder.

        Temporary files of a write are left out.
        """
        try:
            with self._opened(folder) as descriptor:
                return sorted(each for each in os.listdir(descriptor) if not _is_temporary(each))
        except OSError:
            return []

    def chunk_files(self) -> Iterator[str]:
        """The paths of what may be chunks: of each month's folder, then of the archive, in order."""
        for month in self.names(CHUNKS):
            if month.endswith(ENDING):
                yield f"{CHUNKS}/{month}"
                continue
            for name in self.names(f"{CHUNKS}/{month}"):
                if name.endswith(ENDING):
                    yield f"{CHUNKS}/{month}/{name}"
        for name in self.names(ARCHIVE):
            if name.endswith(ENDING):
                yield f"{ARCHIVE}/{name}"

    def linked_folders(self) -> Iterator[Unreadable]:
        """Folders of a tree that are links, which are not followed."""
        for place in (CHUNKS, ARCHIVE, *(f"{CHUNKS}/{each}" for each in self.names(CHUNKS))):
            with suppress(OSError):
                above, name = self._split(place)
                with self._opened(above) as descriptor:
                    mode = os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_mode
                if stat.S_ISLNK(mode) and not place.endswith(ENDING):
                    yield Unreadable(path_text(place), "it is a symbolic link")

    def read(self, path: str, most: int = LARGEST.file) -> Member | Unreadable:
        """A file's bytes, or why it is not read: its name, a link, no file, too large, refused by the system."""
        above, name = self._split(path)
        if (fault := name_fault(path)) is not None:
            return Unreadable(path_text(path), fault)
        try:
            with self._opened(above) as folder:
                descriptor = os.open(name, _FILE_FLAGS, dir_fd=folder)
        except (OSError, ValueError) as error:
            return Unreadable(path, self._reason(above, name, error))
        # Not as a file object: of a folder there is none.
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return Unreadable(path, "it is no regular file")
            data = _read_all(descriptor, most + 1)
        except OSError as error:
            return Unreadable(path, _words(error))
        finally:
            os.close(descriptor)
        return Unreadable(path, f"it is larger than {most} bytes") if len(data) > most else Member(path, data)

    def write(self, path: str, data: bytes, *, settle: bool = True) -> None:
        """Put a file in place of what was there: a reader, and a crash, see all of the old one or all of the new one.

        Args:
            settle: false leaves it to `settle` to put the name on disk, once for many files.

        Raises:
            OSError: the system refuses.
        """
        above, name = self._split(path)
        with self._named(path):
            self._make(above)
            self._write(above, name, data, settle=settle)

    def _write(self, above: str, name: str, data: bytes, *, settle: bool) -> None:
        with self._opened(above) as folder:
            temporary = f"{TEMPORARY[0]}{secrets.token_hex(8)}{TEMPORARY[1]}"
            descriptor = os.open(temporary, _NEW_FLAGS, FILE_MODE, dir_fd=folder)
            try:
                try:
                    _write_all(descriptor, data)
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)
                os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with suppress(OSError):
                    os.unlink(temporary, dir_fd=folder)
                raise
            if settle:
                os.fsync(folder)
            else:
                self._unsettled.add(above)

    def remove(self, path: str, *, settle: bool = True) -> bool:
        """Take a file away; whether there was one: a folder of its name is none.

        Raises:
            OSError: the system refuses.
        """
        above, name = self._split(path)
        try:
            with self._named(path), self._opened(above) as folder:
                os.unlink(name, dir_fd=folder)
                if settle:
                    os.fsync(folder)
                else:
                    self._unsettled.add(above)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return False
        return True

    def settle(self) -> None:
        """Put the names of what was written and removed without settling on disk."""
        for each in sorted(self._unsettled):
            with self._named(each), self._opened(each) as folder:
                os.fsync(folder)
        self._unsettled.clear()

    def sweep(self) -> int:
        """Take temporary files away that a process left when it died; how many."""
        swept = 0
        for place in (*FOLDERS, *(f"{CHUNKS}/{each}" for each in self.names(CHUNKS))):
            with suppress(OSError), self._opened(place) as folder:
                for name in filter(_is_temporary, os.listdir(folder)):
                    status = os.stat(name, dir_fd=folder, follow_symlinks=False)
                    if time.time() - status.st_mtime > STALE_S:
                        os.unlink(name, dir_fd=folder)
                        swept += 1
        return swept

    def _make(self, folder: str) -> None:
        """Make a folder within, and what is above it, where it is missing."""
        made = ""
        for part in filter(None, folder.split("/")):
            above, made = made, f"{made}/{part}" if made else part
            with self._opened(above) as descriptor, suppress(FileExistsError):
                os.mkdir(part, FOLDER_MODE, dir_fd=descriptor)
                os.fsync(descriptor)

    @contextmanager
    def _named(self, place: str) -> Iterator[None]:
        """What the system refuses names the whole path: its own error names a part of it, or nothing."""
        try:
            yield
        except OSError as error:
            raise OSError(error.errno, error.strerror, os.path.join(self.path, place)) from None

    @contextmanager
    def _opened(self, folder: str) -> Iterator[int]:
        """A folder within; no part of its path may be a link."""
        descriptor = os.dup(self._descriptor)
        try:
            for part in filter(None, folder.split("/")):
                inner = os.open(part, _FOLDER_FLAGS, dir_fd=descriptor)
                os.close(descriptor)
                descriptor = inner
            yield descriptor
        finally:
            os.close(descriptor)

    def _split(self, path: str) -> tuple[str, str]:
        parts = path.split("/")
        if not path or any(each in ("", ".", "..") or "\0" in each for each in parts):
            raise NoTree(path=path, reason="is no path within the tree")
        return "/".join(parts[:-1]), parts[-1]

    def _reason(self, above: str, name: str, error: OSError | ValueError) -> str:
        with suppress(OSError, ValueError), self._opened(above) as folder:
            if stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
                return "it is a symbolic link"
        return _words(error)


def hindered(error: OSError, path: str) -> BeetleError:
    """The typed error of what a folder did not take; `path` is named where the system's error names none."""
    where = error.filename if isinstance(error.filename, str) else path
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StorageFull(path=where)
    if NoDescriptor.is_behind(error):
        return NoDescriptor()
    if isinstance(error, IsADirectoryError):
        return Obstructed(path=where, reason="a folder stands there, and a file is to")
    if isinstance(error, NotADirectoryError):
        return Obstructed(path=_no_folder(where), reason="it is no folder, and is to be one")
    hint = "make the folder writable for this user, or name another one"
    return StoreReadOnly(path=where, reason=error.strerror or "the system refused it", hint=hint)


def _no_folder(path: str) -> str:
    """What stands in the way to a path: the first part of it that is no folder."""
    parts = path.split("/")
    found = ("/".join(parts[:end]) for end in range(2, len(parts)))
    return next((each for each in found if os.path.lexists(each) and not os.path.isdir(each)), path)


def is_tree(folder: TreeFolder) -> bool:
    """Whether it holds what a tree holds."""
    return any(each in folder.names("") for each in (CHUNKS, ARCHIVE))


def read_tree(folder: TreeFolder) -> Iterator[Member | Unreadable]:
    """What a tree holds: the bytes of each file that may be a chunk, one at a time, and what cannot be read."""
    yield from folder.linked_folders()
    for path in folder.chunk_files():
        yield folder.read(path)


def write_tree(folder: TreeFolder, files: Iterable[Member]) -> Written:
    """Make a folder hold these files. What has the same bytes already is not written again.

    A chunk that stands elsewhere in the tree, since it was archived or restored meanwhile, is taken away there.

    Raises:
        OSError: the system refuses; what was written until then is whole.
    """
    before = {path.rpartition("/")[2]: path for path in folder.chunk_files()}
    written = unchanged = removed = 0
    known: set[str] = set()
    for each in files:
        if folder.read(each.path) == each:
            unchanged += 1
        else:
            folder.write(each.path, each.data, settle=False)
            written += 1
        name = each.path.rpartition("/")[2]
        if not each.path.startswith(f"{INDEX}/"):
            known.add(name)
            if (other := before.get(name, each.path)) != each.path:
                removed += folder.remove(other, settle=False)
    folder.settle()
    folder.sweep()
    return Written(written, unchanged, removed, len(before.keys() - known))


def _is_temporary(name: str) -> bool:
    return name.startswith(TEMPORARY[0]) and name.endswith(TEMPORARY[1])


def _read_all(descriptor: int, most: int) -> bytes:
    parts: list[bytes] = []
    while most and (part := os.read(descriptor, most)):
        parts.append(part)
        most -= len(part)
    return b"".join(parts)


def _write_all(descriptor: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]


def _words(error: OSError | ValueError) -> str:
    return (error.strerror or "it is unreadable").lower() if isinstance(error, OSError) else "a path has no NUL"


def _no_tree(path: str, error: OSError | ValueError) -> NoTree:
    return NoTree(path=path, reason=_words(error))
