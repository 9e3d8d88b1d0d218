"""Whether an open store's files are still where they were opened.

SQLite, and the lock, go on with the files that they have open, whatever becomes of their names. A commit into a file
that was removed or renamed is one that nobody finds again, and under its old name may stand another's store.
"""

from __future__ import annotations

import fcntl
import logging
import os
import struct
import time
from collections.abc import Iterable

from beetle.contracts.errors import StoreReadOnly
from beetle.named_tuple import NamedTuple
from beetle.store.engine.follower import Follower
from beetle.store.engine.lock import lock_path

log = logging.getLogger("beetle.store")

FILE, LOCK = "the store's file", "the store's lock file"
LOG, INDEX = "the store's write-ahead log", "the index of the store's write-ahead log"
FLOCK = "hhqqi"
"""The fields of `struct flock`: type, whence, start, length, process."""
SETTLED_S = 4.0
"""A folder that has not changed for so long has no further change with the same time: no file system tells times of
changes more coarsely than by two seconds."""
FINELY_SETTLED_S = 0.5
"""The same for one that tells parts of a second, which it takes from a clock that ticks a hundred times a second."""
LOOK_S = 1.0
"""So often the files themselves are looked at, for what no folder tells, such as a mount over one of them."""
SHARED_FIRST, SHARED_BYTES = 0x40000002, 510
"""The range of a database file in which SQLite's readers hold a lock, in WAL mode for as long as they are open."""


class StoreMoved(StoreReadOnly):
    """The store's files are not where they were opened; until it is opened again nothing is written."""

    template = "{path}: {reason}; nothing is written any more"
    hint_template = "stop the daemon, put the store's files together under one name, and start it again"


FolderMark = tuple[int, int, int]
"""A folder's device and inode, and the time of its last change, in nanoseconds. Nobody sets that time by hand."""


class Seen(NamedTuple):
    """What a look at the files has found: how their folders were, from when on no change can hide behind that, and when
    it was (monotonic seconds). One value, since several threads look.

    Each name that comes, goes or changes gives its folder another time. So, while that is the same, one look at the
    folder is enough, in place of one at each of four files, twice for each commit.
    """

    marks: list[FolderMark | None]
    settled: float
    looked: float


class StoreFiles:
    """The names of an open store's files, and the device and inode of each when it was opened."""

    def __init__(self, store: str, files: Iterable[tuple[str, str]], follower: Follower | None = None) -> None:
        """Remember them, once all are open.

        Args:
            files: (path, what it is) of each; none for a store that has none or is not written.
            follower: who else may have the write-ahead log open.

        Raises:
            StoreMoved: one is not there any more.
        """
        self._store = store
        self.follower = follower
        self._files: list[tuple[str, str, tuple[int, int]]] = []
        self.lost: str | None = None
        for path, what in files:
            if (found := _mark(path)) is None:
                raise StoreMoved(path=store, reason=f"{what} was removed or renamed while the store was being opened")
            self._files.append((path, what, found))
        self.descriptor = _opened(store) if self._files else None
        """Of the database file, for as long as SQLite has it open."""
        self._folders = sorted({os.path.dirname(path) or os.curdir for path, _, _ in self._files})
        self._seen = Seen([], 0.0, 0.0)

    def check(self) -> None:
        """Look, and refuse what would be written or opened by name. Once lost, a place is lost for good: who had the
        files meanwhile is not known.

        Raises:
            StoreMoved: a file was removed, renamed or replaced, or nobody can tell.
        """
        try:
            lost = self._look()
        except OSError as error:
            reason = f"the store's folder cannot be looked into ({error.strerror})"
            raise StoreMoved(path=self._store, reason=reason) from error
        if lost:
            raise StoreMoved(path=self._store, reason=self.lost)

    def is_lost(self) -> bool:
        """Whether a file is known not to be where it was."""
        try:
            return self._look()
        except OSError as error:
            log.warning(
                "the store's folder cannot be looked into: %s", error.strerror, extra={"event": "folder_not_read"}
            )
            return False

    def _look(self) -> bool:
        """Look, or see that nothing can have changed; the first time that something is found, the log is told.

        Raises:
            OSError: nobody can tell now, as where the mode of a parent folder was changed for a while.
        """
        if self.lost is not None:
            return True
        marks, now = [_folder_mark(each) for each in self._folders], time.monotonic()
        seen = self._seen
        settled = seen.settled if marks == seen.marks else now + _settling_s(marks)
        if now - seen.looked < LOOK_S and seen.looked > settled:
            return False
        for path, what, was in self._files:
            if _mark(path) != was:
                self.lost = _told(path, what, was)
                break
        if self.lost is not None:
            log.critical(
                "%s; writes are refused until the store is opened again", self.lost, extra={"event": "store_moved"}
            )
        self._seen = Seen(marks, settled, now)
        return self.lost is not None

    def alone(self) -> bool:
        """Whether no other process has the database file open, under whatever name."""
        if self.descriptor is None:
            return False
        asked = struct.pack(FLOCK, fcntl.F_WRLCK, os.SEEK_SET, SHARED_FIRST, SHARED_BYTES, 0)
        try:
            found = fcntl.fcntl(self.descriptor, fcntl.F_GETLK, asked)
        except OSError:
            return False
        return struct.unpack(FLOCK, found)[0] == fcntl.F_UNLCK

    def close(self) -> None:
        """Not before SQLite has closed the file: that would drop the locks that it holds for this process."""
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None


def files_of(store: str, follower: Follower, *, walled: bool) -> StoreFiles:
    """The place of a store that was opened for writing."""
    logs = ((store + "-wal", LOG), (store + "-shm", INDEX)) if walled else ()
    return StoreFiles(store, ((store, FILE), (lock_path(store), LOCK), *logs), follower)


def _opened(store: str) -> int:
    try:
        return os.open(store, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        raise StoreReadOnly(path=store, reason=f"it cannot be opened ({error.strerror})") from error


def _mark(path: str) -> tuple[int, int] | None:
    """Device and inode of a name; None where there is none."""
    try:
        found = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino


def _folder_mark(path: str) -> FolderMark | None:
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino, found.st_ctime_ns


def _settling_s(marks: list[FolderMark | None]) -> float:
    """For how long these marks must have stood before they tell that nothing has changed."""
    return FINELY_SETTLED_S if all(mark and mark[2] % 1_000_000_000 for mark in marks) else SETTLED_S


def _told(path: str, what: str, was: tuple[int, int]) -> str | None:
    """What has happened to a file, None when it is where it was."""
    found = _mark(path)
    if found == was:
        return None
    return f"{what} was {'removed or renamed' if found is None else 'replaced by another'} while it was open"
