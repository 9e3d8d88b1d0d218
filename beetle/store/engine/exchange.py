"""Puts another file in the place of a store's, so that a crash at any moment leaves one of the two, whole.

A store's lock is held and its connections are closed. Beside the store stand, each with an id of its own:

| name | what it is |
|---|---|
| `<store>.unpacking-ID` | a file that is being made; swept when the store is opened |
| `<store>.transfer-ID` | pieces of an export or import; its name is gone once it is open, and swept else |
| `<store>.import-ID` | an import that goes on when the store is opened, as long as it is there: see `kept_imports` |
| `<store>.restore-ID` | one that is whole and on disk, and about to take the store's place |
| `<store>.before-ID` | the store that was there before a restore, or as it was before a migration |
| `ID.copy`, `ID.part` in the folder of snapshots | what a snapshot is made of; swept when the store is opened |
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
from collections.abc import Generator

from beetle.contracts.errors import BeetleError, NoDescriptor, Overloaded, StorageFull, StoreReadOnly
from beetle.named_tuple import NamedTuple
from beetle.store.engine.presence import has_content

UNPACKING, READY, BEFORE, TRANSFER, IMPORT = "unpacking", "restore", "before", "transfer", "import"
COMPACTED = "c-"
"""What the id of a file begins with that holds the same store, written anew: nobody wants the old one."""
NAME = re.compile(r"\.(unpacking|restore|before|transfer|import)-([a-z]-[0-9a-f]{16})\Z")
PART = re.compile(r"s-[0-9a-f]{16}\.(part|copy)(-journal|-wal|-shm)?")
NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV)
"""What filesystems without hard links answer (FAT, some FUSE ones)."""


class Beside(NamedTuple):
    """A file beside the store that this module has named."""

    kind: str
    id: str
    path: str


def named(store: str, kind: str, file_id: str) -> str:
    """The path of a file beside the store."""
    return f"{store}.{kind}-{file_id}"


def beside(store: str) -> list[Beside]:
    """What stands beside the store, by name; only files count, whatever else has such a name."""
    folder, base = os.path.split(store)
    found: list[Beside] = []
    for name in _files(folder or "."):
        match = NAME.fullmatch(name.removeprefix(base)) if name.startswith(base + ".") else None
        if match is not None:
            found.append(Beside(match[1], match[2], os.path.join(folder, name)))
    return found


def parts(folder: str) -> list[str]:
    """The files of a snapshot that is being made in a folder, or that a crash has left half-made."""
    return [os.path.join(folder, name) for name in _files(folder) if PART.fullmatch(name)]


def unfinished(store: str, folder: str) -> list[str]:
    """Every copy of the store, or of a part of it, that has not the name yet which it is made for."""
    return parts(folder) + [each.path for each in beside(store) if each.kind not in (BEFORE, IMPORT)]


@contextlib.contextmanager
def making_in(folder: str) -> Generator[bool]:
    """Whether nobody else makes a snapshot in a folder; nobody does until this ends. Other stores may use it too.

    Raises:
        OSError: it cannot be opened.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            # A filesystem without locks is a network's or a stick's, with one user in practice.
            yield error.errno not in (errno.EWOULDBLOCK, errno.EACCES)
        else:
            yield True
    finally:
        os.close(descriptor)


def abandoned(folder: str) -> list[str]:
    """The files in a folder of a snapshot that nobody makes any more.

    Raises:
        OSError: the folder cannot be opened.
    """
    if not parts(folder):
        return []
    with making_in(folder) as alone:
        return parts(folder) if alone else []


def settle(store: str, folder: str) -> list[str]:
    """Finish or take back an exchange that was cut short, and sweep what was being made. The store's lock is held.

    Args:
        folder: of its snapshots.

    Returns:
        What was done, for the opening's report.
    """
    found = beside(store)
    done: list[str] = []
    for each in sorted(found, key=lambda one: one.kind != READY):
        if not has_content(store):
            if each.kind != READY or not os.path.exists(named(store, BEFORE, each.id)):
                continue  # it may be all that is left of the store
            # Between the two renames of a filesystem without links: the new file is whole, so it goes on. A log that
            # stands there is that of a damaged store, which has a copy.
            for rest in ("-wal", "-shm", "-journal"):
                _remove(store + rest)
            os.rename(each.path, store)
            sync_folder(store)
            done.append(f"the restore of {each.id} was cut short and is finished now")
        elif each.kind == BEFORE and (_same_file(each.path, store) or each.id.startswith(COMPACTED)):
            os.unlink(each.path)
        elif each.kind in (UNPACKING, READY, TRANSFER):
            _remove(each.path)
    return done + _swept(folder)


def _swept(folder: str) -> list[str]:
    """Take away what of a snapshot was left half-made, unless another process makes one there now."""
    done: list[str] = []
    try:
        left = parts(folder)
        if not left:
            return done
        with making_in(folder) as alone:
            for part in left if alone else ():
                _remove(part)
                done.append(f"{os.path.basename(part)} of a snapshot that was cut short is removed")
    except OSError as error:
        done.append(f"what a snapshot that was cut short has left cannot be removed ({error.strerror})")
    return done


def make_ready(copy: str, ready: str) -> None:
    """Put a file on disk, and give it the name by which it waits to take the store's place.

    Raises:
        OSError: it could not be.
    """
    sync_file(copy)
    os.rename(copy, ready)
    sync_folder(ready)


def _has_content(log: str) -> bool:
    """Whether a log or a journal holds something of the store that was closed.

    A power cut may leave a journal whose first sector never reached the disk. SQLite passes over one that begins with
    a zero, and leaves it there until its next write.
    """
    try:
        with open(log, "rb") as file:
            first = file.read(1)
    except FileNotFoundError:
        return False
    return bool(first) and (first != b"\0" or not log.endswith("-journal"))


def put_in_place(store: str, fresh: str, keep: str) -> None:
    """Let `fresh` take the store's place, and the store the name `keep`.

    Raises:
        Overloaded: another program holds the write-ahead log, which still has commits.
        StoreReadOnly, StorageFull: the folder does not take it; nothing was changed.
    """
    for log in (store + "-wal", store + "-journal"):
        if _has_content(log):
            raise Overloaded(what="another program reads the store", maximum="none meanwhile", retry_after_ms=1000)
    try:
        for rest in ("-wal", "-shm", "-journal"):
            _remove(store + rest)
        _keep(store, keep)
        sync_folder(store)
        os.rename(fresh, store)
        sync_folder(store)
    except OSError as error:
        _take_back(store, keep)
        raise unwritable(store, error) from error


def put_aside(store: str, fresh: str, keep: str) -> None:
    """Let `fresh` take the place of a store that cannot be opened, which gets the name `keep`, with a copy of its log
    or journal beside it. A crash between the two leaves the work to `settle`.

    Raises:
        OSError: the folder does not take it.
    """
    for rest in ("-wal", "-journal"):
        if os.path.exists(store + rest) and os.path.getsize(store + rest):
            _copy(store + rest, keep + rest)
    sync_folder(store)
    os.rename(store, keep)
    sync_folder(store)
    for rest in ("-wal", "-shm", "-journal"):
        _remove(store + rest)
    # No log may stand beside the new file for a moment: SQLite would take it for its own.
    sync_folder(store)
    os.rename(fresh, store)
    sync_folder(store)


def _copy(source: str, target: str) -> None:
    with open(source, "rb") as old, open(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as new:
        while piece := old.read(2**20):
            new.write(piece)
        new.flush()
        os.fsync(new.fileno())


def take_back(store: str, keep: str) -> None:
    """Put the kept store back in its place."""
    for rest in ("-wal", "-shm", "-journal"):
        _remove(store + rest)
    os.rename(keep, store)
    sync_folder(store)


def unwritable(path: str, error: OSError, hint: str | None = None) -> BeetleError:
    """The typed error for a file that could not be written; `hint` is what to do where the system refused it."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StorageFull(path=path)
    if NoDescriptor.is_behind(error):
        return NoDescriptor()
    return StoreReadOnly(path=path, reason=error.strerror or "the system refused it", hint=hint)


def sync_file(path: str) -> None:
    """Put what a file holds on disk; its name is its folder's."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(path: str) -> None:
    """Put the names of a file's folder on disk."""
    folder = os.open(os.path.dirname(path) or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _keep(store: str, keep: str) -> None:
    try:
        os.link(store, keep)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        os.rename(store, keep)


def _take_back(store: str, keep: str) -> None:
    """After a failure: the store under its own name alone."""
    if not os.path.lexists(store):
        os.rename(keep, store)
    elif _same_file(store, keep):
        os.unlink(keep)


def _same_file(one: str, other: str) -> bool:
    try:
        return os.path.samestat(os.lstat(one), os.lstat(other))
    except FileNotFoundError:
        return False


def _files(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return sorted(each.name for each in entries if each.is_file(follow_symlinks=False))
    except FileNotFoundError:
        return []


def _remove(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
