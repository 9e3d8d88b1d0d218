"""Reading a mounted folder of Agent Skills: never out of it, never a device, never more than was allowed.

Every file is opened from the descriptor of the folder that it stands in, and no link is followed on the way. What
cannot be used is a finding; the rest is read all the same.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING

from beetle.contracts.errors import NoDescriptor
from beetle.named_tuple import NamedTuple
from beetle.runtime.host.front_matter import FRONT_MATTER_BYTES, FrontMatter, read_front_matter

if TYPE_CHECKING:
    from beetle.contracts.agent_skills import FindingKind

SKILL_FILE = "SKILL.md"
FOLDER_ENTRIES = 4096
"""Entries of one folder that are looked at; a larger one is no folder of skills."""
SKILL_ENTRIES = 2048
"""Files, folders and links of one skill."""
CHUNK = 1 << 16
OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# A pipe that takes a file's place between the look at it and the opening must not hold the scan up.
OPEN_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
GONE = (errno.ENOENT, errno.ENOTDIR, errno.ESTALE)

Mark = tuple[tuple[str, int, int, int, int], ...]


class Mount(NamedTuple):
    """A mounted folder, and what refs call it."""

    mount: str
    path: str


class Finding(NamedTuple):
    """What is wrong; `path` is within the mount, "" the mount itself."""

    kind: FindingKind
    mount: str
    path: str


class SkillFolder(NamedTuple):
    """One skill by its summary; `folder` is within the mount, "" the mount itself."""

    mount: str
    folder: str
    name: str
    description: str


class MountScan(NamedTuple):
    """The skills of one mount by name, what was found wrong, and whether there are more than were wanted."""

    skills: tuple[SkillFolder, ...]
    findings: tuple[Finding, ...]
    clipped: bool


class Measured(NamedTuple):
    """What a skill's files come to; no fingerprint when not all of them could be read. `read` counts bytes."""

    resources: int
    fingerprint: str | None
    findings: tuple[Finding, ...]
    read: int


class _Unusable(Exception):
    def __init__(self, kind: FindingKind) -> None:
        self.kind: FindingKind = kind


class _Entry(NamedTuple):
    name: str
    kind: str
    """folder, file, symlink or special."""


def mark(mount: Mount) -> Mark:
    """What changes whenever a summary in the mount may have: cheap to take, nothing is read."""
    seen: list[tuple[str, int, int, int, int]] = []
    try:
        with _mounted(mount) as top:
            entries, _ = _entries(top)
            for name in ("", *(each.name for each in entries if each.kind == "folder")):
                file = f"{name}/{SKILL_FILE}" if name else SKILL_FILE
                seen.append((name, *_stamp(top, file)))
            seen.extend((each.name, 0, 0, 0, 0) for each in entries if each.kind == "symlink")
    except _Unusable as error:
        return ((error.kind, 0, 0, 0, 0),)
    return tuple(seen)


def _stamp(top: int, file: str) -> tuple[int, int, int, int]:
    try:
        found = os.stat(file, dir_fd=top, follow_symlinks=False)
    except OSError as error:
        return (0, 0, 0, error.errno or 0)
    return (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def scan(mount: Mount, most: int) -> MountScan:
    """The summaries of a mount's first `most` skills by folder: its own SKILL.md, and those of the folders in it."""
    findings: list[Finding] = []
    skills: dict[str, SkillFolder] = {}
    clipped = False
    try:
        with _mounted(mount) as top:
            entries, over = _entries(top)
            if over:
                findings.append(Finding("too_many_files", mount.mount, ""))
            links = (each.name for each in entries if each.kind == "symlink" and each.name != SKILL_FILE)
            findings += [Finding("symlink", mount.mount, name) for name in links]
            places = [("", top)] if any(each.name == SKILL_FILE for each in entries) else []
            for folder, at in (*places, *((each.name, None) for each in entries if each.kind == "folder")):
                found = _summary(mount, folder, at, top)
                if found is None:
                    continue
                if isinstance(found, SkillFolder) and found.name in skills:
                    found = Finding("duplicate_name", mount.mount, folder)
                if isinstance(found, Finding):
                    findings.append(found)
                elif len(skills) == most:
                    clipped = True
                    findings.append(Finding("too_many_skills", mount.mount, folder))
                    break
                else:
                    skills[found.name] = found
    except _Unusable as error:
        findings.append(Finding(error.kind, mount.mount, ""))
    return MountScan(tuple(skills[name] for name in sorted(skills)), tuple(findings), clipped)


def _summary(mount: Mount, folder: str, at: int | None, top: int) -> SkillFolder | Finding | None:
    """A folder's skill; None where it has no SKILL.md."""
    path = f"{folder}/{SKILL_FILE}".lstrip("/")
    try:
        if at is None:
            with _folder(top, folder) as inside:
                if not _is_skill(inside):
                    return None
                said = _front_matter(inside)
        else:
            said = _front_matter(at)
    except _Unusable as error:
        return Finding(error.kind, mount.mount, path)
    if isinstance(said, FrontMatter):
        return SkillFolder(mount.mount, folder, said.name, said.description)
    return Finding(said, mount.mount, path)


def _is_skill(folder: int) -> bool:
    try:
        os.stat(SKILL_FILE, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise _Unusable(_kind(error)) from None
    return True


def _front_matter(folder: int) -> FrontMatter | FindingKind:
    with _file(folder, SKILL_FILE) as file:
        head = b""
        while len(head) < FRONT_MATTER_BYTES and (part := _read(file, FRONT_MATTER_BYTES - len(head))):
            head += part
    return read_front_matter(head)


def measure(mount: Mount, skill: SkillFolder, apart: Sequence[str], depth: int, room: int) -> Measured:
    """Count a skill's files and take its fingerprint, of at most `room` bytes.

    Args:
        apart: folders of other skills, for one that lies in the mount itself.
        depth: levels of folders in the skill's own that are looked into.

    The fingerprint is the SHA-256 over each file's path, NUL, its SHA-256 in hex and a newline, sorted by path.
    """
    walk = _Walk(mount, skill.folder, frozenset(apart))
    digest, used = hashlib.sha256(), 0
    try:
        with _mounted(mount) as top, _folder(top, skill.folder) as root:
            walk.look(root, (), depth)
            if sum(size for _, size in walk.files) > room:
                walk.find("too_large", ())
            elif not walk.partial:
                for parts, _ in sorted(walk.files, key=lambda each: os.fsencode("/".join(each[0]))):
                    hashed, size = _hash(root, parts, room - used)
                    used += size
                    digest.update(os.fsencode("/".join(parts)) + b"\0" + hashed.encode() + b"\n")
    except _UnusableFile as error:
        walk.find(error.kind, error.parts)
    except _Unusable as error:
        walk.find(error.kind, ())
    resources = sum(parts != (SKILL_FILE,) for parts, _ in walk.files)
    fingerprint = None if walk.partial else digest.hexdigest()
    return Measured(resources, fingerprint, tuple(walk.findings), used)


class _UnusableFile(_Unusable):
    def __init__(self, kind: FindingKind, parts: tuple[str, ...]) -> None:
        super().__init__(kind)
        self.parts = parts


class _Walk:
    """The files of one skill, with their sizes; `partial` when some of it cannot be read."""

    def __init__(self, mount: Mount, folder: str, apart: frozenset[str]) -> None:
        self.files: list[tuple[tuple[str, ...], int]] = []
        self.findings: list[Finding] = []
        self.partial = False
        self._mount = mount.mount
        self._folder = folder
        self._apart = apart
        self._left = SKILL_ENTRIES

    def find(self, kind: FindingKind, parts: tuple[str, ...]) -> None:
        """A link or a pipe is no part of the skill; anything else that cannot be read leaves a hole in it."""
        self.partial |= kind not in ("symlink", "special_file")
        self.findings.append(Finding(kind, self._mount, "/".join((self._folder, *parts)).lstrip("/")))

    def look(self, at: int, parts: tuple[str, ...], levels: int) -> None:
        entries, over = _entries(at)
        if over:
            self.find("too_many_files", parts)
        for entry in entries:
            here = (*parts, entry.name)
            if self._left == 0:
                raise _Unusable("too_many_files")
            self._left -= 1
            if entry.kind == "file":
                self._file(at, entry.name, here)
            elif entry.kind != "folder":
                self.find("symlink" if entry.kind == "symlink" else "special_file", here)
            elif parts or entry.name not in self._apart:
                self._inner(at, entry.name, here, levels)

    def _file(self, at: int, name: str, here: tuple[str, ...]) -> None:
        try:
            self.files.append((here, os.stat(name, dir_fd=at, follow_symlinks=False).st_size))
        except OSError as error:
            self.find(_kind(error), here)

    def _inner(self, at: int, name: str, here: tuple[str, ...], levels: int) -> None:
        if levels == 0:
            self.find("too_deep", here)
            return
        try:
            with _folder(at, name) as inside:
                self.look(inside, here, levels - 1)
        except _Unusable as error:
            if error.kind == "too_many_files":
                raise
            self.find(error.kind, here)


def _hash(root: int, parts: tuple[str, ...], room: int) -> tuple[str, int]:
    """A file's SHA-256 in hex and its bytes, of which there may be `room`."""
    digest, size = hashlib.sha256(), 0
    try:
        with _below(root, parts[:-1]) as folder, _file(folder, parts[-1]) as file:
            while part := _read(file, CHUNK):
                size += len(part)
                if size > room:
                    raise _Unusable("too_large")
                digest.update(part)
    except _Unusable as error:
        raise _UnusableFile(error.kind, parts) from None
    return digest.hexdigest(), size


@contextmanager
def _below(root: int, parts: tuple[str, ...]) -> Generator[int]:
    """The descriptor of a folder, reached step by step."""
    if not parts:
        yield root
        return
    with _folder(root, parts[0]) as inner, _below(inner, parts[1:]) as found:
        yield found


@contextmanager
def _mounted(mount: Mount) -> Generator[int]:
    """The mount's descriptor. Links on the way to it are the operator's own."""
    try:
        fd = os.open(mount.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        NoDescriptor.refuse(error)
        kinds: dict[int | None, FindingKind] = {errno.ENOENT: "mount_missing", errno.ENOTDIR: "mount_not_a_folder"}
        raise _Unusable(kinds.get(error.errno, "mount_unreadable")) from None
    try:
        yield fd
    finally:
        os.close(fd)


@contextmanager
def _folder(at: int, name: str) -> Generator[int]:
    try:
        fd = os.open(name or ".", OPEN_FOLDER, dir_fd=at)
    except OSError as error:
        raise _Unusable(_kind(error)) from None
    try:
        yield fd
    finally:
        os.close(fd)


@contextmanager
def _file(at: int, name: str) -> Generator[int]:
    """The descriptor of a regular file; a pipe or a device is not even opened."""
    try:
        _refuse_other(os.stat(name, dir_fd=at, follow_symlinks=False).st_mode)
        fd = os.open(name, OPEN_FILE, dir_fd=at)
    except OSError as error:
        raise _Unusable(_kind(error)) from None
    try:
        _refuse_other(os.fstat(fd).st_mode)
        yield fd
    finally:
        os.close(fd)


def _refuse_other(mode: int) -> None:
    if stat.S_ISLNK(mode):
        raise _Unusable("symlink")
    if not stat.S_ISREG(mode):
        raise _Unusable("special_file")


def _read(file: int, most: int) -> bytes:
    try:
        return os.read(file, most)
    except OSError as error:
        raise _Unusable(_kind(error)) from None


def _entries(at: int) -> tuple[list[_Entry], bool]:
    """A folder's entries by name, and whether it has more than are looked at."""
    try:
        with os.scandir(at) as found:
            entries = [_Entry(each.name, _entry_kind(each)) for each in islice(found, FOLDER_ENTRIES + 1)]
    except OSError as error:
        raise _Unusable(_kind(error)) from None
    return sorted(entries[:FOLDER_ENTRIES]), len(entries) > FOLDER_ENTRIES


def _entry_kind(entry: os.DirEntry[str]) -> str:
    if entry.is_symlink():
        return "symlink"
    if entry.is_dir(follow_symlinks=False):
        return "folder"
    return "file" if entry.is_file(follow_symlinks=False) else "special"


def _kind(error: OSError) -> FindingKind:
    NoDescriptor.refuse(error)
    if error.errno == errno.ELOOP:
        return "symlink"
    return "vanished" if error.errno in GONE else "unreadable"
