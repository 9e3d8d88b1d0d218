"""A VFS that fails on purpose: deterministic, driven by a plan, never by time or chance.

A plan is text: what fails, at which operation, and whether it goes on failing:

    full@7      the 7th operation that changes the disk answers SQLITE_FULL, the 8th works again
    full@7+     and so does every later one, until `heal`
    ioerr@7+    SQLITE_IOERR
    readonly@7+ SQLITE_IOERR of a disk that went read-only: the system's own number for it, EROFS, tells them apart
    late@7      the 7th is done, and answers SQLITE_IOERR all the same
    torn@7      the 7th operation, if it is a write, writes half of its bytes and then fails
    cut@7/3     the power goes at the 7th: nothing reaches the disk any more; `after_power_cut` makes the files that the
                disk may hold then: all that was synced, and of the rest what the seed 3 chooses, whole, in part, not

Operations that change the disk are writes, syncs, truncations and deletions.
"""

from __future__ import annotations

import errno
import itertools
import os
import random
import re
import threading
from pathlib import Path
from typing import Any, NamedTuple

import apsw

SECTOR = 512
_NAMES = itertools.count()
_PLAN = re.compile(r"(full|ioerr|readonly|late|torn|cut)@(\d+)(\+?)(?:/(\d+))?")


class Plan(NamedTuple):
    kind: str
    at: int
    lasting: bool
    seed: int

    @classmethod
    def read(cls, text: str) -> Plan:
        matched = _PLAN.fullmatch(text)
        assert matched, f"not a plan: {text}"
        kind, at, plus, seed = matched.groups()
        return cls(kind, int(at), bool(plus) or kind == "cut", int(seed or 0))


class _Disk:
    """What of one file is safe on the disk, and what was written to it since."""

    def __init__(self, synced: bytes | None) -> None:
        self.synced = None if synced is None else bytearray(synced)
        self.since: list[tuple[Any, ...]] = []

    def sync(self) -> None:
        image = bytearray() if self.synced is None else self.synced
        for change in self.since:
            image = bytearray() if change[0] == "delete" else _apply(image, change)
        self.synced, self.since = image, []

    def after_cut(self, chance: random.Random) -> bytes | None:
        image = None if self.synced is None else bytearray(self.synced)
        for change in self.since:
            fate = chance.random()
            if fate < 0.4:
                continue
            if change[0] == "delete":
                image = None
                continue
            if change[0] == "write" and fate < 0.6:
                keep = chance.randrange(0, len(change[2]) + 1, SECTOR) if len(change[2]) > SECTOR else 0
                change = ("write", change[1], change[2][:keep])
            image = _apply(bytearray() if image is None else image, change)
        return None if image is None else bytes(image)


def _apply(image: bytearray, change: tuple[Any, ...]) -> bytearray:
    if change[0] == "truncate":
        del image[change[1] :]
        image.extend(bytes(change[1] - len(image)))
    elif change[0] == "write" and change[2]:
        _, offset, data = change
        image.extend(bytes(max(0, offset - len(image))))
        image[offset : offset + len(data)] = data
    return image


class FaultVFS(apsw.VFS):
    """Register it by making it; `close` takes it away again. `count` is how many operations changed the disk."""

    def __init__(self, plan: str | None = None) -> None:
        self.name = f"fault-{next(_NAMES)}"
        self.plan = None if plan is None else Plan.read(plan)
        self.count = 0
        self.hits = 0
        self.temporary = 0
        self.only: str | None = None
        self.deletions = False
        self.guard = threading.RLock()
        self.disks: dict[str, _Disk] = {}
        super().__init__(self.name, "")

    def arm(self, plan: str) -> None:
        """From now on; operations are counted from here."""
        with self.guard:
            self.count, self.hits, self.plan = 0, 0, Plan.read(plan)

    def heal(self) -> None:
        """No more faults."""
        with self.guard:
            self.plan = None

    def close(self) -> None:
        self.unregister()
        # The VFS that scrubs keeps the one under it as long as the process lives. A sweep makes 900 of them, and what
        # their disks held came to 300 MB.
        self.disks.clear()

    def fault(self, disk: _Disk | None, deletes: bool = False) -> Plan | None:
        """Count one operation; the plan when it is to fail. `only` and `deletions` narrow both."""
        if self.deletions and not deletes:
            return None
        if self.only is not None and disk is not self.disks.get(self.only):
            return None
        self.count += 1
        plan = self.plan
        if plan is None or self.count < plan.at or (self.count > plan.at and not plan.lasting):
            return None
        self.hits += 1
        return plan

    def disk(self, path: str) -> _Disk:
        if path not in self.disks:
            self.disks[path] = _Disk(Path(path).read_bytes() if os.path.exists(path) else None)
        return self.disks[path]

    def after_power_cut(self, folder: Path) -> None:
        """Write what the disk may hold into another folder, under the same names."""
        assert self.plan is not None
        chance = random.Random(self.plan.seed)
        for path, disk in sorted(self.disks.items()):
            image = disk.after_cut(chance)
            if image is not None:
                (folder / Path(path).name).write_bytes(image)

    def xOpen(self, name: Any, flags: list[int]) -> FaultFile:
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        with self.guard:
            self.temporary += path is None
            # As SQLite's own VFS does: the first sync of a journal that is made here syncs its folder too.
            journal = flags[0] & (apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_WAL)
            fresh = bool(journal) and path is not None and not os.path.exists(path)
            disk = _Disk(None) if path is None else self.disk(path)
        return FaultFile(self, disk, name, flags, fresh)

    def sync_folder(self) -> None:
        for disk in self.disks.values():
            if disk.since and disk.since[-1][0] == "delete":
                disk.synced, disk.since = None, []

    def xGetLastError(self) -> tuple[int, str]:
        read_only = self.plan is not None and self.plan.kind == "readonly" and self.hits
        return (errno.EROFS if read_only else errno.EIO, "planned")

    def xDelete(self, filename: str, syncdir: bool) -> None:
        with self.guard:
            if plan := self.fault(self.disks.get(filename), deletes=True):
                if plan.kind == "late":
                    super().xDelete(filename, syncdir)
                raise _error(plan, apsw.SQLITE_IOERR_DELETE)
            super().xDelete(filename, syncdir)
            disk = self.disk(filename)
            disk.since.append(("delete",))
            if syncdir:
                self.sync_folder()


class FaultFile(apsw.VFSFile):
    def __init__(self, vfs: FaultVFS, disk: _Disk, name: Any, flags: list[int], fresh: bool) -> None:
        self.vfs, self.disk, self.fresh = vfs, disk, fresh
        self.log = bool(flags[0] & apsw.SQLITE_OPEN_WAL)
        super().__init__("", name, flags)

    def xWrite(self, data: Any, offset: int) -> None:
        with self.vfs.guard:
            plan = self.vfs.fault(self.disk)
            if plan is None:
                super().xWrite(data, offset)
                self.disk.since.append(("write", offset, bytes(data)))
                return
            if plan.kind == "torn":
                half = bytes(data)[: len(data) // 2]
                super().xWrite(half, offset)
                self.disk.since.append(("write", offset, half))
            raise _error(plan, apsw.SQLITE_IOERR_WRITE)

    def xSync(self, flags: int) -> None:
        with self.vfs.guard:
            if plan := self.vfs.fault(self.disk):
                raise _error(plan, apsw.SQLITE_IOERR_FSYNC)
            # The files are compared, not the machine's own disk: a real sync would only cost time.
            self.disk.sync()
            if self.fresh:
                self.vfs.sync_folder()
                self.fresh = False

    def xTruncate(self, newsize: int) -> None:
        with self.vfs.guard:
            if plan := self.vfs.fault(self.disk):
                # SQLite only notes it when a commit cannot bring the log back to its limit, and answers OK; APSW would
                # raise what this method raises all the same. The log stays long, and nobody hears of it.
                if self.log and newsize > 0:
                    return
                raise _error(plan, apsw.SQLITE_IOERR_TRUNCATE)
            super().xTruncate(newsize)
            self.disk.since.append(("truncate", newsize))


def _error(plan: Plan, extended: int) -> apsw.Error:
    if plan.kind == "full":
        return apsw.FullError("planned")
    error = apsw.IOError("planned")
    error.extendedresult = extended
    return error
