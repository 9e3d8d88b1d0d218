"""What is told of each step, how files are written, and the errors of both."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

from beetle.contracts.errors import Conflict, IntegrityViolation, ServicesUnavailable, StorageFull, StoreReadOnly
from beetle.deploy.manifest import NotAFile, open_regular
from beetle.named_tuple import NamedTuple

DRAFT = ".new"
"""How the name ends under which a file is written before it is put in place."""
Outcome = Literal["done", "already", "would", "left", "note"]


class StepResult(NamedTuple):
    """One line of what happened: `would` is what a dry run does not do, `left` what stays as it was on purpose."""

    step: str
    outcome: Outcome
    text: str


OnStep = Callable[[StepResult], None]


class Steps:
    """Runs what changes something and tells of it; on a dry run it only tells. `changed` says whether anything was."""

    def __init__(self, on_step: OnStep, dry_run: bool) -> None:
        self.dry_run = dry_run
        self.changed = False
        self.results: list[StepResult] = []
        self._on_step = on_step

    def do(self, step: str, text: str, act: Callable[[], object]) -> None:
        """Run `act`, then tell that it is done."""
        self.changed = True
        if self.dry_run:
            self.say(step, "would", text)
            return
        act()
        self.say(step, "done", text)

    def say(self, step: str, outcome: Outcome, text: str) -> None:
        """Tell of a step that needs no doing."""
        self.results.append(StepResult(step, outcome, text))
        self._on_step(self.results[-1])


class NoRoom(StorageFull):
    template = "no space left for {path}"
    hint_template = "free space on that filesystem and run it again; what was installed before is as it was"


class NotWritable(StoreReadOnly):
    hint_template = "run it as a user who may write there, or name another place (--prefix, --bin, --config)"


class NotOurs(Conflict):
    template = "{path} exists, and does not belong to this installation"
    hint_template = "move it away, and run it again"


class LeadsOut(NotOurs):
    template = "{path} leads out of {root}, to {target}"
    hint_template = "make the link in the image a relative one, or name another place (--prefix, --bin, --config)"


class Damaged(IntegrityViolation):
    template = "{path}: {reason}"
    hint_template = "get this build again, and run its `beetle install`"


class InUse(Conflict):
    template = "something still runs from {path}{who}"
    hint_template = "`beetle stop` ends a daemon; end the rest, and run it again"


class ToolFailed(ServicesUnavailable):
    template = "{command} failed: {reason}"


@contextlib.contextmanager
def writing(path: Path | str) -> Iterator[None]:
    """Turns what a filesystem refuses into the typed error for it; `path` where the system names none.

    Raises:
        NoRoom: no space, inodes or quota are left.
        NotWritable: this user may not write there, or nobody may.
        NotOurs: something of another kind stands where a file or a folder belongs.
    """
    try:
        yield
    except OSError as error:
        place = os.fspath(error.filename2 or error.filename or path)
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise NoRoom(path=place) from error
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise NotWritable(path=place, reason=error.strerror or "refused") from error
        if error.errno in (errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ELOOP):
            raise NotOurs(path=os.fspath(nearest(Path(place)))) from error
        raise


def nearest(path: Path) -> Path:
    """What is there of a path: itself, or else what is in its way, or the deepest of its folders."""
    return next(each for each in (path, *path.parents) if os.path.lexists(each) or each == each.parent)


def sync_folder(folder: Path) -> None:
    """Put the names in a folder on the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(folder: Path, mode: int = 0o755) -> None:
    """Make a folder and those above it, with this mode whatever the umask; one that is there is left as it is."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    with contextlib.suppress(FileExistsError):  # another install made it just now
        folder.mkdir(mode)
        folder.chmod(mode)
    sync_folder(folder.parent)


def write_file(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Write a whole file, or leave the one that was there: a reader never finds half of it.

    It is written under another name first, see `drafts`; what somebody else has under that name is not written to.
    """
    make_folder(path.parent)
    part = path.with_name(f".{path.name}.{os.getpid()}{DRAFT}")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with open(descriptor, "wb") as stream:
            os.fchmod(stream.fileno(), mode)
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def drafts(path: Path, begins: bytes) -> list[Path]:
    """What a `write_file` of this path left that was killed: regular files of this user which begin as `begins` does,
    or end before they have said so. One without a number may be of another command that runs."""
    if not path.parent.is_dir():
        return []
    first = f".{path.name}."
    numbers = (
        (each, each.removeprefix(first).removesuffix(DRAFT))
        for each in os.listdir(path.parent)
        if each.startswith(first) and each.endswith(DRAFT)
    )
    named = (path.with_name(each) for each, number in numbers if number.isdigit())
    return sorted(each for each in named if _is_draft(each, begins))


def _is_draft(path: Path, begins: bytes) -> bool:
    status = path.lstat()
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
        return False
    with open_regular(path) as stream:
        head = stream.read(len(begins)) or b""
    return begins.startswith(head)


def content(path: Path) -> bytes | None:
    """What a file holds, None where there is none: neither a link nor a pipe is one."""
    try:
        with open_regular(path) as stream:
            return stream.readall()
    except (FileNotFoundError, NotAFile):
        return None
