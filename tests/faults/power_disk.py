"""A disk that is told of every change to the files in one folder, and what of them may be there after a power cut.

A run is recorded once. What may be on the disk at any moment of it is then made from the record, and nothing is run
again. Recorded are SQLite's calls, by a VFS, and what Python does to names and files, by its audit hook.

The model is the strictest that a filesystem may be: a file's bytes are safe when the file was synced, its name when its
folder was. Of the rest, each sector and each name may have reached the disk or not, in any combination.
"""

from __future__ import annotations

import itertools
import os
import random
import stat
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import apsw

SECTORS = (512, 4096)
_NUMBERS = itertools.count()
_recording: Disk | None = None
_hooked = False


class Change(NamedTuple):
    """One step: `kind` create, write, truncate, sync, content, synced (its content, all of it on the disk), unlink,
    rename, folder (synced) or mark. `file` is the number of a file, `path` relative to the folder."""

    kind: str
    file: int = -1
    path: str = ""
    at: int = 0
    data: bytes = b""
    to: str = ""


class _File:
    """What of one file is safe, and what was done to it since."""

    def __init__(self) -> None:
        self.safe = bytearray()
        self.since: list[Change] = []

    def whole(self) -> bytes:
        image = bytearray(self.safe)
        for change in self.since:
            _apply(image, change)
        return bytes(image)

    def partly(self, chance: random.Random) -> bytes:
        """A random half of what was not synced, sector by sector."""
        image, sector = bytearray(self.safe), chance.choice(SECTORS)
        for change in self.since:
            if change.kind != "write":
                if chance.random() < 0.5:
                    _apply(image, change)
                continue
            for piece in _sectors(change, sector):
                if chance.random() < 0.5:
                    _apply(image, piece)
        return bytes(image)


def _sectors(change: Change, sector: int) -> Iterator[Change]:
    """A write, cut where the disk's sectors end."""
    at, end = change.at, change.at + len(change.data)
    while at < end:
        until = min(end, (at // sector + 1) * sector)
        yield change._replace(at=at, data=change.data[at - change.at : until - change.at])
        at = until


def _apply(image: bytearray, change: Change) -> None:
    if change.kind == "content":
        image[:] = change.data
    elif change.kind == "truncate":
        del image[change.at :]
        image.extend(bytes(change.at - len(image)))
    elif change.kind == "write":
        image.extend(bytes(max(0, change.at - len(image))))
        image[change.at : change.at + len(change.data)] = change.data


class Moment:
    """The disk after some steps of a record."""

    def __init__(self, steps: list[Change]) -> None:
        self._steps = steps
        self._files: dict[int, _File] = {}
        self._names: dict[str, int] = {}
        self._safe_names: dict[str, int] = {}
        self._moves: list[Change] = []
        self.at = 0

    def go_to(self, place: int) -> None:
        """On to the moment before step `place`."""
        while self.at < place:
            self._take(self._steps[self.at])
            self.at += 1

    def _take(self, change: Change) -> None:
        file = self._files.setdefault(change.file, _File())
        if change.kind in ("write", "truncate", "content"):
            file.since.append(change)
        elif change.kind == "sync":
            file.safe, file.since = bytearray(file.whole()), []
        elif change.kind == "synced":
            file.safe, file.since = bytearray(change.data), []
        elif change.kind in ("create", "unlink", "rename"):
            _move(self._names, change)
            self._moves.append(change)
        elif change.kind == "folder":
            mine = [each for each in self._moves if change.path in (_folder(each.path), _folder(each.to or each.path))]
            for each in mine:
                _move(self._safe_names, each)
            self._moves = [each for each in self._moves if each not in mine]

    def image(self, seed: int | None) -> dict[str, bytes]:
        """Files by name: all that was not synced is gone (0), all has reached the disk (None), or some of it has."""
        if seed is None:
            return {path: self._files[file].whole() for path, file in self._names.items()}
        if seed == 0:
            return {path: bytes(self._files[file].safe) for path, file in self._safe_names.items()}
        chance = random.Random(seed * 1_000_003 + self.at)
        names = dict(self._safe_names)
        for each in self._moves:
            if chance.random() < 0.5:
                _move(names, each)
        return {path: self._files[file].partly(chance) for path, file in sorted(names.items())}


def _move(names: dict[str, int], change: Change) -> None:
    if change.kind == "create":
        names[change.path] = change.file
    elif change.kind == "unlink":
        names.pop(change.path, None)
    else:
        # A folder takes what is in it along.
        below = change.path + "/"
        for path in [each for each in names if each == change.path or each.startswith(below)]:
            names[change.to + path[len(change.path) :]] = names.pop(path)
        if change.file >= 0:
            names[change.to] = change.file


def _folder(path: str) -> str:
    return os.path.dirname(path)


class Disk:
    """Records what becomes of the files under `root`, from `recording` on; `vfs` is the name to open a store with."""

    def __init__(self, root: Path) -> None:
        self.root = os.path.realpath(root)
        self.steps: list[Change] = []
        self.synced: set[int] = set()
        self._guard = threading.RLock()
        self._numbers = itertools.count()
        self._names: dict[str, int] = {}
        self._by_vfs: set[int] = set()
        for path in sorted(Path(self.root).rglob("*")):
            if path.is_file():
                self._begin(os.path.relpath(path, self.root), path.read_bytes())
        self._vfs = _RecordingVFS(self)
        self.vfs = self._vfs.name

    def _begin(self, path: str, content: bytes) -> None:
        file = self._names[path] = next(self._numbers)
        self.steps += [Change("create", file, path), Change("synced", file, data=content)]
        self.steps.append(Change("folder", path=_folder(path)))

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Python's own changes are seen within the block, SQLite's always."""
        global _recording
        assert _recording is None
        fsync, fdatasync = os.fsync, os.fdatasync
        _install()
        _recording = self
        os.fsync = os.fdatasync = self._fsync  # type: ignore[assignment]
        try:
            yield
        finally:
            os.fsync, os.fdatasync = fsync, fdatasync
            _recording = None

    def mark(self) -> int:
        """The number of steps until now."""
        with self._guard:
            return len(self.steps)

    def close(self) -> None:
        self._vfs.unregister()

    def relative(self, path: Any) -> str | None:
        """The path below the folder, None elsewhere."""
        try:
            whole = os.path.join(os.path.realpath(os.path.dirname(os.fsdecode(path)) or "."), os.path.basename(path))
        except TypeError:
            return None
        inside = os.path.relpath(os.fsdecode(whole), self.root)
        return None if inside.startswith("..") else inside

    def number(self, path: str) -> int:
        """The file of that name; made, when there is none."""
        if path not in self._names:
            self._names[path] = next(self._numbers)
            self.steps.append(Change("create", self._names[path], path))
        return self._names[path]

    def opened(self, path: str) -> int:
        """By the VFS."""
        with self._guard:
            file = self.number(path)
            self._by_vfs.add(file)
            return file

    def add(self, change: Change) -> None:
        with self._guard:
            self.steps.append(change)

    def unlinked(self, path: str) -> None:
        with self._guard:
            for each in [name for name in self._names if name == path or name.startswith(path + "/")]:
                self.steps.append(Change("unlink", self._names.pop(each), each))

    def folder_synced(self, path: str) -> None:
        self.add(Change("folder", path="" if path == "." else path))

    def _content(self, path: str) -> None:
        """What a file that no VFS writes holds by now."""
        file = self._names.get(path)
        whole = os.path.join(self.root, path)
        if file is not None and file not in self._by_vfs and os.path.isfile(whole):
            self.steps.append(Change("content", file, data=Path(whole).read_bytes()))

    def renamed(self, path: str, to: str, *, link: bool = False) -> None:
        with self._guard:
            if not os.path.lexists(os.path.join(self.root, path)):
                return
            self._content(path)
            file = self._names.get(path, -1)
            if link:
                self._names[to] = file
                self.steps.append(Change("create", file, to))
                return
            self.steps.append(Change("rename", file, path, to=to))
            for each in [name for name in self._names if name == path or name.startswith(path + "/")]:
                self._names[to + each[len(path) :]] = self._names.pop(each)

    def made(self, path: str) -> None:
        """A file is opened to be written, by Python."""
        with self._guard:
            if not os.path.exists(os.path.join(self.root, path)):
                self._names.pop(path, None)
                self.number(path)

    def _fsync(self, descriptor: Any) -> None:
        number = descriptor if isinstance(descriptor, int) else descriptor.fileno()
        path = self.relative(os.readlink(f"/proc/self/fd/{number}"))
        if path is None:
            return
        if stat.S_ISDIR(os.fstat(number).st_mode):
            self.folder_synced(path)
            return
        with self._guard:
            size = os.fstat(number).st_size
            with open(f"/proc/self/fd/{number}", "rb") as again:
                content = again.read(size)
            if path in self._names:
                self.steps.append(Change("synced", self._names[path], data=content))


def _install() -> None:
    global _hooked
    if not _hooked:
        _hooked = True
        sys.addaudithook(_hook)


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    disk = _recording
    if disk is None:
        return
    if event == "open":
        flags = arguments[2]
        if isinstance(flags, int) and flags & os.O_CREAT and (path := disk.relative(arguments[0])) is not None:
            disk.made(path)
    elif event in ("os.rename", "os.link"):
        path, to = disk.relative(arguments[0]), disk.relative(arguments[1])
        if path is not None and to is not None:
            disk.renamed(path, to, link=event == "os.link")
    elif event in ("os.remove", "os.rmdir") and (path := disk.relative(arguments[0])) is not None:
        disk.unlinked(path)


class _RecordingVFS(apsw.VFS):
    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        self.name = f"power-{next(_NUMBERS)}"
        super().__init__(self.name, "")

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        inside = None if path is None else self.disk.relative(path)
        if inside is None:
            return apsw.VFSFile("", name, flags)
        if flags[0] & apsw.SQLITE_OPEN_CREATE or os.path.exists(path):
            # As SQLite's own VFS does: the first sync of a journal syncs its folder too.
            journal = bool(flags[0] & (apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_WAL))
            return _RecordingFile(self.disk, inside, name, flags, journal)
        return apsw.VFSFile("", name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        super().xDelete(filename, syncdir)
        if (inside := self.disk.relative(filename)) is not None:
            self.disk.unlinked(inside)
            if syncdir:
                self.disk.folder_synced(_folder(inside))


class _RecordingFile(apsw.VFSFile):
    def __init__(self, disk: Disk, inside: str, name: Any, flags: list[int], journal: bool) -> None:
        super().__init__("", name, flags)
        self._disk, self._inside, self._journal = disk, inside, journal
        self._file = disk.opened(inside)

    def xWrite(self, data: Any, offset: int) -> None:
        super().xWrite(data, offset)
        self._disk.add(Change("write", self._file, at=offset, data=bytes(data)))

    def xTruncate(self, newsize: int) -> None:
        super().xTruncate(newsize)
        self._disk.add(Change("truncate", self._file, at=newsize))

    def xSync(self, flags: int) -> None:
        # What is on the disk is reckoned: a real sync would only cost time.
        self._disk.add(Change("sync", self._file))
        if self._journal:
            self._journal = False
            self._disk.folder_synced(_folder(self._inside))
